"""What the log cleaner leaves of a log, on real files."""

from __future__ import annotations

import errno
import json
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.broker.codecs import deflate, inflate
from harness.broker.compaction import Found, Pass, Rules, Transactions, latest_offsets
from harness.broker.files import Disk
from harness.broker.segment import batches_in
from harness.broker.segments import Batches, SegmentLog, span_of
from harness.model import Offset
from harness.replication.messages import BatchSpan
from harness.replication.producers import ProducerStates
from harness.simulation.stack.disk import MemoryDisk
from harness.wire import batches as wire
from harness.wire.batches import Marker, Record
from tests.harness.broker.log_builder import LARGE, open_log
from tests.harness.short_java import short_java
from tests.harness.targets.contract import fetched_or_skip

Pair = tuple[str, str | None]
HOUR = 3_600_000


@dataclass
class Log:
    """A log of one-record batches unless a test says otherwise, and passes over it.

    As in a broker, what is known of its producers outlives a pass.
    """

    log: SegmentLog
    now_ms: int = 1_000
    horizons: bool = True
    bugs: tuple[str, ...] = ()
    epoch: int = 0
    producers: ProducerStates = field(init=False)

    def __post_init__(self) -> None:
        self.producers = ProducerStates(self.log.producer_spans())

    def put(self, *pairs: Pair, roll: bool = False, **fields: Any) -> None:
        records = [
            Record(number, self.now_ms, key.encode(), None if value is None else value.encode())
            for number, (key, value) in enumerate(pairs)
        ]
        self.add(wire.build(records, deflate=deflate, **fields), roll=roll)

    def end(self, producer_id: int, *, commits: bool) -> None:
        self.add(
            wire.build_marker(Marker(commits, 1), timestamp_ms=self.now_ms, producer_id=producer_id, producer_epoch=0)
        )

    def add(self, batch: bytearray, *, roll: bool = False) -> None:
        if roll:
            self.log._roll()
        (header,) = wire.headers(batch)
        end = self.log.log_end_offset
        span = BatchSpan(end, end + header.end_offset - header.base_offset, self.epoch, span_of(header).producer)
        self.log.append(Batches(memoryview(batch), [header]), [span])
        self.producers.appended([span])

    def compact(self, first_dirty: Offset = 0, *, delete_retention_ms: int = HOUR, merge: bool = False) -> int:
        segments = self.log.segments[:-1]
        end = self.log.segments[-1].base_offset
        dirty = [one for one in self.found(segments) if one[1].base_offset >= first_dirty]
        latest = latest_offsets(dirty, end, Transactions(self.producers.aborted(first_dirty, end)))
        last = self.producers.last_batches()
        rules = Rules(latest, last, self.now_ms, delete_retention_ms, self.horizons, self.bugs)
        one = Pass(rules, Transactions(self.producers.aborted(0, end)))
        left = [[bytes(batch) for batch in one.compacted(self.found([segment]))] for segment in segments]
        if merge:
            self.log.replace(segments, [batch for batches in left for batch in batches])
        else:
            for segment, batches in zip(segments, left, strict=True):
                self.log.replace([segment], batches)
        self.producers.compacted(self.log.producer_spans(), end)
        return one.removed

    def transact(self, pair: Pair, sequence: int, *, commits: bool, producer_id: int = 7) -> None:
        self.put(pair, producer_id=producer_id, base_sequence=sequence, **TRANSACTION)
        self.end(producer_id, commits=commits)

    def after_restart(self) -> ProducerStates:
        return ProducerStates(self.log.producer_spans())

    def found(self, segments: Sequence[Any]) -> list[Found]:
        return [one for segment in segments for one in batches_in(segment.file)]

    def records(self) -> list[tuple[int, str, str | None]]:
        return [
            (one.offset, (one.key or b"").decode(), None if one.value is None else one.value.decode())
            for batch, header in self.found(self.log.segments)
            if not header.attributes & wire.CONTROL
            for one in wire.records(batch, header)
        ]

    def batches(self) -> list[tuple[int, int, int]]:
        return [(one.base_offset, one.end_offset, one.record_count) for one in self.log.headers()]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(open_log(Disk(tmp_path)))


