"""The coordinator of transactions: a broker is it for the ids whose partition of ``__transaction_state`` it leads."""

from __future__ import annotations

from collections.abc import Callable, Collection

from harness.broker.coordinator_log import CoordinatorLog, Services, all_known, known_of
from harness.broker.marker_sender import MarkerRoutes, MarkerSender
from harness.broker.partition import Partition
from harness.broker.producer_ids import ProducerIds
from harness.broker.settings import NodeConfig
from harness.broker.timeline import ReplicaState
from harness.coordination.internal_topics import TRANSACTIONS_TOPIC
from harness.coordination.ports import ProducerIdentity
from harness.coordination.transaction_records import decoded
from harness.coordination.transactions import Transactions
from harness.error_codes import ErrorCode
from harness.model import TopicPartition
from harness.wire.batches import Marker


class TransactionCoordinator:
    """The transactions of one broker.

    Args:
        services: the broker.
        config: its identity and settings.
        producer_ids: its supply.
        routes: how leaders get their markers.
    """

    def __init__(self, services: Services, config: NodeConfig, producer_ids: ProducerIds, routes: MarkerRoutes) -> None:
        self._services = services
        self._config = config
        self._producer_ids = producer_ids
        self._routes = routes
        self._led: dict[int, _Led] = {}

    def replica_changed(self, partition: Partition, state: ReplicaState) -> None:
        """A replica on this broker has another state: it may have been elected to lead, or have resigned.

        A new leader epoch is a new coordinator, with markers of its own, even on the same broker.
        """
        if partition.name.topic != TRANSACTIONS_TOPIC:
            return
        number, leads = partition.name.partition, state.role == "leader"
        led = self._led.get(number)
        if led is not None and (not leads or led.began_in != state.leader_epoch):
            del self._led[number]
            led.resign()
            led = None
        if led is None and leads:
            self._led[number] = _Led(self._services, self._config, partition, (self._producer_ids, self._routes))

    def transactions_of(self, transactional_id: str) -> Transactions | ErrorCode:
        """The transactions among which that of the id is, or the error where this broker does not coordinate it yet."""
        return known_of(transactional_id, TRANSACTIONS_TOPIC, self._services.metadata, self._led)

    def all_transactions(self) -> list[Transactions] | ErrorCode:
        """The transactions of all partitions that this broker leads."""
        return all_known(self._led)


class _Led(CoordinatorLog):
    """One partition that the broker leads: the port of its transactions.

    Attributes:
        known: its transactions; None until the log has been read.
        began_in: the leader epoch.
    """

    def __init__(
        self, services: Services, config: NodeConfig, partition: Partition, about: tuple[ProducerIds, MarkerRoutes]
    ) -> None:
        super().__init__(services, config, partition)
        self.known: Transactions | None = None
        self.began_in = self.leader_epoch
        self._producer_ids, self._routes = about
        self._read = Transactions(self, config.settings.transaction_max_timeout_ms, config.knobs.bugs)
        self.read(self)

    def record(self, key: bytes, value: bytes | None, producer_id: int | None) -> None:
        """See :class:`harness.broker.coordinator_log.Reader`."""
        said = decoded(key, value)
        if said is not None:
            self._read.replay(*said)

    def marker(self, producer_id: int, *, commits: bool) -> None:
        """See :class:`harness.broker.coordinator_log.Reader`: the topic is part of no transaction."""

    def finished(self) -> None:
        """See :class:`harness.broker.coordinator_log.Reader`."""
        self._read.begin()
        self.known = self._read

    def resign(self) -> None:
        """Another broker leads, or the same in another epoch."""
        self.stop()
        self._read.end()

    def new_producer_id(self, allocated: Callable[[int | None], None]) -> None:
        """See :class:`harness.coordination.ports.TransactionPorts`."""
        self._producer_ids.next(allocated)

    def write_markers(
        self, producer: ProducerIdentity, partitions: Collection[TopicPartition], written: Callable[[], None],
        *, commits: bool,
    ) -> None:  # fmt: skip
        """See :class:`harness.coordination.ports.TransactionPorts`."""
        marker = Marker(commits, self.began_in)
        MarkerSender(self._routes, producer, marker, partitions, written=written, is_over=lambda: self.is_over).start()
