"""The severity of a finding without predictions: what excuses it, what may, and what evidence is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from checkers.conclusion import RunFacts
from checkers.excuses import is_unobserved, is_unrecorded, is_watched, tables_of_excuses
from checkers.generations import is_promised
from checkers.guarantees_are_configured import MISSTATED
from checkers.lossy_failures import documented, is_unknown
from checkers.message_formats import cuts_by_watermark
from checkers.permitted_deletions import may_be_deleted
from checkers.promises import KINDS
from checkers.resends import reason_to_resend
from checkers.row import Row
from checkers.sampled_timelines import unseen_excuse
from checkers.verdict_reasons import Doubts
from checkers.weak_acks import may_have_gone
from harness.anomaly import AnomalyKind, Needs
from harness.checker import Verdict
from harness.findings import Excuse, Finding
from harness.history import Manifest

GIVEN_AWAY = frozenset({"group", "interleaving", "down", "damage", "harmed", "exits", "bare"})
"""The excuses that always hold. The others hold when the configuration permits them, by the guarantee's name in
``run.json``."""

_GUARANTEE: Mapping[str, tuple[str, bool]] = MappingProxyType(
    {
        "retention": ("retention", True),
        "unclean": ("unclean_election", True),
        "unnumbered": ("idempotent_producers", False),
    }
)


@dataclass(frozen=True, slots=True)
class Evidence:
    """A run's evidence besides the engine's answers.

    Attributes:
        unreadable: by table, why it or a file of it cannot be read.
        faults: the rows of the table.
        predictions: those that replace the predictions of its manifest; None: none do.
    """

    manifest: Manifest
    faults: Sequence[Row] = ()
    unreadable: Mapping[str, Sequence[str]] = field(default_factory=dict)
    predictions: Sequence[Mapping[str, Any]] | None = None

    @property
    def foreseen(self) -> Sequence[Mapping[str, Any]]:
        """The predictions by which the run is judged."""
        return self.manifest.predictions if self.predictions is None else self.predictions


class Severity(NamedTuple):
    """The severity of a finding without predictions.

    Attributes:
        verdict: on it.
        excuse: what excuses it, or may; None: nothing does.
        doubts: what else may.
    """

    verdict: Verdict
    excuse: Excuse | None = None
    doubts: Doubts = Doubts()


def severity_of(run: Evidence, facts: RunFacts, gaps: set[str], finding: Finding) -> Severity:
    """The severity of one finding; ``gaps``: what is incomplete, by the values of ``Needs``, and :data:`MISSTATED`."""
    manifest, guarantees, kind = run.manifest, run.manifest.guarantees, KINDS[finding.kind]
    excuse = finding.excuse or unseen_excuse(facts, finding, kind)  # of a sampled timeline also what no sample may show
    doubts = _doubts(facts, manifest, finding, kind)
    left_open = Severity(Verdict.INDETERMINATE, excuse, doubts)
    seen_by_runner = finding.kind == "stuck" and finding.node is None  # run.json has it, and no table
    relied_on = {need.value for need in kind.relies_on if not seen_by_runner}
    lacking = (relied_on | {MISSTATED}) & gaps
    if lacking:
        return left_open._replace(doubts=doubts._replace(resent=Needs.VALUES.value in lacking))
    if finding.excuse == "acks" and may_have_gone(facts, finding, kind):
        return Severity(Verdict.WEAK, excuse)
    unbounded = finding.kind == "open-transaction" and finding.excuse is None and guarantees.get("settles") is not True
    unwatched = finding.excuse == "acks" and "timeline" in gaps
    if finding.kind == "unseen" or finding.excuse in ("entangled", "unread") or unbounded or unwatched:
        return left_open
    if finding.kind == "committed-cut" and excuse != "restart" and cuts_by_watermark(manifest):
        excuse = "bare"
    accepted = _is_given_away(facts, excuse) and _may_have_been(facts, manifest, finding, excuse)
    given_away = accepted or (excuse != "restart" and not is_promised(kind, manifest.generation))
    if given_away or _may_be_repeated(facts, finding) or documented(facts, manifest, finding, kind):
        return Severity(Verdict.DOCUMENTED, excuse if accepted else None)
    if any(doubts) or gaps.intersection(tables_of_excuses(facts, manifest, finding, kind)):
        return left_open
    return Severity(Verdict.VIOLATION)


def _doubts(facts: RunFacts, manifest: Manifest, finding: Finding, kind: AnomalyKind) -> Doubts:
    return Doubts(
        unrecorded=is_unrecorded(facts, finding),
        unknown=is_unknown(facts, manifest, finding, kind),
        unobserved=is_unobserved(facts, manifest, finding, kind),
    )


def _is_given_away(facts: RunFacts, excuse: Excuse | None) -> bool:
    guarantee, given = _GUARANTEE.get(excuse or "", ("", True))
    return excuse in GIVEN_AWAY or facts.guarantees.get(guarantee) is given


def _may_have_been(facts: RunFacts, manifest: Manifest, finding: Finding, excuse: Excuse | None) -> bool:
    """Whether the excuse can have happened, where another module looks for the event."""
    if excuse == "retention":
        return may_be_deleted(facts, manifest, finding, KINDS[finding.kind])
    return excuse != "unnumbered" or reason_to_resend(facts, finding) is not None


def _may_be_repeated(facts: RunFacts, finding: Finding) -> bool:
    """Whether it is a duplicate in a run that does not record which of its producers are idempotent."""
    if finding.kind != "duplicate" or facts.guarantees.get("idempotent_producers") is not False:
        return False
    return not is_watched(facts) or (finding.excuse is not None and reason_to_resend(facts, finding) is not None)


def gravest(severity: Callable[[Finding], Severity], last: Finding) -> Verdict:
    """The gravest verdict on what was only counted: what explains a finding may depend on its times.

    Which times belong together is not known. So one of them that began the last of all is given the time until the
    last was seen, and until any marker was written; and one that was seen the first of all the time since the first
    began. Of what is excused by senders that waited for too little, some may have waited for nothing: all count as the
    last.
    """
    if last.excuse == "acks":
        return severity(last).verdict
    latest = last._replace(since_ns=last.latest_since_ns, time_ns=last.latest_ns, by_ns=None)
    if last.kind == "wrong-marker":
        latest = latest._replace(other_offset=None)
    earliest = last._replace(since_ns=last.earliest_since_ns, time_ns=last.earliest_ns, by_ns=None)
    verdicts = {severity(one).verdict for one in (last, latest, earliest)}
    return next(verdict for verdict in Verdict if verdict in verdicts)
