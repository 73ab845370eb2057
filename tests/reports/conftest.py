"""Run directories made by hand: what a broker, a client and the nemesis would have written, without any of them."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import reports
from harness.checker import (
    Anomaly,
    Evidence,
    Extent,
    OffsetRange,
    Outcome,
    Prediction,
    RunVerdict,
    Verdict,
    to_json,
)
from harness.history.arrow import write_rows
from harness.history.run_directory import Manifest, RunDirectory
from harness.history.schema import HISTORY
from harness.history.seal import inputs, sealed
from harness.model import CONTROLLER_ID

BOOT_NS = 8_123_456_000_000_000
"""When every hand-made run begins, on the monotonic clock."""


def at(seconds: float) -> int:
    """The monotonic time that many seconds into the run."""
    return BOOT_NS + round(seconds * 1_000_000_000)


@dataclass
class Recording:
    """The rows of a run in the making; times are seconds since the run's start."""

    manifest: Manifest
    history: list[dict[str, Any]] = field(default_factory=list)
    timeline: list[dict[str, Any]] = field(default_factory=list)
    logs: list[dict[str, Any]] = field(default_factory=list)
    faults: list[dict[str, Any]] = field(default_factory=list)
    anomalies: list[Anomaly] = field(default_factory=list)
    sequences: dict[int, int] = field(default_factory=dict)
    ends: dict[int, int] = field(default_factory=dict)
    operations: int = 0
    closed: float = 12.0

    def send(
        self,
        time: float,
        value: int,
        offset: int | None,
        type_: str = "ok",
        *,
        partition: int = 0,
        topic: str = "ledger",
        error: str | None = None,
        took: float = 0.012,
        process: int = 0,
        acks: int = -1,
    ) -> None:
        """A send that ended at ``time``, ``took`` seconds after it began."""
        self.operations += 1
        told: dict[str, Any] = {"process": process, "op": self.operations, "f": "send", "topic": topic}
        told |= {"partition": partition, "value": value, "acks": acks, "final": False}
        self.history.append({**told, "time_ns": at(time - took), "type": "invoke"})
        self.history.append({**told, "time_ns": at(time), "type": type_, "offset": offset, "error": error})

    def poll(
        self, time: float, offset: int, value: int | None, epoch: int, *, partition: int = 0, final: bool = False
    ) -> None:
        """A record that a consumer got."""
        self.operations += 1
        told: dict[str, Any] = {"process": 90 if final else 50, "op": self.operations, "f": "poll"}
        told |= {"type": "ok", "intact": True}
        told |= {"topic": "ledger", "partition": partition, "offset": offset, "value": value, "leader_epoch": epoch}
        self.history.append({**told, "time_ns": at(time), "final": final})

    def say(self, time: float, node: int, kind: str, **told: object) -> None:
        """A row of the timeline."""
        sequence = self.sequences.get(node, -1) + 1
        self.sequences[node] = sequence
        row = {"node": node, "sequence": sequence, "incarnation": 0, "time_ns": at(time), "wall_ms": 0, "kind": kind}
        detail = told.pop("detail", None)
        self.timeline.append({**row, **told, "detail": None if detail is None else json.dumps(detail)})

    def state(
        self,
        time: float,
        node: int,
        term: tuple[int, int],
        marks: tuple[int, int],
        isr: Sequence[int],
        *,
        partition: int = 0,
        kind: str = "state",
    ) -> None:
        """A replica's state; ``term`` is leader and epoch, ``marks`` are its high watermark and log end offset."""
        leader, epoch = term
        self.say(
            time,
            node,
            kind,
            topic="ledger",
            partition=partition,
            role="leader" if node == leader else "follower",
            leader=leader,
            leader_epoch=epoch,
            partition_epoch=epoch,
            high_watermark=marks[0],
            log_end_offset=marks[1],
            log_start_offset=0,
            isr=list(isr),
        )

    def truncate(self, time: float, node: int, ends: tuple[int, int], reason: str, *, partition: int = 0) -> None:
        """A replica cut its log from one end back to another."""
        detail = {"from_offset": ends[0], "to_offset": ends[1], "reason": reason}
        self.say(time, node, "truncation", topic="ledger", partition=partition, detail=detail)

    def elect(
        self, time: float, leader: int, epoch: int, isr: Sequence[int], cause: str, *, partition: int = 0
    ) -> None:
        """The controller elected a leader."""
        detail = {"clean": True, "elected_from_isr": True, "controller_epoch": 1, "cause": cause}
        told = {"topic": "ledger", "partition": partition, "leader": leader, "leader_epoch": epoch, "isr": list(isr)}
        self.say(time, CONTROLLER_ID, "election", **told, detail=detail)

    def fault(
        self,
        name: str,
        kind: str,
        nodes: Sequence[str],
        times: Sequence[float | None],
        proof: str,
        **parameters: object,
    ) -> None:
        """A fault; ``times`` are when it was aimed, injected, proven, healed, and the healing proven."""
        names = ("aimed_ns", "injected_ns", "proven_ns", "healed_ns", "heal_proven_ns")
        stamps = {key: None if time is None else at(time) for key, time in zip(names, times, strict=True)}
        told = {"fault": name, "kind": kind, "nodes": list(nodes), "parameters": json.dumps(parameters)}
        seen = {"proof": None if times[2] is None else proof, "heal_proof": None if times[4] is None else "it answers"}
        self.faults.append({**told, **stamps, **seen, "aim": json.dumps({"ledger-0": {"leader": 0}})})

    def log(self, node: int, entries: Sequence[tuple[int, int, int | None]], *, partition: int = 0) -> None:
        """What lies on a broker's disk: offset, leader epoch, value."""
        for offset, epoch, value in entries:
            told = {"node": node, "topic": "ledger", "partition": partition, "offset": offset, "leader_epoch": epoch}
            batch = {"batch_base_offset": offset, "batch_crc": (value or 0) * 7919 + epoch, "intact": True}
            self.logs.append({**told, "value": value, **batch})

    def write(self, path: Path, verdict: RunVerdict) -> Path:
        """The run directory."""
        run = {"run": self.manifest.run}
        directory = RunDirectory.create(path, self.manifest)
        ordered = sorted(self.history, key=lambda row: row["time_ns"])
        close = {"time_ns": at(self.closed), "process": -1, "op": 0, "type": "ok", "f": "close", "final": False}
        usual = {**run, "txn": False, "mop": 0}
        history = [{**row, **usual, "index": i} for i, row in enumerate([*ordered, close])]
        write_rows(HISTORY, path / HISTORY.path / "part-00000.parquet", history)
        for name, rows in (("timeline", self.timeline), ("replica_logs", self.logs), ("faults", self.faults)):
            directory.write_table(name, [{**row, **run} for row in rows])
        (directory.broker_logs / "0.log").write_text("started\n")
        reach = verdict.extents or extents_of(verdict.anomalies)
        told = to_json(replace(verdict, run=self.manifest.run, extents=reach))
        directory.write_verdict(sealed(told, inputs(directory)))
        return path


