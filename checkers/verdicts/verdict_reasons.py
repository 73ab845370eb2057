"""The reason for a verdict on a finding: one sentence, which names the setting of the configuration that decides."""

from __future__ import annotations

from typing import NamedTuple

from checkers.registry import KINDS, rule_of
from checkers.views.configured import Configured
from checkers.views.generations import is_promised
from checkers.views.own_judgements import OpenByNature, Permitted
from checkers.views.resends import reason_to_resend
from checkers.views.row import ALL
from harness.anomaly import AnomalyKind, LossyFailure
from harness.checker import Verdict
from harness.excuse import EXCUSES, Effect, Excuse
from harness.findings import Finding
from harness.parts import Parts

_RESENT = "values were sent more than once, and it rests on which send they are of"
_UNRECORDED = "elections of the groups' own topic are not recorded, and unclean ones are permitted"
_UNKNOWN = "whether a copy of Kafka's own topic was in sync where nothing was lost is not known"
_COUNTED = "it may follow from findings that were only counted"
_UNOBSERVED = "the configuration permits what would excuse it, and no broker recorded whether it happened"
_USUAL = "a table that it relies on, or that may hold its excuse, has a gap, or a prediction may mean it"


class Doubts(NamedTuple):
    """Why it cannot be decided whether a finding is excused.

    Attributes:
        resent: it rests on which send a value is of, and there are values that were sent more than once.
        unrecorded: an election that no table records may have given it up (see :mod:`checkers.verdicts.excuses`).
        own: what its rule says may explain it, part of a sentence (see :mod:`checkers.views.own_judgements`).
        unknown: lossy failures may have taken every copy of what explains it (see
            :mod:`checkers.views.lossy_failures`).
        counted: it may follow from findings of which only the number is known (see
            :mod:`checkers.verdicts.capped_findings`).
        unobserved: no broker could record its excuse (see :mod:`checkers.verdicts.excuses`).
    """

    resent: bool = False
    unrecorded: bool = False
    own: str = ""
    unknown: bool = False
    counted: bool = False
    unobserved: bool = False


def because(parts: Parts, finding: Finding, verdict: Verdict, excuse: Excuse | None, doubts: Doubts) -> str:
    """The sentence.

    Args:
        parts: what is known about the run.
        finding: what the verdict is on.
        verdict: on it.
        excuse: the one that holds, or may hold; None: none does.
        doubts: why that cannot be decided.
    """
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
            return f"DOCUMENTED: {_given_away(parts.beside(finding), finding, excuse)}."
        case Verdict.INDETERMINATE:
            return f"INDETERMINATE: {_open(parts.of(Configured), finding, excuse, doubts)}."


def _open(configured: Configured, finding: Finding, excuse: Excuse | None, doubts: Doubts) -> str:
    sentences = (
        _RESENT if doubts.resent else "",
        _UNRECORDED if doubts.unrecorded else "",
        doubts.own,
        _UNKNOWN if doubts.unknown else "",
        _COUNTED if doubts.counted else "",
        _left_open(configured, finding, excuse),
        _UNOBSERVED if doubts.unobserved else "",
    )
    return next(filter(None, sentences), _USUAL)


def _left_open(configured: Configured, finding: Finding, excuse: Excuse | None) -> str:
    """Why no complete evidence would decide it; empty: it would."""
    if excuse is not None:
        return EXCUSES[excuse].reason if EXCUSES[excuse].effect is Effect.LEFT_OPEN else ""
    rule = rule_of(finding.kind)
    return rule.left_open(finding, configured.guarantees) if isinstance(rule, OpenByNature) else ""


def _given_away(about: Parts, finding: Finding, excuse: Excuse | None) -> str:
    if excuse is None:
        return _given_away_by_kind(about, finding, KINDS[finding.kind])
    known = EXCUSES[excuse]
    return f"{known.reason}: {about.given_to(reason_to_resend)}" if known.if_resent else known.reason


def _given_away_by_kind(about: Parts, finding: Finding, kind: AnomalyKind) -> str:
    configured = about.of(Configured)
    if configured.guarantees.get(kind.permitted_by) is True:
        return f"the scenario does not promise otherwise of its program (guarantees.{kind.permitted_by})"
    if kind.since is not None and not is_promised(kind, configured.generation):
        return f"generation {configured.generation} does not promise it: {kind.since.why_not_before}"
    rule = rule_of(finding.kind)
    if isinstance(rule, Permitted) and (why := about.given_to(rule.permitted)):
        return why
    if kind.excuses.lossy_failure is LossyFailure.BETWEEN_COMMITS:
        return "every broker had lost power or disk at one time, and writes are not flushed one by one"
    return (
        "every member of the ISR, at least min.insync.replicas of them, had lost power or disk at one time, and writes "
        "are not flushed one by one"
    )
