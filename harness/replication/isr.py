"""The ISR as the leader sees it: the followers' progress, and the pending proposal to the controller.

Follows Kafka's ``Replica.updateFetchState`` and ``PartitionState`` (KIP-497's maximal ISR).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from harness.model import NO_OFFSET, NodeId, Offset


@dataclass(slots=True)
class FollowerProgress:
    """What a leader knows of one follower by that follower's fetches.

    Attributes:
        log_end_offset: the offset of its last fetch; ``NO_OFFSET`` before the first.
        last_fetch_ns: when that was.
        leader_end_at_last_fetch: the leader's log end offset then; ``NO_OFFSET``: unknown.
        last_caught_up_ns: the latest time at which it is known to have had the whole log; None: not in this epoch.
            Like Kafka's ``lastCaughtUpTimeMs`` it never goes back, although the wall clock may.
        broker_epoch: in its fetch; -1: none.
        high_watermark: its own, in its fetch; ``NO_OFFSET``: none.
        log_start_offset: in its fetch; ``NO_OFFSET``: none.
    """

    log_end_offset: Offset = NO_OFFSET
    last_fetch_ns: int = 0
    leader_end_at_last_fetch: Offset = NO_OFFSET
    last_caught_up_ns: int | None = None
    broker_epoch: int = -1
    high_watermark: Offset = NO_OFFSET
    log_start_offset: Offset = NO_OFFSET

    def fetched(self, fetch_offset: Offset, leader_end: Offset, now_ns: int) -> None:
        """Take in a fetch. Reaching the leader's end of the *previous* fetch means: caught up at that time."""
        if fetch_offset >= leader_end:
            self._caught_up_at(now_ns)
        elif self.leader_end_at_last_fetch != NO_OFFSET and fetch_offset >= self.leader_end_at_last_fetch:
            self._caught_up_at(self.last_fetch_ns)
        self.log_end_offset = fetch_offset
        self.last_fetch_ns = now_ns
        self.leader_end_at_last_fetch = max(leader_end, self.leader_end_at_last_fetch)

    def led_anew(self, epoch_start: Offset, now_ns: int, *, in_sync: bool, counts: bool) -> None:
        """A leader epoch begins at ``epoch_start``: ISR members count as caught up now, other replicas as never.

        ``counts``: whether a fetch from there on means that it was caught up now. (``Replica.resetReplicaState``)
        """
        self.last_caught_up_ns = now_ns if in_sync else None
        self.last_fetch_ns = now_ns
        self.leader_end_at_last_fetch = epoch_start if counts else NO_OFFSET

    def _caught_up_at(self, time_ns: int) -> None:
        if self.last_caught_up_ns is None or self.last_caught_up_ns < time_ns:
            self.last_caught_up_ns = time_ns

    def was_caught_up(self, now_ns: int, lag_ns: int) -> bool:
        """Whether it had the whole log no longer than ``lag_ns`` ago."""
        return self.last_caught_up_ns is not None and now_ns - self.last_caught_up_ns <= lag_ns


class InSyncReplicas:
    """The controller's ISR as known here, and the one proposed to it, if any.

    Args:
        update: the knob ``isr_update``: ``naive`` ignores the proposal.

    Attributes:
        members: the committed ISR.
        maximal: all replicas that may be in the controller's ISR, for which the high watermark waits.
        partition_epoch: the version of ``members``.
        proposed: an ISR that the controller may or may not have adopted; None: nothing is pending.
        proposed_epochs: the broker epochs of its members when it was first proposed.
        in_flight: whether a proposal has not been answered yet. Survives a change of leadership, so that an
            answer is never taken for that of a later proposal.
    """

    __slots__ = ("_naive", "in_flight", "maximal", "members", "partition_epoch", "proposed", "proposed_epochs")

    def __init__(self, update: Literal["synchronous", "maximal", "naive"] = "maximal") -> None:
        self._naive = update == "naive"
        self.members: tuple[NodeId, ...] = ()
        self.maximal: tuple[NodeId, ...] = ()
        self.partition_epoch = -1
        self.proposed: tuple[NodeId, ...] | None = None
        self.proposed_epochs: tuple[int, ...] = ()
        self.in_flight = False

    @property
    def settled(self) -> bool:
        """Whether nothing is pending, so that a change may be proposed."""
        return self.proposed is None and not self.in_flight

    def commit(self, members: Iterable[NodeId], partition_epoch: int) -> None:
        """The controller's ISR, which replaces a pending proposal."""
        self.members = tuple(members)
        self.partition_epoch = partition_epoch
        self.withdraw()

    def withdraw(self) -> None:
        """The controller has refused the proposal."""
        self.proposed = None
        self.maximal = self.members

    def propose(self, members: tuple[NodeId, ...], broker_epochs: tuple[int, ...]) -> None:
        """A proposal is sent."""
        assert not self.in_flight
        self.proposed, self.proposed_epochs = members, broker_epochs
        self.in_flight = True
        if not self._naive:
            self.maximal = self.members + tuple(node for node in members if node not in self.members)


def laggards_leave_ms(lag_ms: int, request_ms: int) -> int:
    """After how many milliseconds a healthy leader has removed a lagging follower, even if a few requests were lost.

    Args:
        lag_ms: ``replica.lag.time.max.ms``; the leader checks at least twice in that time.
        request_ms: how long it waits for the controller's answer before it repeats the request.
    """
    return 4 * (lag_ms + request_ms)


def are_distinct(isr: tuple[NodeId, ...], replicas: tuple[NodeId, ...]) -> bool:
    """Whether ``isr`` names some of the ``replicas``, none of them twice, nor does ``replicas``."""
    members, all_replicas = set(isr), set(replicas)
    return len(members) == len(isr) and len(all_replicas) == len(replicas) and members <= all_replicas