def extents_of(anomalies: Sequence[Anomaly], spans: Sequence[tuple[int, int]] = ()) -> list[Extent]:
    """How far these anomalies reach, each kind and partition for itself; ``spans``: where others like them are, too."""
    groups: dict[tuple[str, str, int], list[Anomaly]] = {}
    for a in anomalies:
        if a.topic is not None and a.partition is not None:
            groups.setdefault((a.kind, a.topic, a.partition), []).append(a)
    return [_extent(*group, ours, spans) for group, ours in groups.items()]


def _extent(kind: str, topic: str, partition: int, ours: list[Anomaly], spans: Sequence[tuple[int, int]]) -> Extent:
    at = sorted({a.offset for a in ours if a.offset is not None} | {o for span in spans for o in range(*span)})
    begins = [o for o in at if o - 1 not in at]
    ends = [o + 1 for o in at if o + 1 not in at]
    ranges = tuple(_span(ours, *span) for span in zip(begins, ends, strict=True))
    nowhere = sum(a.offset is None for a in ours)
    count = sum(one.count for one in ranges) + nowhere
    verdicts = tuple(v for v in Verdict if any(a.verdict is v for a in ours))
    return Extent(kind, topic, partition, verdicts, count, len(ours), ranges, 0, 0, nowhere)


def _span(ours: list[Anomaly], begin: int, end: int) -> OffsetRange:
    values = [a.value for a in ours if a.offset in range(begin, end) and a.value is not None]
    count = max(end - begin, sum(a.offset in range(begin, end) for a in ours))
    return OffsetRange(begin, end, count, min(values, default=None), max(values, default=None))


