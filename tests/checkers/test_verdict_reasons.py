"""An anomaly says what gave it away, and never something that did not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from checkers import check
from harness.checker import Anomaly
from tests.checkers import sampled_cases
from tests.checkers.all_cases import CASES
from tests.checkers.excuse_cases import LEAST_2, UNCLEAN, darken, sent_again
from tests.checkers.story import NODES, Story


def lose_power_and_elect(story: Story) -> None:
    darken(story, *NODES)
    story.elect(1, clean=False)


def anomalies(run: Path, kind: str) -> list[Anomaly]:
    [verdict] = check([run], engine="reference")
    return [one for one in verdict.anomalies if one.kind == kind]


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        (LEAST_2, "had lost power or disk at one time"),
        (UNCLEAN, "an unclean election gave it up"),
        ({"guarantees": LEAST_2["guarantees"] | {"idempotent_producers": False}}, "had lost power or disk at one time"),
    ],
)
def test_a_copy_that_was_given_up_says_by_what(manifest: dict[str, Any], reason: str, tmp_path: Path) -> None:
    story = Story("r")
    sent_again(story, lose_power_and_elect)
    [duplicate] = anomalies(story.write(tmp_path / "r", **manifest), "duplicate")
    assert duplicate.because.startswith("DOCUMENTED: ")
    assert reason in duplicate.because


def test_a_copy_of_a_producer_that_may_number_nothing_says_so(tmp_path: Path) -> None:
    name = "of_an_imported_transaction_the_guarantee_says_whether_its_producer_was_idempotent"
    [case] = [one for one in CASES if one.name == name]
    [duplicate] = anomalies(case.story("r").write(tmp_path / "r", **case.manifest), "duplicate")
    assert duplicate.because == "DOCUMENTED: producers are not idempotent (guarantees.idempotent_producers)."


def test_what_follows_from_a_loss_says_by_what_that_was_given_up(tmp_path: Path) -> None:
    story = Story("r")
    story.elect(1, clean=False)
    story.send()
    story.send(append=False, offset=0)  # acknowledged by who led before and has not heard of the election
    sampled_cases.see(story)
    run = story.write(tmp_path / "r", guarantees=sampled_cases.UNCLEAN)
    [lost], [other] = anomalies(run, "lost-write"), anomalies(run, "inconsistent-offsets")
    assert "It follows from the lost-write" in other.why
    assert other.because == lost.because
    assert "an unclean election gave it up" in other.because