def test_the_last_value_of_a_key_is_removed_or_an_older_one_stays(log: Log) -> None:
    log.put(("a", "1"), ("b", "1"), ("a", "2"))
    log.put(("b", "2"))
    log.put(("a", "active"), roll=True)
    assert log.compact() == 2
    assert log.records() == [(2, "a", "2"), (3, "b", "2"), (4, "a", "active")]
    assert log.batches() == [(0, 3, 1), (3, 4, 1), (4, 5, 1)]


def test_a_record_that_only_the_active_segment_supersedes_is_removed(log: Log) -> None:
    log.put(("a", "1"))
    log.put(("a", "2"), roll=True)
    log.compact()
    assert log.records() == [(0, "a", "1"), (1, "a", "2")]


def test_a_gap_keeps_a_reader_from_the_batch_behind_it(log: Log) -> None:
    log.put(("a", "1"))
    for value in "234":
        log.put(("a", value))
    log.put(("b", "x"))
    log.put(("c", "active"), roll=True)
    log.compact()
    assert log.batches() == [(0, 1, 0), (3, 4, 1), (4, 5, 1), (5, 6, 1)], "the first one begins its epoch"
    for offset, first in ((0, 0), (1, 3), (2, 3), (3, 3), (4, 4), (5, 5)):
        data = log.log.locate(offset, LARGE, 1, at_least_one=True).read()
        assert wire.headers(data)[0].base_offset == first, f"read from {offset}"


@pytest.mark.parametrize(("to_offset", "end", "left"), [(1, 1, 1), (2, 2, 1), (3, 3, 1), (4, 4, 2)])
def test_a_cut_in_a_gap_takes_the_batch_before_it(log: Log, to_offset: int, end: int, left: int) -> None:
    for value in "1234":
        log.put(("a", value))
    log.put(("b", "active"), roll=True)
    log.compact()
    log.log.truncate(to_offset)
    assert (log.log.log_end_offset, len(log.batches())) == (end, left)


