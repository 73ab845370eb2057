"""A simulated broker's fetcher: one request under way per leader, timeouts, and back-off."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from harness.error_codes import NO_ERROR, ErrorCode
from harness.model import NO_LEADER, NodeId
from harness.replication.messages import (
    AnswerFetch,
    EpochEnd,
    EpochEndAnswered,
    FetchAnswered,
    NextEpochLookup,
    NextFetch,
    ReplicaEvent,
)
from harness.replication.replica import Replica
from harness.simulation.core.configuration import MS, Configuration
from harness.simulation.core.disk import Batch, Disk
from harness.simulation.core.in_flight import Asked
from harness.simulation.core.network import Network
from harness.simulation.core.process import Receiver
from harness.simulation.core.scheduler import Scheduler


class Leader(Receiver, Protocol):
    """What a follower sends to its leader."""

    def fetch_arrived(self, asked: Asked) -> None:
        """It fetches."""
        ...

    def lookup_arrived(self, lookup: Asked) -> None:
        """It asks where an epoch ends."""
        ...


class Follower(Receiver, Protocol):
    """The broker that fetches; attributes as of :class:`harness.simulation.core.broker.Broker`."""

    node: NodeId
    broker_epoch: int
    disk: Disk
    replica: Replica | None

    @property
    def now_ns(self) -> int:
        """The time of its wall clock."""
        ...

    def handle(self, event: ReplicaEvent) -> None:
        """Give an event to the replica."""
        ...


class Fetcher:
    """See the module.

    Attributes:
        leaders: every broker, by its id.
    """

    __slots__ = (
        "_asking", "_backing_off", "_configuration", "_deadline_ns", "_follower", "_network", "_scheduler", "_watching",
        "leaders",
    )  # fmt: skip

    leaders: Sequence[Leader]

    def __init__(
        self, follower: Follower, configuration: Configuration, scheduler: Scheduler, network: Network
    ) -> None:
        self._follower = follower
        self._configuration = configuration
        self._scheduler = scheduler
        self._network = network
        self._deadline_ns = 0
        self.begin()

    def begin(self) -> None:
        """A new life of the broker: no request is under way."""
        self._asking: Asked | None = None
        self._watching = self._backing_off = False

    def poke(self, _: object = None) -> None:
        """Send the leader the next request, unless one is under way, or back-off is not over."""
        replica = self._follower.replica
        if replica is None or self._backing_off:
            return
        wanted = replica.next_request()
        if wanted is None or (self._asking is not None and self._asking.wanted.leader == wanted.leader):
            return
        self._ask(wanted)

    def leader_changed(self, leader: NodeId) -> None:
        """Another epoch has begun: wait for no answer of another leader, and ask the new one."""
        if self._asking is not None and self._asking.wanted.leader != leader:
            self._asking = None
        if leader not in (NO_LEADER, self._follower.node):
            self.poke()

    def _ask(self, wanted: NextFetch | NextEpochLookup) -> None:
        follower, leader, scheduler = self._follower, self.leaders[wanted.leader], self._scheduler
        fetches = isinstance(wanted, NextFetch)
        answered = self._fetch_answered if fetches else self._lookup_answered
        asked = Asked(follower, follower.node, follower.broker_epoch, follower.disk.start, wanted, answered=answered)
        self._asking = asked
        arrive = leader.fetch_arrived if fetches else leader.lookup_arrived
        self._network.send(follower.index, leader, leader.life, arrive, asked)
        timeout_ns = self._configuration.request_timeout_ms * MS
        self._deadline_ns = scheduler.now_ns + timeout_ns
        if not self._watching:
            self._watching = True
            scheduler.after(follower, timeout_ns, self._watch, None)

    def _watch(self, _: None) -> None:
        """Give up on an answer that does not come; the connection is closed then, so it never will."""
        scheduler = self._scheduler
        if self._asking is None:
            self._watching = False
        elif scheduler.now_ns < self._deadline_ns:
            scheduler.after(self._follower, self._deadline_ns - scheduler.now_ns, self._watch, None)
        else:
            self._watching = False
            self._asking.closed = True
            self._asking = None
            self._back_off()

    def _back_off(self) -> None:
        if not self._backing_off:
            self._backing_off = True
            wait_ns = self._configuration.replica_fetch_backoff_ms * MS
            self._scheduler.after(self._follower, wait_ns, self._resume, None)

    def _resume(self, _: None) -> None:
        self._backing_off = False
        self.poke()

    def _fetch_answered(self, answer: tuple[Asked, AnswerFetch, list[Batch]]) -> None:
        """A leader's answer arrives; if the leader is not ours any more the core must see that for itself."""
        asked, result, batches = answer
        if not self._hears(asked):
            return
        follower, wanted = self._follower, asked.wanted
        replica = follower.replica
        assert replica is not None
        event = FetchAnswered(
            wanted.leader, wanted.leader_epoch, wanted.fetch_offset,
            result.error, result.high_watermark, result.log_start_offset, result.log_end_offset, result.diverging,
            tuple([batch.span for batch in batches]), batches, follower.now_ns,
        )  # fmt: skip
        follower.handle(event)
        if self._asking is not None or self._backing_off or follower.replica is None:
            return
        following = replica.next_request()
        if result.error is not NO_ERROR or (following == wanted and (batches or result.diverging is not None)):
            self._back_off()
        elif following is not None:
            self._ask(following)

    def _hears(self, asked: Asked) -> bool:
        """Whether an answer is waited for: the first one is, unless it comes too late."""
        if asked.closed:
            return False
        asked.closed = True
        if asked is self._asking:
            self._asking = None
        return True

    def _lookup_answered(self, answer: tuple[Asked, ErrorCode, EpochEnd]) -> None:
        """The leader's end of an epoch arrives."""
        asked, error, end = answer
        if not self._hears(asked):
            return
        leader, leader_epoch, requested_epoch = asked.wanted
        follower = self._follower
        follower.handle(EpochEndAnswered(leader, leader_epoch, requested_epoch, error, end, follower.now_ns))
        if error is not NO_ERROR:
            self._back_off()
        else:
            self.poke()
