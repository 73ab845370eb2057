"""What a compose file and its images come to together, without an engine."""

from __future__ import annotations

from textwrap import dedent
from unittest.mock import Mock

import pytest
import yaml

from harness.errors import UsageError
from harness.targets.compose import compose_tool, images, inspected_stack
from harness.targets.compose.image import KafkaImage
from harness.targets.compose.inspected_stack import InspectedStack
from harness.targets.compose.written_stack import read
from harness.targets.kafka.releases import release
from tests.harness.targets.compose.files import BITNAMI, CONFLUENT_ZOOKEEPER


def found(text: str, image: KafkaImage, monkeypatch: pytest.MonkeyPatch) -> InspectedStack:
    """What this file is, each of whose images is ``image``."""
    monkeypatch.setattr(compose_tool, "resolved", lambda _: yaml.safe_load(dedent(text)))
    monkeypatch.setattr(inspected_stack, "connected", Mock())
    monkeypatch.setattr(images, "has_image", lambda *_: True)
    monkeypatch.setattr(inspected_stack, "look_into", lambda *_: image)
    return inspected_stack.find(read("stack.yml"))


def test_a_file_with_zookeeper_and_a_release_that_is_known_with_kraft_alone_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(UsageError, match=r"stack\.yml: its Kafka 3\.9\.1 runs with ZooKeeper"):
        found(CONFLUENT_ZOOKEEPER, KafkaImage(release("3.9.1"), "7.9.1", takes_shim=True), monkeypatch)


def test_that_a_release_is_told_by_a_table_is_written_down(monkeypatch: pytest.MonkeyPatch) -> None:
    by_table = found(CONFLUENT_ZOOKEEPER, KafkaImage(release("2.8.1"), "6.2.1", takes_shim=True), monkeypatch)
    assert by_table.in_words()["release_by_table_of"] == ["Confluent Platform 6.2.1"]
    exact = found(BITNAMI, KafkaImage(release("3.9.1"), None, takes_shim=True), monkeypatch)
    assert "release_by_table_of" not in exact.in_words()
