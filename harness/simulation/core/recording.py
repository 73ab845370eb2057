"""Records a simulated run in the tables of a real one, for the same checkers."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.error_codes import ErrorCode
from harness.history.arrow import write_rows
from harness.history.delete_records_log import DeleteRecordsLog
from harness.history.run_directory import Manifest, RunDirectory
from harness.history.schema import HISTORY, TABLES
from harness.model import CLIENTS, CONTROLLER, CONTROLLER_ID, NodeId, Offset
from harness.replication.controller_messages import Elected, IsrChanged, PartitionState, SessionChanged
from harness.replication.isr import laggards_leave_ms
from harness.replication.messages import RaiseLogStart, ReplicaFailed, StartLogAt, Truncate
from harness.simulation.core.configuration import PARTITION, Configuration
from harness.simulation.core.planned import Planned
from harness.simulation.invariants.committed_log import CommittedLog
from harness.simulation.witnessed import Broker, Cluster, Process, Produce

Row = dict[str, Any]

CONSUMER = 100
"""The process of the consumer; a producer's is its number."""

_NEVER_HAPPENED = frozenset({ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.INVALID_REQUIRED_ACKS})
"""Errors that prove that nothing was appended."""


class Recording:
    """Collects the rows of one run; see :mod:`harness.history.schema` for what they mean.

    Args:
        seed: what decided everything.
        cluster: whose run it is.
        orders: the DeleteRecords that were sent.
        committed: tells whether anything was deleted.

    Attributes:
        history: clients' operations and their results.
        timeline: the states of brokers and the controller.
        replica_logs: what lies on the disks in the end.
        faults: what was done to them.
    """

    def __init__(self, seed: int, cluster: Cluster, orders: DeleteRecordsLog, committed: CommittedLog) -> None:
        self.run = f"simulated-{seed}"
        self.history: list[Row] = []
        self.timeline: list[Row] = []
        self.replica_logs: list[Row] = []
        self.faults: list[Row] = []
        self._seed = seed
        self._cluster = cluster
        self._orders = orders
        self._committed = committed
        self._operations = 0
        self._producing: dict[Produce, int] = {}
        self._sequences: dict[int, int] = {}
        self._incarnations: dict[int, int] = {}
        self._states: dict[NodeId, tuple[Any, ...]] = {}
        self._begun: dict[Planned, Row] = {}

    # ------------------------------------------------------------------------------------------------------- history

    def _add(self, **columns: Any) -> None:
        own = {"run": self.run, "index": len(self.history), "time_ns": self._cluster.now_ns, "final": False}
        self.history.append({**_NO_OPERATION, **own, **columns})

    def _operation(self) -> int:
        self._operations += 1
        return self._operations

    def sending(self, produce: Produce) -> None:
        """One row for each record."""
        first = self._operations + 1
        self._producing[produce] = first
        for value in produce.values:
            self._send_row(produce, self._operation(), value, "invoke")

    def sent(self, produce: Produce, error: ErrorCode, base_offset: Offset) -> None:
        """What became of each record."""
        first = self._producing.pop(produce)
        kind = "ok" if error is ErrorCode.NONE else "fail" if error in _NEVER_HAPPENED else "info"
        for at, value in enumerate(produce.values):
            offset = base_offset + at if kind == "ok" and base_offset >= 0 else None
            name = None if kind == "ok" else error.name
            self._send_row(produce, first + at, value, kind, offset=offset, error=name)

    def _send_row(
        self,
        produce: Produce,
        op: int,
        value: int,
        kind: str,
        *,
        offset: Offset | None = None,
        error: str | None = None,
    ) -> None:
        self._add(
            process=produce.producer.number, op=op, type=kind, f="send", topic=PARTITION.topic,
            partition=PARTITION.partition, offset=offset, value=value, acks=produce.acks, error=error,
        )  # fmt: skip

    def polled(self, found: list[tuple[Offset, int, int]], *, final: bool = False) -> None:
        """A poll that delivered something, or of the final read.

        On the bare core a record is a value without key, headers or timestamp: it can be lost, and not be garbled.
        """
        op = self._operation()
        about = {"process": CONSUMER + final, "op": op, "f": "poll", "final": final}
        self._add(**about, type="invoke")
        if not found:
            self._add(**about, type="ok")
        for offset, value, epoch in found:
            self._add(
                **about, type="ok", topic=PARTITION.topic, partition=PARTITION.partition, offset=offset, value=value,
                leader_epoch=epoch, intact=True,
            )  # fmt: skip

    # ------------------------------------------------------------------------------------------------------ timeline

    def _say(self, node: int, kind: str, *, detail: Mapping[str, Any] | None = None, **columns: Any) -> None:
        sequence = self._sequences.get(node, 0)
        self._sequences[node] = sequence + (kind != "final")
        now_ns = self._cluster.now_ns
        clock_ns = self._cluster.brokers[node].clock_ns if node != CONTROLLER_ID else 0
        row = {
            "run": self.run, "node": node, "sequence": sequence, "incarnation": self._incarnations.get(node, 0),
            "time_ns": now_ns, "wall_ms": (now_ns + clock_ns) // 1_000_000, "kind": kind,
            "topic": None, "partition": None, "role": None, "leader": None, "leader_epoch": None,
            "partition_epoch": None, "high_watermark": None, "log_end_offset": None, "log_start_offset": None,
            "isr": None, "detail": None if detail is None else json.dumps(detail), **columns,
        }  # fmt: skip
        self.timeline.append(row)

    def started(self, process: Process) -> None:
        """A process begins a new incarnation."""
        node = process.node
        if node in self._incarnations:
            self._say(node, "final")
        self._incarnations[node] = self._incarnations.get(node, -1) + 1
        self._sequences[node] = 0
        self._states.pop(node, None)
        self._say(node, "started")

    def observed(self, broker: Broker) -> None:
        """A replica may have changed."""
        state = _state(broker)
        if state is not None and self._states.get(broker.node) != state:
            self._states[broker.node] = state
            self._say(broker.node, "state", **dict(zip(_STATE, state, strict=True)))

    def truncated(self, broker: Broker, effect: Truncate, end_before: Offset) -> None:
        """A replica has cut its log."""
        cut = {"from_offset": end_before, "to_offset": broker.disk.end, "reason": effect.reason}
        state = dict(zip(_STATE, _state(broker) or PARTITION, strict=False))
        self._say(broker.node, "truncation", detail=cut, **state)

    def log_start_moved(self, broker: Broker, effect: RaiseLogStart | StartLogAt, from_offset: Offset) -> None:
        """A log begins elsewhere."""
        disk = broker.disk
        moved = {"from_offset": from_offset, "to_offset": disk.start, "reason": effect.reason}
        state = dict(zip(_STATE, _state(broker) or PARTITION, strict=False))
        ends = {"log_start_offset": disk.start, "log_end_offset": disk.end}
        self._say(broker.node, "log_start", detail=moved, **{**state, **ends})

    def failed(self, broker: Broker, effect: ReplicaFailed) -> None:
        """A broker exits."""
        self._say(broker.node, "storage_failed", detail={"errno": effect.errno, "operation": effect.reason or "append"})

    def elected(self, effect: Elected) -> None:
        """The controller has changed the leader."""
        detail = {
            "clean": effect.clean, "elected_from_isr": effect.elected_from_isr,
            "previous_leader": effect.previous_leader, "controller_epoch": effect.controller_epoch,
            "cause": effect.cause, **_eligible(effect.partition),
        }  # fmt: skip
        self._say(CONTROLLER_ID, "election", detail=detail, **_controlled(effect.partition))

    def isr_changed(self, effect: IsrChanged) -> None:
        """The controller has changed the ISR."""
        detail = {"cause": effect.cause, "controller_epoch": effect.controller_epoch, **_eligible(effect.partition)}
        self._say(CONTROLLER_ID, "isr", detail=detail, **_controlled(effect.partition))

    def session_changed(self, effect: SessionChanged) -> None:
        """A broker's session has begun or ended."""
        self._say(CONTROLLER_ID, "session", detail={"broker": effect.broker, "change": effect.change})

    # -------------------------------------------------------------------------------------- faults and disturbances

    def struck(self, planned: Planned) -> None:
        """A fault or a disturbance has happened; being simulated, it is its own proof."""
        parameters, now_ns = planned.parameters(len(self._cluster.brokers)), self._cluster.now_ns
        row = {
            "run": self.run, "fault": f"f{len(self.faults) + 1:03d}", "kind": planned.kind,
            "nodes": _nodes(planned, parameters), "parameters": json.dumps(parameters),
            "aimed_ns": now_ns, "aim": "{}", "injected_ns": now_ns, "proven_ns": now_ns, "proof": "simulated",
            "healed_ns": None, "heal_proven_ns": None, "heal_proof": None,
        }  # fmt: skip
        self.faults.append(row)
        self._begun[planned] = row

    def healed(self, planned: Planned) -> None:
        """It is over."""
        row = self._begun.pop(planned)
        now_ns = self._cluster.now_ns
        row |= {"healed_ns": now_ns, "heal_proven_ns": now_ns, "heal_proof": "simulated"}

    # ------------------------------------------------------------------------------------------------------- the end

    def finish(self) -> None:
        """The final read, the final states, and what lies on the disks; to be called once."""
        cluster = self._cluster
        for produce in list(self._producing):
            self.sent(produce, ErrorCode.REQUEST_TIMED_OUT, -1)
        for node in self._incarnations:
            self._say(node, "final")
        for broker in cluster.brokers:
            state = _state(broker)
            if state is not None:
                self._say(broker.node, "final", detail=_live(broker), **dict(zip(_STATE, state, strict=True)))
            self._log_rows(broker)
        partition = cluster.controller.partition
        if partition is not None and partition.leader >= 0:
            disk, replica = cluster.brokers[partition.leader].disk, cluster.brokers[partition.leader].replica
            bound = 0 if replica is None else replica.high_watermark
            readable = enumerate(disk.records[: bound - disk.start], disk.start)
            self.polled([(offset, record.value, record.leader_epoch) for offset, record in readable], final=True)
        self._add(process=-1, op=self._operation(), type="info", f="close")

    def _log_rows(self, broker: Broker) -> None:
        for batch in broker.disk.batches:
            span, values = batch.span, batch.values
            crc = zlib.crc32(repr(values).encode())
            for offset, value in enumerate(values, span.base_offset):
                if offset < broker.disk.start:
                    continue
                self.replica_logs.append({
                    "run": self.run, "node": broker.node, "topic": PARTITION.topic, "partition": PARTITION.partition,
                    "offset": offset, "leader_epoch": span.leader_epoch, "value": value,
                    "batch_base_offset": span.base_offset, "batch_crc": crc, "intact": True,
                })  # fmt: skip

    def manifest(self, generation: str) -> Manifest:
        """``run.json``."""
        drawn = self._cluster.configuration
        request_ms = max(drawn.request_timeout_ms, drawn.session_timeout_ms)
        return Manifest(
            run=self.run,
            scenario="simulate",
            seed=self._seed,
            started_wall="1970-01-01T00:00:00+00:00",
            state="complete",
            generation=generation,
            configuration=_configuration(drawn),
            orders=self._orders.rows(),
            guarantees={
                "min_insync_replicas": drawn.min_insync_replicas,
                "unclean_election": drawn.unclean_leader_election_enable,
                "retention": self._committed.deleted > 0,
                "eligible_replicas": self._cluster.knobs.elections == "elr",
                "settles": True,
                "time": "virtual",
                "laggards_leave_ms": laggards_leave_ms(drawn.replica_lag_time_max_ms, request_ms),
            },
            duration_s=self._cluster.now_ns / 1e9,
        )

    def write(self, path: Path, generation: str) -> RunDirectory:
        """Leave a run directory behind, as a real run does."""
        manifest = self.manifest(generation)
        directory = RunDirectory.create(path, manifest)
        for name in ("history", "timeline", "replica_logs"):
            write_rows(TABLES[name], path / TABLES[name].path / "part-00000.parquet", getattr(self, name))
        write_rows(TABLES["faults"], path / TABLES["faults"].path, self.faults)
        directory.finish(manifest.state, manifest.duration_s or 0.0)
        return directory


