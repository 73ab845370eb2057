"""The severity of a finding without predictions: what excuses it, what may, and what evidence is missing."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from checkers.completeness.guarantees_are_configured import MISSTATED
from checkers.registry import KINDS, rule_of
from checkers.verdicts.excuses import is_unobserved, is_unrecorded, tables_of_excuses
from checkers.verdicts.permitted_deletions import may_be_deleted
from checkers.verdicts.verdict_reasons import Doubts
from checkers.verdicts.weak_acks import may_have_gone
from checkers.views.configured import Configured
from checkers.views.extents import group_of
from checkers.views.fault_journal import FaultJournal
from checkers.views.generations import is_promised
from checkers.views.lossy_failures import documented, is_unknown
from checkers.views.own_judgements import Doubted, ExcusedInstead, NeedsOfFinding, OpenByNature, Permitted
from checkers.views.resends import reason_to_resend
from checkers.views.row import ALL, Row
from checkers.views.sampled_timelines import unseen_excuse
from checkers.views.states import States
from harness.anomaly import AnomalyKind, LossyFailure, Needs, Retention
from harness.checker import Verdict
from harness.excuse import EXCUSES, Effect, Excuse
from harness.findings import Finding
from harness.history.run_directory import Manifest
from harness.model import TopicPartition
from harness.parts import Parts


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


def severity_of(parts: Parts, gaps: Collection[str], finding: Finding) -> Severity:
    """The severity of one finding.

    Args:
        parts: what is known about the run, its manifest among it.
        gaps: what is incomplete, by the values of ``Needs``, and :data:`MISSTATED`.
        finding: the finding.
    """
    manifest, kind, rule = parts.of(Manifest), KINDS[finding.kind], rule_of(finding.kind)
    guarantees, about = manifest.guarantees, parts.beside(finding, kind)
    excuse, doubts = about.given_to(_excuse), _doubts(about, rule)
    left_open = Severity(Verdict.INDETERMINATE, excuse, doubts)
    needs = rule.needs(finding) if isinstance(rule, NeedsOfFinding) else kind.relies_on
    lacking = ({need.value for need in needs} | {MISSTATED}).intersection(gaps)
    if lacking:
        return left_open._replace(doubts=doubts._replace(resent=Needs.VALUES.value in lacking))
    is_weak = _effect(excuse) is Effect.WEAK
    if is_weak and about.given_to(may_have_gone):
        return Severity(Verdict.WEAK, excuse)
    unwatched = is_weak and "timeline" in gaps
    permitted = guarantees.get(kind.permitted_by) is True
    unclear = _effect(excuse) is Effect.LEFT_OPEN and not permitted
    is_open = isinstance(rule, OpenByNature) and rule.left_open(finding, guarantees) != ""
    if is_open or unclear or unwatched:
        return left_open
    if isinstance(rule, ExcusedInstead):
        excuse = rule.excused_by(finding, manifest) or excuse
    accepted = _is_given_away(about, excuse)
    in_every_generation = excuse is not None and EXCUSES[excuse].in_every_generation
    given_away = accepted or permitted or not (in_every_generation or is_promised(kind, manifest.generation))
    given_away |= isinstance(rule, Permitted) and about.given_to(rule.permitted) != ""
    if given_away or about.given_to(documented):
        return Severity(Verdict.DOCUMENTED, excuse if accepted else None)
    if any(doubts) or not set(gaps).isdisjoint(about.given_to(tables_of_excuses)):
        return left_open
    return Severity(Verdict.VIOLATION)


def _excuse(
    states: States, journal: FaultJournal, manifest: Manifest, finding: Finding, kind: AnomalyKind
) -> Excuse | None:
    """What excuses a finding, or may: of a sampled timeline also what no sample may show.

    The engines call it a deletion when the last log begins behind a record, and look no further. Where none that the
    configuration permits can have removed the record, its sender may have waited for too little, or an unclean election
    may have given it up.
    """
    excuse = finding.excuse or unseen_excuse(states, finding, kind)
    permitted = manifest.guarantees.get("retention") is True
    if excuse != "retention" or (permitted and may_be_deleted(states, journal, manifest, finding, kind)):
        return excuse
    if kind.excuses.retention is not Retention.OF_A_SENT_RECORD:
        return None
    if finding.acks not in (None, ALL) and finding.committed is False:
        return "acks"
    return unseen_excuse(states, finding, kind) or _given_up(states, finding)


def _given_up(states: States, finding: Finding) -> Excuse | None:
    """Whether an unclean election since the record was sent gave it up.

    In a sampled timeline only where the record's epoch is unknown: what else it may not show is in the samples' rules.
    """
    if states.sampled and finding.leader_epoch is not None:
        return None
    elections = states.unclean_elections.get(TopicPartition(finding.topic, finding.partition), ())
    since = [one for one in elections if one.time_ns >= (finding.since_ns or 0)]
    return "unclean" if any(one.gave_up(finding.leader_epoch, finding.offset) for one in since) else None


def _doubts(about: Parts, rule: object) -> Doubts:
    return Doubts(
        unrecorded=about.given_to(is_unrecorded),
        own=about.given_to(rule.doubt) if isinstance(rule, Doubted) else "",
        unknown=about.given_to(is_unknown),
        unobserved=about.given_to(is_unobserved),
    )


def _effect(excuse: Excuse | None) -> Effect:
    return Effect.NOTHING if excuse is None else EXCUSES[excuse].effect


def _is_given_away(about: Parts, excuse: Excuse | None) -> bool:
    """Whether the excuse makes the finding DOCUMENTED, in this configuration."""
    if excuse is None or _effect(excuse) is not Effect.DOCUMENTED:
        return False
    if not EXCUSES[excuse].is_permitted(about.of(Configured).guarantees):
        return False
    return not EXCUSES[excuse].if_resent or about.given_to(reason_to_resend) is not None


def gravest(severity: Callable[[Finding], Severity], deleted: Sequence[Finding], last: Finding) -> Verdict:
    """The gravest verdict on what was only counted: what explains a finding may depend on its times.

    Of what may have been deleted, each deletion is judged by itself, unless all that it removed was kept.

    Args:
        severity: of one finding.
        deleted: see :attr:`harness.findings.Answers.deleted`.
        last: the last of its group that was kept.
    """
    beyond = -1 if last.offset is None else last.offset
    rest = [one for one in deleted if group_of(one) == group_of(last) and (one.offset is None or one.offset > beyond)]
    alike = rest or [last]
    verdicts = {verdict for one in alike for verdict in _at_any_time(severity, one)}
    return next(verdict for verdict in Verdict if verdict in verdicts)


def _at_any_time(severity: Callable[[Finding], Severity], last: Finding) -> set[Verdict]:
    """The verdicts on a group of findings like this one.

    Which times belong together is not known. So one of them that began the last of all is given the time until the
    last was seen, and until any marker was written; and one that was seen the first of all the time since the first
    began. Of what is excused by senders that waited for too little, some may have waited for nothing: all count as the
    last.
    """
    if _effect(last.excuse) is Effect.WEAK:
        return {severity(last).verdict}
    latest = last._replace(since_ns=last.latest_since_ns, time_ns=last.latest_ns, by_ns=None)
    if KINDS[last.kind].excuses.lossy_failure is LossyFailure.BEFORE_MARKER:
        latest = latest._replace(other_offset=None)
    earliest = last._replace(since_ns=last.earliest_since_ns, time_ns=last.earliest_ns, by_ns=None)
    return {severity(one).verdict for one in (last, latest, earliest)}
