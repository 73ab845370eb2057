"""kafka-python's clients as seawall uses them: what librdkafka does in :mod:`harness.clients`, in Python alone.

Errors have the names that librdkafka has for them, or those of kafka-python's exceptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.client_ports import Isolation, Manner
from harness.client_properties import Access
from harness.clients.kafka_python.consumers import GroupOffsets, Member, Reader, belonging
from harness.clients.kafka_python.producers import Sender, TransactionalSender, settings_of
from harness.clients.kafka_python.security import security
from harness.clients.kafka_settings import IMPATIENT, reading, underscored
from harness.clients.library import OnRebalance
from harness.membership import Membership
from harness.model import Offset, TopicPartition

_PATIENCE = {"metrics_enabled": False, "bootstrap_timeout_ms": 120_000}
"""A client that is made while all brokers are down waits for them."""


class KafkaPython:
    """Implements :class:`harness.clients.library.ClientLibrary`.

    Args:
        access: to the brokers.
    """

    def __init__(self, access: Access) -> None:
        self._bootstrap = access.bootstrap.split(",")
        self._security = security(access.properties)

    def sender(self, name: str, acks: int, timeout_s: float, manner: Manner) -> Sender:
        """See :class:`harness.clients.library.ClientLibrary`."""
        return Sender({**self._common(name), **settings_of(manner, acks, timeout_s)}, timeout_s)

    def transactional_sender(self, name: str, timeout_s: float) -> TransactionalSender:
        """See :class:`harness.clients.library.ClientLibrary`."""
        return TransactionalSender(self._common(name), name, timeout_s)

    def reader(
        self,
        name: str,
        positions: Mapping[TopicPartition, Offset],
        epochs: Mapping[TopicPartition, int] | None,
        isolation: Isolation,
    ) -> Reader:
        """See :class:`harness.clients.library.ClientLibrary`; ``epochs`` are left out."""
        del epochs
        return Reader({**self._common(name), **underscored(reading(isolation))}, positions, isolation)

    def group_offsets(self, name: str, group: str) -> GroupOffsets:
        """See :class:`harness.clients.library.ClientLibrary`."""
        return GroupOffsets({**self._common(name), **underscored(reading("read_committed")), "group_id": group})

    def member(self, name: str, membership: Membership, isolation: Isolation, rebalanced: OnRebalance) -> Member:
        """See :class:`harness.clients.library.ClientLibrary`."""
        settings = {**self._common(name), **underscored(reading(isolation)), **belonging(membership)}
        return Member(settings, membership, rebalanced)

    def apart(self) -> None:
        """See :class:`harness.clients.library.ClientLibrary`: it runs in this process."""

    def close(self) -> None:
        """See :class:`harness.clients.library.ClientLibrary`: nothing is left to end."""

    def _common(self, name: str) -> dict[str, Any]:
        return {
            **underscored(IMPATIENT),
            **_PATIENCE,
            **self._security,
            "bootstrap_servers": self._bootstrap,
            "client_id": name,
        }
