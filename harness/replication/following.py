"""The follower's part of a replica: what it fetches, where it truncates, and what it cannot append.

Follows Kafka's ``AbstractFetcherThread`` and ``ReplicaFetcherThread`` where the knobs do not say otherwise. Methods
return decisions; none of them touches storage.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

from harness.error_codes import NO_ERROR, ErrorCode
from harness.model import NO_EPOCH, NO_LEADER, NO_OFFSET, NodeId, Offset
from harness.replication.knobs import Knobs
from harness.replication.log_state import LogState
from harness.replication.messages import (
    BatchSpan,
    EpochEnd,
    EpochEndAnswered,
    FetchAnswered,
    NextEpochLookup,
    NextFetch,
)

Phase: TypeAlias = Literal["looking_up", "awaiting_first_answer", "fetching"]
"""The state of a follower towards its leader.

``looking_up``: it asks where its epochs end in the leader's log before it fetches (Kafka: Truncating).
``awaiting_first_answer``: it fetches, and the first answer determines where to truncate.
"""


class Cut(NamedTuple):
    """Cut the log to ``to_offset``, which may be beyond its end."""

    to_offset: Offset
    reason: str


class StartOver(NamedTuple):
    """Empty the log, and begin at ``offset``."""

    offset: Offset
    reason: str


class Exit(NamedTuple):
    """Shut the broker down."""

    reason: str


Decision: TypeAlias = Cut | StartOver | Exit


class Following:
    """One replica as a follower, of one leader after the other.

    Args:
        log: its log; shared with the replica.
        knobs: the protocol generation.
        unclean_leader_election_enable: ``unclean.leader.election.enable``.

    Attributes:
        phase: its state towards the present leader.
        unclean_leader_election_enable: as above; it may change.
    """

    def __init__(self, log: LogState, knobs: Knobs, *, unclean_leader_election_enable: bool) -> None:
        self.phase: Phase = "fetching"
        self._leader = NO_LEADER
        self._leader_epoch = NO_EPOCH
        self._log = log
        self._knobs = knobs
        self.unclean_leader_election_enable = unclean_leader_election_enable
        self._looks_up = knobs.truncation in ("epoch_offset", "epoch_pair")
        self._carries_last_epoch = knobs.truncation == "diverging_fetch"
        self._carries_watermark = knobs.hw_advance == "after_followers"
        self._fallback: Offset = 0

    # --------------------------------------------------------------------------------------------- the leader

    def led(self, node: NodeId, leader_epoch: int) -> None:
        """The replica leads itself."""
        self._leader, self._leader_epoch = node, leader_epoch

    def follow(self, leader: NodeId, leader_epoch: int) -> Decision | None:
        """Follow ``leader``, as before or anew; returns what to truncate at once.

        An epoch without a leader counts as missed (``ReplicaManager.makeFollowers``).
        """
        if leader == NO_LEADER:
            return None
        same_leader, epochs_passed = leader == self._leader, leader_epoch - self._leader_epoch
        self._leader, self._leader_epoch = leader, leader_epoch
        if same_leader and not self._looks_again_after(epochs_passed):
            return None
        return self._begin()

    def _looks_again_after(self, epochs_passed: int) -> bool:
        """Whether the follower must ask a leader that stayed the same again where the logs diverge."""
        if self._knobs.truncate_when == "leader_id_changed":
            return False
        return epochs_passed >= (2 if self._knobs.truncate_when == "epoch_gap" else 1)

    # ---------------------------------------------------------------------------------------------- what to ask

    def next_request(self) -> NextFetch | NextEpochLookup:
        """The next request: where the latest epoch ends in the leader's log, or a fetch."""
        log, knobs = self._log, self._knobs
        if self.phase == "looking_up":
            carried = self._leader_epoch if knobs.lookup_fencing else NO_EPOCH
            return NextEpochLookup(self._leader, carried, log.epochs.latest)
        return NextFetch(
            self._leader,
            self._leader_epoch if knobs.fetch_fencing else NO_EPOCH,
            log.log_end_offset,
            log.epochs.latest if self._carries_last_epoch else NO_EPOCH,
            log.high_watermark if self._carries_watermark else NO_OFFSET,
        )

    def awaits_fetch(self, answer: FetchAnswered) -> bool:
        """Whether ``answer`` is one to :meth:`next_request` (KAFKA-13207)."""
        if self.phase == "looking_up" or answer.fetch_offset != self._log.log_end_offset:
            return False
        if "stale_fetch_applied" in self._knobs.bugs:
            return True
        return answer.leader == self._leader and self._is_current(answer.leader_epoch, self._knobs.fetch_fencing)

    def awaits_lookup(self, answer: EpochEndAnswered) -> bool:
        """Whether ``answer`` is one to :meth:`next_request`."""
        if self.phase != "looking_up" or answer.requested_epoch != self._log.epochs.latest:
            return False
        return answer.leader == self._leader and self._is_current(answer.leader_epoch, self._knobs.lookup_fencing)

    def _is_current(self, carried: int, fenced: bool) -> bool:
        return carried == self._leader_epoch or (carried == NO_EPOCH and not fenced)

    def watermark(self, leader_watermark: Offset) -> Offset:
        """The follower's high watermark for the leader's in an answer."""
        if "watermark_min_max_swapped" in self._knobs.bugs:
            return self._log.log_end_offset
        if "follower_watermark_falls" in self._knobs.bugs and leader_watermark < self._log.log_end_offset:
            return self._log.log_start_offset
        return self._log.high_watermark if self._knobs.follower_hw_rule == "own" else leader_watermark

    # --------------------------------------------------------------------------------------------- where to cut

    def _begin(self) -> Decision | None:
        """Begin with a new leader; truncates at once what does not depend on its answers."""
        self._fallback = self._log.high_watermark
        if self._knobs.truncation == "hw":
            self.phase = "fetching"
            return Cut(self._log.high_watermark, "high_watermark")
        if self._knobs.truncation in ("leader_hw", "hw_after_first_fetch"):
            self.phase = "awaiting_first_answer"
            return None
        self.phase = "looking_up" if self._looks_up else "fetching"
        return self.without_epochs()

    def without_epochs(self) -> Decision | None:
        """A log without epochs is truncated to the high watermark."""
        compares = self._carries_last_epoch or self.phase == "looking_up"
        if not compares or self._log.epochs.latest != NO_EPOCH:
            return None
        self.phase = "fetching"
        watermark = self._log.high_watermark
        return Cut(watermark, "high_watermark") if watermark < self._log.log_end_offset else None

    def lookup_answered(self, answer: EpochEndAnswered) -> Decision:
        """What to truncate by the leader's answer about our latest epoch."""
        cut, agreed = _where_logs_part(answer.end, self._log, self._fallback)
        if agreed:
            self.phase = "fetching"
        self._fallback = cut
        return Cut(cut, "high_watermark" if answer.end.end_offset < 0 else "epoch_end")

    def diverging(self, end: EpochEnd) -> Decision:
        """What to truncate after a diverging fetch; the next fetch shows whether more has to go."""
        return Cut(_where_logs_part(end, self._log, self._log.high_watermark)[0], "diverging_epoch")

    def parted(self, answer: FetchAnswered) -> Decision | None:
        """What to truncate before appending the batches of a good ``answer``; None: nothing."""
        if self._carries_last_epoch and answer.diverging is not None:
            return self.diverging(answer.diverging)
        if self.phase != "awaiting_first_answer":
            return None
        self.phase = "fetching"
        target = answer.high_watermark
        if self._knobs.truncation == "hw_after_first_fetch":
            target = max(target, self._log.high_watermark)
        return Cut(max(target, 0), self._knobs.truncation) if target < self._log.log_end_offset else None

    def refused(self, answer: FetchAnswered) -> Decision | None:
        """What to do with the log after an error of the leader; None: nothing, fetch again.

        Only OFFSET_OUT_OF_RANGE matters for the log, if the driver knows the leader's range.
        """
        leader_end, end = answer.log_end_offset, self._log.log_end_offset
        if answer.error is not ErrorCode.OFFSET_OUT_OF_RANGE or leader_end == NO_OFFSET:
            return None
        self.phase = "fetching"
        if leader_end < end:
            return self._outlived(leader_end)
        start = answer.log_start_offset
        if start > end or (self._knobs.out_of_range == "wipe" and start != NO_OFFSET):
            return StartOver(start, "out_of_range")
        return None

    def obeyed_anyway(self, answer: FetchAnswered) -> Decision | None:
        """What to truncate after an outdated answer: nothing, but with the bug KAFKA-13207."""
        if not self._knobs.stale_truncation_applied or answer.error is not NO_ERROR or answer.diverging is None:
            return None
        return self.diverging(answer.diverging)

    def misfit(self, spans: tuple[BatchSpan, ...]) -> Decision | None:
        """What to do with batches that do not continue the log; None: nothing, fetch again.

        After DeleteRecords a leader's log may start within a batch. An empty log then starts where the batch does
        (``Partition.doAppendRecordsToFollowerOrFutureReplica``). Another log that ends within that batch has a
        different batch there, and can continue only if it truncates that one.
        """
        end = self._log.log_end_offset
        first = spans[0]
        if not 0 <= first.base_offset < end < first.end_offset:
            return None
        if self._log.log_start_offset == end:
            return StartOver(first.base_offset, "first_batch")
        return Cut(first.base_offset, "straddled_batch") if self._knobs.straddled_batch == "cut" else None

    def _outlived(self, leader_end: Offset) -> Decision:
        """Our log is the longer one."""
        if self._knobs.out_of_range == "lenient" or self.unclean_leader_election_enable:
            return Cut(leader_end, "out_of_range")
        end = self._log.log_end_offset
        return Exit(f"log truncation from {end} to the leader's {leader_end} is not allowed")


