"""What the options of an import permit is no violation: nobody was there to see whether it happened."""

from __future__ import annotations

import pytest

from harness.checker import Outcome, Verdict
from tests.harness.jepsen.conftest import Verdicts, assigned, polled, sent

OPTIONS = ("unclean_election", "retention")
THREE = [*sent(1, 4, 17, 0), *sent(1, 4, 18, 1), *sent(1, 4, 19, 2)]
LOST = [*THREE, *polled(2, "4 [[0 17] [1 18]]"), *assigned(10, "4", seek=True), *polled(10, "4 [[2 19]]")]
REPLACED = [*sent(1, 4, 17, 0), *polled(2, "4 [[0 17]]"), *sent(3, 4, 18, 0), *polled(2, ""),
            *assigned(10, "4", seek=True), *polled(10, "4 [[0 18]]")]  # fmt: skip
TWICE = [*sent(1, 4, 17, 0), *assigned(10, "4", seek=True), *polled(10, "4 [[0 17] [1 17]]")]


def test_a_loss_is_a_violation_where_no_option_permits_it(judged: Verdicts) -> None:
    verdict = judged(*LOST)
    assert verdict.outcome is Outcome.VIOLATION
    assert {one.because for one in verdict.anomalies} == {"VIOLATION: nothing in the configuration gives it away."}


@pytest.mark.parametrize("option", OPTIONS)
def test_a_loss_that_an_option_permits_is_left_open(judged: Verdicts, option: str) -> None:
    verdict = judged(*LOST, **{option: True})
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert {one.kind for one in verdict.anomalies} == {"lost-write", "vanished-read"}
    [because] = {one.because for one in verdict.anomalies}
    assert because.startswith("INDETERMINATE: the configuration permits what would excuse it, and no broker recorded")


def test_a_record_that_took_another_one_s_place_is_left_open_only_where_elections_may_be_unclean(
    judged: Verdicts,
) -> None:
    verdict = judged(*REPLACED, unclean_election=True)
    assert [(one.kind, one.verdict) for one in verdict.anomalies] == [
        ("lost-write", Verdict.INDETERMINATE),
        ("vanished-read", Verdict.INDETERMINATE),
        ("inconsistent-offsets", Verdict.INDETERMINATE),
    ]


@pytest.mark.parametrize(("option", "outcome"), [("unclean_election", "INDETERMINATE"), ("retention", "VIOLATION")])
def test_what_an_option_does_not_permit_stays_a_violation(judged: Verdicts, option: str, outcome: str) -> None:
    verdict = judged(*TWICE, **{option: True})
    assert [(one.kind, one.verdict) for one in verdict.anomalies] == [("duplicate", Verdict(outcome))]