def manifest(run: str, scenario: str, **told: Any) -> Manifest:
    """A manifest with everything a report shows."""
    first = {"seed": 7, "started_wall": "2026-03-04T05:06:07+00:00", "state": "complete", "duration_s": 11.0}
    versions = {"seawall": "0.1.0", "python": "3.11.7", "confluent-kafka": "2.16.1"}
    configuration = {"target": "builtin", "topics": [{"name": "ledger"}]}
    configuration["reproduce"] = f"seawall run {scenario} --generation 0.10 --seed 7"
    guarantees = {"min_insync_replicas": 2, "unclean_election": False}
    rest = {"versions": versions, "configuration": configuration, "guarantees": guarantees, "generation": "0.10"}
    return Manifest(run, scenario, **{**first, **rest, **told})


def double_failover() -> Recording:
    """KIP-101, scenario 1 with three brokers: two clean elections lose the acknowledged record at offset 20."""
    r = Recording(manifest("kip-101-double-failover-7", "kip-101-double-failover"))
    _bring_up(r)
    _twenty_sends(r)
    _the_fatal_send(r)
    _two_elections(r)
    _recovery(r)
    _what_was_left(r)
    r.anomalies += _charges()
    return r


def _bring_up(r: Recording) -> None:
    for node in (0, 1, 2, CONTROLLER_ID):
        r.say(0.0 + node / 1000, node, "started")
    r.elect(0.3, 0, 0, (0, 1, 2), "topic created")
    for node in (0, 1, 2):
        r.state(0.31, node, (0, 0), (0, 0), (0, 1, 2))


def _twenty_sends(r: Recording) -> None:
    everyone = (0, 1, 2)
    for i in range(20):
        start = 1.0 + i * 0.1
        r.state(start, 0, (0, 0), (i, i + 1), everyone)
        r.state(start + 0.004, 1, (0, 0), (i, i + 1), everyone)
        r.state(start + 0.005, 2, (0, 0), (i, i + 1), everyone)
        r.state(start + 0.008, 0, (0, 0), (i + 1, i + 1), everyone)
        r.send(start + 0.01, 1000 + i, i)
        for node in (1, 2):
            r.state(start + 0.05, node, (0, 0), (i + 1, i + 1), everyone)
        r.poll(start + 0.03, i, 1000 + i, 0)


def _the_fatal_send(r: Recording) -> None:
    everyone = (0, 1, 2)
    r.state(3.0, 0, (0, 0), (20, 21), everyone)
    r.state(3.004, 1, (0, 0), (20, 21), everyone)
    r.state(3.005, 2, (0, 0), (20, 21), everyone)
    held = "no answer within 300 ms; 214 bytes held on 0->1, 214 on 0->2"
    r.fault("cut", "partition", ["0", "1", "2"], (2.95, 3.006, 3.31, 7.0, 7.05), held, links=[[0, 1], [0, 2]])
    r.state(3.010, 0, (0, 0), (21, 21), everyone)
    r.send(3.012, 1020, 20)
    r.poll(3.05, 20, 1020, 0)
    for i in range(5):
        r.send(3.4 + i * 0.5, 1021 + i, None, "info", error="REQUEST_TIMED_OUT")


def _two_elections(r: Recording) -> None:
    exited = "process 4242 is gone; connection refused"
    r.fault("crash", "kill", ["0"], (3.45, 3.5, 3.52, 7.5, 7.9), exited)
    r.say(4.58, CONTROLLER_ID, "session", detail={"broker": 0, "change": "expired"})
    r.elect(4.6, 1, 1, (1, 2), "session of broker 0 expired")
    r.state(4.604, 1, (1, 1), (20, 21), (1, 2))
    r.truncate(4.606, 2, (21, 20), "follower truncates to its high watermark")
    r.state(4.606, 2, (1, 1), (20, 20), (1, 2))
    r.fault("freeze", "pause", ["1"], (4.605, 4.612, 4.63, 7.2, 7.22), "state T (stopped) in /proc/4243/stat")
    r.elect(5.75, 2, 2, (2,), "session of broker 1 expired")
    r.state(5.754, 2, (2, 2), (20, 20), (2,))
    for i in range(3):
        r.send(6.0 + i * 0.3, 1030 + i, None, "fail", error="NOT_ENOUGH_REPLICAS", took=0.004)


