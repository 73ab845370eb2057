"""What may have taken a record of which its sender waited for less than all in-sync replicas.

acks=0 promises nothing: the client hands the record to its socket and hears no more of it, whatever the broker does.

acks=1 promises that the leader has it in its log. The leader alone: when another broker leads next, or this one comes
back without what it had not flushed, the record may be gone, and that is ``WEAK``. A leader that leads on has no reason
to lose it. So there must have been, since the send began,

* an election in the partition after the one that created it; or one before, of which a broker that had led in an
  earlier epoch may not have heard when the send began, so that it may still have taken the record; or
* a start of a broker that has led the partition: the first row of a life of its, and no later one.

Where no broker reported its state (an imported history), it is ``WEAK``; where the timeline has a gap,
the event may be in it, and it is ``INDETERMINATE``. Else nothing explains the loss, and it is a ``VIOLATION``.
"""

from __future__ import annotations

from checkers.conclusion import RunFacts
from checkers.excuses import is_watched
from checkers.leadership import elections, starts
from checkers.sampled_timelines import may_have_been_there
from harness.model import TopicPartition
from spark_analysis.answer import Finding

_NEED_AN_EVENT = frozenset({"lost-write", "inconsistent-offsets"})
"""The kinds that a leader which leads on cannot bring about, whatever its senders waited for."""


def may_have_gone(run: RunFacts, finding: Finding) -> bool:
    """Whether what a finding misses may be gone because its sender waited for too little."""
    if finding.kind not in _NEED_AN_EVENT or finding.acks == 0 or not is_watched(run):
        return True
    place = TopicPartition(finding.topic, finding.partition)
    return _was_elected_again(run, place, finding.since_ns) or _started_again(run, place, finding.since_ns)


def _was_elected_again(run: RunFacts, place: TopicPartition, since_ns: int | None) -> bool:
    known = elections(run, place)
    return any(may_have_been_there(run, place, one.begin_ns, one.leader_epoch or 0, since_ns) for one in known)


def _started_again(run: RunFacts, place: TopicPartition, since_ns: int | None) -> bool:
    return any(at_ns >= (since_ns or 0) for _, at_ns in starts(run, place))
