"""A compacted log, read or on the disks of in-sync replicas, has the last value of each key, or a later one.

``lost-key``: a client wrote a value, or a tombstone, of a key, and it was acknowledged at offset o with acks=all. After
that a reader read the log from its beginning to a high watermark beyond o, and was given no record of that key behind
o, and at o none or another value. Of several that were acknowledged before it began, the one with the highest offset
counts: compaction removes a record only when another one of its key, further behind and below the high watermark,
supersedes it, so that each one that is gone is accounted for by what was given instead. A tombstone counts, too, as
long as ``delete.retention.ms`` has not passed since it was sent: before, it was not compacted for the first time.

Once a tombstone may be gone, the key may be, and none of its older values may be there: the pass that removes a
tombstone is at least the second one over it, and the first has removed them. Only a reader that has read for longer
than ``delete.retention.ms`` may have been given an older value, and then not the tombstone. A tombstone that was never
acknowledged may have superseded the value, too, and be gone.

The record that supersedes may lie behind the end of the reading, when the cleaner comes while the reader reads. So a
key is not judged when another record of it was sent before the reading ended, and was acknowledged at that end or
behind, or may be in the log although it never was. The final reading goes to the end of the log, which is at rest, and
a record is acknowledged just before: so it is judged without this exception, and must also give what was acknowledged
behind its end, which the log has lost.

One finding for each record, about the first reader to which it was not given.

``replica-lost-key``: the run came to rest, and the log of a broker that the controller has in the partition's ISR in
the end is one more reading, to its end: of a key that was acknowledged before the final reading began, it holds neither
the last value nor a later one. Readers are given what a leader has; this is what the next leader would give them. A
key is not judged by replicas once a tombstone of it may be gone: a replica that was away for longer than
``delete.retention.ms`` keeps what the tombstone had superseded, which readers show when it leads. One finding for each
record, about the first such broker.

These are the only rules about the topic whose log is compacted (:mod:`harness.compacted`), for every other one takes
each acknowledged record for one that must be there; what brokers and the controller say of it is judged as of other
topics.

Severity: ``VIOLATION``. ``DOCUMENTED`` when an unclean election since the acknowledgement may have given the record up
and the configuration permits such elections, or when every replica failed lossily at one time since then (see
:mod:`checkers.views.lossy_failures`). ``replica-lost-key``, too, where a fault has damaged the partition's log on that
broker, or has put records of another cluster into one of the partition's logs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from checkers.views.compacted_logs import CompactedLogs
from checkers.views.frames import Frames
from checkers.views.history import History
from checkers.views.row import ALL, Row, where
from checkers.views.run_demands import RunDamage, RunDemands
from checkers.views.timeline import Timeline
from checkers.views.witnesses import Witnesses
from checkers.wire_tap.attribution import attributed
from checkers.wire_tap.scan_grounds import kept_from_reader, none_refused
from checkers.wire_tap.send_grounds import acknowledged
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
from harness.checker import Attribution, Evidence
from harness.compacted import READ_WITHIN_NS, is_tombstone, key_number
from harness.excuse import Excuse
from harness.findings import Finding
from harness.model import TopicPartition

LOST_KEY = AnomalyKind(
    name="lost-key",
    invariants=("C19",),
    meaning="The last acknowledged value of a key is gone from a compacted log, and no later one is there.",
    shows_loss=True,
    shown_by_clients=True,
    relies_on=frozenset({Needs.HISTORY}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=Excuses(
        unclean_election=True,
        retention=Retention.NEVER,
        fault=False,
        lossy_failure=LossyFailure.BEFORE_READ,
        with_cause=False,
        own_topic=None,
        while_leading=False,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.RECORD_GIVEN_UP),
    in_scenarios=NO_WORD,
    permitted_by="",
)
REPLICA_LOST_KEY = replace(
    LOST_KEY,
    name="replica-lost-key",
    invariants=("C19", "R1"),
    meaning="The last acknowledged value of a key, and any later one, is gone from an in-sync replica's compacted log.",
    shown_by_clients=False,
    relies_on=frozenset({Needs.HISTORY, Needs.TIMELINE, Needs.REPLICA_LOGS}),
    follows_from=("lost-key",),
)
KINDS = (LOST_KEY, REPLICA_LOST_KEY)


class _Put(NamedTuple):
    """An acknowledged record of the compacted topic; ``since_ns``: when its client was about to send it."""

    offset: int
    value: int
    row: int
    time_ns: int
    since_ns: int


class _Written(NamedTuple):
    """A record that is, or may be, in the log; ``offset``: None when it was never acknowledged."""

    begun: int
    begun_ns: int
    value: int
    offset: int | None


class _Scan(NamedTuple):
    """A whole reading; ``last``: by key, the last record that was given, as its offset and value."""

    begun: int
    begun_ns: int
    end_offset: int
    final: bool
    row: Row
    last: dict[int, tuple[int, int]]


def find(
    history: History, timeline: Timeline, logs: CompactedLogs, demands: RunDemands, damage: RunDamage
) -> Iterator[Finding]:
    """Reference: every key of which a reader, or an in-sync replica, has less, or something older, than there was."""
    yield from _not_given(history, timeline, demands)
    if demands.settled:
        yield from _not_held(history, timeline, logs, demands.tombstones_stay_ns, damage)


def _not_given(history: History, timeline: Timeline, demands: RunDemands) -> Iterator[Finding]:
    puts, written, lost = _puts(history), _written(history), dict[tuple[TopicPartition, int], Finding]()
    for place, scan in sorted(_scans(history), key=lambda one: int(one[1].row["index"])):
        unsure = [] if scan.final else [one for one in written[place] if _may_supersede(one, scan)]
        superseded = {key_number(one.value) for one in unsure}
        forgotten = _forgotten(written[place], scan, demands.tombstones_stay_ns)
        for key, last in _newest(puts[place], scan).items():
            if key in superseded:
                continue
            given = scan.last.get(key)
            for put in last:
                if _is_missing(put, given) and not forgotten(put, given):
                    lost.setdefault((place, put.value), _lost(timeline, place, put, scan.row, given))
    yield from lost.values()


def _not_held(
    history: History, timeline: Timeline, logs: CompactedLogs, stay_ns: int | None, damage: RunDamage
) -> Iterator[Finding]:
    puts, written = _puts(history), _written(history)
    final = {place: scan for place, scan in sorted(_scans(history), key=lambda one: one[1].begun) if scan.final}
    for place, scan in sorted(final.items()):
        lost: dict[int, Finding] = {}
        newest, held = _newest(puts[place], scan), logs.last.get(place, {})
        old = _old_tombstones(written[place], scan.row["time_ns"] + READ_WITHIN_NS, stay_ns)
        for node in sorted(timeline.last_isr.get(place, ()) if held else ()):
            for key, last in newest.items():
                found = held.get(node, {}).get(key)
                for put in last:
                    if _is_missing(put, found) and key not in _keys_from(old, put.offset):
                        finding = _lost(timeline, place, put, scan.row, found)
                        lost.setdefault(put.value, _of_replica(finding, node, damage))
        yield from lost.values()


def _newest(puts: Iterable[_Put], scan: _Scan) -> dict[int, list[_Put]]:
    """By key, the last record that had been acknowledged when a reading began; several at one offset."""
    newest: dict[int, list[_Put]] = {}
    for put in sorted(puts):
        key = key_number(put.value)
        if put.row < scan.begun and (scan.final or put.offset < scan.end_offset):
            same = [one for one in newest.get(key, []) if one.offset == put.offset]
            newest[key] = [*same, put]
    return newest


def _old_tombstones(written: Iterable[_Written], at_ns: int, stay_ns: int | None) -> Sequence[_Written]:
    """The tombstones that may be gone at that time."""
    if stay_ns is None:
        return ()
    return [one for one in written if is_tombstone(one.value) and at_ns - one.begun_ns >= stay_ns]


def _keys_from(written: Iterable[_Written], offset: int) -> set[int]:
    """The keys of those that are, or may be, at an offset or behind."""
    return {key_number(one.value) for one in written if one.offset is None or one.offset >= offset}


def _of_replica(finding: Finding, node: int, damage: RunDamage) -> Finding:
    place = TopicPartition(finding.topic, finding.partition)
    is_damaged = (place, node) in damage.rotten or place in damage.swapped
    excuse: Excuse | None = "damage" if is_damaged else finding.excuse
    return finding._replace(kind=REPLICA_LOST_KEY.name, node=node, process=None, excuse=excuse)


def _is_missing(put: _Put, given: tuple[int, int] | None) -> bool:
    """Whether neither the record nor a later one of its key was given."""
    return given is None or given[0] < put.offset or (given[0] == put.offset and given[1] != put.value)


def _forgotten(
    written: Iterable[_Written], scan: _Scan, stay_ns: int | None
) -> Callable[[_Put, tuple[int, int] | None], bool]:
    """Tells whether a tombstone, the record itself or a later one of its key, may have gone before the reading ended.

    It is given a record, and the last one of its key that was given.
    """
    if stay_ns is None:
        return lambda _put, _given: False
    ended_ns = scan.row["time_ns"]
    old = _old_tombstones(written, ended_ns, stay_ns)
    is_slow = ended_ns - scan.begun_ns >= stay_ns

    def forgotten(put: _Put, given: tuple[int, int] | None) -> bool:
        nothing_older = given is None or (is_slow and given[0] < put.offset)
        return nothing_older and key_number(put.value) in _keys_from(old, put.offset)

    return forgotten


def _may_supersede(later: _Written, scan: _Scan) -> bool:
    """Whether the record may be in the log at the end of the reading, or behind, before the reading ends."""
    return later.begun < scan.row["index"] and (later.offset is None or later.offset >= scan.end_offset)


def why(finding: Finding) -> str:
    """The finding in a sentence."""
    number = "" if finding.value is None else f" of key {key_number(finding.value)}"
    sentence = f"Value {finding.value}{number} was acknowledged at offset {finding.offset}"
    if finding.kind == REPLICA_LOST_KEY.name:
        sentence += f", and the log of node {finding.node}, which is in the ISR in the end, holds "
    else:
        sentence += f", and process {finding.process}, which read the whole log after that, was given "
    if finding.other_offset is None:
        return f"{sentence}no record of the key."
    if finding.other_offset == finding.offset:
        return f"{sentence}value {finding.other_value} at that offset."
    if finding.value is not None and is_tombstone(finding.value):
        sentence = sentence.replace("Value", "Tombstone", 1)
        return f"{sentence}value {finding.other_value} of offset {finding.other_offset} again."
    return f"{sentence}nothing later of the key than value {finding.other_value} at offset {finding.other_offset}."


def attribute(finding: Finding, frames: Frames) -> Attribution:
    """It rests on the acknowledgement, on the refusals of later puts, and on what the reader says that it was given."""
    reports = [acknowledged(frames, finding, finding.offset, finding.value), none_refused(frames, finding)]
    if finding.kind == LOST_KEY.name:
        reports.append(kept_from_reader(frames, finding))
    return attributed(*reports)


def evidence(finding: Finding, witnesses: Witnesses) -> Iterator[Evidence]:
    """The reading that was not given the record, or what replicas hold, and the faults that came before it."""
    if finding.kind == REPLICA_LOST_KEY.name:
        yield from witnesses.holders(finding)
    elif finding.row is not None:
        yield Evidence("history", {"index": finding.row}, f"process {finding.process} read the whole log")
    yield from witnesses.fault(finding)


def _puts(history: History) -> dict[TopicPartition, list[_Put]]:
    own = [row for row in history.operations if row["f"] == "put" and row["topic"] is not None]
    begun = {row["op"]: row["time_ns"] for row in own if row["type"] == "invoke"}
    found: dict[TopicPartition, list[_Put]] = defaultdict(list)
    for row in own:
        if row["type"] == "ok" and row["offset"] is not None and row["value"] is not None:
            since_ns = int(begun.get(row["op"]) or row["time_ns"])
            found[where(row)].append(_Put(row["offset"], row["value"], row["index"], row["time_ns"], since_ns))
    return found


def _written(history: History) -> dict[TopicPartition, list[_Written]]:
    """Every record that is, or may be, in the log."""
    own = [row for row in history.operations if row["f"] == "put" and row["topic"] is not None]
    acked = [row for row in own if row["type"] == "ok" and row["offset"] is not None and row["value"] is not None]
    known = {row["op"] for row in [*acked, *(row for row in own if row["type"] == "fail")]}
    begun = {row["op"]: row for row in own if row["type"] == "invoke"}
    found: dict[TopicPartition, list[_Written]] = defaultdict(list)
    for row in acked:
        first = begun.get(row["op"], row)
        found[where(row)].append(_Written(first["index"], first["time_ns"], row["value"], row["offset"]))
    for op, row in begun.items():
        if op not in known and row["value"] is not None:
            found[where(row)].append(_Written(row["index"], row["time_ns"], row["value"], None))
    return found


def _scans(history: History) -> Iterator[tuple[TopicPartition, _Scan]]:
    """Every reading that came to its end."""
    own = [row for row in history.operations if row["f"] == "scan" and row["topic"] is not None]
    invocations = {row["op"]: row for row in own if row["type"] == "invoke"}
    ended: dict[int, list[Row]] = defaultdict(list)
    for row in own:
        if row["type"] == "ok" and row["op"] in invocations:
            ended[row["op"]].append(row)
    for op, found in ended.items():
        last: dict[int, tuple[int, int]] = {}
        for row in found:
            if row["value"] is not None and row["offset"] is not None:
                key = key_number(row["value"])
                last[key] = max(last.get(key, (-1, -1)), (row["offset"], row["value"]))
        first = min(found, key=lambda row: int(row["index"]))
        invoked = invocations[op]
        begun = invoked["index"], invoked["time_ns"], invoked["offset"] or 0
        yield where(invoked), _Scan(*begun, bool(invoked["final"]), first, last)


def _lost(timeline: Timeline, place: TopicPartition, put: _Put, scan: Row, given: tuple[int, int] | None) -> Finding:
    return Finding(
        timeline.run, "lost-key", *place,
        offset=put.offset,
        value=put.value,
        excuse="unclean" if timeline.given_up(place, None, put.offset, put.since_ns) else None,
        row=scan["index"],
        time_ns=scan["time_ns"],
        process=scan["process"],
        acks=ALL,
        other_offset=None if given is None else given[0],
        other_value=None if given is None else given[1],
        since_ns=put.since_ns,
    )  # fmt: skip