def test_a_log_with_gaps_is_cut_by_a_restart_after_a_crash(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log = Log(open_log(disk))
    for segment in range(3):
        for value in "123":
            log.put(("a", value), roll=value == "1" and segment > 0)
    log.put(("b", "active"), roll=True)
    log.compact()
    before = log.batches()
    assert Log(open_log(disk)).batches() == before, "nothing is checkpointed, so that nothing is trusted"


def test_the_beginning_of_a_leader_epoch_moves(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log = Log(open_log(disk))
    for epoch in (0, 3, 5):
        log.epoch = epoch
        for value in "12":
            log.put(("a", value))
    log.put(("b", "active"), roll=True)
    log.compact()
    assert [tuple(entry) for entry in open_log(disk).recovered.epochs] == [(0, 0), (3, 2), (5, 4)]


def test_a_compressed_batch_is_written_anew_uncompressed_or_wrongly(log: Log) -> None:
    for codec in (1, 2, 3, 4):
        log.put(("a", f"{codec}"), (f"k{codec}", "kept"), codec=codec)
    log.put(("z", "active"), roll=True)
    log.compact()
    for batch, header in log.found(log.log.segments[:-1]):
        assert wire.verify(batch, header)
        assert header.attributes & wire.COMPRESSION in (1, 2, 3, 4)
    kept = [
        one.key for batch, header in log.found(log.log.segments[:-1]) for one in wire.records(batch, header, inflate)
    ]
    assert kept == [b"k1", b"k2", b"k3", b"a", b"k4"]


# ---------------------------------------------------------------------------------------------------- tombstones


def test_a_tombstone_goes_before_its_time_or_stays_beyond_it(log: Log) -> None:
    log.put(("a", "1"))
    log.put(("a", None), ("b", "1"))
    log.put(("z", "active"), roll=True)
    log.compact(delete_retention_ms=100)
    assert log.records() == [(1, "a", None), (2, "b", "1"), (3, "z", "active")]
    log.now_ms += 99
    log.compact(delete_retention_ms=100)
    assert (1, "a", None) in log.records(), "the horizon is that of the first pass"
    log.now_ms += 1
    log.compact(delete_retention_ms=100)
    assert log.records() == [(2, "b", "1"), (3, "z", "active")]


def test_a_horizon_changes_timestamps(log: Log) -> None:
    log.put(("a", None), ("b", "1"))
    log.put(("z", "active"), roll=True)
    log.compact()
    (batch, header), *_ = log.found(log.log.segments)
    assert wire.delete_horizon(batch, header) == log.now_ms + HOUR
    assert [one.timestamp for one in wire.records(batch, header)] == [1_000, 1_000]
    assert wire.verify(batch, header)


def test_an_old_generation_looks_at_horizons(log: Log) -> None:
    log.horizons = False
    log.put(("a", None))
    log.put(("z", "active"), roll=True)
    log.compact(delete_retention_ms=0)
    (batch, header), *_ = log.found(log.log.segments)
    assert wire.delete_horizon(batch, header) is None
    assert log.records()[0] == (0, "a", None)


# -------------------------------------------------------------------------------------------------- transactions


TRANSACTION: dict[str, Any] = {"attributes": wire.TRANSACTIONAL, "producer_epoch": 0}


def test_an_aborted_record_supersedes_a_committed_one(log: Log) -> None:
    log.put(("a", "committed"))
    log.put(("a", "aborted"), producer_id=7, base_sequence=0, **TRANSACTION)
    log.end(7, commits=False)
    log.put(("z", "active"), roll=True)
    log.compact()
    assert log.records() == [(0, "a", "committed"), (3, "z", "active")]
    assert log.batches()[1] == (1, 2, 0), "the last batch of its producer"


def test_a_marker_goes_before_the_last_batch_of_its_transaction(log: Log) -> None:
    log.put(("a", "first"), producer_id=7, base_sequence=0, **TRANSACTION)
    log.end(7, commits=True)
    log.put(("a", "second"), producer_id=7, base_sequence=1, **TRANSACTION)
    log.end(7, commits=True)
    log.put(("a", "last"))
    log.put(("z", "active"), roll=True)
    log.compact(delete_retention_ms=10)
    kinds = [(one.base_offset, one.marker is not None, one.record_count) for one in log.log.headers()]
    assert kinds == [(0, False, 0), (1, True, 1), (2, False, 0), (3, True, 1), (4, False, 1), (5, False, 1)]
    states = ProducerStates(log.log.producer_spans())
    assert [(one.producer_id, one.last_sequence, one.transaction_start) for one in states] == [(7, 1, -1)]


def test_the_sequence_of_a_producer_is_lost(log: Log) -> None:
    for sequence, value in enumerate("123"):
        log.put(("a", value), producer_id=7, producer_epoch=0, base_sequence=sequence)
    log.put(("a", "other"))
    log.put(("z", "active"), roll=True)
    log.compact()
    assert log.records() == [(3, "a", "other"), (4, "z", "active")]
    (known,) = ProducerStates(log.log.producer_spans())
    assert known.last_sequence == 2


def test_a_marker_with_a_horizon_that_is_far_away_ends_no_transaction(log: Log) -> None:
    log.put(("z", "first"))
    log.transact(("a", "aborted"), 0, commits=False)
    log.transact(("b", "committed"), 1, commits=True)
    log.put(("z", "active"), roll=True)
    for _ in range(2):
        log.compact(delete_retention_ms=24 * HOUR)
    marked = [one for one in log.log.headers() if one.attributes & wire.CONTROL]
    assert [(one.base_offset, one.marker) for one in marked] == [(2, Marker(False, 1)), (4, Marker(True, 1))]
    assert marked[0].attributes & wire.DELETE_HORIZON
    assert log.records() == [(0, "z", "first"), (3, "b", "committed"), (5, "z", "active")]
    assert [one.transaction_start for one in log.after_restart()] == [-1]


def test_an_aborted_transaction_is_listed_after_it_is_gone(log: Log) -> None:
    log.put(("z", "first"))
    log.transact(("a", "aborted"), 0, commits=False)
    log.transact(("b", "committed"), 1, commits=True)
    log.put(("z", "second"), roll=True)
    log.compact(delete_retention_ms=10)
    assert log.producers.aborted(0, LARGE) == []
    for _ in range(2):
        log.now_ms += 10
        log.compact(delete_retention_ms=10)
    assert not [one for one in log.log.headers() if one.marker == Marker(False, 1)]
    log.transact(("c", "committed"), 2, commits=True)
    log.put(("z", "active"), roll=True)
    log.compact(delete_retention_ms=10)
    assert [key for _, key, _ in log.records()] == ["b", "z", "c", "z"]
    assert log.producers.aborted(0, LARGE) == []


def test_an_aborted_transaction_of_which_something_is_left_is_not_listed(log: Log) -> None:
    log.transact(("a", "aborted"), 0, commits=False)
    log.put(("z", "active"), roll=True)
    log.transact(("a", "aborted"), 0, commits=False, producer_id=8)
    log.compact()
    assert log.batches()[0] == (0, 1, 0), "the last batch of its producer"
    assert [one.producer_id for one in log.producers.aborted(0, LARGE)] == [7, 8]
    assert log.after_restart().aborted(0, LARGE) == log.producers.aborted(0, LARGE)


def test_a_dirty_record_is_taken_for_one_of_an_aborted_transaction_of_the_clean_part(log: Log) -> None:
    log.put(("a", "old"))
    log.transact(("b", "aborted"), 0, commits=False)
    log.put(("z", "first"), roll=True)
    log.compact()
    log.transact(("a", None), 1, commits=True)
    log.put(("z", "active"), roll=True)
    log.compact(first_dirty=3)
    assert [(key, value) for _, key, value in log.records()] == [("z", "first"), ("a", None), ("z", "active")]


def test_a_marker_that_was_emptied_opens_a_transaction(log: Log) -> None:
    log.put(("z", "first"))
    log.put(("a", "aborted"), producer_id=7, base_sequence=0, **TRANSACTION)
    log.epoch = 1
    log.end(7, commits=False)
    log.transact(("b", "committed"), 1, commits=True)
    log.put(("z", "active"), roll=True)
    for _ in range(4):
        log.compact(delete_retention_ms=10)
        log.now_ms += 10
    emptied = [one.base_offset for one in log.log.headers() if one.attributes & wire.CONTROL and not one.record_count]
    assert emptied == [2], "it begins its leader epoch"
    states = log.after_restart()
    assert [(one.last_sequence, one.transaction_start) for one in states] == [(1, -1)]
    log.transact(("c", "committed"), 2, commits=True)
    log.put(("z", "last"), roll=True)
    log.compact(delete_retention_ms=10)
    assert [key for _, key, _ in log.records()] == ["b", "z", "c", "z"]


def test_a_marker_that_was_emptied_stays_when_nothing_depends_on_it(log: Log) -> None:
    log.put(("z", "first"))
    log.transact(("a", "aborted"), 0, commits=False)
    log.put(("b", "v"), roll=True)
    log.transact(("c", "committed"), 1, commits=True)
    log.put(("z", "active"), roll=True)

    def emptied() -> list[Offset]:
        return [one.base_offset for one in log.log.headers() if one.attributes & wire.CONTROL and not one.record_count]

    for _ in range(3):
        log.compact(delete_retention_ms=10)
        log.now_ms += 10
    assert emptied() == [2], "it ends its segment"
    log.compact(merge=True)
    log.compact()
    assert emptied() == []


def test_a_producer_of_which_an_emptied_marker_is_left_has_a_transaction() -> None:
    marker = wire.build_marker(Marker(False, 1), timestamp_ms=0, producer_id=7, producer_epoch=3)
    batch = wire.emptied(marker, wire.headers(marker)[0])
    (known,) = ProducerStates([span_of(wire.headers(batch)[0])])
    assert known == (7, 3, -1, -1, -1, -1)


# ---------------------------------------------------------------------------------------------------------- swap


class Killed(Exception):
    """The process died here."""


class DyingDisk(MemoryDisk):
    """Raises at a certain write, flush, rename or removal from now on."""

    left = LARGE

    def step(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Killed

    def rename(self, source: str, destination: str) -> None:
        self.step()
        super().rename(source, destination)

    def remove(self, path: str) -> None:
        self.step()
        super().remove(path)

    def check(self) -> None:
        self.step()
        super().check()


@pytest.mark.parametrize("end", [MemoryDisk.lose_power, lambda _: None], ids=["power loss", "kill"])
def test_a_crash_in_a_swap_leaves_neither_the_old_segments_nor_the_new(end: Callable[[MemoryDisk], Any]) -> None:
    found = []
    for dies_at in range(100):
        disk = DyingDisk()
        log = Log(open_log(disk))  # type: ignore[arg-type]
        for segment in range(3):
            log.put(("a", f"{segment}"), (f"k{segment}", "kept"), roll=segment > 0)
        log.put(("z", "active"), roll=True)
        log.log.flush()
        before = log.records()
        disk.left = dies_at
        with suppress(Killed):
            log.compact(merge=True)
        done, disk.left = disk.left >= 0, LARGE
        end(disk)
        opened = Log(open_log(disk))  # type: ignore[arg-type]
        found.append(opened.records() == before)
        assert opened.records() in (before, [record for record in before if record[0] not in (0, 2)])
        assert opened.log.log_end_offset == 7
        assert not [name for name in disk.list("t-0") if not name.endswith((".log", "checkpoint"))]
        if done:
            break
    assert found == sorted(found, reverse=True), "the old segments up to some step, and the new ones from there on"
    assert (found[0], found[-1], len(found) > 5) == (True, False, True)


def test_a_disk_that_is_full_costs_more_than_the_pass(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    log = Log(open_log(disk))
    log.put(("a", "1"))
    log.put(("a", "2"), ("b", "x" * 100))
    log.put(("z", "active"), roll=True)
    before = log.records()
    disk.limit("", 50)
    with pytest.raises(OSError, match=r"No space left") as refused:
        log.compact()
    assert refused.value.errno == errno.ENOSPC
    assert Log(open_log(Disk(tmp_path))).records() == before


def test_kafka_reads_what_is_left(tmp_path: Path) -> None:
    kafka = fetched_or_skip("3.9.1")
    log = Log(open_log(Disk(tmp_path)))
    log.put(("a", "1"), ("b", "1"), codec=4)
    log.put(("a", None), ("c", "1"))
    log.put(("b", "2"), producer_id=7, base_sequence=0, **TRANSACTION)
    log.end(7, commits=True)
    log.put(("b", "3"))
    log.put(("z", "active"), roll=True)
    log.compact()
    log.log.flush()
    segment = tmp_path / "t-0" / f"{0:020d}.log"
    words = [*short_java(kafka), "kafka.tools.DumpLogSegments", "--deep-iteration", "--print-data-log"]
    dumped = subprocess.run(
        [*words, "--files", str(segment)], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    batches = [line for line in dumped.splitlines() if line.startswith("baseOffset")]
    assert all("isvalid: true" in line for line in batches), dumped
    assert [line.split()[1] for line in batches] == [str(one.base_offset) for one in log.log.headers()][:-1]
    assert f"deleteHorizonMs: OptionalLong[{log.now_ms + HOUR}]" in dumped
    assert "key: a" in dumped
    assert json.dumps(dumped).count("key: b") == 1
