"""What brokers know is what the table says that they know."""

from __future__ import annotations

import shutil

import pytest

from harness.targets.kafka.releases import TRIED, Metadata, release
from harness.targets.kafka.server_properties import DEFAULTS
from harness.targets.kafka.setting_names import _table, is_known
from tests.harness.targets.contract import all_but, fetched_or_skip
from tests.harness.targets.kafka.settings_of_releases import names, rows


@pytest.mark.parametrize("version", all_but(TRIED[-1]))
def test_the_table_knows_what_brokers_know(version: str) -> None:
    if shutil.which("javac") is None:
        pytest.skip("no Java compiler: what Kafka knows cannot be asked")
    distribution = fetched_or_skip(version)
    asked = set(names(distribution))
    if distribution.release.metadata is Metadata.KRAFT:
        asked = {name for name in asked if not name.startswith("zookeeper.")}
    assert {name for name in _table() if is_known(name, distribution.release)} == asked


def test_a_setting_is_in_the_table_from_the_release_that_it_came_with_to_the_one_that_lacks_it() -> None:
    known = {"1.0.0": frozenset("ab"), "0.11.0.0": frozenset("a"), "2.0.0": frozenset("b")}
    assert list(rows(known)) == ["name,since,until", "a,0.11.0.0,2.0.0", "b,1.0.0,"]
    with pytest.raises(AssertionError, match="a came back"):
        list(rows(known | {"2.1.0": frozenset("a")}))


def test_what_is_not_left_to_kafka_is_something_that_the_newest_protocol_knows() -> None:
    assert {name for name in DEFAULTS if not is_known(name, release("4.3.0"))} == set()