def _recovery(r: Recording) -> None:
    r.truncate(7.21, 1, (21, 20), "follower truncates to its high watermark")
    r.state(7.21, 1, (2, 2), (20, 20), (2,))
    r.say(8.0, CONTROLLER_ID, "isr", topic="ledger", partition=0, leader=2, leader_epoch=2, isr=[2, 1])
    r.state(8.01, 2, (2, 2), (20, 20), (2, 1))
    r.say(7.85, 0, "started")
    r.state(7.9, 0, (2, 2), (21, 21), (2, 1))
    for i in range(10):
        start = 8.2 + i * 0.1
        isr = (2, 1, 0) if i > 4 else (2, 1)
        r.state(start, 2, (2, 2), (20 + i, 21 + i), isr)
        r.state(start + 0.005, 1, (2, 2), (20 + i, 21 + i), isr)
        r.state(start + 0.008, 2, (2, 2), (21 + i, 21 + i), isr)
        r.state(start + 0.009, 0, (2, 2), (21 + i, 21 + i), isr)
        r.send(start + 0.01, 1040 + i, 20 + i)
        r.state(start + 0.05, 1, (2, 2), (21 + i, 21 + i), isr)
    r.say(8.65, CONTROLLER_ID, "isr", topic="ledger", partition=0, leader=2, leader_epoch=2, isr=[2, 1, 0])


def _what_was_left(r: Recording) -> None:
    old = [(i, 0, 1000 + i) for i in range(20)]
    new = [(20 + i, 2, 1040 + i) for i in range(10)]
    for offset, epoch, value in [*old, *new]:
        r.poll(10.0 + offset / 1000, offset, value, epoch, final=True)
    r.log(0, [*old, (20, 0, 1020), *new[1:]])
    r.log(1, [*old, *new])
    r.log(2, [*old, *new])
    for node in (0, 1, 2):
        r.state(10.8, node, (2, 2), (30, 30), (0, 1, 2), kind="final")


def _charges() -> list[Anomaly]:
    place = ("ledger", 0, 20)
    acked = Evidence("history", {"index": 62, "op": 41}, "process 0 was told that value 1020 is at offset 20")
    cut = Evidence("timeline", {"node": 2, "sequence": 46}, "broker 2 truncated 21 to 20")
    other = Evidence("replica_logs", {"node": 1, "offset": 20}, "broker 1 holds value 1040 of epoch 2 at offset 20")
    return [
        Anomaly(
            "lost-write",
            Verdict.EXPECTED,
            *place,
            1020,
            0,
            "value 1020 was acknowledged with acks=all at offset 20 and is not in the final read.",
            (acked, cut),
        ),
        Anomaly(
            "replica-divergence",
            Verdict.EXPECTED,
            *place,
            1020,
            0,
            "below both high watermarks, broker 0 holds value 1020 of epoch 0, brokers 1 and 2 hold 1040 of epoch 2. "
            "It follows from the lost-write of value 1020 at offset 20.",
            (other,),
        ),
    ]


def _all_below(acked_all: int) -> Mapping[str, int]:
    return {"acked_all": acked_all, "acked_below_high_watermark": acked_all}


def as_predicted(anomalies: Sequence[Anomaly]) -> RunVerdict:
    """The verdict on :func:`double_failover`."""
    predicted = tuple(Prediction(a.kind, a.topic, a.partition, a.offset) for a in anomalies)
    counts = {"sends": 39, "sends_ok": 31, "sends_fail": 3, "polled_records": 21, **_all_below(31)}
    return RunVerdict("", Outcome.AS_PREDICTED, "spark 4.3.0", tuple(anomalies), (), predicted, (), counts)


