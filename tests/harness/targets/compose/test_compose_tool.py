"""What the compose tool makes of a file; it needs no engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import EnvironmentFault, UsageError
from harness.targets.compose import compose_tool


@pytest.fixture(autouse=True)
def tool() -> None:
    """Skips where there is none."""
    try:
        compose_tool.command()
    except EnvironmentFault as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("written", ["version: '2.1'", 'version: "2.1"', "version: '2.1' # as it was"])
def test_the_version_is_the_one_that_is_written(written: str, tmp_path: Path) -> None:
    file = tmp_path / "compose.yml"
    file.write_text(f"{written}\nservices: {{kafka: {{image: kafka}}}}\n")
    assert compose_tool.resolved(file)["version"] == "2.1"


def test_where_no_version_is_written_there_is_none(tmp_path: Path) -> None:
    file = tmp_path / "compose.yml"
    file.write_text("services: {kafka: {image: kafka, labels: {version: '3'}}}\n")
    assert compose_tool.resolved(file)["version"] is None


def test_a_file_that_the_tool_refuses_is_refused_in_its_words(tmp_path: Path) -> None:
    file = tmp_path / "compose.yml"
    file.write_text("services: {kafka: {image: kafka, volumes: ['nowhere:/a']}}\n")
    with pytest.raises(UsageError, match="nowhere"):
        compose_tool.resolved(file)
