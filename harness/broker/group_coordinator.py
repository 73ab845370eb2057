"""The coordinator of consumer groups: a broker is it for those whose partition of ``__consumer_offsets`` it leads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from harness.broker.codecs import inflate
from harness.broker.kafka_time import kafka_time_ns
from harness.broker.metadata import ClusterMetadata
from harness.broker.partition import Partition
from harness.broker.ports import Network, Timer
from harness.broker.segments import Batches
from harness.broker.settings import NodeConfig
from harness.broker.timeline import ReplicaState
from harness.clock import Clock
from harness.coordination.errors import GroupError
from harness.coordination.groups import GroupLimits, Groups
from harness.coordination.records import GROUPS_TOPIC, decoded
from harness.coordination.surroundings import GroupRecord, Stored
from harness.model import Offset
from harness.replication.messages import ProduceExpired, ProduceRequested
from harness.wire import batches as wire
from harness.wire.batches import CorruptBatch, Record
from harness.wire.errors import WireError

_ALL = -1
_MAX_PREFIX = 1_000
_READ_BYTES = 65_536


def partition_of(group: str, partitions: int) -> int:
    """The partition of ``__consumer_offsets`` that a group belongs to: by Java's hash of its name, as in Kafka.

    That is ``Utils.abs(hashCode) % partitions``, where the absolute value of the least integer is 0.
    """
    value = 0
    units = group.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >> 31 else value
    return (0 if value == 1 << 31 else abs(signed)) % partitions


class Services(Protocol):
    """What the coordinator needs of its broker."""

    @property
    def network(self) -> Network:
        """Timers."""
        ...

    @property
    def clock(self) -> Clock:
        """The broker's clocks."""
        ...

    @property
    def metadata(self) -> ClusterMetadata:
        """What the broker knows of the cluster."""
        ...

    def say(self, line: str) -> None:
        """Write a line to the broker's log."""
        ...


class GroupCoordinator:
    """The groups of one broker.

    Args:
        services: the broker.
        config: its identity and settings.
    """

    def __init__(self, services: Services, config: NodeConfig) -> None:
        self._services = services
        self._config = config
        self._led: dict[int, _Led] = {}
        self._members = 0

    def replica_changed(self, partition: Partition, state: ReplicaState) -> None:
        """A replica on this broker has another state: it may have been elected to lead, or have resigned."""
        if partition.name.topic != GROUPS_TOPIC:
            return
        number, leads = partition.name.partition, state.role == "leader"
        led = self._led.get(number)
        if led is not None and not leads:
            del self._led[number]
            led.resign()
        elif led is None and leads:
            self._led[number] = _Led(self._services, self._config, partition, self._new_member_id)

    def groups_of(self, group: str) -> Groups | GroupError:
        """The groups among which ``group`` is, or the error where this broker does not coordinate it, or not yet."""
        partitions = self._services.metadata.partition_count(GROUPS_TOPIC)
        if not partitions:
            return GroupError.NOT_COORDINATOR
        led = self._led.get(partition_of(group, partitions))
        if led is None:
            return GroupError.NOT_COORDINATOR
        return GroupError.COORDINATOR_LOAD_IN_PROGRESS if led.groups is None else led.groups

    def all_groups(self) -> list[Groups] | GroupError:
        """The groups of all partitions that this broker leads."""
        found = [led.groups for _, led in sorted(self._led.items())]
        loaded = [groups for groups in found if groups is not None]
        return loaded if len(loaded) == len(found) else GroupError.COORDINATOR_LOAD_IN_PROGRESS

    def status(self) -> list[dict[str, Any]]:
        """For the control channel: what is committed in each partition that it leads, and in which leader epoch."""
        return [
            {"leader_epoch": led.leader_epoch, "partition": number, "commits": led.groups.status()}
            for number, led in sorted(self._led.items())
            if led.groups is not None
        ]

    def _new_member_id(self, prefix: str) -> str:
        self._members += 1
        return f"{prefix[:_MAX_PREFIX]}-{self._config.node_id}-{self._config.incarnation}-{self._members}"


