"""Makes a verdict of findings: judges each by configuration, excuses and predictions, and then the run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from types import MappingProxyType
from typing import NamedTuple

from checkers.completeness.changes_are_recorded import unrecorded
from checkers.completeness.columns_are_filled import nulls
from checkers.completeness.configurations_agree import unasked
from checkers.completeness.decisions_are_numbered import missing_decisions
from checkers.completeness.guarantees_are_configured import MISSTATED, misstated
from checkers.completeness.history_is_complete import (
    idle,
    inconclusive,
    invalid,
    silent,
    unfinished,
    unharmed,
    unplaced,
)
from checkers.completeness.lives_are_explained import contradictions
from checkers.completeness.nodes_are_accounted import (
    broken_lives,
    broken_logs,
    broken_samples,
    missing_faults,
    missing_lives,
    nowhere,
    open_replicas,
    out_of_time,
    strangers,
    unnamed_isrs,
    unplanned_partitions,
    unproven_faults,
    unproven_losses,
    unused_partitions,
)
from checkers.node_exit import blamed
from checkers.registry import KINDS, PROMISES, AboutClients, Promise, conclude, rule_of
from checkers.verdicts.capped_findings import Rest, judged_rests, rests
from checkers.verdicts.consequences import follows
from checkers.verdicts.severity import Evidence, Severity, gravest, severity_of
from checkers.verdicts.stories import stories
from checkers.verdicts.verdict_reasons import Doubts, because
from checkers.views.conclusion import Conclusion, RunFacts, is_sampled, is_watched, kept
from checkers.views.delete_records_orders import orders
from checkers.views.expected import Expected, expected
from checkers.views.extents import extents, group_of, ranges
from checkers.views.own_judgements import PartOfAnother
from checkers.views.proofs_match import misfiled
from checkers.views.recovery import broken_unrest, recovery
from checkers.views.row import Row
from checkers.views.sampled_timelines import is_decided, limits
from checkers.views.witnesses import Witnesses
from harness.anomaly import CauseAt, Needs
from harness.checker import Anomaly, Attribution, Outcome, Prediction, RunVerdict, Side, Verdict
from harness.checker import Evidence as EvidenceRow
from harness.excuse import EXCUSES, Excuse
from harness.findings import Answers, Finding, NodeLife, position

_PROMISE_OF: Mapping[str, Promise] = MappingProxyType({kind.name: p for p in PROMISES for kind in p.KINDS})


def judge(run: Evidence, answers: Answers, witnesses: Witnesses, engine: str) -> RunVerdict:
    """The verdict on the run ``run.manifest.run``; ``answers`` may be about other runs too."""
    name = run.manifest.run
    numbers = answers.counts[name]
    history = [gap for gap in answers.history_gaps if gap.run == name]
    lives = [life for life in answers.lives if life.run == name]
    replicas = [replica for replica in answers.replicas if replica.run == name]
    ends, wanted = [end for end in answers.ends if end.run == name], expected(run.manifest)
    unread = {table for table, sentences in run.unreadable.items() if sentences}
    missing = list(missing_faults(run.faults, wanted)) if wanted is not None and "faults" not in unread else []
    facts = RunFacts(
        name, answers.facts.of(name), run.faults, run.manifest.guarantees, wanted, run.manifest.generation,
        run.manifest.unrest, run.manifest.endings, orders(run.manifest),
    )  # fmt: skip
    misfit, untimely = _misfit(run, numbers), out_of_time(run.faults, facts.facts) if _is_whole(run) else []
    uncounted, strange = [*missing_decisions(facts), *unrecorded(facts)], misfiled(run.faults, wanted)
    demanded = wanted if "timeline" not in unread or not facts.sampled else None
    foreign = list(strangers(lives, replicas, wanted)) if wanted is not None else []
    contradicted = _contradicted(run, facts, unread, numbers)
    broken_timeline = _broken_timeline(lives, run.faults, demanded, sampled=facts.sampled)
    holes: Mapping[str, Sequence[object]] = {
        "history": history,
        "timeline": [*broken_timeline, *uncounted, *untimely],
        "faults": missing or strange or untimely or unproven_losses(run.faults),
        MISSTATED: [*misfit, *foreign],
    }
    gaps = unread | {table for table, found in holes.items() if found}
    broken_rows = (
        (Needs.VALUES, "resent_values"), (Needs.TIMES, "rows_back_in_time"), (Needs.ENDS, "mismatched_ends"),
    )  # fmt: skip
    gaps |= {need.value for need, count in broken_rows if numbers[count]}
    found = [x for x in answers.findings if x.run == name and is_decided(facts, x, KINDS[x.kind])]
    predicted = [Prediction(**one) for one in run.foreseen]
    severity = cache(partial(severity_of, run, facts, gaps))
    concluded = _concluded(facts, found, severity)
    conclusions = {one.finding: one for one in kept(concluded)}
    findings = sorted([*found, *conclusions], key=_order)
    groups = {group_of(one) for one in found}
    reach = [x for x in answers.ranges if x.run == name and group_of(x) in groups]
    reach += ranges(one.finding for one in concluded)
    account = partial(_account, witnesses, conclusions)
    short = rests(findings, reach, partial(gravest, severity, [x for x in answers.deleted if x.run == name]))
    judged = _anomalies(findings, severity, predicted, short, account=account, reason=partial(because, facts))
    anomalies = [anomaly for _, anomaly in judged]
    unmet = [p for p in predicted if not any(_is_met(p, own) for own, _ in judged)]
    left = [rest for rest in short if predicted or severity(rest.last).verdict is not Verdict.VIOLATION]
    anomalies += judged_rests(left, predicted, unmet, _consequences())
    broken = [*unfinished(run.manifest), *(s for sentences in run.unreadable.values() for s in sentences)]
    broken += [*misfit, *invalid(history, numbers), *unplaced(run.manifest, numbers), *broken_timeline, *uncounted]
    broken += [*unproven_faults(run.faults), *strange, *untimely, *contradicted, *broken_unrest(run.manifest.unrest)]
    broken += blamed(facts)
    broken += [f"run.json predicts {kind!r}, and there is no such anomaly." for kind in _strange_kinds(predicted)]
    unaccounted = _unaccounted(facts, numbers, findings)
    doubts = [*inconclusive(ends, unaccounted, numbers, brokers=is_watched(facts)), *_idlers(run, numbers)]
    if wanted is None:
        broken.append("run.json's configuration does not name the nodes and partitions of the run.")
    else:
        broken += [*missing, *foreign]
        broken += broken_logs(replicas, wanted) if "replica_logs" not in unread else ()
        doubts += open_replicas(replicas, wanted)
        doubts += [*unused_partitions(ends, wanted), *unplanned_partitions(ends, wanted)]
    return RunVerdict(
        run=name,
        outcome=_outcome(anomalies, predicted, unmet, invalid_run=bool(broken), doubtful=bool(doubts)),
        engine=engine,
        anomalies=anomalies,
        reasons=[*broken, *doubts],
        predicted=predicted,
        unmet=unmet,
        counts=_counts(numbers, findings, run.faults, len(ends)),
        losses=tuple(stories(facts)),
        recovery=tuple(recovery(facts)),
        limits=tuple(
            limits(facts, KINDS, numbers["acked_unaccounted"])
            if facts.sampled
            else unnamed_isrs(facts.facts.intervals, KINDS)
        ),
        extents=tuple(extents([(one, own) for one, (_, own) in zip(findings, judged, strict=True)], reach)),
    )


def _misfit(run: Evidence, numbers: Mapping[str, int]) -> list[str]:
    """One sentence for each contradiction of the configuration with the guarantees, itself, or the clients' sends."""
    return [*misstated(run.manifest), *unasked(run.manifest, numbers)]


