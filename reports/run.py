"""Reads a run directory for a report: the tables stay in Arrow, one partition at a time becomes rows."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from checkers.views.expected import knows_states
from harness.checker import RunVerdict, from_json
from harness.errors import InvalidRun
from harness.history.arrow import arrow_schema
from harness.history.run_directory import Manifest, RunDirectory
from harness.history.schema import TABLES
from harness.history.seal import doubts
from harness.history.table_file import TooManyRows, read_columns, require_readable
from harness.model import CONTROLLER_ID, NO_NODE, TopicPartition, is_kafkas_own
from reports import rows
from reports.naming import Names, scheduled

MOST_ROWS = 1_000_000
"""The size of the largest table that a report reads; of a larger one it shows the verdict's findings, and no rows."""


@dataclass(frozen=True, slots=True)
class PartitionRows:
    """All rows about one partition, by time, except polls and logs, which are read by offset.

    Attributes:
        states: by broker; ``final`` rows included, last.
        told: what the cluster told a client: states of no broker's own, with the leader and the ISR by Metadata.
    """

    partition: TopicPartition
    sends: Sequence[rows.Send]
    states: Mapping[int, Sequence[rows.State]]
    truncations: Sequence[rows.Truncation]
    changes: Sequence[rows.Change]
    told: Sequence[rows.State] = ()


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        faults: by the time they were aimed.
        brokers: the ids of all brokers, ascending.
        left_out: by table, or ``schedule_log``, that is missing, broken or too large, a sentence; it is empty here, and
            nothing may be concluded from that.
        doubts: why the verdict may not be that of this run, a sentence each; see ``harness.history.seal``.
        schedule_log: ``schedule_log.json``; empty where there is none.
    """

    directory: Path
    manifest: Manifest
    verdict: RunVerdict
    history: pa.Table
    timeline: pa.Table
    replica_logs: pa.Table
    faults: Sequence[rows.Fault]
    brokers: Sequence[int]
    start_ns: int
    end_ns: int
    left_out: Mapping[str, str]
    doubts: Sequence[str] = ()
    schedule_log: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def names(self) -> Names:
        """What people call its records."""
        return Names(
            scheduled(self.schedule_log), set(pc.unique(_where(self.history, f="send")["process"]).to_pylist())
        )

    @property
    def groups(self) -> Mapping[str, Any]:
        """By name, the consumer groups of the schedule."""
        groups: Mapping[str, Any] = self.schedule_log.get("groups", {})
        return groups

    @property
    def watched(self) -> bool:
        """Whether the states of brokers were observed; else only the histories of clients, and what they were told."""
        return knows_states(self.manifest.guarantees)

    @property
    def sampled(self) -> bool:
        """Whether the timeline consists of samples of the brokers' states."""
        return self.manifest.guarantees.get("timeline") == "sampled"

    def partitions(self) -> Sequence[TopicPartition]:
        """Every partition of a workload's that a table names, and every one that an anomaly names, in order."""
        named = {p for table in (self.history, self.timeline, self.replica_logs) for p in _partitions(table)}
        named = {p for p in named if not is_kafkas_own(p.topic)}
        accused = {p for a in self.verdict.anomalies if (p := partition_of(a.topic, a.partition)) is not None}
        return sorted(named | accused)

    def rows_of(self, partition: TopicPartition) -> PartitionRows:
        """The rows of one partition."""
        timeline = _sorted(_only(self.timeline, partition), ("time_ns", "node", "sequence"))
        states = [rows.state(r) for r in timeline if r["kind"] in ("state", "final", "storage_failed")]
        return PartitionRows(
            partition,
            rows.sends(_sorted(_where(_only(self.history, partition), f="send"), ("index",))),
            {node: [s for s in states if s.node == node] for node in self.brokers},
            [rows.truncation(r) for r in timeline if r["kind"] == "truncation"],
            [rows.change(r) for r in timeline if r["kind"] in ("election", "isr")],
            [rows.told(r) for r in timeline if r["kind"] == "metadata"],
        )

    def polls(self, partition: TopicPartition, offset: int, end_offset: int) -> Sequence[rows.Poll]:
        """Every poll of the offsets ``offset..end_offset`` (exclusive), by index."""
        polled = _between(_where(_only(self.history, partition), f="poll"), offset, end_offset)
        return [rows.poll(r) for r in _sorted(polled, ("index",)) if r["type"] != "invoke"]

    def log(self, partition: TopicPartition, offset: int, end_offset: int) -> Sequence[rows.LogEntry]:
        """What lies on the brokers' disks at the offsets ``offset..end_offset`` (exclusive)."""
        found = _sorted(_between(_only(self.replica_logs, partition), offset, end_offset), ("node", "offset"))
        return [rows.LogEntry(r["node"], r["offset"], r["leader_epoch"], r["value"], r["intact"]) for r in found]

    def log_ends(self, partition: TopicPartition) -> Mapping[int, int]:
        """By broker that holds any of the partition on disk: the exclusive end of its log."""
        found = _only(self.replica_logs, partition).group_by("node").aggregate([("offset", "max")]).to_pylist()
        return {r["node"]: r["offset_max"] + 1 for r in found}

    def acknowledged(self) -> int:
        """How many sends were acknowledged."""
        return len(_where(self.history, f="send", type="ok"))

    def final_read_ns(self) -> int | None:
        """When the first poll of the final read was recorded; None if there was no final read."""
        times = self.history.filter(self.history["final"])["time_ns"]
        return pc.min(times).as_py() if len(times) else None

    def sends(self) -> pa.Table:
        """Every acknowledged send: topic, partition, invoked_ns (None: not recorded), time_ns."""
        sends = _where(self.history, f="send")
        step = ["process", "op", "mop"]
        begun = _where(sends, type="invoke").select([*step, "time_ns"])
        begun = begun.rename_columns([*step, "invoked_ns"])
        done = _where(sends, type=rows.ACKNOWLEDGED).select([*step, "topic", "partition", "time_ns"])
        return done.join(begun, step, join_type="left outer").sort_by("time_ns")

    def sends_span(self) -> tuple[int, int] | None:
        """When the first send began and the last one ended; None: there was none."""
        times = _where(self.history, f="send")["time_ns"]
        return (pc.min(times).as_py(), pc.max(times).as_py()) if len(times) else None

    def final_read(self, partition: TopicPartition) -> Collection[tuple[int, int | None]]:
        """Offset and value of each record of the final read of a partition."""
        polled = _where(_only(self.history, partition), f="poll")
        polled = polled.filter(pc.and_(polled["final"], pc.is_valid(polled["offset"])))
        return set(zip(polled["offset"].to_pylist(), polled["value"].to_pylist(), strict=True))

    def times(self, table: str, keys: Sequence[str], wanted: Collection[tuple[int, ...]]) -> Mapping[Any, int]:
        """When the rows of the history or the timeline with these keys were recorded, by key."""
        rows_of = {"history": self.history, "timeline": self.timeline}[table]
        for place, key in enumerate(keys):
            values = pa.array(sorted({one[place] for one in wanted}), pa.int64())
            rows_of = rows_of.filter(pc.is_in(rows_of[key].cast(pa.int64()), values))
        return {
            tuple(row[key] for key in keys): row["time_ns"] for row in rows_of.select([*keys, "time_ns"]).to_pylist()
        }

    def starts(self) -> Mapping[int, Sequence[int]]:
        """By node: when it was started, ascending."""
        times: dict[int, list[int]] = {}
        for row in self._of_kind("started"):
            times.setdefault(row["node"], []).append(row["time_ns"])
        return times

    def looks(self) -> Mapping[int, Sequence[int]]:
        """By node: the times of its state and final rows, ascending."""
        reported = self.timeline.filter(pc.is_in(self.timeline["kind"], pa.array(["state", "final"])))
        reported = reported.select(["node", "time_ns"]).sort_by("time_ns")
        return {node: reported.filter(pc.equal(reported["node"], node))["time_ns"].to_pylist() for node in self.brokers}

    def storage_failures(self) -> Sequence[tuple[int, int]]:
        """(time_ns, node) of every failure of a node's storage that ended it, by time."""
        failures = [row for row in self._of_kind("storage_failed") if rows.details(row).get("halts", True)]
        return sorted({(r["time_ns"], r["node"]) for r in failures})

    def truncations_by_partition(self) -> Mapping[TopicPartition, int]:
        """How many truncations each partition saw."""
        return _counted(self._of_kind("truncation"))

    def elections_by_partition(self) -> Mapping[TopicPartition, int]:
        """How many elections each partition saw."""
        return _counted(self._of_kind("election"))

    def unacknowledged_by_partition(self) -> Mapping[TopicPartition, int]:
        """How many sends to each partition ended in fail or info."""
        table = _where(self.history, f="send")
        return _counted(table.filter(pc.is_in(table["type"], pa.array(["fail", "info"]))).to_pylist())

    def _of_kind(self, kind: str) -> Sequence[rows.Row]:
        return _sorted(_where(self.timeline, kind=kind), ("time_ns", "node", "sequence"))


