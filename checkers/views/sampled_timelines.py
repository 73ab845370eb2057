"""What a timeline proves whose rows are samples of the brokers' states.

A broker of the built-in cluster writes a row at every change. A real Kafka broker does not: the harness looks at each
replica many times a second, and each look makes a row (``guarantees.timeline`` is ``sampled`` in ``run.json``). The
values of a row were true at that time, and anything may have happened in between. The controller's decisions, elections
and changes of the ISR, are complete all the same, and so are the ``final`` rows.

So a row that is there is still evidence. A missing row proves nothing, except what the protocol guarantees between two
looks: within a term a leader's high watermark and its log only grow.

* A watermark that fell within a term, a leader that began with too short a log, two leaders of one epoch, epochs that
  fell: judged as ever. They may be missed.
* ``unjustified-ack`` and ``uncommitted-read``: when the watermark of no leader was ever seen above the record, every
  leader of that partition was seen to lead, and every one that may have led at the time was seen to lead on afterwards.
* ``committed-cut``: when the replica itself had a high watermark above what it lacked later.
* Which records an unclean election gave up is not known exactly, because no look shows where its winner's log ended: it
  may have given up everything of older epochs. For records of unknown epoch (formats 0 and 1 have none), that is
  everything whose send began before the election, and what was sent later while an earlier leader may not have heard of
  it. An election before a send began excuses nothing (:func:`unseen_excuse`). Nor is the time known at which a log's
  start moved.
* The kinds that are :attr:`harness.anomaly.Found.NONE` compare several brokers at one instant, or follow a log step by
  step: they are not looked for, and the verdict lists them.
* A life of a broker without a row, and a gap in the rows of one, are no reason to call the run ``INVALID``.

Losses, divergence and what clients or logs show by themselves need no timeline.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from checkers.views.fault_journal import FaultJournal
from checkers.views.states import States
from harness.anomaly import AnomalyKind, Found, Unseen
from harness.downtime import in_force
from harness.excuse import Excuse
from harness.facts import UNWATCHED_NS, NodeFacts, StateInterval, Unwatched
from harness.findings import Finding
from harness.model import NO_LEADER, TopicPartition

LOOK_NS = 5_000_000_000
"""How long a look takes at most: a row's time is when it began, and its values were true by its end."""


def is_decided(states: States, finding: Finding, kind: AnomalyKind) -> bool:
    """Whether a finding of ``kind`` is more than a missing look; in a complete timeline every one is."""
    if not states.sampled:
        return True
    found = kind.sampled.found
    if found is Found.SOME_WITH_EVERY_LEADER:
        return _saw_every_leader(states, _place(finding))
    return found is not Found.NONE


def unseen_excuse(states: States, finding: Finding, kind: AnomalyKind) -> Excuse | None:
    """What may explain a finding between two looks; None in a complete timeline."""
    if not states.sampled:
        return None
    if _may_be_given_up(states, finding, kind.sampled.unseen):
        return "unclean"
    return "retention" if kind.sampled.unseen in (Unseen.DELETION, Unseen.RECORD_GONE) else None


def limits(journal: FaultJournal, node_facts: NodeFacts, unaccounted: int) -> Iterator[str]:
    """Which acknowledgements and which times the samples leave open, in sentences.

    Args:
        journal: with the faults that explain why a broker was not looked at.
        node_facts: with the times without a look.
        unaccounted: how many acknowledgements are above every watermark that was sampled.
    """
    if unaccounted:
        yield (
            f"{unaccounted} acknowledgements with acks=all are above every sampled high watermark, and not every "
            "leader of that time was sampled afterwards."
        )
    yield from _silence(journal, node_facts)


def _silence(journal: FaultJournal, node_facts: NodeFacts) -> Iterator[str]:
    """The longest time without a look at a broker that no fault explains."""
    long = [one for one in node_facts.unwatched if one.reported or not _was_harmed(journal, one)]
    if long:
        longest = max(long, key=lambda one: (one.end_ns - one.begin_ns, -one.node, -one.begin_ns))
        seconds, times = (longest.end_ns - longest.begin_ns) / 1e9, len(long)
        yield (
            f"For {seconds:.1f} s at the longest no sample was taken of a broker that was up (node {longest.node}); "
            f"{'once' if times == 1 else f'{times} times'} it was more than {UNWATCHED_NS / 1e9:g} s."
        )


