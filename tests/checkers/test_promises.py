"""The reference says of every case what is written beside it: of its rows in memory, and of a run directory."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from checkers import CONCLUSIONS, PROMISES, check
from checkers.registry import KINDS
from checkers.verdicts.memory import decided
from harness.checker import RunVerdict
from tests.checkers.all_cases import CASES
from tests.checkers.cases import Case

MALFORMED = (
    "a_clock_that_was_moved_by_no_number_makes_nothing_old",
    "a_delivered_record_without_an_offset_makes_the_run_invalid",
    "parameters_that_are_no_object_move_no_clock",
)
"""The cases whose rows are refused, or mended, when their files are read."""

BY_DAY = [case for at, case in enumerate(CASES) if at % 16 == 0 or case.name in MALFORMED]
LATE = pytest.mark.nightly("writes and reads a run directory; by day one case in sixteen does, and all are in memory")


def require(verdict: RunVerdict, case: Case) -> None:
    """What is written beside the case."""
    assert sorted((a.kind, str(a.verdict), a.offset or 0) for a in verdict.anomalies) == sorted(
        (kind, own, offset or 0) for kind, own, offset in case.anomalies
    )
    assert verdict.outcome is case.outcome, verdict.reasons
    assert re.search(case.reason, "\n".join(verdict.reasons))


@pytest.mark.parametrize("case", [case for case in CASES if case.name not in MALFORMED], ids=lambda case: case.name)
def test_the_reference_agrees_that(case: Case) -> None:
    story = case.story("r")
    manifest = story.manifest(**case.manifest)
    timeline = story.collected(sampled=manifest.guarantees.get("timeline") == "sampled")
    require(decided(manifest, (story.history, timeline, story.logs), story.faults), case)


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name, marks=[] if case in BY_DAY else [LATE]) for case in CASES]
)
def test_the_reference_reads_from_files_that(case: Case, tmp_path: Path) -> None:
    [verdict] = check([case.story("r").write(tmp_path / "r", **case.manifest)], engine="reference")
    require(verdict, case)


def test_every_kind_is_found_in_some_case() -> None:
    found = {kind for case in CASES for kind, _, _ in case.anomalies}
    assert found == set(KINDS)


def test_kinds_have_names_of_their_own_and_follow_from_kinds_that_are_judged_first() -> None:
    kinds = [*(p.KINDS for p in PROMISES), *(c.KINDS for c in CONCLUSIONS)]
    names = [kind.name for ours in kinds for kind in ours]
    assert len(names) == len(set(names))
    for kind in KINDS.values():
        assert all(names.index(cause) < names.index(kind.name) for cause in kind.follows_from), kind.name


def test_a_word_of_an_outcome_predicts_one_kind_that_shows_it() -> None:
    words = [kind.in_scenarios.word for kind in KINDS.values() if kind.in_scenarios.predicted_by_word]
    assert None not in words
    assert len(words) == len(set(words))
