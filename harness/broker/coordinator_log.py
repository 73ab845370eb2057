"""A partition that a broker leads, and in which a coordinator keeps what it knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol, TypeVar

from harness.broker.codecs import inflate
from harness.broker.kafka_time import kafka_time_ns
from harness.broker.metadata import ClusterMetadata
from harness.broker.partition import Partition
from harness.broker.ports import Network, Timer
from harness.broker.segments import Batches, span_of
from harness.broker.settings import NodeConfig
from harness.clock import Clock
from harness.coordination.ports import LogRecord, ProducerIdentity, Stored
from harness.error_codes import ErrorCode
from harness.model import Offset, TopicPartition
from harness.replication.messages import ProduceExpired, ProduceRequested
from harness.wire import batches as wire
from harness.wire.batches import BatchHeader, CorruptBatch, Record
from harness.wire.errors import WireError

_ALL = -1
_READ_BYTES = 65_536


def partition_of(key: str, partitions: int) -> int:
    """The partition that a group or a transactional id belongs to: by Java's hash of its name, as in Kafka.

    That is ``Utils.abs(hashCode) % partitions``, where the absolute value of the least integer is 0.
    """
    value = 0
    units = key.encode("utf-16-be")
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >> 31 else value
    return (0 if value == 1 << 31 else abs(signed)) % partitions


class Services(Protocol):
    """What a coordinator needs of its broker."""

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


class Reader(Protocol):
    """Takes what a log says, from its first record to its last."""

    def record(self, key: bytes, value: bytes | None, producer_id: int | None) -> None:
        """A record; with the id of its producer if it is a part of a transaction.

        Raises:
            WireError: it is malformed.
        """
        ...

    def marker(self, producer_id: int, *, commits: bool) -> None:
        """The end of a producer's transaction."""
        ...

    def finished(self) -> None:
        """There is no more."""
        ...


class CoordinatorLog:
    """One partition that the broker leads.

    Args:
        services: the broker.
        config: its identity and settings.
        partition: its replica.

    Attributes:
        is_over: whether another broker leads, or the same in another epoch.
    """

    def __init__(self, services: Services, config: NodeConfig, partition: Partition) -> None:
        self._services = services
        self._partition = partition
        self._appends = appends(services, config)
        self._loading: Timer | None = None
        self.is_over = False

    @property
    def name(self) -> TopicPartition:
        """Which partition."""
        return self._partition.name

    @property
    def leader_epoch(self) -> int:
        """In which the broker leads it."""
        return self._partition.replica.leader_epoch

    def wall_ms(self) -> int:
        """See :class:`harness.coordination.ports.CoordinatorPorts`."""
        return self._services.clock.wall_ms()

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Timer:
        """See :class:`harness.coordination.ports.CoordinatorPorts`."""
        return self._services.network.call_later(delay_ms / 1000, callback)

    def store(self, records: Sequence[LogRecord], stored: Stored) -> None:
        """See :class:`harness.coordination.ports.CoordinatorPorts`."""
        self._append(wire.build(self._dated(records)), stored)

    def store_in_transaction(self, records: Sequence[LogRecord], producer: ProducerIdentity, stored: Stored) -> None:
        """See :class:`harness.coordination.ports.GroupPorts`."""
        batch = wire.build(
            self._dated(records),
            attributes=wire.TRANSACTIONAL,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=0,
        )
        self._append(batch, stored)

    def _dated(self, records: Sequence[LogRecord]) -> list[Record]:
        now_ms = self.wall_ms()
        return [Record(number, now_ms, *one) for number, one in enumerate(records)]

    def _append(self, batch: bytearray, stored: Stored) -> None:
        if self.is_over:
            self._services.network.call_later(0, lambda: stored(ErrorCode.NOT_LEADER_OR_FOLLOWER))
        else:
            self._appends.append(self._partition, batch, stored)

    # ------------------------------------------------------------------------------------ loading

    def read(self, reader: Reader) -> None:
        """Have ``reader`` take what is in the log by now, a part at each turn, so that the broker goes on meanwhile.

        What is not committed yet is read, too, as Kafka does.
        """
        log = self._partition.log
        self._read_later(reader, log.log_start_offset, log.log_end_offset)

    def stop(self) -> None:
        """Read no more, and store nothing."""
        self.is_over = True
        if self._loading is not None:
            self._loading.cancel()

    def _read_later(self, reader: Reader, offset: Offset, end_offset: Offset) -> None:
        self._loading = self._services.network.call_later(0, partial(self._read_on, reader, offset, end_offset))

    def _read_on(self, reader: Reader, offset: Offset, end_offset: Offset) -> None:
        try:
            offset = self._read_some(reader, offset, end_offset)
        except (OSError, WireError) as error:
            self._services.say(f"Cannot read all of {self.name}: {error}. Its coordinator begins without the rest.")
            offset = end_offset
        if offset < end_offset:
            self._read_later(reader, offset, end_offset)
        else:
            reader.finished()
            self._services.say(f"Coordinates what is in {self.name} in leader epoch {self.leader_epoch}.")

    def _read_some(self, reader: Reader, offset: Offset, end_offset: Offset) -> Offset:
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
            _read_batch(reader, data, header)
        return headers[-1].end_offset


