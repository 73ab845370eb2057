"""Every story of the coordinators still goes as it is written, in each generation."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.coordination.coordinator_teller import tell

STORIES = Path(__file__).parent / "stories"


@pytest.mark.parametrize("path", sorted(STORIES.glob("*.txt")), ids=lambda path: path.stem)
def test_the_story_goes_as_it_is_written(path: Path, request: pytest.FixtureRequest) -> None:
    told = tell(path)
    if request.config.getoption("--rewrite", default=False):
        path.write_text(told)
    assert told == path.read_text()


@pytest.mark.parametrize(
    ("story", "knob", "value"),
    [
        ("sent-without-adding", "transactions", "unverified"),
        ("committed-as-nobody", "transactional_offsets", "unfenced"),
        ("repeated-late", "batches_remembered", "last"),
        ("records-all-deleted", "producers_without_records", "unknown"),
        ("offsets-expire", "offset_expiry", "after_commit"),
    ],
)
def test_a_rule_that_is_changed_changes_its_story(story: str, knob: str, value: str) -> None:
    path = STORIES / f"{story}.txt"
    assert tell(path, {knob: value}) != path.read_text()
