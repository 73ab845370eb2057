"""A replica truncates no committed record (R10), and a restart loses none.

``committed-cut``: a truncation removed offsets that are known to have been committed, or a broker that started again
had its log without them. The timeline has the offsets of a truncation, not the records, and a replica must cut a tail
that was never committed. So a cut offset counts only when the replica is known to have held the committed record. The
replica got it in leader epoch e (while it followed the leader of e, or led), and

* the leader of e is known to have had a high watermark above the offset in that epoch, before the cut; or
* the replica itself had a high watermark above the offset while it had the record. (In a sampled timeline the epoch in
  which the replica got it is not certain, and this is the only proof. A follower's watermark counts there from 3.7 on:
  an older real follower takes the watermark of a response before it truncates as that response demands, KAFKA-14704.)

A broker reports its log's end after it has written, and what a process has written survives the process. So what a
broker last reported, and lacks after a restart, counts as cut, unless a fault has taken it from the disk (see
:mod:`checkers.views.copies`). What had been deleted on purpose (see :mod:`checkers.views.deletions`) does not count.

If the replica fetches the record again, nothing is lost; but meanwhile there is one copy less than the ISR promises,
and the next election may lose the record.

Severity: ``VIOLATION``. ``DOCUMENTED`` when an unclean election gave it up (see
:mod:`checkers.views.unclean_elections`) and the configuration permits such elections; and when a follower cut it in a
generation before 2.0.1, where followers cut by their own watermark or look an epoch up only once; a loss that results
is a finding of its own. (No generation permits a restart to lose what was written.) An election excuses only later
cuts: the replica must have been in its leader epoch, or in a later one. Where a row does not name the epoch, and at a
restart, the election must have been earlier.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from checkers.views.conclusion import Conclusion, age, cite, detail, seen_at
from checkers.views.configured import Configured
from checkers.views.copies import Copy, copies
from checkers.views.fault_journal import FaultJournal
from checkers.views.generations import since
from checkers.views.message_formats import cuts_by_watermark
from checkers.views.states import States
from checkers.views.unclean_elections import UncleanElection
from harness.anomaly import (
    NO_WORD,
    AnomalyKind,
    CauseAt,
    Excuses,
    Found,
    LossyFailure,
    Needs,
    Retention,
    Sampled,
    Since,
    Unseen,
)
from harness.checker import Evidence
from harness.excuse import Excuse
from harness.facts import StateInterval
from harness.findings import Finding
from harness.history.run_directory import Manifest
from harness.model import TopicPartition

COMMITTED_CUT = AnomalyKind(
    name="committed-cut",
    invariants=("R10",),
    meaning="A replica cut committed records off its log; nothing is lost yet.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.TIMELINE}),
    follows_from=("lost-write", "vanished-read"),
    cause_at=CauseAt.RANGE,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.AT_ANY_TIME,
        fault=True,
        lossy_failure=LossyFailure.BEFORE_SEEN,
        with_cause=False,
        own_topic=None,
        while_leading=True,
    ),
    since=Since(
        generation="2.0.1",
        why_not_before="followers cut by their own watermark, or look an epoch up only once (KIP-101, KIP-279)",
    ),
    sampled=Sampled(found=Found.SOME, unseen=Unseen.CUT_GIVEN_UP),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (COMMITTED_CUT,)


class _Proof(NamedTuple):
    """That a copy had been committed up to an offset, and the row that shows it."""

    end: int
    evidence: Evidence


def excused_by(finding: Finding, manifest: Manifest) -> Excuse | None:
    """A follower's cut is excused where records bear no epochs, so that followers cut by their watermarks."""
    return "bare" if finding.excuse != "restart" and cuts_by_watermark(manifest) else None


def is_part_of(finding: Finding, other: Finding, *, other_alone_is_excused: bool) -> bool:
    """A cut that led to a loss is part of that finding, unless the loss is excused and the cut is not."""
    here = (other.topic, other.partition) == (finding.topic, finding.partition)
    if other_alone_is_excused or not here or other.kind not in COMMITTED_CUT.follows_from or other.offset is None:
        return False
    return (finding.offset or 0) <= other.offset < (finding.until or 0)


def conclude(states: States, configured: Configured, journal: FaultJournal) -> Iterator[Conclusion]:
    """Every breach in one run: for each cut the lowest offset that is known to have been committed."""
    for place, nodes in states.reported.items():
        led = _leaders(nodes.values())
        for intervals in nodes.values():
            cuts: dict[tuple[StateInterval, bool], list[Copy]] = {}
            for cut, copy in _gone(states, journal, place, intervals):
                cuts.setdefault((cut, copy.event == "restart"), []).append(copy)
            for (cut, _), gone in cuts.items():
                own = list(_own(intervals, cut))
                marks = (
                    [x for x in own if _is_trusted(configured, x[0])]
                    if states.sampled
                    else [*_watermarks(led, cut), *own]
                )
                yield from _judged(states, configured, place, cut, gone, marks=marks)


def _gone(
    states: States, journal: FaultJournal, place: TopicPartition, intervals: Sequence[StateInterval]
) -> Iterator[tuple[StateInterval, Copy]]:
    """What a replica cut, or lacked when its broker started again, and the interval that shows it."""
    births = _births(intervals)
    deletions = states.deletions.get(place, [])
    for copy in copies(intervals, journal.excusing):
        lost = copy.lost
        restarted = copy.event == "restart" and lost in births and copy.got.role != "offline"
        if lost is not None and (restarted or copy.event in ("truncation", "log_start")):
            deleted = max((x.log_start for x in deletions if x.time_ns <= lost.begin_ns), default=0)
            if deleted < copy.end:
                yield lost, copy._replace(start=max(copy.start, deleted))


