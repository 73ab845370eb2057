"""A librdkafka consumer in a group, which begins to read what it is given where its caller says, or by itself."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as Assigned

from harness.client_ports import LEFT_UNKNOWN, CommitAnswered, CommittedOffset, Isolation, Polled
from harness.client_properties import Access
from harness.clients.group import PATIENCE_S, PendingCommits, assigned, commit, committed, generation_of
from harness.clients.library import OnRebalance
from harness.clients.librdkafka import CLOSES_WITHIN_S, ClientError, calling, closed, configuration, made
from harness.clients.reader import consumed, reading
from harness.membership import Commits, Membership
from harness.model import NO_GENERATION, TopicPartition

_Callback = Callable[[Consumer, list[Assigned]], None]

_HEARTBEATS = 10
"""How many heartbeats fit into a session."""


class GroupConsumer:
    """One member of a group.

    Args:
        access: to the brokers.
        client_id: for the brokers.
        membership: of what, and how.
        isolation: see :class:`harness.client_ports.Member`.
        rebalanced: called within a poll or a close, in the thread of the caller; see
            :data:`harness.client_ports.Rebalanced`.
        log: takes librdkafka's log lines.

    Attributes:
        positions: see :class:`harness.client_ports.Member`.
    """

    def __init__(
        self,
        access: Access,
        client_id: str,
        membership: Membership,
        isolation: Isolation,
        *,
        rebalanced: OnRebalance,
        log: logging.Logger,
    ) -> None:
        self.positions: dict[TopicPartition, CommittedOffset] = {}
        self._rebalanced = rebalanced
        self._has: set[TopicPartition] = set()
        self._begun: set[TopicPartition] = set()
        is_classic = membership.protocol == "classic"
        self._incremental = not is_classic or membership.assignor == "cooperative-sticky"
        self._is_lost_in_doubt = False
        self._is_closing = self._is_gone = False
        self._is_automatic = membership.commits.is_automatic
        self._commits = PendingCommits()
        session_ms = round(membership.session_timeout_s * 1000)
        static = {} if membership.instance is None else {"group.instance.id": membership.instance}
        self._consumer = made(
            Consumer,
            {
                **configuration(access, client_id, log),
                **reading(isolation),
                **static,
                **(_classic(membership) if is_classic else _consumer(membership)),
                **_committing(membership.commits),
                "on_commit": self._answered,
                "group.id": membership.group,
                "max.poll.interval.ms": max(round(membership.poll_timeout_s * 1000), session_ms),
                "coordinator.query.interval.ms": 1000,
            },
        )
        self._consumer.subscribe(
            membership.topics if membership.pattern is None else [membership.pattern],
            on_assign=self._while_here(self._gained),
            on_revoke=self._while_here(self._giving_up),
            on_lost=self._while_here(self._lost),
        )

    def poll(self, max_records: int, timeout_s: float) -> Polled:
        """Wait up to ``timeout_s`` for up to ``max_records`` records."""
        self._store()
        polled = consumed(self._consumer, max_records, timeout_s)
        for record in polled.records:
            name = TopicPartition(record.topic, record.partition)
            if name in self._has:  # it may have been given up since librdkafka drew the record from its queue
                self.positions[name] = CommittedOffset.after(record)
        if self._is_lost_in_doubt:
            return polled._replace(error=polled.error or LEFT_UNKNOWN)
        return polled

    def commit(self, offsets: Mapping[TopicPartition, CommittedOffset]) -> str | None:
        """Commit ``offsets``, and wait for the answer; returns the error's name, None for success."""
        return commit(self._consumer, offsets)

    def commit_async(self, offsets: Mapping[TopicPartition, CommittedOffset], answered: CommitAnswered) -> None:
        """Commit ``offsets``; ``answered`` is called within a later poll, commit or close."""
        self._commits.begin(self._consumer, offsets, answered)

    def committed(
        self, partitions: Iterable[TopicPartition], timeout_s: float
    ) -> dict[TopicPartition, CommittedOffset] | str:
        """What is committed, partitions without it left out; or the error's name."""
        return committed(self._consumer, partitions, timeout_s)

    @property
    def generation(self) -> int:
        """See :class:`harness.client_ports.Member`; of a member that closes it is not asked any more.

        librdkafka (2.16.0) may never answer a consumer that closes, and the call keeps Python's global lock: all of
        seawall would stand still.
        """
        if self._is_closing:
            return NO_GENERATION
        with suppress(ClientError), calling():
            return generation_of(self._consumer.consumer_group_metadata())
        return NO_GENERATION

    @property
    def metadata(self) -> object:
        """See :class:`harness.client_ports.Member`: librdkafka's own description."""
        return self._consumer.consumer_group_metadata()

    def close(self) -> None:
        """Leave the group, unless it is a static member, and close the connections.

        A rebalance within it may commit. Where librdkafka does not come to the end of it, what it calls back from then
        on is not heard.
        """
        self._store()
        self._is_closing = True
        closed(self._consumer, CLOSES_WITHIN_S + PATIENCE_S)
        self._is_gone = True

    def _store(self) -> None:
        """Where it commits by itself, let it commit what earlier polls have returned, and nothing of the next one.

        librdkafka would by itself store what it hands over before the caller of the poll has it, and behind an error
        what the caller never has (``enable.auto.offset.store``).
        """
        if self._is_automatic and self.positions:
            stored = [assigned(name, one.offset, one.leader_epoch) for name, one in self.positions.items()]
            with suppress(ClientError), calling():
                self._consumer.store_offsets(offsets=stored)

    # ------------------------------------------------------------------------------------ librdkafka's callbacks

    def _answered(self, error: KafkaError | None, committed: list[Assigned]) -> None:
        if not self._is_gone:
            self._commits.served(error, committed)

    def _while_here(self, callback: _Callback) -> _Callback:
        """What librdkafka calls back; not heard once the member has closed."""

        def called(consumer: Consumer, partitions: list[Assigned]) -> None:
            if not self._is_gone:
                callback(consumer, partitions)

        return called

    def _gained(self, consumer: Consumer, partitions: list[Assigned]) -> None:
        names = _names(partitions)
        self._has.update(names)
        begins = self._rebalanced("assigned", names)
        begun = names if begins is not None else []
        self._is_lost_in_doubt |= begins is None
        where = [_from(name, (begins or {}).get(name)) for name in begun]
        with suppress(ClientError), calling():
            (consumer.incremental_assign if self._incremental else consumer.assign)(where)
            self._begun.update(begun)

    def _giving_up(self, consumer: Consumer, partitions: list[Assigned]) -> None:
        self._rebalanced("revoked", _names(partitions))
        self._forget(partitions)
        self._release(consumer, partitions)

    def _lost(self, consumer: Consumer, partitions: list[Assigned]) -> None:
        self._forget(partitions)
        self._rebalanced("lost", _names(partitions))
        self._release(consumer, partitions)

    def _release(self, consumer: Consumer, partitions: list[Assigned]) -> None:
        """Stop to read those of the partitions that it has begun to read.

        librdkafka would stop with all of them by itself, refuse that if there is one that was not begun with, and then
        never come to the end of its close.
        """
        if self._incremental:
            begun = [one for one in partitions if TopicPartition(one.topic, one.partition) in self._begun]
            with suppress(ClientError), calling():
                consumer.incremental_unassign(begun)
        self._begun.difference_update(_names(partitions))

    def _forget(self, partitions: list[Assigned]) -> None:
        for name in _names(partitions):
            self._has.discard(name)
            self.positions.pop(name, None)


def _classic(membership: Membership) -> dict[str, str | int]:
    """The settings of a member of the classic protocol."""
    session_ms = round(membership.session_timeout_s * 1000)
    return {
        "partition.assignment.strategy": membership.assignor,
        "session.timeout.ms": session_ms,
        "heartbeat.interval.ms": max(session_ms // _HEARTBEATS, 1),
    }


def _consumer(membership: Membership) -> dict[str, str | int]:
    """The settings of a member of the consumer protocol, whose sessions the brokers time."""
    return {"group.protocol": "consumer", "group.remote.assignor": membership.remote_assignor}


def _committing(commits: Commits) -> dict[str, str | int]:
    if not commits.is_automatic:
        return {}
    return {"enable.auto.commit": "true", "auto.commit.interval.ms": max(round(commits.every_s * 1000), 1)}


def _from(name: TopicPartition, begin: CommittedOffset | None) -> Assigned:
    """A partition and where to begin; None: where librdkafka finds that the group has committed."""
    return Assigned(*name) if begin is None else assigned(name, begin.offset, begin.leader_epoch)


def _names(partitions: list[Assigned]) -> list[TopicPartition]:
    return [TopicPartition(one.topic, one.partition) for one in partitions]
