"""Reference: computes the facts about a run (see :mod:`harness.facts`) from lists of rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from checkers import lost_write
from checkers.reference.acks_below_min_isr import acks_below_min_isr
from checkers.reference.dependencies import dependencies
from checkers.reference.lags import lags
from checkers.reference.refusals import refusals
from checkers.reference.stalls import stalls
from checkers.reference.unwatched import unwatched
from checkers.views.history import History
from checkers.views.metadata import Metadata
from checkers.views.partition_ends import PartitionEnds
from checkers.views.replica_logs import ReplicaLogs
from checkers.views.row import Read, Row, detail, where
from checkers.views.run_demands import RunDamage
from checkers.views.timeline import Timeline
from harness.facts import (
    SILENCE_NS,
    AckFacts,
    ClientFacts,
    Facts,
    FirstAck,
    LogEpoch,
    LogFacts,
    LostRange,
    NodeFacts,
    ProducerLog,
    ReadEpoch,
    Silence,
    StateInterval,
    UnfencedRead,
)
from harness.findings import Finding
from harness.metadata_facts import METADATA_REFUSALS, MetadataEpoch, MetadataRefusal, ToldStart
from harness.model import TopicPartition
from harness.parts import Parts

_SAME = ("incarnation", "kind", "role", "leader", "leader_epoch", "partition_epoch", "isr")


# -------------------------------------------------------------------------------------------------------- timeline


def _stretches(timeline: Timeline) -> Iterator[StateInterval]:
    by_replica: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in timeline.rows:
        by_replica[row["topic"], row["partition"], row["node"]].append(row)
    for group in by_replica.values():
        group.sort(key=lambda r: (r["incarnation"], r["sequence"], r["time_ns"]))
        begin = 0
        for at in range(1, len(group) + 1):
            if at == len(group) or not _alike(group[at - 1], group[at]):
                yield _stretch(timeline.run, group[begin:at])
                begin = at


def _alike(before: Row, after: Row) -> bool:
    fell = (after["log_end_offset"] or 0) < (before["log_end_offset"] or 0)
    moved = (after["log_start_offset"] or 0) != (before["log_start_offset"] or 0)
    return after["kind"] == "state" and not fell and not moved and all(before[name] == after[name] for name in _SAME)


def _stretch(run: str, rows: Sequence[Row]) -> StateInterval:
    first, last = rows[0], rows[-1]
    rises = [b["sequence"] for a, b in pairwise(rows) if (b["high_watermark"] or 0) > (a["high_watermark"] or 0)]
    falls = [b["sequence"] for a, b in pairwise(rows) if (b["high_watermark"] or 0) < (a["high_watermark"] or 0)]
    crossed = [row["sequence"] for row in rows if _crosses(row)]
    isr = first["isr"]
    return StateInterval(
        run, first["topic"], first["partition"], first["node"], first["incarnation"], first["sequence"],
        first["time_ns"], first["kind"], first["role"], first["leader"], first["leader_epoch"],
        first["partition_epoch"], None if isr is None else tuple(isr), first["detail"], first["high_watermark"],
        first["log_end_offset"], first["log_start_offset"], last["sequence"], last["time_ns"],
        last["high_watermark"], last["log_end_offset"], min(rises, default=None), max(falls, default=None),
        min(crossed, default=None),
    )  # fmt: skip


def _crosses(row: Row) -> bool:
    if row["kind"] != "state":
        return False
    bounds = [row[name] for name in ("log_start_offset", "high_watermark", "log_end_offset") if row[name] is not None]
    return bounds != sorted(bounds)


# ------------------------------------------------------------------------------------------------------------ logs


def _log_epochs(logs: ReplicaLogs) -> Iterator[LogEpoch]:
    found: dict[tuple[str, int, int, int], set[tuple[int, int | None, int, int]]] = defaultdict(set)
    damaged: dict[tuple[str, int, int, int], list[int]] = defaultdict(list)
    for row in logs.rows:
        content = (row["offset"], row["value"], row["batch_base_offset"], row["batch_crc"])
        key = (row["topic"], row["partition"], row["node"], row["leader_epoch"])
        found[key].add(content)
        damaged[key] += [] if row["intact"] else [row["offset"]]
    for key, contents in found.items():
        offsets = {offset for offset, *_ in contents}
        bad = min(damaged[key], default=None)
        yield LogEpoch(logs.run, *key, min(offsets), max(offsets), len(offsets), len(contents), bad)


def _producer_logs(logs: ReplicaLogs) -> Iterator[ProducerLog]:
    found: dict[tuple[str, int, int, int, int], list[tuple[int, int]]] = defaultdict(list)
    for row in logs.rows:
        if row.get("producer_id") is not None and row.get("sequence") is not None:
            key = (row["topic"], row["partition"], row["node"], row["producer_id"], row.get("producer_epoch") or 0)
            found[key].append((row["sequence"], row["offset"]))
    until: dict[tuple[str, int, int, int], int] = {}
    for key, records in sorted(found.items()):
        numbers = {sequence for sequence, _ in records}
        first, last = min(numbers), max(numbers)
        offset = min(offset for _, offset in records)
        older = until.get(key[:4], -1)
        until[key[:4]] = max(older, *(offset for _, offset in records))
        by_number = sorted(dict(sorted(records)).items())
        falls = any(later < sooner for (_, sooner), (_, later) in pairwise(by_number))
        uneven = len(records) != last - first + 1 or len(numbers) != last - first + 1
        if uneven or falls or older > offset:
            overlap = older if older > offset else None
            yield ProducerLog(logs.run, *key, first, last, len(records), len(numbers), offset, overlap, falls)


# --------------------------------------------------------------------------------------------------------- metadata


def _metadata(metadata: Metadata) -> Iterator[MetadataEpoch]:
    for place, told in metadata.watermarks.items():
        for epoch, rows in groupby(told, key=lambda row: int(row["leader_epoch"])):
            answers = list(rows)
            marks, times = [row["high_watermark"] for row in answers], [row["time_ns"] for row in answers]
            yield MetadataEpoch(metadata.run, *place, epoch, min(marks), max(marks), min(times), max(times))


def _told_starts(metadata: Metadata, history: History) -> Iterator[ToldStart]:
    offsets: dict[TopicPartition, list[int]] = defaultdict(list)
    for send in history.sends:
        if send.type == "ok" and send.offset is not None:
            offsets[send.where].append(send.offset)
    for place, row in sorted(metadata.starts.items()):
        start, lowest = int(row["log_start_offset"]), min(offsets[place], default=None)
        yield ToldStart(metadata.run, *place, start, row["sequence"], row["time_ns"], acknowledged=lowest)


def _refused(metadata: Metadata) -> Iterator[MetadataRefusal]:
    for asked, key in METADATA_REFUSALS.items():
        reasons = Counter(why for row in metadata.rows if (why := detail(row).get(key)) is not None)
        yield from (MetadataRefusal(metadata.run, asked, why, samples) for why, samples in sorted(reasons.items()))


# ---------------------------------------------------------------------------------------------------------- history


def _lost_ranges(history: History, timeline: Timeline, logs: ReplicaLogs, ends: PartitionEnds) -> Iterator[LostRange]:
    lost: dict[tuple[str, int, int | None], dict[int, list[Finding]]] = defaultdict(lambda: defaultdict(list))
    for finding in lost_write.find(history, timeline, logs, ends):
        if finding.offset is not None:
            lost[finding.topic, finding.partition, finding.leader_epoch][finding.offset].append(finding)
    for (topic, partition, epoch), by_offset in lost.items():
        offsets = sorted(by_offset)
        begins = [o for o in offsets if o - 1 not in by_offset]
        for begin in begins:
            end = next(o for o in range(begin, offsets[-1] + 2) if o not in by_offset)
            group = [x for o in range(begin, end) for x in by_offset[o]]
            times, acks = [x.time_ns or 0 for x in group], [0 if x.acks is None else x.acks for x in group]
            # acks=all is written as -1 and is the most that a sender can wait for.
            least = min((a for a in acks if a >= 0), default=-1)
            kept = sorted({node for x in group for node in _bare(timeline, logs, x)})
            yield LostRange(
                history.run, topic, partition, epoch, begin, end, min(times), max(times), least, tuple(kept)
            )


def _bare(timeline: Timeline, logs: ReplicaLogs, lost: Finding) -> Iterator[int]:
    """The nodes whose logs hold a lost record of unknown epoch, in a message format without epochs."""
    if timeline.sampled and lost.leader_epoch is None and lost.offset is not None:
        held = logs.logged.get(TopicPartition(lost.topic, lost.partition), {}).get(lost.offset, [])
        yield from (row["node"] for row in held if row["value"] == lost.value and row["leader_epoch"] < 0)


def _read_epochs(history: History) -> Iterator[ReadEpoch]:
    found: dict[tuple[TopicPartition, int, bool], list[tuple[int, int]]] = defaultdict(list)
    for read in history.reads:
        if read.leader_epoch is not None and read.leader_epoch >= 0:
            found[read.where, read.leader_epoch, read.final].append((read.offset, read.time_ns))
    for (place, epoch, final), group in found.items():
        offsets = [offset for offset, _ in group]
        began_ns = min(time_ns for _, time_ns in group)
        yield ReadEpoch(history.run, *place, epoch, min(offsets), max(offsets), final, began_ns)


def _unfenced_reads(history: History) -> Iterator[UnfencedRead]:
    found: dict[tuple[TopicPartition, int], Read] = {}
    for read in sorted(history.reads, key=lambda one: one.row):
        if read.named is not None and read.leader_epoch is not None and read.leader_epoch > read.named:
            found.setdefault((read.where, read.named), read)
    for (place, named), one in found.items():
        yield UnfencedRead(history.run, *place, named, one.leader_epoch or 0, one.offset, one.row, one.time_ns)


def _silences(history: History) -> Iterator[Silence]:
    """From the first attempt, or an acknowledgement, to the next one; at last, to the last attempt or its end."""
    tries: dict[TopicPartition, list[int]] = defaultdict(list)
    acks: dict[TopicPartition, list[int]] = defaultdict(list)
    last: dict[TopicPartition, int] = {}
    for row in history.operations:
        if row["f"] == "send" and row["topic"] is not None:
            last[where(row)] = max(row["time_ns"], last.get(where(row), row["time_ns"]))
            if row["type"] in ("invoke", "ok"):
                (tries if row["type"] == "invoke" else acks)[where(row)].append(row["time_ns"])
    for place, last_ns in last.items():
        begin = min(tries[place], default=None)
        for end in (*sorted(acks[place]), last_ns):
            if begin is not None and end - begin >= SILENCE_NS and any(begin <= t < end for t in tries[place]):
                yield Silence(history.run, *place, begin, end)
            begin = end


def _first_acks(history: History, damage: RunDamage) -> Iterator[FirstAck]:
    times: dict[TopicPartition, list[int]] = defaultdict(list)
    for row in history.operations:
        after = damage.healed_ns is not None and row["time_ns"] >= damage.healed_ns
        if row["f"] == "send" and row["type"] == "ok" and row["topic"] is not None and after:
            times[where(row)].append(row["time_ns"])
    for place, group in times.items():
        yield FirstAck(history.run, *place, min(group))


def facts(views: Parts) -> Facts:
    """Everything that the rules on facts are given about one run."""
    ask = views.given_to
    return Facts(
        NodeFacts(
            list(ask(_stretches)),
            list(ask(lags)),
            list(ask(stalls)),
            list(ask(unwatched)),
            list(ask(_metadata)),
            list(ask(_refused)),
            list(ask(_told_starts)),
        ),
        LogFacts(list(ask(_log_epochs)), list(ask(_producer_logs))),
        ClientFacts(
            list(ask(_silences)),
            list(ask(_first_acks)),
            list(ask(_read_epochs)),
            list(ask(_unfenced_reads)),
            list(ask(refusals)),
            list(ask(dependencies)),
        ),
        AckFacts(list(ask(_lost_ranges)), list(ask(acks_below_min_isr))),
    )
