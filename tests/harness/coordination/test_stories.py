"""Every story of the coordinators still goes as it is written, in each generation."""

from __future__ import annotations

import re
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
        ("committed-by-no-member", "transactional_offsets", "unfenced"),
        ("repeated-late", "batches_remembered", "last"),
        ("records-all-deleted", "producers_without_records", "unknown"),
        ("offsets-expire", "offset_expiry", "after_commit"),
    ],
)
def test_a_rule_that_is_changed_changes_its_story(story: str, knob: str, value: str) -> None:
    path = STORIES / f"{story}.txt"
    assert ending(tell(path, {knob: value}), "3.7") != ending(path.read_text(), "3.7")


def ending(story: str, generation: str) -> str:
    """What a story's coordinators of that generation answer."""
    endings = re.split(r"^(?=\d.*:$)", story.partition("----\n")[2], flags=re.MULTILINE)
    [(_, lines)] = [found for one in endings if generation in (found := one.partition(":\n")[::2])[0].split(", ")]
    return lines