def _was_harmed(journal: FaultJournal, one: Unwatched) -> bool:
    """Whether a fault of that broker was in effect meanwhile."""
    return any(
        str(one.node) in fault["nodes"] and in_force(fault["injected_ns"], fault["healed_ns"], one.begin_ns, one.end_ns)
        for fault in journal.excusing
    )


def _may_be_given_up(states: States, finding: Finding, unseen: Unseen) -> bool:
    """Whether an unclean election may have given up what a finding misses."""
    place, known = _place(finding), finding.leader_epoch
    epochs = states.unclean.get(place, [])
    match unseen:
        case Unseen.WATERMARK_GIVEN_UP:
            return any(_fell_unseen(states, finding, epoch) for epoch in epochs)
        case Unseen.CUT_GIVEN_UP:
            return any(
                election.time_ns <= (finding.time_ns or 0) for election in states.unclean_elections.get(place, ())
            )
        case Unseen.REPLICA_BEHIND:
            heard = [
                -1 if one.leader_epoch is None else one.leader_epoch for one in states.ended.get(place, {}).values()
            ]
            return any(epoch > (known or 0) and epoch > min(heard, default=-1) for epoch in epochs)
        case Unseen.RECORD_GIVEN_UP | Unseen.RECORD_GONE:
            if known is not None:
                return any(epoch > known for epoch in epochs)
            return any(
                may_have_been_there(states, place, election.time_ns, election.leader_epoch, finding.since_ns)
                for election in states.unclean_elections.get(place, ())
            )
    return False


def _place(finding: Finding) -> TopicPartition:
    return TopicPartition(finding.topic, finding.partition)


def _saw_every_leader(states: States, place: TopicPartition) -> bool:
    """Whether every epoch's leader was seen to lead in it; a change of the ISR may begin one, too (Kafka 1.1.1)."""
    seen = {
        (one.node, one.leader_epoch)
        for intervals in states.reported.get(place, {}).values()
        for one in intervals
        if one.role == "leader"
    }
    elected = {
        (one.leader, one.leader_epoch) for one in states.decided.get(place, []) if one.leader not in (None, NO_LEADER)
    }
    return elected <= seen


def may_have_been_there(
    states: States, place: TopicPartition, elected_ns: int, leader_epoch: int, since_ns: int | None
) -> bool:
    """Whether a record whose send began at that time (None: not known) may be of an epoch before the election's.

    An election's time is never long before it was decided, but the leader before hears of it later, and may have
    acknowledged more meanwhile.
    """
    if since_ns is None or elected_ns >= since_ns:
        return True
    nodes = states.reported.get(place, {})
    led = {(x.node, x.leader_epoch) for intervals in nodes.values() for x in intervals if x.role == "leader"}
    led |= {(x.leader, x.leader_epoch) for x in states.decided.get(place, ()) if x.leader not in (None, NO_LEADER)}
    return any(
        epoch is not None and epoch < leader_epoch and not had_heard(nodes.get(node, ()), epoch, since_ns)
        for node, epoch in led
        if node is not None
    )


def had_heard(intervals: Sequence[StateInterval], epoch: int, time_ns: int) -> bool:
    """Whether a broker was seen in a later epoch by then: epochs only rise, so it no longer leads in that one."""
    later = [one for one in intervals if one.kind == "state" and (one.leader_epoch or 0) > epoch]
    return any(one.begin_ns + LOOK_NS <= time_ns for one in later)


def _fell_unseen(states: States, finding: Finding, epoch: int) -> bool:
    """Whether what an unclean election of ``epoch`` gave up is not known to have been committed again since."""
    if finding.leader_epoch is None or finding.leader_epoch < epoch:
        return False
    since = range(epoch, finding.leader_epoch)
    marks = [
        one.high_watermark or 0
        for intervals in states.reported.get(_place(finding), {}).values()
        for one in intervals
        if one.role == "leader" and one.leader_epoch in since
    ]
    return max(marks, default=0) < (finding.until or 0)
