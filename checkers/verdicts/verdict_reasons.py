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
from harness.findings import Finding

_NOT_IDEMPOTENT = "producers are not idempotent (guarantees.idempotent_producers)"

_EXCUSES: Mapping[str, str] = MappingProxyType(
    {
        "retention": "it was deleted on purpose, which the configuration permits (guarantees.retention)",
        "unclean": "an unclean election gave it up, which the configuration permits (guarantees.unclean_election)",
        "damage": "a fault of the run (corrupt_log) has damaged a log of that node",
        "down": "the replica that is missing was not running",
        "harmed": "a fault of the run had harmed what the node runs on, or kept it from its controller as it started",
        "exits": "that generation ends a broker that would have to cut its log, where unclean elections are forbidden",
        "renumbered": "its producer sent it again in another epoch, or under another id, so that its leader could not "
        "tell it from a new one",
        "bare": "its records bear no epochs (log.message.format.version), so followers cut by their own watermark",
        "group": "the consumer's group may have moved the partition, and the history names no rebalances",
        "interleaving": "Kafka lets transactions that write at the same time interleave",
    }
)

_OPEN: Mapping[str, str] = MappingProxyType(
    {
        "counted": "it may follow from findings that were only counted",
        "resent": "values were sent more than once, and it rests on which send they are of",
        "unread": "what the broker has written down could not be read",
        "unfinished": "the run ended before the program, or the share group, was known to be done with the record",
        "entangled": "too many transactions are entangled to be followed",
        "open-transaction": "the coordinator writes markers in its own time, and the run does not promise to settle",
        "unrecorded": "elections of the groups' own topic are not recorded, and unclean ones are permitted",
        "deposed": "a coordinator that was cut off, or had stood still, may have answered from what it knew",
        "unknown": "whether a copy of Kafka's own topic was in sync where nothing was lost is not known",
        "archived": "its group may have been given it, unseen, as often as its limit permits",
        "unobserved": "the configuration permits what would excuse it, and no broker recorded whether it happened",
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
    own = next(
        (
            name
            for name in ("resent", "unrecorded", "deposed", "unknown", "archived", "counted")
            if getattr(doubts, name)
        ),
        finding.excuse,
    )
    usual = "a table that it relies on, or that may hold its excuse, has a gap, or a prediction may mean it"
    return _OPEN.get(own or finding.kind, _OPEN["unobserved"] if doubts.unobserved else usual)


def _given_away(run: RunFacts, finding: Finding) -> str:
    if finding.excuse == "unnumbered":
        return f"{_NOT_IDEMPOTENT}, and the client may have sent it twice: {reason_to_resend(run, finding)}"
    excuse = _EXCUSES.get(finding.excuse or "")
    if excuse is not None:
        return excuse
    return _given_away_by_kind(run, finding, KINDS[finding.kind])


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
