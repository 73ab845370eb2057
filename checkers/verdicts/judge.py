"""Makes a verdict of findings: judges each by configuration, excuses and predictions, and then the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from types import MappingProxyType
from typing import NamedTuple

from checkers.completeness.history_is_complete import placed_anywhere
from checkers.completeness.nodes_are_accounted import unnamed_isrs
from checkers.registry import KINDS, PROMISES, AboutClients, Promise, conclude, rule_of
from checkers.verdicts.accounts import account, doubts
from checkers.verdicts.capped_findings import Rest, judged_rests, rests
from checkers.verdicts.consequences import follows, follows_if_predicted
from checkers.verdicts.evidence_tiers import not_asked, tier_of, unasked_sentence
from checkers.verdicts.run_parts import parts_of
from checkers.verdicts.severity import Evidence, Severity, gravest, severity_of
from checkers.verdicts.stories import stories
from checkers.verdicts.verdict_reasons import Doubts, because
from checkers.views import metadata
from checkers.views.conclusion import Conclusion, kept
from checkers.views.configured import Configured
from checkers.views.extents import extents, group_of, ranges
from checkers.views.fault_journal import FaultJournal
from checkers.views.own_judgements import PartOfAnother
from checkers.views.recovery import recovery
from checkers.views.row import Row
from checkers.views.sampled_timelines import is_decided, limits
from checkers.views.states import States
from checkers.views.witnesses import Witnesses
from harness.anomaly import CauseAt, Needs
from harness.checker import Anomaly, Attribution, EvidenceTier, Outcome, Prediction, RunVerdict, Side, Verdict
from harness.checker import Evidence as EvidenceRow
from harness.excuse import EXCUSES, Excuse
from harness.facts import NodeFacts
from harness.findings import Answers, Finding, FindingRange, position
from harness.parts import Parts

_PROMISE_OF: Mapping[str, Promise] = MappingProxyType({kind.name: p for p in PROMISES for kind in p.KINDS})


class _Found(NamedTuple):
    """What was found in a run.

    Attributes:
        findings: all, causes before consequences.
        conclusions: those of them that rules on facts have concluded, with their sentences.
        reach: where the findings reach, also those that were only counted.
    """

    findings: Sequence[Finding]
    conclusions: Mapping[Finding, Conclusion]
    reach: Sequence[FindingRange]


class _Foreseen(NamedTuple):
    """The predictions of a run.

    Attributes:
        all: of them.
        counted: findings beyond those that were kept, which one of them may mean.
        unseen: those that the evidence of a partition, given by its topic and its number, cannot show.
    """

    all: Sequence[Prediction]
    counted: Sequence[Rest]
    unseen: Callable[[str, int], Sequence[Prediction]]


class _Classified(NamedTuple):
    """The anomalies of a run.

    Attributes:
        plain: those of its findings, in their order, as if nothing were predicted.
        judged: the same as they are.
        rest: those that stand for what was only counted.
        unmet: the predictions that none of them meets.
    """

    plain: Sequence[Anomaly]
    judged: Sequence[Anomaly]
    rest: Sequence[Anomaly]
    unmet: Sequence[Prediction]


def judge(run: Evidence, answers: Answers, witnesses: Witnesses, engine: str) -> RunVerdict:
    """The verdict on the run ``run.manifest.run``; ``answers`` may be about other runs too."""
    own = answers.of(run.manifest.run)
    parts = parts_of(run, own.facts)
    accounts = account(run, own, parts)
    severity = cache(partial(severity_of, parts, accounts.gaps))
    found = _found(parts, own, severity)
    predicted = [Prediction(**one) for one in run.foreseen]
    describe = partial(_account, witnesses, found.conclusions, parts.of(NodeFacts))
    classified = _classified(found, own, predicted, severity, account=describe, reason=partial(because, parts))
    open_questions = doubts(run, own, parts, found.findings)
    anomalies = [*classified.judged, *classified.rest]
    numbers = own.counts[run.manifest.run]
    tier = parts.given_to(tier_of)
    unasked = not_asked(tier, KINDS, parts.of(Configured), parts.of(FaultJournal))
    return RunVerdict(
        run=run.manifest.run,
        outcome=_outcome(
            anomalies, predicted, classified.unmet, invalid_run=bool(accounts.broken), doubtful=bool(open_questions)
        ),
        engine=engine,
        anomalies=anomalies,
        reasons=[*accounts.broken, *open_questions],
        predicted=predicted,
        unmet=classified.unmet,
        counts=_counts(numbers, found.findings, run.faults, len(own.ends)),
        losses=tuple(parts.given_to(stories)),
        recovery=tuple(parts.given_to(recovery)),
        limits=(*_limits(parts, tier, unasked, numbers), *placed_anywhere(run.manifest, numbers)),
        evidence=tier,
        not_asked=tuple(unasked),
        extents=tuple(extents(list(zip(found.findings, classified.judged, strict=True)), found.reach)),
    )


def _found(parts: Parts, own: Answers, severity: Callable[[Finding], Severity]) -> _Found:
    """What the engine and the rules on facts have found."""
    states = parts.of(States)
    found = [one for one in own.findings if is_decided(states, one, KINDS[one.kind])]
    concluded = _concluded(parts, found, severity)
    conclusions = {one.finding: one for one in kept(concluded)}
    groups = {group_of(one) for one in found}
    reach = [one for one in own.ranges if group_of(one) in groups]
    reach += ranges(one.finding for one in concluded)
    return _Found(sorted([*found, *conclusions], key=_order), conclusions, reach)


def _classified(
    found: _Found, own: Answers, predicted: Sequence[Prediction], severity: Callable[[Finding], Severity],
    *, account: Callable[[Finding], Account], reason: Callable[[Finding, Verdict, Excuse | None, Doubts], str],
) -> _Classified:  # fmt: skip
    """The verdict on each finding, and on those that were only counted."""
    short = rests(found.findings, found.reach, partial(gravest, severity, own.deleted))
    foreseen = _foreseen_in(own, predicted, short)
    pairs = _anomalies(found.findings, severity, foreseen, short, account=account, reason=reason)
    unmet = [one for one in predicted if not any(_is_met(one, plain) for plain, _ in pairs)]
    left = [rest for rest in short if predicted or severity(rest.last).verdict is not Verdict.VIOLATION]
    rest = judged_rests(left, predicted, unmet, _consequences())
    return _Classified([plain for plain, _ in pairs], [judged for _, judged in pairs], list(rest), unmet)


def _limits(
    parts: Parts, tier: EvidenceTier, unasked: Sequence[str], numbers: Mapping[str, int]
) -> Iterable[str]:  # fmt: skip
    """What the evidence of this run cannot show, in sentences."""
    if unasked:
        yield unasked_sentence(tier, unasked, len(KINDS))
    states = parts.of(States)
    if parts.of(Configured).guarantees.get("timeline") in ("logs", "metadata"):
        yield from metadata.limits(parts.of(NodeFacts), numbers["acked_all"], numbers["acked_below_high_watermark"])
    elif states.sampled:
        yield from limits(parts.of(FaultJournal), parts.of(NodeFacts), numbers["acked_unaccounted"])
    else:
        yield from unnamed_isrs(states.intervals, KINDS)


def _outcome(
    anomalies: Iterable[Anomaly], predicted: Sequence[Prediction], unmet: Sequence[Prediction],
    *, invalid_run: bool, doubtful: bool,
) -> Outcome:  # fmt: skip
    verdicts = {anomaly.verdict for anomaly in anomalies}
    if Verdict.VIOLATION in verdicts:
        return Outcome.VIOLATION
    if invalid_run:
        return Outcome.INVALID
    if doubtful or Verdict.INDETERMINATE in verdicts:
        return Outcome.INCONCLUSIVE
    if unmet:
        return Outcome.NOT_REPRODUCED
    return Outcome.AS_PREDICTED if predicted else Outcome.PASS


def _counts(
    numbers: Mapping[str, int], findings: Sequence[Finding], faults: Sequence[Row], partitions: int
) -> dict[str, int]:
    groups = {(x.kind, x.topic, x.partition, x.excuse): x.total for x in findings}
    kinds = sorted({x.kind for x in findings})
    return {
        **numbers,
        "sends_info": numbers["sends"] - numbers["sends_ok"] - numbers["sends_fail"],
        "partitions": partitions,
        "faults": len(faults),
        "faults_proven": sum(fault["proven_ns"] is not None for fault in faults),
        **{kind: sum(total for group, total in groups.items() if group[0] == kind) for kind in kinds},
    }


# ------------------------------------------------------------------------------------------------------- anomalies


def _anomalies(
    findings: Sequence[Finding], severity: Callable[[Finding], Severity], foreseen: _Foreseen, short: Sequence[Rest],
    *, account: Callable[[Finding], Account],
    reason: Callable[[Finding, Verdict, Excuse | None, Doubts], str],
) -> list[tuple[Anomaly, Anomaly]]:  # fmt: skip
    """The anomalies as if nothing were predicted, and as they are, in the order of ``findings``: causes first."""
    judged: list[tuple[Finding, Anomaly]] = []
    plain: list[Anomaly] = []
    for finding in findings:
        kind, shown = KINDS[finding.kind], account(finding)
        causes = [known for known in judged if follows(finding, kind, known[0])]
        own = _proved(severity(finding), shown.attribution)
        if own.verdict is Verdict.VIOLATION and kind.excuses.with_cause:
            own = _with_causes(own, finding, causes, short, severity)
        anomaly = Anomaly(
            finding.kind, own.verdict, finding.topic or None, None if finding.partition < 0 else finding.partition,
            finding.offset, finding.value, finding.leader_epoch,
            why=shown.why + _because(causes),
            evidence=shown.evidence,
            attribution=shown.attribution,
        )  # fmt: skip
        verdict = _with_predictions(finding, anomaly, causes, foreseen)
        plain.append(anomaly)
        because_of = reason(finding, verdict, own.excuse, own.doubts)
        judged.append((finding, replace(anomaly, verdict=verdict, because=because_of)))
    return [(own, anomaly) for own, (_, anomaly) in zip(plain, judged, strict=True)]


def _foreseen_in(own: Answers, predicted: Sequence[Prediction], short: Sequence[Rest]) -> _Foreseen:
    """The predictions; what rests on a final read is unseen in a partition of which none came to the end."""
    unread = {(end.topic, end.partition) for end in own.ends if not end.complete}
    read = any(numbers["final_poll_rows"] for numbers in own.counts.values())
    resting = [one for one in predicted if one.kind in KINDS and Needs.ENDS in KINDS[one.kind].relies_on]
    counted = [rest for rest in short if any(rest.may_hold(one) for one in predicted)]
    return _Foreseen(predicted, counted, lambda *place: resting if not read or place in unread else ())


def _is_met(prediction: Prediction, own: Anomaly) -> bool:
    """Whether an anomaly, judged without predictions, is the predicted one, or may be."""
    return prediction.matches(own) or (own.verdict is Verdict.INDETERMINATE and prediction.names(own))


def _concluded(parts: Parts, known: Sequence[Finding], severity: Callable[[Finding], Severity]) -> list[Conclusion]:
    """What the rules on facts find, but for what is part of another finding."""
    excused = {x for x in known if severity(x).verdict is not Verdict.VIOLATION}

    def is_part(own: Finding) -> bool:
        rule = rule_of(own.kind)
        if not isinstance(rule, PartOfAnother):
            return False
        alone = excused if severity(own).verdict is Verdict.VIOLATION else frozenset()
        return any(rule.is_part_of(own, other, other_alone_is_excused=other in alone) for other in known)

    states = parts.of(States)
    found = [one for one in conclude(parts) if is_decided(states, one.finding, KINDS[one.finding.kind])]
    return [one for one in found if not is_part(one.finding)]


class Account(NamedTuple):
    """A finding in a sentence, the rows that show it, and whose it is, where a wire tap can show that."""

    why: str
    evidence: tuple[EvidenceRow, ...]
    attribution: Attribution | None = None


def _account(
    witnesses: Witnesses, conclusions: Mapping[Finding, Conclusion], node_facts: NodeFacts, finding: Finding
) -> Account:  # fmt: skip
    rule, frames = rule_of(finding.kind), witnesses.frames
    whose = rule.attribute(finding, frames) if frames is not None and isinstance(rule, AboutClients) else None
    if finding in conclusions:
        return Account(conclusions[finding].why, conclusions[finding].evidence, whose)
    promise = _PROMISE_OF[finding.kind]
    told = metadata.told_of(node_facts, finding, KINDS[finding.kind])
    return Account(promise.why(finding) + told, tuple(promise.evidence(finding, witnesses)), whose)


def _proved(own: Severity, attribution: Attribution | None) -> Severity:
    """The severity of a finding that its client may have brought about: not where the frames show that it has not."""
    excuse = own.excuse if own.verdict is Verdict.DOCUMENTED else None
    is_excused = excuse is not None and EXCUSES[excuse].of_the_client
    disproved = attribution is not None and attribution.side is Side.BROKER
    return Severity(Verdict.VIOLATION) if is_excused and disproved else own


def _with_causes(
    own: Severity, finding: Finding, causes: Sequence[tuple[Finding, Anomaly]], short: Sequence[Rest],
    severity: Callable[[Finding], Severity],
) -> Severity:  # fmt: skip
    """The severity of a finding that may follow from others: where all of those are excused, so is it."""
    if causes:
        return severity(causes[0][0]) if all(x.verdict is Verdict.DOCUMENTED for _, x in causes) else own
    counted = [rest for rest in short if rest.explains(finding, KINDS[finding.kind])]
    if counted:
        return severity(counted[0].last) if all(rest.verdict is Verdict.DOCUMENTED for rest in counted) else own
    if any(rest.verdict is Verdict.DOCUMENTED and rest.may_explain(finding, KINDS[finding.kind]) for rest in short):
        return Severity(Verdict.INDETERMINATE, doubts=Doubts(counted=True))
    return own


def _with_predictions(
    finding: Finding, anomaly: Anomaly, causes: Sequence[tuple[Finding, Anomaly]], foreseen: _Foreseen
) -> Verdict:
    """The anomaly's verdict: EXPECTED, when the scenario predicts it or one that it follows from.

    What follows from a predicted loss begins with it: of a fall or a step back that covers a range, the lowest offset
    must not be below the lowest of the predicted losses in the range, or something more than these was given up.
    It is open while the predicted loss cannot be seen.
    """
    if anomaly.verdict is Verdict.INDETERMINATE:
        return anomaly.verdict
    if any(p.matches(anomaly) for p in foreseen.all):
        return Verdict.EXPECTED
    expected_at = [cause.offset or 0 for cause, judged in causes if judged.verdict is Verdict.EXPECTED]
    kind = KINDS[finding.kind]
    is_send = kind.cause_at is CauseAt.EARLIER_RECORD
    sides = finding._replace(offset=finding.other_offset) if is_send else finding
    if expected_at and (sides.offset or 0) >= min(expected_at):
        return Verdict.EXPECTED
    if anomaly.verdict is not Verdict.VIOLATION:
        return anomaly.verdict
    may_follow = any(rest.may_cause(sides, kind.follows_from) for rest in foreseen.counted)
    may_follow |= any(
        follows_if_predicted(finding, kind, p) and (sides.offset or 0) >= (p.offset or 0)
        for p in foreseen.unseen(finding.topic, finding.partition)
    )
    return Verdict.INDETERMINATE if may_follow else Verdict.VIOLATION


def _because(causes: Sequence[tuple[Finding, Anomaly]]) -> str:
    if not causes:
        return ""
    cause = causes[0][0]
    return f" It follows from the {cause.kind} of value {cause.value} at offset {cause.offset}."


@cache
def _consequences() -> frozenset[str]:
    """The kinds that follow from others."""
    return frozenset(name for name, kind in KINDS.items() if kind.follows_from)


@cache
def _ranks() -> Mapping[str, int]:
    """By kind, its place in the order of causes before consequences."""
    return {kind: rank for rank, kind in enumerate(KINDS)}


def _order(finding: Finding) -> tuple[object, ...]:
    return (_ranks()[finding.kind], finding.topic, finding.partition, *position(finding))
