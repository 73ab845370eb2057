"""Which Java is taken for real Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import EnvironmentFault
from harness.targets.kafka.jvm import java_version, refuse_old_java
from tests.harness.fake_java import java_that_says


def test_a_java_that_is_too_old_is_refused_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = java_that_says(tmp_path, 'java version "1.8.0_402"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentFault, match=rf"Java 8 \({java}\) is too old for Kafka\. Install Java 17.*JAVA_HOME"):
        refuse_old_java()


@pytest.mark.parametrize(
    ("said", "version"),
    [('openjdk version "17.0.15" 2025-04-15', 'openjdk version "17.0.15" 2025-04-15'),
     ("something else", "(says nothing)")],
)  # fmt: skip
def test_a_java_that_is_young_enough_or_does_not_say_is_taken(
    said: str, version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java_that_says(tmp_path, said)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    refuse_old_java()
    assert java_version() == version
