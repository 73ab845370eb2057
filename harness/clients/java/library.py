"""Kafka's own Java clients as seawall uses them: what librdkafka does in :mod:`harness.clients`, by the Java process.

Errors have the names of the protocol's error codes, as ``NOT_ENOUGH_REPLICAS``, or those that librdkafka has for its
own where there are such (``_TIMED_OUT``), or that of the Java exception.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from harness.client_ports import Isolation, Manner
from harness.client_properties import Access
from harness.clients.java.consumers import GroupOffsets, Member, Reader, belonging, reading
from harness.clients.java.driver import Driver
from harness.clients.java.producers import Sender, TransactionalSender
from harness.clients.java.security import security
from harness.clients.java.share_consumers import ShareConsumer, configure_group, sharing
from harness.clients.kafka_settings import IMPATIENT, sending
from harness.clients.library import OnRebalance
from harness.membership import Membership
from harness.model import Offset, TopicPartition
from harness.share_ports import ShareMembership

_CONNECTED_WITHIN = {"socket.connection.setup.timeout.ms": 1000}


class Java:
    """Implements :class:`harness.clients.library.SharingLibrary`; of a release before 4.2 it has no share consumers.

    Args:
        access: to the brokers.
        classpath: the jars of the release whose client it is.
        log: takes what the process prints.
        failed: called if the process ends before its time.

    Raises:
        EnvironmentFault: the process cannot be started.
    """

    def __init__(
        self, access: Access, classpath: str, log: logging.Logger, failed: Callable[[BaseException], None]
    ) -> None:
        self._access = access
        self._security = security(access.properties)
        self._classpath = classpath
        self._driver = Driver(classpath, log, failed)
        self._log = log
        self._failed = failed
        self._apart: list[Java] = []

    def sender(self, name: str, acks: int, timeout_s: float, manner: Manner) -> Sender:
        """See :class:`harness.clients.library.ClientLibrary`."""
        return Sender(self._driver, {**self._common(name), **sending(manner, acks, timeout_s)}, timeout_s)

    def transactional_sender(self, name: str, timeout_s: float) -> TransactionalSender:
        """See :class:`harness.clients.library.ClientLibrary`."""
        return TransactionalSender(self._driver, self._common(name), name, timeout_s)

    def reader(
        self,
        name: str,
        positions: Mapping[TopicPartition, Offset],
        epochs: Mapping[TopicPartition, int] | None,
        isolation: Isolation,
    ) -> Reader:
        """See :class:`harness.clients.library.ClientLibrary`."""
        return Reader(self._driver, {**self._common(name), **reading(isolation)}, positions, epochs, isolation)

    def group_offsets(self, name: str, group: str) -> GroupOffsets:
        """See :class:`harness.clients.library.ClientLibrary`."""
        settings = {**self._common(name), **reading("read_committed"), "group.id": group}
        return GroupOffsets(self._driver, settings)

    def member(self, name: str, membership: Membership, isolation: Isolation, rebalanced: OnRebalance) -> Member:
        """See :class:`harness.clients.library.ClientLibrary`."""
        settings = {**self._common(name), **reading(isolation), **belonging(membership)}
        return Member(self._driver, settings, membership, rebalanced)

    def apart(self) -> Java:
        """See :class:`harness.clients.library.ClientLibrary`: another Java process, which ends with this one."""
        made = Java(self._access, self._classpath, self._log, self._failed)
        self._apart.append(made)
        return made

    def share_consumer(self, name: str, membership: ShareMembership) -> ShareConsumer:
        """See :class:`harness.clients.library.SharingLibrary`."""
        return ShareConsumer(self._driver, {**self._common(name), **sharing(membership)}, membership)

    def configure_group(self, group: str, configs: Mapping[str, str]) -> str | None:
        """See :class:`harness.clients.library.SharingLibrary`."""
        return configure_group(self._driver, self._common(group), group, configs)

    def close(self) -> None:
        """See :class:`harness.clients.library.ClientLibrary`: kills the process."""
        self._driver.close()
        for one in self._apart:
            one.close()

    def _common(self, name: str) -> dict[str, object]:
        return {
            **IMPATIENT,
            **_CONNECTED_WITHIN,
            **self._security,
            "bootstrap.servers": self._access.bootstrap,
            "client.id": name,
        }
