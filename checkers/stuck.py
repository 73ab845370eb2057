"""A healed cluster comes to rest: one leader, a full ISR, equal logs, everything committed (R2, T13).

At rest it gives consumers all that it holds, acknowledges records again, and lets new clients take over what others
held: the partitions of a group, a transactional id (C16).

``stuck``, on any target: every fault that was injected was healed, the runner waited, and then went on looking until
nothing had got nearer to that for several times ``replica.lag.time.max.ms``, in looks that followed each other closely;
and no probe blames the environment (``unrest`` in ``run.json``, see :mod:`harness.runner.unrest`).

``stuck`` too, at the end of a run that promises to settle (``guarantees.settles``) and in which every fault was healed:
a partition has no leader among the replicas, its ISR is not full, a replica's log does not end where the leader's does,
the leader's high watermark has not reached that end, or a replica's log begins before the leader's although it must
have heard of the deletion: it has records that its leader appended, in its last term, after its log began there (from
0.11 on, KIP-107: before, leaders do not send their log start). One anomaly per partition, about the first reason. Kafka
promises that a cluster recovers, and not when; so other runs cannot be stuck: a longer wait might have helped. Nor can
the partitions of Kafka's own topics, which the configuration does not name: the runner does not wait for them, and a
coordinator writes there when the sessions of members end, long after all load has stopped.

Severity: ``VIOLATION``. ``DOCUMENTED`` when the replica that is missing was not running at the end of a run that
promises to settle: what is down cannot be in sync; when there is no leader, and every broker that could be elected
cleanly has ended itself, or none can be and machines lost what they had not flushed; and when a fault has damaged a log
of the partition in a way that no start has to notice (:mod:`checkers.views.rotten_logs`): a follower refuses what it
finds damaged for as long as its leader has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from checkers.views.conclusion import Conclusion, cite, detail, seen_at
from checkers.views.configured import Configured
from checkers.views.copies import robs
from checkers.views.expected import reads_disks
from checkers.views.fault_journal import FaultJournal
from checkers.views.generations import since
from checkers.views.lossy_failures import LOSSY
from checkers.views.recovery import all_healed, comes_to_rest, stood_still
from checkers.views.rotten_logs import rotten, swapped
from checkers.views.runner_report import RunnerReport
from checkers.views.states import States
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
    Unseen,
)
from harness.excuse import Excuse
from harness.facts import StateInterval
from harness.findings import Finding
from harness.model import TopicPartition, partition_named

STUCK = AnomalyKind(
    name="stuck",
    invariants=("C16", "R2", "T13"),
    meaning="All faults were healed, and a partition did not come to rest.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset({Needs.TIMELINE}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=Excuses(
        unclean_election=False,
        retention=Retention.NEVER,
        fault=True,
        lossy_failure=LossyFailure.NEVER,
        with_cause=False,
        own_topic=None,
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (STUCK,)

_RESPECTS = {
    "rest": ("did not come to rest", "rest"),
    "reads": ("does not give consumers all that it holds", "the end of what it holds"),
    "sends": ("does not acknowledge records again", "an acknowledgement"),
    "takeovers": ("does not serve clients that take over what others held", "serving them"),
}
"""By what the runner looked for (``unrest.of``), what a partition did not do, and what nothing got nearer to."""


class _Unrest(NamedTuple):
    """Why a partition has not come to rest: what is wrong, and the replica's row that shows it."""

    one: StateInterval
    why: str
    shows: str


def needs(finding: Finding) -> frozenset[Needs]:
    """The evidence that must be complete: for what the runner saw, which names no node, none; ``run.json`` has it."""
    return frozenset() if finding.node is None else STUCK.relies_on


def conclude(
    states: States, configured: Configured, journal: FaultJournal, runner: RunnerReport
) -> Iterator[Conclusion]:
    """Every partition of one run that did not come to rest."""
    if stood_still(runner.unrest) and all_healed(journal.faults):
        yield from _watched(states, configured, journal, runner)
    if not comes_to_rest(configured.guarantees, journal.faults, runner.unrest):
        return
    for place, ends in _ended(states, configured).items():
        if len(ends) < (configured.replication(place) or len(ends)) or _is_kafkas_own(configured, place):
            continue
        down = [x for x in ends.values() if detail(x).get("source") == "disk" or x.role == "offline"]
        for one, why, shows in islice(_unrest(states, configured, place, ends, down), 1):
            excuse: Excuse | None = "down" if one in down else "damage" if _is_damaged(journal, place) else None
            yield Conclusion(
                states.finding("stuck", place, leader_epoch=one.leader_epoch, excuse=excuse, **seen_at(one)),
                f"All faults were healed, and {place} did not come to rest: {why}.",
                (cite(one, shows),),
            )


