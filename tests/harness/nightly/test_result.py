"""What outcomes mean for the exit code of a night, and what a signature leaves out."""

from __future__ import annotations

import pytest

from harness.errors import ExitCode
from harness.nightly.result import EXIT_CODES, CellOutcome, CellResult, Incident, exit_code, signature_of


def result(outcome: str) -> CellResult:
    return CellResult(
        night="2026-11-27", cell=f"run {outcome}", series=outcome, kind="run", target="simulated",
        outcome=CellOutcome(outcome), exit_code=None, reproduce="seawall run x", plan="0" * 64,
    )  # fmt: skip


def test_every_outcome_has_an_exit_code_or_none() -> None:
    assert set(EXIT_CODES) == set(CellOutcome)


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([], ExitCode.PASS),
        (["pass", "skipped", "not-run"], ExitCode.PASS),
        (["environment", "as-predicted"], ExitCode.ENVIRONMENT),
        (["inconclusive", "environment"], ExitCode.INCONCLUSIVE),
        (["timeout", "inconclusive"], ExitCode.INVALID),
        (["error", "invalid"], ExitCode.INTERNAL),
        (["disagreement", "pass"], ExitCode.INTERNAL),
        (["not-reproduced", "error"], ExitCode.VIOLATION),
        (["violation", "invalid", "pass"], ExitCode.VIOLATION),
        (["skipped", "not-run"], ExitCode.ENVIRONMENT),
    ],
)
def test_the_exit_code_is_that_of_the_gravest_cell_and_a_night_in_which_nothing_ran_is_not_green(
    outcomes: list[str], code: ExitCode
) -> None:
    assert exit_code(map(result, outcomes)) is code


def test_a_signature_is_of_kinds_and_places_alone() -> None:
    one, other = Incident(kind="lost-write", place="ledger/0", count=3), Incident(kind="stuck", place="", count=1)
    assert signature_of([one, other]) == signature_of([other, one.model_copy(update={"count": 40})])
    assert signature_of([one]) != signature_of([other])
    assert signature_of([]) is None