def random_run(partitions: int = 16, sends: int = 6000) -> Recording:
    """A run with seeded faults in which nothing is lost: unacknowledged tails are cut, leaders change."""
    dice = random.Random(11)
    r = Recording(manifest("random-11", "random", generation="3.9", seed=11, duration_s=60.0), closed=60.0)
    for node in (0, 1, 2, CONTROLLER_ID):
        r.say(0.0 + node / 1000, node, "started")
    _random_faults(r)
    for partition in range(partitions):
        _random_partition(r, partition, sends // partitions, dice)
    return r


def _random_faults(r: Recording) -> None:
    plan = (("kill", 0, 6.0, 11.0), ("pause", 1, 15.0, 19.0), ("partition", 2, 22.0, 27.5), ("clock", 1, 24.0, 33.0))
    later = (("disk_full", 0, 31.0, 36.0), ("kill", 2, 40.0, 43.0))
    for i, (kind, node, start, end) in enumerate((*plan, *later)):
        times = (start - 0.05, start, start + 0.2, end, end + 0.3)
        r.fault(f"f{i:03}", kind, [str(node)], times, f"broker {node} did not answer within 300 ms")


def _random_partition(r: Recording, partition: int, sends: int, dice: random.Random) -> None:
    """Three terms: a leader is killed, and later the next one; each time an unacknowledged record is cut off."""
    first = partition % 3
    terms = ((1.0, 6.9, first), (7.1, 39.8, (first + 1) % 3), (41.0, 52.0, (first + 2) % 3))
    r.elect(0.3, first, 0, (0, 1, 2), "topic created", partition=partition)
    entries: list[tuple[int, int, int | None]] = []
    for epoch, (start, stop, leader) in enumerate(terms):
        isr = (leader, (leader + 1) % 3) if epoch == 1 else (0, 1, 2)
        if epoch:
            _fail_over(r, partition, (leader, epoch), start, len(entries))
        for time in sorted(dice.uniform(start, stop) for _ in range(sends // 3)):
            _replicated(r, partition, (leader, epoch), time, isr)
            entries.append((len(entries), epoch, partition * 100_000 + len(entries)))
    for node in (0, 1, 2):
        r.log(node, entries[-40:], partition=partition)
        end = (len(entries), len(entries))
        r.state(57.0, node, (terms[-1][2], 2), end, (0, 1, 2), partition=partition, kind="final")
    for offset, epoch, value in entries:
        r.poll(55.0 + offset / 1000, offset, value, epoch, partition=partition, final=True)


def _fail_over(r: Recording, partition: int, term: tuple[int, int], start: float, end: int) -> None:
    leader, epoch = term
    old, isr = (leader + 2) % 3, (leader, (leader + 1) % 3)
    r.send(start - 0.2, partition * 100_000 + 90_000 + epoch, None, "info", error="timeout", partition=partition)
    r.elect(start - 0.1, leader, epoch, isr, f"session of broker {old} expired", partition=partition)
    r.truncate(start + 0.05, old, (end + 1, end), f"diverges from epoch {epoch - 1}", partition=partition)


def _replicated(r: Recording, partition: int, term: tuple[int, int], time: float, isr: Sequence[int]) -> None:
    offset = r.ends.get(partition, 0)
    r.ends[partition] = offset + 1
    for node in (0, 1, 2):
        before, after = (offset, offset + 1), (offset + 1, offset + 1)
        r.state(time + node / 500, node, term, before, isr, partition=partition)
        r.state(time + 0.01, node, term, after, isr, partition=partition)
    r.send(time + 0.011, partition * 100_000 + offset, offset, partition=partition, process=partition % 4)


def passed(counts: Mapping[str, int] | None = None) -> RunVerdict:
    """A verdict without any anomaly."""
    usual = {"sends": 6032, "sends_ok": 6000, **_all_below(6000)}
    return RunVerdict("", Outcome.PASS, "python", counts=counts or usual)


@pytest.fixture(scope="session")
def double_failover_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of :func:`double_failover`, judged."""
    recording = double_failover()
    verdict = as_predicted(recording.anomalies)
    return recording.write(tmp_path_factory.mktemp("runs") / "double-failover", verdict)


@pytest.fixture(scope="session")
def random_run_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of :func:`random_run`, which passed."""
    return random_run().write(tmp_path_factory.mktemp("runs") / "random", passed())


@pytest.fixture
def double_failover_recording() -> Recording:
    """:func:`double_failover`, to be changed and written."""
    return double_failover()


@pytest.fixture
def new_recording() -> Callable[[Manifest], Recording]:
    """A recording without rows."""
    return Recording


def page(directory: Path) -> str:
    """The report of a run directory."""
    return reports.write(directory).read_text()


def lost_write(offset: int, verdict: Verdict = Verdict.VIOLATION, **told: Any) -> Anomaly:
    """That the record at an offset is gone; ``told``: what else it says otherwise than usual."""
    usual = {"topic": "ledger", "partition": 0, "value": 1000 + offset, "leader_epoch": 0, "why": "it is gone."}
    return Anomaly("lost-write", verdict, **{**usual, **told}, offset=offset)


@pytest.fixture(scope="session")
def loss(double_failover_run: Path) -> str:
    """The report of :func:`double_failover_run`."""
    return page(double_failover_run)


@pytest.fixture(scope="session")
def random_page(random_run_directory: Path) -> str:
    """The report of :func:`random_run_directory`."""
    return page(random_run_directory)