_NO_OPERATION: Row = {**dict.fromkeys(column.name for column in HISTORY.columns), "txn": False, "mop": 0}

_STATE = (
    "topic", "partition", "role", "leader", "leader_epoch", "partition_epoch", "high_watermark", "log_end_offset",
    "log_start_offset", "isr",
)  # fmt: skip


def _state(broker: Broker) -> tuple[Any, ...] | None:
    """The replica's state, in the order of ``_STATE``; None before the controller's first push."""
    replica = broker.replica
    if replica is None or replica.partition_epoch < 0:
        return None
    return (
        *PARTITION, replica.role, replica.leader, replica.leader_epoch, replica.partition_epoch,
        replica.high_watermark, replica.log_end_offset, replica.log_start_offset, list(replica.isr),
    )  # fmt: skip


def _controlled(state: PartitionState) -> Row:
    topic, partition = state.topic_partition
    return {
        "topic": topic, "partition": partition, "leader": state.leader, "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch, "isr": list(state.isr),
    }  # fmt: skip


def _live(broker: Broker) -> Row:
    assert broker.replica is not None
    return {"source": "live", "epochs": [list(entry) for entry in broker.replica.epoch_entries]}


def _eligible(state: PartitionState) -> Row:
    elr, last_known = list(state.elr), list(state.last_known_elr)
    return {"elr": elr, "last_known_elr": last_known} if elr or last_known else {}


def _nodes(planned: Planned, parameters: Row) -> list[str]:
    """The nodes that it touches, as a fault of a scenario would name them."""
    if "links" in parameters:
        return sorted({str(end) for link in parameters["links"] for end in link} - {CLIENTS})
    return [CONTROLLER if planned.node is None else str(planned.node)]


def _configuration(configuration: Configuration) -> Row:
    topic = {"name": PARTITION.topic, "partitions": 1, "replication_factor": configuration.nodes}
    return {
        "scenario": {"cluster": {"brokers": configuration.nodes}, "topics": [topic], "schedule": []},
        "settings": {"log.flush.interval.messages": configuration.flush_messages},
    }
