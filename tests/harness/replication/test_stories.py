"""Every story under ``stories/`` still goes as it is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.harness.replication.controller_teller import ControllerTeller
from tests.harness.replication.storyteller import (
    EVERY_GENERATION,
    IDEAS,
    WorldTeller,
    tell_outcomes,
    tell_story,
)

STORIES = Path(__file__).parent / "stories"
TELLERS: dict[str, Callable[[Path], str]] = {
    "controller": lambda path: tell_story(path, ControllerTeller),
    "generations": lambda path: tell_outcomes(path, EVERY_GENERATION),
    "stories": lambda path: tell_story(path, WorldTeller),
    "ideas": lambda path: tell_outcomes(path, IDEAS),
}
"""By folder."""


@pytest.mark.parametrize(
    "path", sorted(STORIES.rglob("*.txt")), ids=lambda path: str(path.relative_to(STORIES).with_suffix(""))
)
def test_the_story_goes_as_it_is_written(path: Path, request: pytest.FixtureRequest) -> None:
    told = TELLERS[path.parent.name](path)
    if request.config.getoption("--rewrite", default=False):
        path.write_text(told)
    assert told == path.read_text()


def test_a_story_with_another_ending_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "wrong.txt"
    path.write_text("cluster generation=3.7 nodes=1 min_isr=1\n----\n0 leader epoch=0 leo=0 hw=1 isr=0\n")
    assert tell_story(path, WorldTeller) == path.read_text().replace("hw=1", "hw=0")
