"""The reason for a verdict on a finding: one sentence, which names the setting of the configuration that decides."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from checkers.registry import KINDS
from checkers.verdicts.resends import reason_to_resend
from checkers.views.conclusion import RunFacts
from checkers.views.generations import is_promised
from checkers.views.row import ALL
from harness.anomaly import AnomalyKind, LossyFailure
from harness.checker import Verdict
from harness.excuse import EXCUSES, Effect
from harness.findings import Finding

_NOT_IDEMPOTENT = "producers are not idempotent (guarantees.idempotent_producers)"

_DOUBTS: Mapping[str, str] = MappingProxyType(
    {
        "resent": "values were sent more than once, and it rests on which send they are of",
        "unrecorded": "elections of the groups' own topic are not recorded, and unclean ones are permitted",
        "deposed": "a coordinator that was cut off, or had stood still, may have answered from what it knew",
        "unknown": "whether a copy of Kafka's own topic was in sync where nothing was lost is not known",
        "archived": "its group may have been given it, unseen, as often as its limit permits",
        "counted": "it may follow from findings that were only counted",
    }
)
"""The sentences of the doubts that go before everything else, the first one first."""

_UNOBSERVED = "the configuration permits what would excuse it, and no broker recorded whether it happened"

_OPEN: Mapping[str, str] = MappingProxyType(
    {
        "open-transaction": "the coordinator writes markers in its own time, and the run does not promise to settle",
        "unseen": "whether it would have been read later is not known",
    }
)


class Doubts(NamedTuple):
    """Why it cannot be decided whether a finding is excused.

    Attributes:
        unrecorded: an election that no table records may have given it up (see :mod:`checkers.verdicts.excuses`).
        deposed: a coordinator that another one had replaced may have answered (see :mod:`checkers.verdicts.excuses`).
        unknown: lossy failures may have taken every copy of what explains it (see
        :mod:`checkers.views.lossy_failures`). unobserved: no broker could record its excuse (see
        :mod:`checkers.verdicts.excuses`). resent: it rests on which send a value is of, and there are values that were
        sent more than once. archived: a share group may have been given it as often as it permits (see
        :mod:`checkers.verdicts.excuses`). counted: it may follow from findings of which only the number is known (see
        :mod:`checkers.verdicts.capped_findings`).
    """

    unrecorded: bool = False
    deposed: bool = False
    unknown: bool = False
    unobserved: bool = False
    resent: bool = False
    archived: bool = False
    counted: bool = False


def because(run: RunFacts, finding: Finding, verdict: Verdict, doubts: Doubts) -> str:
    """The sentence; the finding's ``excuse`` is the one that holds, if any does."""
    match verdict:
        case Verdict.VIOLATION:
            return "VIOLATION: nothing in the configuration gives it away."
        case Verdict.EXPECTED:
            return "EXPECTED: the scenario predicts it, or what it follows from."
        case Verdict.WEAK:
            if finding.acks in (None, ALL):  # it is about several senders
                return "WEAK: not every sender concerned waited for all in-sync replicas."
            return f"WEAK: the sender waited for acks={finding.acks} only."
        case Verdict.DOCUMENTED:
            return f"DOCUMENTED: {_given_away(run, finding)}."
        case Verdict.INDETERMINATE:
            return f"INDETERMINATE: {_open(finding, doubts)}."


def _open(finding: Finding, doubts: Doubts) -> str:
    doubted = next((sentence for name, sentence in _DOUBTS.items() if getattr(doubts, name)), None)
    if doubted is not None:
        return doubted
    if finding.excuse is None:
        own = _OPEN.get(finding.kind)
    else:
        own = EXCUSES[finding.excuse].reason if EXCUSES[finding.excuse].effect is Effect.LEFT_OPEN else None
    usual = "a table that it relies on, or that may hold its excuse, has a gap, or a prediction may mean it"
    return own or (_UNOBSERVED if doubts.unobserved else usual)


def _given_away(run: RunFacts, finding: Finding) -> str:
    if finding.excuse is None:
        return _given_away_by_kind(run, finding, KINDS[finding.kind])
    excuse = EXCUSES[finding.excuse]
    return f"{excuse.reason}: {reason_to_resend(run, finding)}" if excuse.if_resent else excuse.reason


def _given_away_by_kind(run: RunFacts, finding: Finding, kind: AnomalyKind) -> str:
    if run.guarantees.get(kind.permitted_by) is True:
        return f"the scenario does not promise otherwise of its program (guarantees.{kind.permitted_by})"
    if kind.since is not None and not is_promised(kind, run.generation):
        return f"generation {run.generation} does not promise it: {kind.since.why_not_before}"
    if finding.kind == "duplicate" and run.guarantees.get("idempotent_producers") is False:
        return _NOT_IDEMPOTENT
    if kind.excuses.lossy_failure is LossyFailure.BETWEEN_COMMITS:
        return "every broker had lost power or disk at one time, and writes are not flushed one by one"
    return (
        "every member of the ISR, at least min.insync.replicas of them, had lost power or disk at one time, and writes "
        "are not flushed one by one"
    )
