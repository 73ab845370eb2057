"""An anomaly says what gave it away, and never something that did not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from checkers import check
from tests.checkers.excuse_cases import LEAST_2, UNCLEAN, darken, sent_again
from tests.checkers.story import NODES, Story


def lose_power_and_elect(story: Story) -> None:
    darken(story, *NODES)
    story.elect(1, clean=False)


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        (LEAST_2, "had lost power or disk at one time"),
        (UNCLEAN, "an unclean election gave it up"),
        ({"guarantees": LEAST_2["guarantees"] | {"idempotent_producers": False}}, "producers are not idempotent"),
    ],
)
def test_a_copy_that_was_given_up_says_by_what(manifest: dict[str, Any], reason: str, tmp_path: Path) -> None:
    story = Story("r")
    sent_again(story, lose_power_and_elect)
    [verdict] = check([story.write(tmp_path / "r", **manifest)], engine="reference")
    [duplicate] = [one for one in verdict.anomalies if one.kind == "duplicate"]
    assert duplicate.because.startswith("DOCUMENTED: ")
    assert reason in duplicate.because
