"""Unmodified brokers and controller that report all effects of their cores to the witness.

They behave as ever. The witness gets each effect of a replica's core once the broker has performed it, as on the bare
core. Of each log this module keeps a second copy, made of these effects, and compares it with what the broker finds on
its disk when it opens the log again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, cast

from harness import payload
from harness.broker.broker import Broker
from harness.broker.controller_node import ControllerNode
from harness.broker.log_directory import LogDirectory
from harness.broker.node_environment import NodeEnvironment
from harness.broker.partition import Partition
from harness.broker.segments import Batches, SegmentLog, span_of
from harness.broker.settings import NodeConfig
from harness.error_codes import ErrorCode
from harness.model import CONTROLLER_ID, NodeId, Offset, TopicPartition
from harness.payload import StoredRecord
from harness.replication.controller import Controller
from harness.replication.controller_messages import (
    ControllerEffect,
    ControllerEvent,
    Elected,
    IsrChanged,
    PartitionState,
    SessionChanged,
)
from harness.replication.knobs import Knobs
from harness.replication.messages import (
    AnswerFetch,
    AnswerProduce,
    Append,
    Appended,
    BatchSpan,
    CheckpointEpochs,
    FetchReceived,
    HighWatermarkAdvanced,
    LogStartedAt,
    LogStartRaised,
    PartitionStateChanged,
    ProduceRequested,
    ProposeIsr,
    RaiseLogStart,
    ReplicaEffect,
    ReplicaEvent,
    ReplicaFailed,
    RetentionReached,
    StartLogAt,
    Truncate,
    Truncated,
)
from harness.replication.replica import Replica
from harness.simulation.core.configuration import MS, PARTITION
from harness.simulation.core.disk import Batch, Disk, laid_out
from harness.simulation.run_observers import ControllerObservers, ReplicaObservers
from harness.simulation.stack.node import SimulatedNode
from harness.wire import batches as wire
from harness.wire.batches import BatchHeader

_WHOLE = 1 << 30


class BatchContents:
    """The values of each batch that was seen, by its checksum and size: every replica writes the same bytes."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[int, ...]] = {}

    def values(self, batches: Batches) -> tuple[tuple[int, ...], ...]:
        """The values of the records that are to be written, batch by batch."""
        found = []
        for header in batches.headers:
            key = (header.crc, header.size)
            if key not in self._known:
                self._known[key] = _values_of(batches.buffer, header)
            found.append(self._known[key])
        return tuple(found)


class ObservedNode:
    """What can be seen of one broker, through all its lives.

    Args:
        simulated: the broker.
        knobs: the protocol.
        observers: called with what it does.
        contents: what is known of the batches that it writes.

    Attributes:
        node: its id, also its index.
        name: in traces.
        disk: its log, as it must be.
        dirty: whether it stopped uncleanly and has not caught up since.
        lossy: the same after it lost power.
    """

    def __init__(
        self, simulated: SimulatedNode, knobs: Knobs, observers: ReplicaObservers, contents: BatchContents
    ) -> None:
        self.node: NodeId = simulated.node
        self.name = f"b{simulated.node}"
        self.disk = Disk(0, checkpoints_flushed=True)
        self.dirty = False
        self.lossy = False
        self.simulated = simulated
        self.observers = observers
        self.contents = contents
        self._knobs = knobs
        self._lost_power = False
        self._flushed: Offset = 0

    @property
    def replica(self) -> Replica | None:
        """None while it is dead."""
        partition = self._partition
        return None if partition is None else partition.replica

    @property
    def _partition(self) -> Partition | None:
        if not self.simulated.lives:
            return None
        return cast("Broker", self.simulated.program).partitions.get(PARTITION)

    @property
    def broker_epoch(self) -> int:
        """As the controller gave it; -1: not registered."""
        return cast("Broker", self.simulated.program).controller.broker_epoch if self.simulated.lives else -1

    @property
    def clock_ns(self) -> int:
        """How far its wall clock is off."""
        return self.simulated.clock.wall_offset_ms * MS

    @property
    def life(self) -> int:
        """How often it has been started."""
        return self.simulated.incarnation + 1

    def lose_power(self) -> None:
        """What it has not flushed is gone; what it has may be gone too where generations do not flush all of it."""
        partition, knobs = self._partition, self._knobs
        safe = knobs.segment_names == "flushed" and knobs.recovered_tail != "not_flushed"
        self._flushed = partition.log.recovery_point if safe and partition is not None else 0
        self.simulated.lose_power()
        self.dirty = self.lossy = self._lost_power = True

    def fill_disk(self, *, is_full: bool) -> None:
        """Let its disk take nothing more, or anything again."""
        self.disk.full = is_full
        self.simulated.disk.free_bytes = 0 if is_full else None

    def retire(self, before: Offset) -> None:
        """Let it delete what is before an offset, as retention does."""
        partition = self._partition
        assert partition is not None
        partition.handle(RetentionReached(before, self.simulated.clock.monotonic_ns()))

    def opened(self, log: SegmentLog) -> None:
        """It has opened its log: after a crash nothing may be missing, after a power loss only what was not flushed.

        What was deleted, but not with its segment, is there again if the new start had not been checkpointed.
        """
        found, written = contents(log), self.disk.batches
        known = [batch for batch in found if batch.span.end_offset > self.disk.start]
        assert known == [_plain(batch) for batch in written[: len(known)]], f"{self.name} reads what was never written"
        lost = written[len(known) :]
        assert self._lost_power or not lost, f"{self.name} does not find {lost} again"
        assert log.log_end_offset >= self._flushed, f"{self.name} had flushed {self._flushed} records: {lost} is gone"
        self._lost_power, self._flushed = False, 0
        if (log.log_start_offset, log.log_end_offset) != (self.disk.start, self.disk.end):
            self._hold(found, log.log_start_offset)
        if lost:
            self.observers.witness.power_lost(self, lost)

    def _hold(self, found: list[Batch], start: Offset) -> None:
        """Let the log be what was found."""
        self.disk.start_at(found[0].span.base_offset if found else start)
        if found:
            self.disk.append(found)
            self.disk.raise_start(start)

    def check_disk(self) -> None:
        """The disk holds what the core's effects wrote."""
        partition = self._partition
        if partition is not None:
            found = contents(partition.log)
            assert found == list(map(_plain, self.disk.batches)), f"the log of {self.name} is another: {found}"