def _ended(states: States, configured: Configured) -> Mapping[TopicPartition, Mapping[int, StateInterval]]:
    """How the replicas ended, where that says who led: the files of their disks do not."""
    return {} if reads_disks(configured.guarantees) else states.ended


def _is_kafkas_own(configured: Configured, place: TopicPartition) -> bool:
    """Whether the runner did not wait for the partition: a coordinator writes to its topic until the very end."""
    return configured.wanted is not None and configured.replication(place) is None


def _watched(
    states: States, configured: Configured, journal: FaultJournal, runner: RunnerReport
) -> Iterator[Conclusion]:
    """Every partition that the runner saw get no nearer to recovery; the last rows about it show how it ended."""
    not_done, nearer_to = _RESPECTS[runner.unrest.get("of", "rest")]
    for name, phrases in sorted(runner.unrest["missing"].items()):
        place = partition_named(name)
        ends = _ended(states, configured).get(place, {})
        shown = islice(_unrest(states, configured, place, ends, ()), 1) if ends else ()
        yield Conclusion(
            states.finding("stuck", place, excuse=_excuse(journal, runner, place)),
            f"All faults were healed, and {place} {not_done}: {'; '.join(phrases)}. Nothing got nearer to {nearer_to} "
            f"for {runner.unrest['still_s']:g} s ({runner.unrest['looks']} looks), and no probe blames the "
            "environment.",
            tuple(cite(one, shows) for one, _, shows in shown),
        )


def _excuse(journal: FaultJournal, runner: RunnerReport, place: TopicPartition) -> Excuse | None:
    """What keeps a partition from resting without a fault of the cluster's."""
    eligible = runner.unrest.get("eligible", {}).get(str(place))
    gone = set(runner.unrest.get("gone", ()))
    if eligible is not None and (set(eligible) <= gone if eligible else _lost_something(journal)):
        return "down"
    return "damage" if _is_damaged(journal, place) else None


def _lost_something(journal: FaultJournal) -> bool:
    return any(robs(fault, LOSSY) and fault["injected_ns"] is not None for fault in journal.excusing)


def _is_damaged(journal: FaultJournal, place: TopicPartition) -> bool:
    return place in swapped(journal.excusing) or any(place == where for where, _ in rotten(journal.excusing))


def _unrest(
    states: States,
    configured: Configured,
    place: TopicPartition,
    ends: Mapping[int, StateInterval],
    down: Sequence[StateInterval],
) -> Iterator[_Unrest]:
    leaders = [x for x in ends.values() if x.role == "leader" and x not in down]
    if not leaders:
        one = next(iter(ends.values()))
        yield _Unrest(one, "it has no leader", f"node {one.node} calls itself {one.role or 'nothing'} in the end")
        return
    leader = max(leaders, key=lambda x: (x.leader_epoch or 0, x.begin_ns, x.node))
    away = sorted(set(ends) - set(leader.isr or ()))
    if away:
        why = f"node {', '.join(map(str, away))} is not in the ISR {list(leader.isr or ())}"
        yield _Unrest(ends[away[0]], why, f"node {away[0]} is out of sync in the end")
    for one in ends.values():
        yield from _elsewhere(one, "log ends", one.log_end_offset, leader.log_end_offset)
    yield from _elsewhere(leader, "high watermark is", leader.high_watermark, leader.log_end_offset, "log ends")
    reported = states.reported.get(place, {}).get(leader.node, ())
    if since(configured.generation, "0.11") and _all_heard_of(reported, leader):
        for one in (x for x in ends.values() if x not in down):
            if (one.log_start_offset or 0) < (leader.log_start_offset or 0):
                yield from _elsewhere(one, "log begins", one.log_start_offset or 0, leader.log_start_offset)


def _elsewhere(one: StateInterval, what: str, at: int | None, wanted: int | None, whose: str = "") -> Iterator[_Unrest]:
    """Where something of a replica differs from the leader's, as far as both are known."""
    if None not in (at, wanted) and at != wanted:
        leaders = f"the leader's {whose} at {wanted}" if whose else f"the leader's at {wanted}"
        yield _Unrest(one, f"node {one.node}'s {what} at {at}, {leaders}", f"node {one.node}'s {what} at {at}")


def _all_heard_of(reported: Sequence[StateInterval], leader: StateInterval) -> bool:
    """Whether every fetch of the leader's last records must have returned where its log begins."""
    start, end = leader.log_start_offset or 0, leader.log_end_offset or 0
    return any(
        (x.incarnation, x.role, x.leader_epoch) == (leader.incarnation, "leader", leader.leader_epoch)
        and (x.log_start_offset or 0) >= start
        and x.first_log_end is not None
        and x.first_log_end < end
        for x in reported
    )
