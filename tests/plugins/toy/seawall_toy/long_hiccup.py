"""Hiccups do not last: a node that was made to hiccup is healed of it within ten seconds.

``long-hiccup``: the journal of faults has one that lasted longer. Severity: ``VIOLATION``.
"""

from __future__ import annotations

from collections.abc import Iterator

from checkers.views.conclusion import Conclusion
from checkers.views.fault_journal import FaultJournal
from harness.anomaly import (
    NO_WORD,
    NOTHING,
    AnomalyKind,
    CauseAt,
    Found,
    Needs,
    Sampled,
    Unseen,
)
from harness.findings import Finding

LONGEST_NS = 10_000_000_000

KINDS = (
    AnomalyKind(
        name="long-hiccup",
        invariants=(),
        meaning="A node had the hiccups for longer than ten seconds.",
        shows_loss=False,
        shown_by_clients=True,
        relies_on=frozenset({Needs.FAULTS}),
        follows_from=(),
        cause_at=CauseAt.OFFSET,
        excuses=NOTHING,
        since=None,
        sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
        in_scenarios=NO_WORD,
        permitted_by="",
    ),
)


def conclude(journal: FaultJournal) -> Iterator[Conclusion]:
    """Every hiccup that lasted too long."""
    for fault in journal.faults:
        healed_ns, begun_ns = fault["healed_ns"], fault["injected_ns"]
        if fault["kind"] == "hiccup" and healed_ns is not None and healed_ns - begun_ns > LONGEST_NS:
            took_s = (healed_ns - begun_ns) / 1e9
            yield Conclusion(Finding(journal.run, "long-hiccup", "", -1), f"A hiccup lasted {took_s:.0f} s.", ())
