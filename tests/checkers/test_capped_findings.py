"""What follows from findings that were only counted."""

from __future__ import annotations

from typing import Any

import pytest

from checkers.registry import KINDS
from checkers.verdicts.capped_findings import Rest
from harness.checker import Verdict
from harness.findings import Finding, FindingRange

LAST = Finding("r", "lost-write", "ledger", 0, offset=26, value=1026, total=90)


def rest(ranges: int = 2) -> Rest:
    """Losses at 2 to 59 and at 70 to 99, of which 25 were kept; the lowest two ``ranges`` are known."""
    known = [
        FindingRange("r", "lost-write", "ledger", 0, None, first, end, end - first, 1000 + first, 999 + end, ranges, 90)
        for first, end in ((2, 60), (70, 100))
    ]
    return Rest(LAST, 65, known, Verdict.DOCUMENTED)


def disorder(after: int, **other: Any) -> Finding:
    """A record that was sent after the acknowledgement of the one at ``after``, and lies before it."""
    about = {"offset": after - 1, "value": 5000, "other_offset": after, "other_value": 1000 + after}
    return Finding(**{"run": "r", "kind": "nonmonotonic-send", "topic": "ledger", "partition": 0, **about, **other})


@pytest.mark.parametrize("after", [26, 27, 59, 70, 99])
def test_a_disorder_behind_a_loss_that_was_only_counted_follows_from_that(after: int) -> None:
    assert rest().explains(disorder(after), KINDS["nonmonotonic-send"])


@pytest.mark.parametrize(
    "finding",
    [
        disorder(60),
        disorder(100),
        disorder(10),
        disorder(27, partition=1),
        disorder(27, kind="poll-skip"),
        disorder(27, other_value=7),
    ],
)
def test_what_no_counted_loss_is_about_does_not(finding: Finding) -> None:
    assert not rest().explains(finding, KINDS[finding.kind])
    assert not rest().may_explain(finding, KINDS[finding.kind])


def test_it_may_follow_from_a_loss_in_a_range_that_is_not_known() -> None:
    assert rest(ranges=3).may_explain(disorder(200), KINDS["nonmonotonic-send"])
    assert not rest(ranges=3).may_explain(disorder(60), KINDS["nonmonotonic-send"])