class ObservedControllerNode:
    """What can be seen of the controller, through all its lives."""

    name = "ctl"
    node = CONTROLLER_ID

    def __init__(self, simulated: SimulatedNode, brokers: Sequence[ObservedNode]) -> None:
        self.simulated = simulated
        self._brokers = brokers

    @property
    def core(self) -> Controller | None:
        """None while it is dead."""
        return cast("ControllerNode", self.simulated.program).core if self.simulated.lives else None

    @property
    def partition(self) -> PartitionState | None:
        """The state of the partition that the witness watches; None while it is dead."""
        core = self.core
        states = () if core is None else core.partitions
        return next((one for one in states if one.topic_partition == PARTITION), None)

    def lacks(self, node: NodeId) -> bool:
        """Whether broker ``node`` is missing in the ISR of a partition of which it has a replica."""
        states = () if self.core is None else self.core.partitions
        return any(node in one.replicas and node not in one.isr for one in states)

    @property
    def life(self) -> int:
        """How often it has been started."""
        return self.simulated.incarnation + 1

    def knows(self, node: NodeId) -> bool:
        """Whether it has registered the present life of broker ``node``, and that broker knows."""
        core, epoch = self.core, self._brokers[node].broker_epoch
        return core is not None and any((one.broker, one.epoch) == (node, epoch) for one in core.brokers)


class ObservedBroker(Broker):
    """A broker; arguments as there, and the node that observes it."""

    def __init__(self, watched: ObservedNode, config: NodeConfig, environment: NodeEnvironment) -> None:
        super().__init__(config, environment)
        self.watched = watched

    def new_partition(self, name: TopicPartition, directory: LogDirectory) -> Partition:
        """See :class:`harness.broker.broker.Broker`; the witness watches one partition."""
        return (ObservedPartition if name == PARTITION else Partition)(self, name, directory)


