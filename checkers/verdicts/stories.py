"""The story of each lost range, as data: its acknowledgements, its copies, what removed the last one, and which fault.

Ranges are lost writes at consecutive offsets of one partition and one leader epoch. Stories are made from the facts
(:mod:`harness.facts`), so a range of a million records has one story, which costs no more than that of one record.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from checkers.views.conclusion import detail
from checkers.views.copies import Copy, copies
from checkers.views.fault_journal import FaultJournal
from checkers.views.log_epochs import LogEpochs
from checkers.views.seen_copies import BETWEEN_LOOKS, Last, epoch_of, last_seen, seen_copies, window
from checkers.views.states import States
from harness.checker import CopyStory, LossStory
from harness.facts import AckFacts, LostRange, StateInterval
from harness.model import NO_LEADER, TopicPartition


def stories(states: States, journal: FaultJournal, log_epochs: LogEpochs, ack_facts: AckFacts) -> Iterator[LossStory]:
    """One story for each lost range, by partition and offset."""
    found: dict[TopicPartition, list[Copy]] = {}
    for lost in sorted(ack_facts.lost_ranges, key=_place):
        place = TopicPartition(lost.topic, lost.partition)
        epoch = lost.leader_epoch
        if epoch is None and states.sampled:
            epoch = epoch_of(states, journal, place, lost.first_ack_ns, lost.last_ack_ns)
        if place not in found:
            found[place] = list(_copies(states, journal, place))
        held = [
            copy
            for copy in found[place]
            if copy.leader_epoch == epoch and copy.start < lost.end and copy.end > lost.first
        ]
        yield _story(states, journal, log_epochs, lost, epoch, held=held)


def _copies(states: States, journal: FaultJournal, place: TopicPartition) -> Iterator[Copy]:
    """What every replica of a partition held."""
    for intervals in states.reported.get(place, {}).values():
        if states.sampled:
            yield from seen_copies(intervals, journal, place)
        else:
            yield from copies(intervals, journal.excusing)


def _place(lost: LostRange) -> tuple[str, int, int, int, int]:
    return lost.topic, lost.partition, lost.first, lost.end, -1 if lost.leader_epoch is None else lost.leader_epoch


def _story(
    states: States,
    journal: FaultJournal,
    log_epochs: LogEpochs,
    lost: LostRange,
    epoch: int | None,
    *,
    held: Sequence[Copy],
) -> LossStory:
    place = TopicPartition(lost.topic, lost.partition)
    survivors, gapped = _survivors(log_epochs, place, lost)
    last = None if survivors or gapped else _last(states, journal, place, held)
    until_ns = _until_ns(states, journal, held) if last is None else _gone_ns(states, journal, last.copy)
    fault = _fault(journal, until_ns)
    committed = _committed(states, place, lost, epoch)
    words = _seen_words if states.sampled else _words
    return LossStory(
        topic=lost.topic,
        partition=lost.partition,
        first_offset=lost.first,
        end_offset=lost.end,
        leader_epoch=lost.leader_epoch,
        acks=lost.acks,
        acknowledged_by=_leader(states, place, epoch),
        first_acknowledged_ns=lost.first_ack_ns,
        last_acknowledged_ns=lost.last_ack_ns,
        committed_by=None if committed is None else committed[0],
        committed_ns=None if committed is None else committed[1],
        copies=tuple(_copy(copy) for copy in sorted(held, key=lambda c: (c.got.begin_ns, c.node))),
        survivors=tuple(survivors),
        last_copy=None if last is None else _copy(last.copy),
        fault=fault,
        election=_election(
            states, place, epoch, until_ns if last is None or last.copy.lost is None else last.copy.lost.begin_ns
        ),
        words=words(lost, held, _left(survivors, gapped), last, fault),
    )


def _last(states: States, journal: FaultJournal, place: TopicPartition, held: Sequence[Copy]) -> Last | None:
    if states.sampled:
        return last_seen(states, journal, place, held)
    gone = [copy for copy in held if copy.lost is not None]
    return Last(max(gone, key=partial(_gone_ns, states, journal)), overall=True) if gone else None


def _until_ns(states: States, journal: FaultJournal, held: Sequence[Copy]) -> int | None:
    """Until when copies were seen to go."""
    return max((_gone_ns(states, journal, copy) for copy in held if copy.lost is not None), default=None)


def _copy(copy: Copy) -> CopyStory:
    lost = copy.lost
    return CopyStory(
        copy.node, copy.start, copy.end, copy.got.end_ns, copy.event, copy.reason,
        None if lost is None else lost.begin_ns, None if lost is None else lost.incarnation,
        None if lost is None else lost.sequence, None if copy.seen is None else copy.seen.end_ns,
    )  # fmt: skip


def _gone_ns(states: States, journal: FaultJournal, copy: Copy) -> int:
    """When a copy that is gone was so at the latest."""
    assert copy.lost is not None
    return window(journal, copy)[1] if states.sampled else copy.lost.begin_ns


def _survivors(log_epochs: LogEpochs, place: TopicPartition, lost: LostRange) -> tuple[list[int], list[int]]:
    """The nodes whose logs still hold some of it: records of that epoch at those offsets, or without an epoch.

    And those whose logs have records of that epoch around it, but not at every offset: they may hold it or not.
    """
    if lost.leader_epoch is None:
        return list(lost.kept), []
    around = {
        node: one
        for node, epochs in sorted(log_epochs.by_replica.get(place, {}).items())
        for one in epochs
        if one.leader_epoch == lost.leader_epoch and one.first < lost.end and one.last >= lost.first
    }
    whole = [node for node, one in around.items() if one.offsets == one.last - one.first + 1]
    return whole, [node for node in around if node not in whole]


def _left(survivors: Sequence[int], gapped: Sequence[int]) -> str:
    """Where it still is, or may be, in a clause; empty where it is gone."""
    if survivors:
        return f"still on the disk of {_nodes(survivors)}"
    if gapped:
        *others, last = map(str, gapped)
        either = f"{', '.join(others)} or {last}" if others else last
        return f"whether the disk of node {either} still holds it is not known, for the log has gaps there"
    return ""


def _led(states: States, place: TopicPartition, epoch: int | None) -> list[StateInterval]:
    reported: Iterable[list[StateInterval]] = states.reported.get(place, {}).values()
    found = [
        x
        for intervals in reported
        for x in intervals
        if x.role == "leader" and x.leader_epoch == epoch and x.kind == "state"
    ]
    return sorted(found, key=lambda x: x.begin_ns)


def _leader(states: States, place: TopicPartition, epoch: int | None) -> int | None:
    seen = next((one.node for one in _led(states, place, epoch)), None)
    if seen is not None or not states.sampled or epoch is None:
        return seen
    elected = (one.leader for one in states.decided.get(place, []) if one.leader_epoch == epoch)
    return next((leader for leader in elected if leader != NO_LEADER), None)


def _committed(states: States, place: TopicPartition, lost: LostRange, epoch: int | None) -> tuple[int, int] | None:
    """The leader of that epoch that had committed all of it, and by when."""
    for one in _led(states, place, epoch):
        if (one.first_high_watermark or 0) >= lost.end:
            return one.node, one.begin_ns
        if (one.high_watermark or 0) >= lost.end:
            return one.node, one.end_ns
    return None


def _fault(journal: FaultJournal, until_ns: int | None) -> str | None:
    """The last fault that was injected before the range was gone."""
    known = [
        f for f in journal.faults if f["injected_ns"] is not None and (until_ns is None or f["injected_ns"] <= until_ns)
    ]
    return max(known, key=lambda f: (f["injected_ns"], str(f["fault"])))["fault"] if known else None


def _election(
    states: States, place: TopicPartition, epoch: int | None, until_ns: int | None
) -> dict[str, object] | None:
    """The election that began the epoch in which the range was gone: the last before it with a later epoch."""
    known = [
        x
        for x in states.decided.get(place, [])
        if x.kind == "election" and (x.leader_epoch or 0) > (-1 if epoch is None else epoch)
        and (until_ns is None or x.begin_ns <= until_ns)
    ]  # fmt: skip
    if not known:
        return None
    one = known[-1]
    election = {"leader": one.leader, "leader_epoch": one.leader_epoch, "time_ns": one.begin_ns}
    return election | {"clean": detail(one).get("clean"), "cause": detail(one).get("cause")}


def _words(lost: LostRange, held: Sequence[Copy], left: str, last: Last | None, fault: str | None) -> str:
    holders = sorted({copy.node for copy in held})
    had = f" of epoch {lost.leader_epoch} had been on {_nodes(holders)}" if holders else " had been on unknown nodes"
    after = f", after fault {fault}" if fault is not None else ""
    if left:
        return f"{_where(lost)}{had}; {left}."
    if last is None:
        return f"{_where(lost)}{had}; no row shows what took the last copy{after}."
    copy = last.copy
    how = {"truncation": "cut it off", "log_start": "started its log anew"}.get(
        copy.event or "", f"lost it ({copy.event})"
    )
    reason = f" ({copy.reason})" if copy.reason and copy.event in ("truncation", "log_start") else ""
    return f"{_where(lost)}{had}; the last copy went when node {copy.node} {how}{reason}{after}."


def _seen_words(lost: LostRange, held: Sequence[Copy], left: str, last: Last | None, fault: str | None) -> str:
    """The same for a sampled timeline: what was seen, and nothing more."""
    epoch = "" if lost.leader_epoch is None else f" of epoch {lost.leader_epoch}"
    what, were = f"{_where(lost)}{epoch}", "was" if lost.end - lost.first == 1 else "were"
    holders = sorted({copy.node for copy in held})
    after = f", after fault {fault}" if fault is not None else ""
    if not holders:
        taken = f"; {left}" if left else ", nor what took it from them"
        return f"{what}: no look shows which logs held it{taken}."
    seen = f"{what} {were} seen on {_nodes(holders)}"
    if left:
        return f"{seen}; {left}."
    if {copy.event for copy in held} == {"log_start"}:
        return f"{seen}; every log that held it was seen to begin behind it."
    if last is None:
        return f"{seen}; how the last copy went, no look shows."
    copy, whose = last.copy, "that was seen" if last.overall else "in the ISR"
    how = {
        "truncation": f"when node {copy.node} cut it off, {BETWEEN_LOOKS}{after}",
        "log_start": f"when the log of node {copy.node} began behind it, {BETWEEN_LOOKS}{after}",
        "unseen": f"from node {copy.node} {BETWEEN_LOOKS}, and it was started anew in between{after}",
    }.get(copy.event or "", f"from node {copy.node}: {copy.reason}")
    return f"{seen}; the last copy {whose} went {how}."


def _where(lost: LostRange) -> str:
    return f"Offset {lost.first}" if lost.end - lost.first == 1 else f"Offsets {lost.first} to {lost.end - 1}"


def _nodes(nodes: Sequence[int]) -> str:
    return f"node{'s' if len(nodes) > 1 else ''} {', '.join(map(str, nodes))}"