def _births(intervals: Sequence[StateInterval]) -> Collection[StateInterval]:
    """The first interval of each life of a broker."""
    found: dict[int, StateInterval] = {}
    for one in intervals:
        if one.log_end_offset is not None:
            found.setdefault(one.incarnation, one)
    return found.values()


def _leaders(nodes: Iterable[Sequence[StateInterval]]) -> list[StateInterval]:
    """The intervals in which a broker led."""
    return [one for intervals in nodes for one in intervals if one.role == "leader" and one.kind == "state"]


def _watermarks(led: Sequence[StateInterval], cut: StateInterval) -> Iterator[tuple[StateInterval, int, int]]:
    """What leaders had committed before a cut: the interval, the watermark, and the number of its row."""
    for one in led:
        if one.end_ns <= cut.begin_ns:
            yield one, one.high_watermark or 0, one.end_sequence
        elif one.begin_ns <= cut.begin_ns:
            yield one, one.first_high_watermark or 0, one.sequence


def _is_trusted(configured: Configured, interval: StateInterval) -> bool:
    """Whether the high watermark of this interval is proof: a sampled follower's is not before 3.7."""
    return interval.role == "leader" or since(configured.generation, "3.7")


def _own(intervals: Sequence[StateInterval], cut: StateInterval) -> Iterator[tuple[StateInterval, int, int]]:
    """The high watermarks of the replica itself before the cut."""
    for one in intervals:
        if age(one) < age(cut) and one.kind == "state":
            yield one, one.high_watermark or 0, one.end_sequence


def _judged(
    states: States,
    configured: Configured,
    place: TopicPartition,
    cut: StateInterval,
    gone: Sequence[Copy],
    *,
    marks: Sequence[tuple[StateInterval, int, int]],
) -> Iterator[Conclusion]:
    for copy in sorted(gone, key=lambda c: c.start):
        proof = next(_proofs(copy, marks), None)
        if proof is not None:
            yield _conclusion(states, configured, place, cut, copy, proof=proof)
            return


def _proofs(copy: Copy, marks: Sequence[tuple[StateInterval, int, int]]) -> Iterator[_Proof]:
    for interval, mark, sequence in marks:
        if mark <= copy.start:
            continue
        end = min(mark, copy.end)
        if interval.role == "leader" and interval.leader_epoch == copy.leader_epoch:
            words = f"node {interval.node} led in epoch {interval.leader_epoch} and had committed up to {mark}"
            yield _Proof(end, cite(interval, words, sequence))
        elif interval.node == copy.node and age(interval) >= age(copy.got):
            yield _Proof(end, cite(interval, f"node {interval.node} had a high watermark of {mark} itself", sequence))


def _conclusion(
    states: States, configured: Configured, place: TopicPartition, cut: StateInterval, copy: Copy, *, proof: _Proof
) -> Conclusion:
    given_up = any(
        _is_before(election, cut, copy) and election.gave_up(copy.leader_epoch, copy.start)
        for election in states.unclean_elections.get(place, ())
    )
    why, evidence = _explained(cut, copy, proof, sampled=states.sampled)
    return Conclusion(
        states.finding(
            "committed-cut", place,
            offset=copy.start, until=proof.end, leader_epoch=copy.leader_epoch,
            excuse=_excuse(configured, copy, given_up=given_up), **seen_at(cut),
        ),
        why,
        (proof.evidence, *evidence),
    )  # fmt: skip


def _excuse(configured: Configured, copy: Copy, *, given_up: bool) -> Excuse | None:
    """Why the copy is gone; whether a restarted broker also cut something a sampled timeline does not show."""
    if given_up:
        return "unclean"
    return "restart" if copy.event == "restart" and not configured.sampled else None


def _is_before(election: UncleanElection, cut: StateInterval, copy: Copy) -> bool:
    """Whether an unclean election can be the reason for a cut."""
    if copy.event == "restart" or cut.leader_epoch is None or cut.leader_epoch < 0:
        return election.time_ns <= cut.begin_ns
    return election.leader_epoch <= cut.leader_epoch


def _explained(cut: StateInterval, copy: Copy, proof: _Proof, *, sampled: bool) -> tuple[str, tuple[Evidence, ...]]:
    """The cut in a sentence, and the rows that show it."""
    what, known = f"offsets {copy.start} to {proof.end - 1}", f"got in epoch {copy.leader_epoch} and which had been"
    if copy.event == "restart":
        had = f"node {cut.node} had its log up to {copy.got.log_end_offset}"
        how = "lost at the restart, or cut before the first sample after it," if sampled else "lost at a restart,"
        why = (
            f"Node {cut.node} started again without {what}, which it had {known} committed: they were {how} and no "
            f"fault had taken anything from its disk."
        )
        return why, (cite(copy.got, had, copy.got.end_sequence), cite(cut, "it started again with a shorter log"))
    reason = detail(cut).get("reason", "no reason given")
    return (
        f"Node {cut.node} cut {what} off its log ({reason}), which it had {known} committed.",
        (cite(cut, f"node {cut.node} cut its log back to {copy.start} ({reason})"),),
    )