class ObservedPartition(Partition):
    """The replica that the witness watches."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._watched = cast("ObservedBroker", self._owner).watched
        self._observers = self._watched.observers
        self._witness = self._observers.witness
        self._events: list[ReplicaEvent] = []
        self._effects: list[ReplicaEffect] = []
        self._produced: dict[object, tuple[int, tuple[int, ...]]] = {}
        self._watched.opened(self.log)

    def handle(self, event: ReplicaEvent) -> None:
        """See :class:`harness.broker.partition.Partition`."""
        if isinstance(event, ProduceRequested):
            self._produced[event.token] = (event.acks, self._values(event.payload)[0])
        before = (self.replica.leader_epoch, self.replica.partition_epoch)
        self._events.append(event)
        outer, self._effects = self._effects, []
        super().handle(event)
        self._observers.handled(self._watched, event, self._effects)
        self._effects = outer
        self._events.pop()
        changed = (self.replica.leader_epoch, self.replica.partition_epoch) != before
        if changed and isinstance(event, PartitionStateChanged):
            self._witness.state_applied(self._watched, before)
        self._observers.observed(self._watched)

    def _perform(self, effect: ReplicaEffect) -> ReplicaEvent | None:
        self._effects.append(effect)
        written = self._values(effect.payload) if isinstance(effect, Append) else ()
        answer = super()._perform(effect)
        match effect, answer:
            case Append(), Appended():
                batches = list(map(laid_out, effect.spans, written))
                self._watched.disk.append(batches)
                self._witness.appended(self._watched, batches)
            case Truncate(), Truncated(end):
                self._truncated(effect)
                assert self._watched.disk.end == end, f"{self._watched.name} cuts at {end} for {effect.to_offset}"
            case RaiseLogStart() | StartLogAt(), LogStartRaised() | LogStartedAt():
                self._start_moved(effect)
            case _:
                self._tell(effect)
        return answer

    def _values(self, batches: object) -> tuple[tuple[int, ...], ...]:
        assert isinstance(batches, Batches)
        return self._watched.contents.values(batches)

    def _truncated(self, effect: Truncate) -> None:
        disk = self._watched.disk
        end_before = disk.end
        cut = disk.truncate(effect.to_offset)
        self._observers.truncated(self._watched, effect, cut, end_before)

    def _start_moved(self, effect: RaiseLogStart | StartLogAt) -> None:
        disk = self._watched.disk
        from_offset = disk.start
        self._observers.log_start_moves(self._watched, effect)
        disk.move_start(effect)
        self._observers.log_start_moved(self._watched, effect, from_offset)

    def _tell(self, effect: ReplicaEffect) -> None:
        """Tell the witness what is no change of the log."""
        match effect:
            case CheckpointEpochs(entries):
                self._witness.epochs_changed(self._watched, entries)
            case HighWatermarkAdvanced(high_watermark):
                self._witness.watermark_advanced(self._watched, high_watermark)
            case AnswerProduce():
                self._answered(effect)
            case AnswerFetch(error=ErrorCode.NONE) if isinstance(self._events[-1], FetchReceived):
                self._witness.fetch_served(self._watched, Wanted(self._events[-1].current_leader_epoch))
            case ProposeIsr():
                self._witness.proposed(self._watched, effect)
            case ReplicaFailed():
                self._witness.failed(self._watched, effect)
            case _:
                pass

    def _answered(self, effect: AnswerProduce) -> None:
        acks, values = self._produced.pop(effect.token)
        if effect.error is ErrorCode.NONE and self._failure is None:
            self._witness.acknowledged(self._watched, Acknowledged(acks, values), effect.base_offset)


class Acknowledged(NamedTuple):
    """What a produce request asked for that is acknowledged now."""

    acks: int
    values: tuple[int, ...]


class Wanted(NamedTuple):
    """The follower's fetch that the leader serves now."""

    leader_epoch: int


class ObservedController(ControllerNode):
    """The controller node; arguments as there, and the node and observers that get its events."""

    def __init__(
        self,
        watched: ObservedControllerNode,
        observers: ControllerObservers,
        config: NodeConfig,
        environment: NodeEnvironment,
    ) -> None:
        super().__init__(config, environment)
        self._watched = watched
        self._observers = observers
        self._effects: list[ControllerEffect] = []

    def handle(self, event: ControllerEvent) -> None:
        """See :class:`harness.broker.controller_node.ControllerNode`."""
        self._effects.clear()
        super().handle(event)
        self._observers.handled(self._watched, event, self._effects)

    def _perform(self, effect: ControllerEffect) -> None:
        self._effects.append(effect)
        super()._perform(effect)
        match effect:
            case Elected() if effect.partition.topic_partition == PARTITION:
                self._observers.elected(effect)
            case IsrChanged() if effect.partition.topic_partition == PARTITION:
                self._observers.isr_changed(effect)
            case SessionChanged():
                self._observers.session_changed(effect)
            case _:
                pass


# ------------------------------------------------------------------------------------------------------------ contents


def contents(log: SegmentLog) -> list[Batch]:
    """Every batch that can be read from ``log``."""
    found: list[Batch] = []
    offset: Offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = memoryview(log.locate(offset, log.log_end_offset, _WHOLE, at_least_one=True).read())
        headers = wire.headers(data)
        assert headers, f"nothing is to be read at offset {offset}"
        found += [laid_out(_placed(span_of(header)), _values_of(data, header)) for header in headers]
        offset = headers[-1].end_offset
    return found


def _values_of(buffer: memoryview, header: BatchHeader) -> tuple[int, ...]:
    return tuple([_value(record) for record in wire.records(buffer, header)])


def _value(record: wire.Record) -> int:
    found = StoredRecord(record.key, record.value, record.headers, record.timestamp)
    value, intact = payload.judge(found, PARTITION)
    assert value is not None, f"{record} is no record of a workload"
    assert intact, f"{record} is damaged"
    return value


def _plain(batch: Batch) -> Batch:
    return Batch(_placed(batch.span), batch.records)


def _placed(span: BatchSpan) -> BatchSpan:
    return replace(span, producer=None)