def _read_batch(reader: Reader, data: memoryview, header: BatchHeader) -> None:
    if header.marker is not None:
        reader.marker(header.producer_id, commits=header.marker.commits)
        return
    producer_id = header.producer_id if header.attributes & wire.TRANSACTIONAL else None
    for record in () if header.attributes & wire.CONTROL else wire.records(data, header, inflate):
        if record.key is not None:
            reader.record(record.key, record.value, producer_id)


Known_co = TypeVar("Known_co", covariant=True)


class Led(Protocol[Known_co]):
    """A partition that the broker leads, and what its coordinator knows of it."""

    @property
    def known(self) -> Known_co | None:
        """None until the log has been read."""
        ...


def known_of(key: str, topic: str, metadata: ClusterMetadata, led: Mapping[int, Led[Known_co]]) -> Known_co | ErrorCode:
    """What the coordinator of a group or id knows, or NOT_COORDINATOR, or still loading."""
    partitions = metadata.partition_count(topic)
    found = led.get(partition_of(key, partitions)) if partitions else None
    if found is None:
        return ErrorCode.NOT_COORDINATOR
    return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if found.known is None else found.known


def all_known(led: Mapping[int, Led[Known_co]]) -> list[Known_co] | ErrorCode:
    """The same of all partitions that this broker leads."""
    found = [one.known for _, one in sorted(led.items())]
    loaded = [known for known in found if known is not None]
    return loaded if len(loaded) == len(found) else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


class Appends:
    """Appends what coordinators have written, with acks=all.

    Args:
        network: timers.
        clock: the broker's clocks.
        timeout_s: after how long, in seconds, it is not certain whether all in-sync replicas have it.
    """

    def __init__(self, network: Network, clock: Clock, timeout_s: float) -> None:
        self._network = network
        self._clock = clock
        self._timeout_s = timeout_s

    def append(self, partition: Partition, batch: bytearray, stored: Stored) -> None:
        """Append a batch; ``stored`` takes the error code, in a later turn."""
        append = _Append(self._network, partition, stored)
        append.start(Batches(memoryview(batch), wire.headers(batch)), kafka_time_ns(self._clock), self._timeout_s)


def appends(services: Services, config: NodeConfig) -> Appends:
    """Those of a broker."""
    return Appends(services.network, services.clock, config.settings.offsets_commit_timeout_ms / 1000)


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
        producer = span_of(header).producer
        asked = ProduceRequested(self, _ALL, (header.record_count,), batches, now_ns, producer, of_coordinator=True)
        self._partition.handle(asked)
        if not self._is_over:
            self._timer = self._network.call_later(timeout_s, lambda: self._partition.handle(ProduceExpired(self)))

    def produced(self, error: int, base_offset: int) -> None:
        """See :class:`harness.broker.partition.ProduceToken`."""
        self._is_over = True
        if self._timer is not None:
            self._timer.cancel()
        self._network.call_later(0, lambda: self._stored(error))