def read(path: Path) -> Run:
    """The run in the directory ``path``.

    Raises:
        InvalidRun: ``run.json`` is missing or broken, or the run has not been checked.
    """
    directory = RunDirectory.open(path)
    document = directory.read_verdict()
    if document is None:
        raise InvalidRun(f"{directory.verdict_path} is missing: the run has not been checked.", "Check it first.")
    tables, left_out = _tables(directory)
    schedule_log, unread = _schedule_log(directory)
    faults = [rows.fault(r) for r in _sorted(tables["faults"], ("aimed_ns", "fault"))]
    start_ns, end_ns = _extent(tables, faults)
    return Run(
        directory=path,
        manifest=directory.manifest(),
        verdict=from_json(document),
        history=tables["history"],
        timeline=tables["timeline"],
        replica_logs=tables["replica_logs"],
        faults=faults,
        brokers=_brokers(tables),
        start_ns=start_ns,
        end_ns=end_ns,
        left_out={**left_out, **unread},
        doubts=doubts(directory, document),
        schedule_log=schedule_log,
    )


def partition_of(topic: str | None, partition: int | None) -> TopicPartition | None:
    """The partition an anomaly names; None when it names none."""
    return None if topic is None or partition is None else TopicPartition(topic, partition)


def _tables(directory: RunDirectory) -> tuple[Mapping[str, pa.Table], Mapping[str, str]]:
    tables, left_out = {}, {}
    for name, table in TABLES.items():
        tables[name] = arrow_schema(table).empty_table()
        try:
            files = directory.table_files(name)
            number = sum(require_readable(table, file) for file in files)
            if number > MOST_ROWS:
                left_out[name] = f"Checked, but not drawn: the {number:,} rows of {table.path}."
            else:
                tables[name] = pa.concat_tables([read_columns(table, file) for file in files])
        except (InvalidRun, TooManyRows) as error:
            left_out[name] = f"Not looked at: {error.sentence}"
    return tables, left_out