def _idlers(run: Evidence, numbers: Mapping[str, int]) -> list[str]:
    """One sentence for each sort of client that was there, and did not do what it was there for."""
    return [*idle(run.manifest, numbers), *silent(run.manifest, numbers), *unharmed(run.manifest, numbers)]


def _is_whole(run: Evidence) -> bool:
    """Whether the run came to its end, and its nodes wrote rows until then."""
    return run.manifest.state == "complete" and not is_sampled(run.manifest.guarantees)


def _contradicted(run: Evidence, facts: RunFacts, unread: set[str], numbers: Mapping[str, int]) -> list[str]:
    """Contradictions of nodes' and clients' rows with faults and endings, and gaps in them; of a run with a target."""
    if "target" not in run.manifest.configuration:
        return []
    return [*nulls(facts, numbers), *(contradictions(facts) if "faults" not in unread else ())]


def _strange_kinds(predicted: Sequence[Prediction]) -> list[str]:
    """The predicted kinds that no checker knows."""
    return sorted({one.kind for one in predicted} - set(KINDS))


def _broken_timeline(
    lives: Sequence[NodeLife], faults: Sequence[Row], wanted: Expected | None, *, sampled: bool
) -> list[str]:
    if sampled:
        return [*broken_samples(lives), *(nowhere(lives, wanted) if wanted else ())]
    return [*broken_lives(lives), *(missing_lives(lives, faults, wanted) if wanted else ())]


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


