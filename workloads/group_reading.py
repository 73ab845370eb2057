"""A member of a consumer group, as a schedule orders it: it reads up to the end of now, and may commit."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Literal

from harness.clients.group import CommittedOffset, GroupClient
from harness.clients.group_process import GroupProcess
from harness.clients.reader import BEGINNING, MOVED_ERRORS, TRUNCATED, Bounds, Reader
from harness.errors import EnvironmentFault
from harness.model import NO_EPOCH, Offset, ProcessId, TopicPartition
from harness.workload import CommitOrder, Consumed, ConsumeOrder, Done
from workloads.workers import Deadline
from workloads.workload_context import WorkloadContext

Incident = Literal["reset", "out_of_range", "truncated", "unreachable"]

_POLL_S = 0.1
_POLL_RECORDS = 500
_LOOK_TIMEOUT_S = 1.0
_BACKOFF_S = 0.05


class GroupMember:
    """Carries one order out, partition after partition: their readers must not spoil each other's history."""

    def __init__(self, around: WorkloadContext, order: ConsumeOrder) -> None:
        self._around = around
        self._order = order
        self._patience = Deadline(order.timeout_s)
        self._process = GroupProcess(around.recorder, around.new_process, order.group)
        self._incident: Incident | None = None
        self._values: dict[TopicPartition, list[int | None]] = {name: [] for name in order.partitions}
        self._epochs: dict[TopicPartition, int] = {}
        self._positions: dict[TopicPartition, Offset] = {}

    def read(self) -> Consumed:
        """Read, and commit if that is ordered."""
        group = GroupClient(self._around.bootstrap, f"seawall-{self._order.group}", self._order.group, self._around.log)
        try:
            committed = self._committed(group)
            for partition in self._order.partitions if committed is not None else ():
                self._read(partition, committed.get(partition) if committed else None)
            if committed is None:
                self._incident = "unreachable"
            elif self._order.commit and self._positions:
                self._commit(group)
        finally:
            group.close()
        return Consumed(self._incident, self._values, dict(self._positions))

    def _committed(self, group: GroupClient) -> Mapping[TopicPartition, CommittedOffset] | None:
        """What the group has committed, if this member begins there; None when nobody says."""
        if self._order.start != "committed":
            return {}
        while left_s := self._patience.left_s():
            self._process.ask(self._order.partitions)
            answer = group.committed(self._order.partitions, min(left_s, _LOOK_TIMEOUT_S))
            self._process.told(answer)
            if not isinstance(answer, str):
                return answer
            self._around.log.info("offsets of group %s: %s", self._order.group, answer)
            time.sleep(_BACKOFF_S)
        return None

    def _commit(self, group: GroupClient) -> None:
        offsets = {
            name: CommittedOffset(offset, self._epochs.get(name, NO_EPOCH) if self._order.checks_epochs else NO_EPOCH)
            for name, offset in self._positions.items()
        }
        if _commit(group, self._process, offsets, self._patience, self._around.log) is not None:
            self._incident = "unreachable"

    def _read(self, partition: TopicPartition, committed: CommittedOffset | None) -> None:
        match self._order.start, committed:
            case "committed", CommittedOffset(offset, epoch):
                error = self._read_from(partition, offset, epoch if self._order.checks_epochs else NO_EPOCH)
            case "committed", None:
                error = "_AUTO_OFFSET_RESET"
            case "beginning", _:
                error = self._read_from(partition, BEGINNING)
            case _:
                error = self._read_from(partition, None)
        if error == TRUNCATED and self._order.reset == "none":
            self._incident = "truncated"
        elif error in MOVED_ERRORS:
            self._begin_anew(partition, error)
        elif error is not None:
            self._incident = "unreachable"

    def _begin_anew(self, partition: TopicPartition, why: str) -> None:
        if self._order.reset == "none":
            self._incident = "out_of_range"
            return
        self._incident = "truncated" if why == TRUNCATED else "reset"
        if self._read_from(partition, BEGINNING if self._order.reset == "earliest" else None) is not None:
            self._incident = "unreachable"

    def _read_from(self, partition: TopicPartition, start: Offset | None, epoch: int = NO_EPOCH) -> str | None:
        """Read from ``start``, None meaning the end, as a new process; returns the error that ended it."""
        process, recorder = self._around.new_process(), self._around.recorder
        where = {partition: BEGINNING if start is None else start}
        log = self._around.log
        assigning = recorder.invoke(process, "assign", [partition], self._order.group)
        reader = Reader(self._around.bootstrap, f"seawall-{process}", where, log, epochs={partition: epoch})
        recorder.complete(assigning, "ok")
        try:
            bounds = self._bounds(partition, reader)
            if bounds is None:
                return "_TIMED_OUT"
            if start is None:
                self._positions[partition] = bounds.end_offset
                return None
            first = bounds.start_offset if start == BEGINNING else start
            error = self._poll(partition, first, bounds, (process, reader), validates=epoch != NO_EPOCH)
            if error is None:
                self._positions[partition] = max(first, reader.positions[partition])
            return error
        finally:
            reader.close()

    def _poll(
        self, partition: TopicPartition, first: Offset, bounds: Bounds, who: tuple[ProcessId, Reader],
        *, validates: bool,
    ) -> str | None:  # fmt: skip
        """Poll until the end is reached, or an error comes: out of range it must, and at the very end it may."""
        in_range = bounds.start_offset <= first <= bounds.end_offset
        least = Deadline(_LOOK_TIMEOUT_S if validates and first == bounds.end_offset else 0.0)
        process, reader = who
        group, isolation = self._order.group, reader.isolation
        while not in_range or least.left_s() or max(first, reader.positions[partition]) < bounds.end_offset:
            if not self._patience.left_s():
                return "_TIMED_OUT"
            op = self._around.recorder.invoke_poll(process, final=False, group=group, isolation=isolation)
            records, error = reader.poll(_POLL_RECORDS, _POLL_S)
            if error is not None and not records:
                self._around.recorder.poll_failed(op, error)
            else:
                self._around.recorder.complete_poll(op, records)
            for record in records:
                self._values[partition].append(record.value)
                self._epochs[partition] = NO_EPOCH if record.leader_epoch is None else record.leader_epoch
            if error is not None:
                return error
        return None

    def _bounds(self, partition: TopicPartition, reader: Reader) -> Bounds | None:
        while left_s := self._patience.left_s():
            try:
                return reader.bounds(partition, min(left_s, _LOOK_TIMEOUT_S))
            except EnvironmentFault as unknown:
                self._around.log.info("%s", unknown)
        return None


def commit(around: WorkloadContext, order: CommitOrder) -> Done:
    """Commit what ``order`` says; tries again until its time is over, for the coordinator may be moving."""
    patience = Deadline(order.timeout_s)
    group = GroupClient(around.bootstrap, f"seawall-{order.group}", order.group, around.log)
    process = GroupProcess(around.recorder, around.new_process, order.group)
    offsets = {name: CommittedOffset(offset, order.leader_epoch) for name, offset in order.offsets.items()}
    try:
        return Done(_commit(group, process, offsets, patience, around.log))
    finally:
        group.close()


def _commit(
    client: GroupClient,
    process: GroupProcess,
    offsets: Mapping[TopicPartition, CommittedOffset],
    patience: Deadline,
    log: logging.Logger,
) -> str | None:
    """Commit ``offsets``, again and again until it works or the time is up; the last error's name, None: it worked."""
    error: str | None = "_TIMED_OUT"
    while patience.left_s():
        process.begin_commit(offsets)
        error = client.commit(offsets)
        process.end_commit(error)
        if error is None:
            return None
        log.info("commit of group %s: %s", process.group, error)
        time.sleep(_BACKOFF_S)
    return error
