"""librdkafka as a client library: the clients that the harness uses unless a scenario names others."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from harness.client_ports import Isolation, Manner
from harness.client_properties import Access
from harness.clients.group import GroupClient
from harness.clients.library import OnRebalance
from harness.clients.member import GroupConsumer
from harness.clients.reader import Reader
from harness.clients.sender import Sender
from harness.clients.transactional_sender import TransactionalSender
from harness.membership import Membership
from harness.model import Offset, TopicPartition


class Librdkafka:
    """Implements :class:`harness.clients.library.ClientLibrary`.

    Args:
        access: to the brokers.
        log: takes librdkafka's log lines.
    """

    def __init__(self, access: Access, log: logging.Logger) -> None:
        self._access = access
        self._log = log

    def sender(self, name: str, acks: int, timeout_s: float, manner: Manner) -> Sender:
        """See :class:`harness.clients.library.ClientLibrary`."""
        return Sender(self._access, name, acks, timeout_s, self._log, manner=manner)

    def transactional_sender(self, name: str, timeout_s: float) -> TransactionalSender:
        """See :class:`harness.clients.library.ClientLibrary`."""
        return TransactionalSender(self._access, name, timeout_s, self._log)

    def reader(
        self,
        name: str,
        positions: Mapping[TopicPartition, Offset],
        epochs: Mapping[TopicPartition, int] | None,
        isolation: Isolation,
    ) -> Reader:
        """See :class:`harness.clients.library.ClientLibrary`."""
        return Reader(self._access, name, positions, self._log, epochs=epochs, isolation=isolation)

    def group_offsets(self, name: str, group: str) -> GroupClient:
        """See :class:`harness.clients.library.ClientLibrary`."""
        return GroupClient(self._access, name, group, self._log)

    def member(
        self, name: str, membership: Membership, isolation: Isolation, rebalanced: OnRebalance
    ) -> GroupConsumer:  # fmt: skip
        """See :class:`harness.clients.library.ClientLibrary`."""
        return GroupConsumer(self._access, name, membership, isolation, rebalanced=rebalanced, log=self._log)

    def apart(self) -> None:
        """See :class:`harness.clients.library.ClientLibrary`: librdkafka's threads live and die with seawall."""

    def close(self) -> None:
        """See :class:`harness.clients.library.ClientLibrary`: librdkafka runs in this process."""