class _Led:
    """One partition that the broker leads: the port of its groups.

    Attributes:
        groups: None until the log has been read.
    """

    def __init__(
        self, services: Services, config: NodeConfig, partition: Partition, new_member_id: Callable[[str], str]
    ) -> None:
        self.groups: Groups | None = None
        self.new_member_id = new_member_id
        self._services = services
        self._config = config
        self._partition = partition
        settings = config.settings
        limits = GroupLimits(
            settings.group_initial_rebalance_delay_ms,
            settings.group_min_session_timeout_ms,
            settings.group_max_session_timeout_ms,
            settings.group_max_size,
        )
        read = Groups(self, limits, config.knobs.bugs)
        end_offset = partition.log.log_end_offset
        self._loading = services.network.call_later(
            0, partial(self._load, read, partition.log.log_start_offset, end_offset)
        )

    @property
    def leader_epoch(self) -> int:
        """In which the broker leads it."""
        return self._partition.replica.leader_epoch

    def resign(self) -> None:
        """Another broker leads."""
        self._loading.cancel()
        if self.groups is not None:
            self.groups.end()

    def wall_ms(self) -> int:
        """See :class:`harness.coordination.surroundings.Surroundings`."""
        return self._services.clock.wall_ms()

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        """See :class:`harness.coordination.surroundings.Surroundings`."""
        return self._services.network.call_later(delay_ms / 1000, callback)

    def store(self, records: Sequence[GroupRecord], stored: Stored) -> None:
        """See :class:`harness.coordination.surroundings.Surroundings`."""
        now_ms = self.wall_ms()
        batch = wire.build([Record(number, now_ms, *one) for number, one in enumerate(records)])
        timeout_s = self._config.settings.offsets_commit_timeout_ms / 1000
        _Append(self._services.network, self._partition, stored).start(
            Batches(memoryview(batch), wire.headers(batch)), kafka_time_ns(self._services.clock), timeout_s
        )

    def _load(self, groups: Groups, offset: Offset, end_offset: Offset) -> None:
        """Read the log from ``offset`` to its end, a part at each turn, so that the broker goes on meanwhile.

        What is not committed yet is read, too, as Kafka does.
        """
        name = self._partition.name
        try:
            offset = self._replay(groups, offset, end_offset)
        except (OSError, WireError) as error:
            self._services.say(f"Cannot read all of {name}: {error}. Its groups begin with what could be read.")
            offset = end_offset
        if offset < end_offset:
            self._loading = self._services.network.call_later(0, partial(self._load, groups, offset, end_offset))
            return
        groups.begin()
        self.groups = groups
        self._services.say(f"Coordinates the groups of {name} in leader epoch {self.leader_epoch}.")

    def _replay(self, groups: Groups, offset: Offset, end_offset: Offset) -> Offset:
        """Read some of the log; returns where the rest begins.

        Raises:
            OSError: it cannot be read.
            WireError: it holds something else than Kafka's records.
        """
        if offset >= end_offset:
            return end_offset
        data = memoryview(self._partition.log.locate(offset, end_offset, _READ_BYTES, at_least_one=True).read())
        headers = wire.headers(data)
        if not headers:
            raise CorruptBatch(f"no batch at offset {offset}")
        for header in headers:
            for record in () if header.attributes & wire.CONTROL else wire.records(data, header, inflate):
                said = None if record.key is None else decoded(record.key, record.value)
                if said is not None:
                    groups.replay(*said)
        return headers[-1].end_offset


class _Append:
    """Records on their way into the log: the core's token for them, whose outcome is reported in a later turn."""

    def __init__(self, network: Network, partition: Partition, stored: Stored) -> None:
        self._network = network
        self._partition = partition
        self._stored = stored
        self._timer: Timer | None = None
        self._is_over = False

    def start(self, batches: Batches, now_ns: int, timeout_s: float) -> None:
        """Append them with acks=all."""
        (header,) = batches.headers
        self._partition.handle(ProduceRequested(self, _ALL, (header.record_count,), batches, now_ns, None))
        if not self._is_over:
            self._timer = self._network.call_later(timeout_s, lambda: self._partition.handle(ProduceExpired(self)))

    def produced(self, error: int, base_offset: int) -> None:
        """See :class:`harness.broker.partition.ProduceToken`."""
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        self._network.call_later(0, lambda: self._stored(error))