def _schedule_log(directory: RunDirectory) -> tuple[Mapping[str, Any], Mapping[str, str]]:
    """The schedule log, and why it was not looked at; a run may have none."""
    if not (directory.path / "schedule_log.json").exists():
        return {}, {}
    try:
        return directory.read_schedule_log(), {}
    except InvalidRun as error:
        return {}, {"schedule_log": f"Not looked at: {error.sentence}"}


def _extent(tables: Mapping[str, pa.Table], faults: Sequence[rows.Fault]) -> tuple[int, int]:
    columns = [tables[name]["time_ns"] for name in ("history", "timeline") if len(tables[name])]
    lows = [pc.min(c).as_py() for c in columns] + [f.aimed_ns for f in faults]
    highs = [pc.max(c).as_py() for c in columns] + [f.last_ns for f in faults]
    return min(lows, default=0), max(highs, default=0)


def _brokers(tables: Mapping[str, pa.Table]) -> Sequence[int]:
    nodes = {n for name in ("timeline", "replica_logs") for n in pc.unique(tables[name]["node"]).to_pylist()}
    told = _where(tables["timeline"], kind="metadata")
    nodes |= {n for n in pc.unique(pc.list_flatten(told["isr"])).to_pylist() if n is not None}
    return sorted(node for node in nodes if NO_NODE < node < CONTROLLER_ID)


def _partitions(table: pa.Table) -> Iterator[TopicPartition]:
    for row in table.group_by(["topic", "partition"]).aggregate([]).to_pylist():
        if (found := partition_of(row["topic"], row["partition"])) is not None:
            yield found


def _only(table: pa.Table, partition: TopicPartition) -> pa.Table:
    return _where(table, topic=partition.topic, partition=partition.partition)


def _where(table: pa.Table, **equal: str | int) -> pa.Table:
    for column, value in equal.items():
        table = table.filter(pc.equal(table[column], value))
    return table


def _between(table: pa.Table, offset: int, end_offset: int) -> pa.Table:
    at_least, below = pc.greater_equal(table["offset"], offset), pc.less(table["offset"], end_offset)
    return table.filter(pc.and_(at_least, below))


def _sorted(table: pa.Table, columns: Sequence[str]) -> list[rows.Row]:
    return list(table.sort_by([(column, "ascending") for column in columns]).to_pylist())


def _counted(found: Sequence[rows.Row]) -> Mapping[TopicPartition, int]:
    counts: dict[TopicPartition, int] = {}
    for row in found:
        if (partition := partition_of(row["topic"], row["partition"])) is not None:
            counts[partition] = counts.get(partition, 0) + 1
    return counts
