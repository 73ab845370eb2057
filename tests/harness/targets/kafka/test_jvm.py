"""Which Java is taken for real Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import EnvironmentFault
from harness.targets.kafka.jvm import refuse_old_java


def java_that_says(directory: Path, said: str) -> None:
    java = directory / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    java.chmod(0o755)


@pytest.mark.parametrize(
    ("said", "feature"), [('openjdk version "11.0.22" 2024-01-16', 11), ('java version "1.8.0_402"', 8)]
)
def test_a_java_that_is_too_old_is_refused_with_its_place(
    said: str, feature: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java_that_says(tmp_path, said)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(EnvironmentFault, match=rf"Java {feature} \({tmp_path}/bin/java\) is too old.*JAVA_HOME"):
        refuse_old_java()


@pytest.mark.parametrize("said", ['openjdk version "17.0.15" 2025-04-15', 'openjdk version "21"', "something else"])
def test_a_java_that_is_young_enough_or_does_not_say_is_taken(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    java_that_says(tmp_path, said)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    refuse_old_java()
