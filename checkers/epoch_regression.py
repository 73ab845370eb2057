"""Leader epochs only rise: at the controller, at every broker and along every log.

* ``epoch-regression``: a broker took an older request of the controller for a newer one: within one life of the broker
  a replica's leader epoch fell, or its partition epoch within one leader epoch. Or the controller itself fell back: a
  partition's leader epoch, its partition epoch, or the controller epoch (T4), which each start of a controller raises
  so that brokers can reject requests of an older one. Or the final leader appended records in its epoch, its log has
  them in another one, and no fault has taken anything from that log.
* ``epoch-disorder``: in a replica's log a record of an older leader epoch lies behind one of a newer epoch (R6). The
  replicas that copied it are not distinguished.
* ``epoch-cache-mismatch``: the leader epochs that a replica has written down beside its log do not rise, in epochs
  and in offsets, or one does not begin where the log's first record of that epoch is, or is not among them (R7).
  Epochs without records are legal, and so is one that began below the log's start, or below the highest that any
  replica's log has had: a deletion shortens what is written down of epochs at once, while the log's start is written
  down now and then, and may be an older one again after a crash. Only of a broker that was alive at the end: one that
  died may not have come to write its last epoch down. Before 0.11 no broker writes the first one down.

Severity: ``VIOLATION``. ``INDETERMINATE`` when a replica has a log and its epoch cache could not be read.
``epoch-disorder`` and ``epoch-cache-mismatch`` are ``DOCUMENTED`` before 2.0.1, where followers did not yet look epochs
up to the end and may keep records of an epoch that the leader never had.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from checkers.views.conclusion import Conclusion, cite, detail, seen_at
from checkers.views.configured import Configured
from checkers.views.copies import robs
from checkers.views.fault_journal import FaultJournal
from checkers.views.generations import since
from checkers.views.log_epochs import LogEpochs
from checkers.views.states import States
from harness.anomaly import (
    NO_WORD,
    NOTHING,
    AnomalyKind,
    CauseAt,
    Found,
    Needs,
    Sampled,
    Since,
    Unseen,
)
from harness.checker import Evidence
from harness.facts import LogEpoch, StateInterval
from harness.model import TopicPartition

EPOCH_REGRESSION = AnomalyKind(
    name="epoch-regression",
    invariants=("T4", "T11"),
    meaning="A broker or the controller fell back to an older epoch.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset(),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.SOME, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)

EPOCH_DISORDER = AnomalyKind(
    name="epoch-disorder",
    invariants=("R6", "T14"),
    meaning="A log holds a record of an older leader epoch behind one of a newer.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset(),
    follows_from=("lost-write", "vanished-read", "replica-divergence"),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=Since(generation="2.0.1", why_not_before="followers do not look epochs up to the end (KIP-279)"),
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
    shown_by_logs=True,
)

EPOCH_CACHE_MISMATCH = AnomalyKind(
    name="epoch-cache-mismatch",
    invariants=("R7",),
    meaning="The leader epochs that a replica has written down are not those of its log.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.REPLICA_LOGS}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=Since(
        generation="2.0.1", why_not_before="followers keep records that their leader never had, in any order (KIP-279)"
    ),
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (EPOCH_REGRESSION, EPOCH_DISORDER, EPOCH_CACHE_MISMATCH)

_WRITTEN_SINCE = "0.11"
"""The first generation that writes leader epochs down (KIP-101)."""


def conclude(
    states: States, configured: Configured, journal: FaultJournal, log_epochs: LogEpochs
) -> Iterator[Conclusion]:
    """Every breach in one run."""
    for place, nodes in states.reported.items():
        for intervals in nodes.values():
            alive = ((a, b) for a, b in pairwise(intervals) if a.incarnation == b.incarnation)
            yield from _falls(configured, place, alive)
    for place, decisions in states.decided.items():
        yield from _falls(configured, place, pairwise(decisions))
        yield from _older_controllers(configured, place, decisions)
    for place, logs in log_epochs.by_replica.items():
        found = [one for epochs in logs.values() for one in _disorder(configured, place, epochs)]
        yield from {one.finding.offset: one for one in reversed(found)}.values()
    for place, ends in states.ended.items():
        reported = [one for intervals in states.reported.get(place, {}).values() for one in intervals]
        begun = max((one.log_start_offset or 0 for one in (*reported, *ends.values())), default=0)
        for end in ends.values():
            log = log_epochs.by_replica.get(place, {}).get(end.node, [])
            yield from _cache(configured, place, end, log, begun=begun)
            yield from _stamped(states, configured, journal, log_epochs, place, end=end)


def _falls(
    configured: Configured, place: TopicPartition, steps: Iterator[tuple[StateInterval, StateInterval]]
) -> Iterator[Conclusion]:
    for before, after in steps:
        if None in (before.leader_epoch, after.leader_epoch):
            continue
        old = (before.leader_epoch or 0, before.partition_epoch or 0)
        new = (after.leader_epoch or 0, after.partition_epoch or 0)
        if new < old:
            yield Conclusion(
                configured.finding("epoch-regression", place, leader_epoch=new[0], **seen_at(after)),
                f"Node {after.node} was in leader epoch {old[0]}, partition epoch {old[1]}, and fell back to "
                f"leader epoch {new[0]}, partition epoch {new[1]}.",
                (
                    cite(before, f"node {before.node} was in leader epoch {old[0]}", before.end_sequence),
                    cite(after, f"node {after.node} was in leader epoch {new[0]} from here on"),
                ),
            )


def _older_controllers(
    configured: Configured, place: TopicPartition, decisions: Sequence[StateInterval]
) -> Iterator[Conclusion]:
    for before, after in pairwise(decisions):
        old, new = detail(before).get("controller_epoch"), detail(after).get("controller_epoch")
        if not (isinstance(old, int) and isinstance(new, int)):
            continue
        is_another = not configured.sampled and before.incarnation != after.incarnation
        if new < old or (new == old and is_another):
            yield Conclusion(
                configured.finding("epoch-regression", place, leader_epoch=after.leader_epoch, **seen_at(after)),
                f"A controller of epoch {new} decided after {'another' if new == old else 'one'} of epoch {old}.",
                (cite(before, f"a controller of epoch {old} decided"), cite(after, f"one of epoch {new} decided")),
            )


def _stamped(
    states: States,
    configured: Configured,
    journal: FaultJournal,
    log_epochs: LogEpochs,
    place: TopicPartition,
    *,
    end: StateInterval,
) -> Iterator[Conclusion]:
    """The first offset that the final leader appended in its epoch and that its log has in another."""
    intervals = states.reported.get(place, {}).get(end.node, ())
    log = [one for one in log_epochs.by_replica.get(place, {}).get(end.node, ()) if one.leader_epoch >= 0]
    harmed = any(robs(fault) and str(end.node) in fault["nodes"] for fault in journal.faults)
    if harmed or (end.role, detail(end).get("source", "live")) != ("leader", "live"):
        return
    for one in (x for x in intervals if (x.kind, x.role, x.leader_epoch) == ("state", "leader", end.leader_epoch)):
        first, last = one.first_log_end, one.log_end_offset
        if first is not None and last is not None:
            wrong = [x for x in log if x.leader_epoch != one.leader_epoch and x.first < last and x.last >= first]
            yield from (_other_epoch(configured, place, one, x) for x in wrong[:1] if first < last)
            if wrong:
                return


def _other_epoch(configured: Configured, place: TopicPartition, one: StateInterval, other: LogEpoch) -> Conclusion:
    offset = other.first if other.first >= (one.first_log_end or 0) else other.last
    row: dict[str, int | str] = {"node": one.node, "topic": place.topic, "partition": place.partition, "offset": offset}
    return Conclusion(
        configured.finding("epoch-regression", place, offset=offset, leader_epoch=one.leader_epoch, **seen_at(one)),
        f"Node {one.node}, leader in epoch {one.leader_epoch}, appended what is at offset {offset}, and its log has it "
        f"in epoch {other.leader_epoch}.",
        (
            cite(one, f"node {one.node}'s log grows beyond {offset} in epoch {one.leader_epoch}", one.end_sequence),
            Evidence("replica_logs", row, f"node {one.node}'s log holds offset {offset} in epoch {other.leader_epoch}"),
        ),
    )


def _disorder(configured: Configured, place: TopicPartition, epochs: Sequence[LogEpoch]) -> Iterator[Conclusion]:
    known = [one for one in epochs if one.leader_epoch >= 0]
    for older, newer in pairwise(known):
        if newer.first < older.last:
            about: dict[str, int | str] = {"topic": place.topic, "partition": place.partition}
            yield Conclusion(
                configured.finding(
                    "epoch-disorder", place, offset=newer.first, leader_epoch=newer.leader_epoch, node=newer.node
                ),
                f"In node {newer.node}'s log a record of epoch {newer.leader_epoch} is at offset {newer.first}, before "
                f"one of the older epoch {older.leader_epoch} at offset {older.last}.",
                tuple(
                    Evidence(
                        "replica_logs",
                        {"node": newer.node, **about, "offset": offset},
                        f"node {newer.node}'s log holds a record of epoch {epoch} at offset {offset}",
                    )
                    for epoch, offset in ((newer.leader_epoch, newer.first), (older.leader_epoch, older.last))
                ),
            )


def _cache(
    configured: Configured, place: TopicPartition, end: StateInterval, log: Sequence[LogEpoch], *, begun: int
) -> Iterator[Conclusion]:
    """Of one replica; ``begun``: the highest start that a log of the partition has had."""
    details = detail(end)
    entries = _entries(details.get("epochs"))
    if details.get("source") == "live" and "epochs_unread" in details and log:
        yield Conclusion(
            configured.finding("epoch-cache-mismatch", place, excuse="unread", **seen_at(end)),
            f"The leader epochs that node {end.node} has written down could not be read: {details['epochs_unread']}.",
            (cite(end, f"node {end.node}'s leader epochs are not known"),),
        )
    if details.get("source") != "live" or entries is None:
        return
    starts = dict(entries)
    written = since(configured.generation, _WRITTEN_SINCE)
    known = [one for one in log if one.leader_epoch >= 0]
    wrong = [(one.leader_epoch, one.first) for one in known if not _is_noted(one, starts, begun, written=written)]
    for before, after in pairwise(entries):
        if not (before[0] < after[0] and before[1] < after[1]):
            wrong.append(after)
    if end.log_end_offset is not None and entries and entries[-1][1] > end.log_end_offset:
        wrong.append(entries[-1])
    if wrong:
        epoch, offset = min(wrong, key=lambda one: (one[1], one[0]))
        kept = ", ".join(f"{e} from {o}" for e, o in entries) or "none"
        yield Conclusion(
            configured.finding("epoch-cache-mismatch", place, offset=offset, leader_epoch=epoch, **seen_at(end)),
            f"Node {end.node} wrote down the leader epochs {kept}, which is wrong about epoch {epoch} at {offset}.",
            (cite(end, f"node {end.node}'s log ends at {end.log_end_offset}, its leader epochs are {kept}"),),
        )


def _is_noted(one: LogEpoch, starts: Mapping[int, int], begun: int, *, written: bool) -> bool:
    """Whether the cache has the epoch's first offset; an epoch below where logs have begun need not be in it."""
    if written and one.leader_epoch not in starts:
        return one.last < begun
    return max(starts.get(one.leader_epoch, -1), begun) == max(one.first, begun)


def _entries(details: Any) -> list[tuple[int, int]] | None:
    if not isinstance(details, list):
        return None
    return [(int(one[0]), int(one[1])) for one in details if isinstance(one, list) and len(one) == 2]