def _unaccounted(facts: RunFacts, numbers: Mapping[str, int], findings: Sequence[Finding]) -> int:
    """How many acknowledgements are above every watermark; in a sampled timeline only those that were not lost.

    There the leader that gave them may have gone, and they with it, before a sample was taken.
    """
    lost = {(x.topic, x.partition, x.excuse): x.total for x in findings if x.kind == "lost-write"}
    return max(0, numbers["acked_unaccounted"] - (sum(lost.values()) if facts.sampled else 0))


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
    findings: Sequence[Finding], severity: Callable[[Finding], Severity], predicted: Sequence[Prediction],
    short: Sequence[Rest], *, account: Callable[[Finding], Account],
    reason: Callable[[Finding, Verdict, Excuse | None, Doubts], str],
) -> list[tuple[Anomaly, Anomaly]]:  # fmt: skip
    """The anomalies as if nothing were predicted, and as they are, in the order of ``findings``: causes first."""
    judged: list[tuple[Finding, Anomaly]] = []
    plain: list[Anomaly] = []
    open_rests = [rest for rest in short if any(rest.may_hold(p) for p in predicted)]
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
        verdict = _foreseen(finding, anomaly, predicted, causes, open_rests)
        plain.append(anomaly)
        because_of = reason(finding, verdict, own.excuse, own.doubts)
        judged.append((finding, replace(anomaly, verdict=verdict, because=because_of)))
    return [(own, anomaly) for own, (_, anomaly) in zip(plain, judged, strict=True)]


def _is_met(prediction: Prediction, own: Anomaly) -> bool:
    """Whether an anomaly, judged without predictions, is the predicted one, or may be."""
    return prediction.matches(own) or (own.verdict is Verdict.INDETERMINATE and prediction.names(own))


def _concluded(facts: RunFacts, known: Sequence[Finding], severity: Callable[[Finding], Severity]) -> list[Conclusion]:
    """What the rules on facts find, but for what is part of another finding."""
    excused = {x for x in known if severity(x).verdict is not Verdict.VIOLATION}

    def is_part(own: Finding) -> bool:
        rule = rule_of(own.kind)
        if not isinstance(rule, PartOfAnother):
            return False
        alone = excused if severity(own).verdict is Verdict.VIOLATION else frozenset()
        return any(rule.is_part_of(own, other, other_alone_is_excused=other in alone) for other in known)

    found = [one for one in conclude(facts) if is_decided(facts, one.finding, KINDS[one.finding.kind])]
    return [one for one in found if not is_part(one.finding)]


class Account(NamedTuple):
    """A finding in a sentence, the rows that show it, and whose it is, where a wire tap can show that."""

    why: str
    evidence: tuple[EvidenceRow, ...]
    attribution: Attribution | None = None


def _account(witnesses: Witnesses, conclusions: Mapping[Finding, Conclusion], finding: Finding) -> Account:
    if finding in conclusions:
        return Account(conclusions[finding].why, conclusions[finding].evidence)
    promise, frames = _PROMISE_OF[finding.kind], witnesses.frames
    whose = promise.attribute(finding, frames) if frames is not None and isinstance(promise, AboutClients) else None
    return Account(promise.why(finding), tuple(promise.evidence(finding, witnesses)), whose)


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


def _foreseen(
    finding: Finding, anomaly: Anomaly, predicted: Sequence[Prediction],
    causes: Sequence[tuple[Finding, Anomaly]], open_rests: Sequence[Rest],
) -> Verdict:  # fmt: skip
    """The anomaly's verdict: EXPECTED, when the scenario predicts it or one that it follows from.

    What follows from a predicted loss begins with it: of a fall or a step back that covers a range, the lowest offset
    must not be below the lowest of the predicted losses in the range, or something more than these was given up.
    """
    if anomaly.verdict is Verdict.INDETERMINATE:
        return anomaly.verdict
    if any(p.matches(anomaly) for p in predicted):
        return Verdict.EXPECTED
    expected_at = [cause.offset or 0 for cause, judged in causes if judged.verdict is Verdict.EXPECTED]
    kind = KINDS[finding.kind]
    is_send = kind.cause_at is CauseAt.EARLIER_RECORD
    sides = finding._replace(offset=finding.other_offset) if is_send else finding
    if expected_at and (sides.offset or 0) >= min(expected_at):
        return Verdict.EXPECTED
    if anomaly.verdict is Verdict.VIOLATION and any(rest.may_cause(sides, kind.follows_from) for rest in open_rests):
        return Verdict.INDETERMINATE
    return anomaly.verdict


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
