"""What may explain the loss of a record that was sent with acks=0 or acks=1.

acks=0 promises nothing: the client writes the record to its socket and waits for no response.

acks=1 promises that the leader has it in its log. When another broker leads next, or this one comes back without what
it had not flushed, the record may be gone, and that is ``WEAK``. A leader that leads on has no reason to lose it. So
there must have been, since the send began,

* an election in the partition after the one that created it; or one before, of which a broker that had led in an
  earlier epoch may not have heard when the send began, so that it may still have taken the record; or
* a start of a broker that had led the partition by then: the first row of one of its lives, and no later one;

and not after the record was known to be gone: another one was seen at its offset, or the leader's log ended before it,
even at the time of the acknowledgement.

Where no broker reported its state (an imported history), it is ``WEAK``; where the timeline has a gap,
the event may be in it, and it is ``INDETERMINATE``. Else nothing explains the loss, and it is a ``VIOLATION``.
"""

from __future__ import annotations

import math
from itertools import zip_longest

from checkers.views.conclusion import detail
from checkers.views.configured import Configured, is_watched
from checkers.views.leadership import elections, starts
from checkers.views.sampled_timelines import LOOK_NS, may_have_been_there
from checkers.views.states import States
from harness.anomaly import AnomalyKind
from harness.facts import StateInterval
from harness.findings import Finding
from harness.model import TopicPartition

_LEADS = ("state", "leader")


def may_have_gone(states: States, configured: Configured, finding: Finding, kind: AnomalyKind) -> bool:
    """Whether what a finding, which is of ``kind``, misses may be gone because its sender waited for too little."""
    if kind.excuses.while_leading or finding.acks == 0 or not is_watched(configured):
        return True
    place = TopicPartition(finding.topic, finding.partition)
    since_ns, by_ns = finding.since_ns, _gone_ns(states, place, finding) + (LOOK_NS if states.sampled else 0)
    elected = [one for one in elections(states, place) if one.begin_ns <= by_ns]
    if any(may_have_been_there(states, place, one.begin_ns, one.leader_epoch or 0, since_ns) for one in elected):
        return True
    return any((since_ns or 0) <= at_ns <= by_ns for _, at_ns in starts(states, place))


def _gone_ns(states: States, place: TopicPartition, finding: Finding) -> float:
    """By when the record was known to be gone; infinity: it is not.

    A leader of an older epoch than the newest at the time of the acknowledgement need not have heard of the record.
    """
    known = math.inf if finding.by_ns is None else finding.by_ns
    if finding.kind != "lost-write" or finding.offset is None or finding.time_ns is None:
        return known
    pairs = [
        pair for intervals in states.reported.get(place, {}).values() for pair in zip_longest(intervals, intervals[1:])
    ]
    led = [(one, after) for one, after in pairs if (one.kind, one.role) == _LEADS]
    newest = max((one.leader_epoch or 0 for one, _ in led if one.begin_ns <= finding.time_ns), default=0)
    for one, after in ((one, after) for one, after in led if (one.leader_epoch or 0) >= newest):
        lacking = (one.log_end_offset or 0) <= finding.offset
        if lacking and one.begin_ns <= finding.time_ns < _ended_there_until_ns(states, one, after, finding.offset):
            known = min(known, finding.time_ns)
        if one.begin_ns >= finding.time_ns and (one.first_log_end or 0) <= finding.offset:
            known = min(known, one.begin_ns)
    return known


def _ended_there_until_ns(states: States, one: StateInterval, after: StateInterval | None, offset: int) -> int:
    """Until when a log that ended at or before an offset in the last row of an interval is known not to have grown.

    A broker writes a row right after its log has grown, and maybe after it has acknowledged what it appended: what is
    not in its next row, about this replica or another, did not happen. In a sampled timeline, or where the next row has
    more, it is known until its last row.
    """
    if states.sampled:
        return one.end_ns
    if after is None or after.incarnation != one.incarnation:
        return states.lasted[one.node, one.incarnation]
    had = detail(after).get("from_offset") if after.kind == "truncation" else after.first_log_end
    return after.begin_ns if (had or 0) <= offset else one.end_ns