def _where_logs_part(end: EpochEnd, log: LogState, fallback: Offset) -> tuple[Offset, bool]:
    """Where to truncate, given the leader's largest epoch not above ours and its end; and whether that is final.

    If we have that epoch too, the logs diverge at the earlier of its two ends. Otherwise truncate to the end of our
    largest epoch below it, and ask about that one next (KIP-279, ``AbstractFetcherThread.getOffsetTruncationState``).
    An answer without an epoch (KIP-101) is final. If the leader does not know the epoch, the ``fallback`` applies: our
    high watermark, or the offset of an earlier truncation.
    """
    if end.end_offset < 0:
        return fallback, True
    if end.leader_epoch == NO_EPOCH:
        return end.end_offset, True
    ours = log.epochs.end_offset_for(end.leader_epoch, log.log_end_offset)
    if ours.leader_epoch == NO_EPOCH:
        return end.end_offset, True
    if ours.leader_epoch != end.leader_epoch:
        return ours.end_offset, False
    return min(ours.end_offset, end.end_offset), True


def unappendable(spans: tuple[BatchSpan, ...], log_end_offset: Offset) -> bool:
    """Whether the batches ``spans`` do not continue a log that ends at ``log_end_offset`` (gaps are legal)."""
    end_offset = log_end_offset
    for span in spans:
        if span.base_offset < end_offset or span.end_offset <= span.base_offset:
            return True
        end_offset = span.end_offset
    return False
