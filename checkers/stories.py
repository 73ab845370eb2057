"""The story of each lost range, as data: who promised it, who had it, what took the last copy, and after which fault.

Ranges are lost writes at consecutive offsets of one partition and one leader epoch. Everything is told from the facts
(:mod:`spark_analysis.facts`), so a range of a million records has one story, and it costs no more than that of one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from checkers.conclusion import RunFacts, detail
from checkers.copies import Copy, copies
from harness.checker import CopyStory, LossStory
from harness.model import TopicPartition
from spark_analysis.facts import LostRange, Stretch


def stories(run: RunFacts) -> Iterator[LossStory]:
    """One story for each lost range, by partition and offset."""
    order = sorted(run.facts.lost_ranges, key=_place)
    for lost in order:
        place = TopicPartition(lost.topic, lost.partition)
        nodes = run.told.get(place, {})
        held = [
            copy
            for ours in nodes.values()
            for copy in copies(ours, run.faults)
            if copy.leader_epoch == lost.leader_epoch and copy.start < lost.end and copy.end > lost.first
        ]
        yield _story(run, place, lost, held)


def _place(lost: LostRange) -> tuple[str, int, int, int, int]:
    return lost.topic, lost.partition, lost.first, lost.end, -1 if lost.leader_epoch is None else lost.leader_epoch


def _story(run: RunFacts, place: TopicPartition, lost: LostRange, held: Sequence[Copy]) -> LossStory:
    survivors = _survivors(run, place, lost)
    gone = [copy for copy in held if copy.lost is not None]
    last = max(gone, key=_gone_ns, default=None) if not survivors else None
    until_ns = _gone_ns(last) if last is not None else max(map(_gone_ns, gone), default=None)
    fault = _fault(run, until_ns)
    election = _election(run, place, lost, until_ns)
    committed = _committed(run, place, lost)
    return LossStory(
        topic=lost.topic,
        partition=lost.partition,
        first_offset=lost.first,
        end_offset=lost.end,
        leader_epoch=lost.leader_epoch,
        acks=lost.acks,
        acknowledged_by=_leader(run, place, lost.leader_epoch),
        first_acknowledged_ns=lost.first_ack_ns,
        last_acknowledged_ns=lost.last_ack_ns,
        committed_by=None if committed is None else committed[0],
        committed_ns=None if committed is None else committed[1],
        copies=tuple(_copy(copy) for copy in sorted(held, key=lambda c: (c.got.begin_ns, c.node))),
        survivors=tuple(survivors),
        last_copy=None if last is None else _copy(last),
        fault=fault,
        election=election,
        words=_words(lost, held, survivors, last, fault),
    )


def _copy(copy: Copy) -> CopyStory:
    lost = copy.lost
    return CopyStory(
        copy.node, copy.start, copy.end, copy.got.end_ns, copy.event, copy.reason,
        None if lost is None else lost.begin_ns, None if lost is None else lost.incarnation,
        None if lost is None else lost.sequence,
    )  # fmt: skip


def _gone_ns(copy: Copy) -> int:
    return 0 if copy.lost is None else copy.lost.begin_ns


def _survivors(run: RunFacts, place: TopicPartition, lost: LostRange) -> list[int]:
    """The nodes whose logs still hold some of it: records of that epoch at those offsets."""
    return sorted(
        node
        for node, epochs in run.logs.get(place, {}).items()
        if any(x.leader_epoch == lost.leader_epoch and x.first < lost.end and x.last >= lost.first for x in epochs)
    )


def _led(run: RunFacts, place: TopicPartition, epoch: int | None) -> list[Stretch]:
    told: Iterable[list[Stretch]] = run.told.get(place, {}).values()
    found = [x for ours in told for x in ours if x.role == "leader" and x.leader_epoch == epoch and x.kind == "state"]
    return sorted(found, key=lambda x: x.begin_ns)


def _leader(run: RunFacts, place: TopicPartition, epoch: int | None) -> int | None:
    return next((one.node for one in _led(run, place, epoch)), None)


def _committed(run: RunFacts, place: TopicPartition, lost: LostRange) -> tuple[int, int] | None:
    """Which leader of that epoch had committed all of it, and by when."""
    for one in _led(run, place, lost.leader_epoch):
        if (one.first_high_watermark or 0) >= lost.end:
            return one.node, one.begin_ns
        if (one.high_watermark or 0) >= lost.end:
            return one.node, one.end_ns
    return None


def _fault(run: RunFacts, until_ns: int | None) -> str | None:
    """The last fault that was injected before the range was gone."""
    known = [
        f for f in run.faults if f["injected_ns"] is not None and (until_ns is None or f["injected_ns"] <= until_ns)
    ]
    return max(known, key=lambda f: (f["injected_ns"], str(f["fault"])))["fault"] if known else None


def _election(run: RunFacts, place: TopicPartition, lost: LostRange, until_ns: int | None) -> dict[str, object] | None:
    """The election that began the epoch in which the range was gone: the last before it with a later epoch."""
    known = [
        x
        for x in run.decided.get(place, [])
        if x.kind == "election" and (x.leader_epoch or 0) > (-1 if lost.leader_epoch is None else lost.leader_epoch)
        and (until_ns is None or x.begin_ns <= until_ns)
    ]  # fmt: skip
    if not known:
        return None
    one = known[-1]
    said = {"leader": one.leader, "leader_epoch": one.leader_epoch, "time_ns": one.begin_ns}
    return said | {"clean": detail(one).get("clean"), "cause": detail(one).get("cause")}


def _words(
    lost: LostRange, held: Sequence[Copy], survivors: Sequence[int], last: Copy | None, fault: str | None
) -> str:
    where = f"Offset {lost.first}" if lost.end - lost.first == 1 else f"Offsets {lost.first} to {lost.end - 1}"
    holders = sorted({copy.node for copy in held})
    had = (
        f" of epoch {lost.leader_epoch} had been on {_nodes(holders)}" if holders else " had been on nobody knows which"
    )
    after = f", after fault {fault}" if fault is not None else ""
    if survivors:
        return f"{where}{had}; still on the disk of {_nodes(survivors)}."
    if last is None or last.lost is None:
        return f"{where}{had}; what took the last copy, no row says{after}."
    how = {"truncation": "cut it off", "log_start": "started its log anew"}.get(
        last.event or "", f"lost it ({last.event})"
    )
    reason = f" ({last.reason})" if last.reason and last.event in ("truncation", "log_start") else ""
    return f"{where}{had}; the last copy went when node {last.node} {how}{reason}{after}."


def _nodes(nodes: Sequence[int]) -> str:
    return f"node{'s' if len(nodes) > 1 else ''} {', '.join(map(str, nodes))}"
