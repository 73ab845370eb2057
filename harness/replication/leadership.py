"""The leader's part of a replica: remote log end offsets, the high watermark, waiting produce requests, the ISR.

Follows Kafka's ``Partition`` (3.9) where the knobs do not say otherwise. Methods return effects in order; none of
them touches storage.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import NamedTuple

from harness.error_codes import NO_ERROR, ErrorCode
from harness.model import NO_EPOCH, NO_OFFSET, NodeId, Offset
from harness.replication.deletions import Deletions
from harness.replication.isr import FollowerProgress, InSyncReplicas, are_distinct
from harness.replication.knobs import Knobs
from harness.replication.log_state import LogState
from harness.replication.messages import (
    AnswerFetch,
    AnswerProduce,
    BatchSpan,
    EpochEnd,
    FetchReceived,
    HighWatermarkAdvanced,
    IsrAnswered,
    ProduceRequested,
    ProducerStamp,
    ProposeIsr,
    ReplicaEffect,
)
from harness.replication.producers import StoredBatch

ACKS_ALL = -1

_TICK_NS = 1_000_000
_ONE_IN = 16
"""A leader with the bug of acknowledging without appending, or of refusing sound batches, has it in every 16th ms."""


class WaitingProduce(NamedTuple):
    """A produce with acks=all whose records are in the leader's log.

    ``required_offset`` is exclusive: the high watermark that acknowledges it.
    """

    token: object
    base_offset: Offset
    required_offset: Offset


class Leadership:
    """One replica's leadership, over consecutive leader epochs.

    Args:
        node: the leader itself.
        log: its log; shared with the replica.
        isr: the ISR; shared with the replica.
        kept: what outlives a leadership, shared with the replica: the live brokers with their broker epochs, as last
            heard; and the deletions that wait for followers.
        knobs: the protocol generation.
        min_insync_replicas: ``min.insync.replicas`` as configured.
        lag_ns: ``replica.lag.time.max.ms`` in nanoseconds.

    Attributes:
        effective_min_isr: ``min.insync.replicas``, which cannot exceed the replication factor from Kafka 3.7 on
            (KAFKA-15583).
    """

    def __init__(
        self,
        node: NodeId,
        log: LogState,
        isr: InSyncReplicas,
        kept: tuple[Mapping[NodeId, int], Deletions],
        knobs: Knobs,
        *,
        min_insync_replicas: int,
        lag_ns: int,
    ) -> None:
        self._node = node
        self._log = log
        self._isr = isr
        self._sessions, self._deletions = kept
        self._knobs = knobs
        self._min_insync_replicas = 1 if "min_isr_unchecked" in knobs.bugs else min_insync_replicas
        self.effective_min_isr = self._min_insync_replicas
        self._lag_ns = lag_ns
        self._replicas: tuple[NodeId, ...] = ()
        self._followers: dict[NodeId, FollowerProgress] = {}
        self._leader_epoch = NO_EPOCH
        self._epoch_start: Offset = 0
        self._promised: Offset = 0
        self._waiting: deque[WaitingProduce] = deque()
        self._ineligible: tuple[NodeId, ...] = ()
        self._end_unseen = False
        self._knows_sessions = knobs.newcomers == "eligible"
        self._waits_for_newcomers = knobs.hw_waits_for == "isr_and_caught_up"
        self._synchronous = knobs.isr_update == "synchronous"
        self._freezes = knobs.hw_below_min_isr == "freeze"
        self._never_rises = knobs.hw_rule == "min_of_all"
        self._follows_followers = knobs.hw_advance == "after_followers"
        self._forgets = knobs.reelected_leader == "forgets"
        self._answers_afterwards = knobs.hw_in_fetch_response == "post_update"
        self._drops = "acks_1_not_appended" in knobs.bugs
        self._refuses = "sound_batch_refused" in knobs.bugs
        self._takes_all = "min_isr_unchecked_at_append" in knobs.bugs
        self._ignores_sequences = "sequence_unchecked" in knobs.bugs
        self._expects_again = "sequence_expected_again" in knobs.bugs
        self._forgives = {ErrorCode.INVALID_PRODUCER_EPOCH} if "producer_epochs_unfenced" in knobs.bugs else ()
        self._miscounts = not {"silent_followers_count", "watermark_ignores_the_slowest"}.isdisjoint(knobs.bugs)

    # ------------------------------------------------------------------------------------------------- the epoch

    def enter(self, leader_epoch: int, replicas: tuple[NodeId, ...], now_ns: int) -> None:
        """Apply the controller's state, which the ISR already has.

        Only a new epoch resets when a follower was caught up (``Partition.makeLeader``). In a missed epoch another
        broker may have led, and the followers may have truncated what they had fetched from this leader.
        """
        self._replicas = replicas
        if self._forgets and leader_epoch > self._leader_epoch + 1:
            self._followers.clear()
        self.effective_min_isr = self._effective(self._min_insync_replicas)
        self._followers = {
            node: self._followers.get(node, FollowerProgress()) for node in replicas if node != self._node
        }
        if leader_epoch <= self._leader_epoch:
            return
        was_leader = self._leader_epoch != NO_EPOCH
        self._leader_epoch, self._epoch_start = leader_epoch, self._log.log_end_offset
        if "commits_all_when_elected" in self._knobs.bugs:
            self._log.move_high_watermark(self._epoch_start)
        for node, progress in self._followers.items():
            in_sync = node in self._isr.members
            counts = in_sync or (was_leader and not self._knows_sessions)
            progress.led_anew(self._epoch_start, now_ns, in_sync=in_sync, counts=counts)

    def require(self, min_insync_replicas: int, now_ns: int) -> list[ReplicaEffect]:
        """Obey another ``min.insync.replicas``: with a lower one, the watermark may rise."""
        self._min_insync_replicas = 1 if "min_isr_unchecked" in self._knobs.bugs else min_insync_replicas
        self.effective_min_isr = self._effective(self._min_insync_replicas)
        return self.advance(now_ns)

    def _effective(self, min_insync_replicas: int) -> int:
        return min(min_insync_replicas, len(self._replicas)) if self._freezes else min_insync_replicas

    @property
    def remote_log_end_offsets(self) -> dict[NodeId, Offset]:
        """Each follower's last fetch offset, ``NO_OFFSET`` before its first fetch of this leadership."""
        return {node: progress.log_end_offset for node, progress in self._followers.items()}

    @property
    def low_watermark(self) -> Offset:
        """The least log start offset: its own, or that of a follower with a session (KIP-107)."""
        if self._knobs.deletion_answered == "at_once":
            return self._log.log_start_offset
        starts = [one.log_start_offset for node, one in self._followers.items() if node in self._sessions]
        return min([self._log.log_start_offset, *starts])

    def deleted(self, token: object, before_offset: Offset) -> list[ReplicaEffect]:
        """The log starts at ``before_offset`` or later: answer the client, or let it wait for the followers."""
        if "deletion_unanswered" in self._knobs.bugs:
            return []
        return self._deletions.done(token, before_offset, self.low_watermark)

    def knows_latest(self) -> bool:
        """Whether the high watermark has reached the start of this leader's epoch, so that consumers may get it.

        Before, it may be lower than one that an earlier leader had returned (KIP-207). Generations without fencing
        do not check.
        """
        return not self._knobs.fetch_fencing or self._log.high_watermark >= self._epoch_start

    # --------------------------------------------------------------------------------------------------- produce

    def refusal(self, request: ProduceRequested) -> ErrorCode:
        """Why the request must not be appended; ``NONE`` when it may, or need not be."""
        counts, producer = request.record_counts, request.producer
        if not counts or min(counts) < 1 or (self._refuses and self._is_time(request.now_ns)):
            return ErrorCode.INVALID_REQUEST
        if producer is not None and (len(counts) > 1 or not producer.is_whole):
            return ErrorCode.INVALID_REQUEST
        if request.acks not in (ACKS_ALL, 0, 1):
            return ErrorCode.INVALID_REQUIRED_ACKS
        if request.acks == ACKS_ALL and len(self._isr.members) < self.effective_min_isr and not self._takes_all:
            return ErrorCode.NOT_ENOUGH_REPLICAS
        if producer is not None and not self._ignores_sequences and self.stored_before(request) is None:
            if self._expects_again:
                producer = producer._replace(base_sequence=producer.base_sequence + 1)
            error = self._log.producers.error(producer, in_sequence=not request.of_coordinator)
            return NO_ERROR if error in self._forgives else error
        return NO_ERROR

    @staticmethod
    def _is_time(now_ns: int) -> bool:
        """Whether an intermittent bug strikes now."""
        return now_ns // _TICK_NS % _ONE_IN == 0

    def stored_before(self, request: ProduceRequested) -> StoredBatch | None:
        """The stored batch that an idempotent producer sends again."""
        if self._drops and request.acks == 1 and self._is_time(request.now_ns):
            return StoredBatch(0, 0, self._log.log_end_offset, self._log.log_end_offset + sum(request.record_counts))
        if request.producer is None or request.of_coordinator or self._ignores_sequences:
            return None
        return self._log.producers.duplicate(request.producer, request.record_counts[0])

    def lay_out(self, record_counts: tuple[int, ...], producer: ProducerStamp | None) -> tuple[BatchSpan, ...]:
        """The spans of batches of so many records if appended now."""
        spans = []
        base_offset = self._log.log_end_offset
        for count in record_counts:
            epoch = self._leader_epoch - ("stamps_previous_epoch" in self._knobs.bugs)
            spans.append(BatchSpan(base_offset, base_offset + count, max(epoch, 0), producer))
            base_offset += count
        return tuple(spans)

    def stored(
        self, token: object, acks: int, base_offset: Offset, end_offset: Offset, now_ns: int
    ) -> list[ReplicaEffect]:
        """The log holds the request's records, perhaps for long: answer the producer, or let it wait."""
        self._end_unseen = True
        if acks != ACKS_ALL or "ack_on_append" in self._knobs.bugs:
            return [*self.advance(now_ns), AnswerProduce(token, NO_ERROR, base_offset)]
        position = len(self._waiting)
        while position and self._waiting[position - 1].required_offset > end_offset:
            position -= 1
        self._waiting.insert(position, WaitingProduce(token, base_offset, end_offset))
        return self.advance(now_ns)

    def expire(self, token: object) -> list[ReplicaEffect]:
        """The produce request ``token`` has timed out; nothing when it is not waiting."""
        expired = [waiting for waiting in self._waiting if waiting.token == token]
        if not expired:
            return []
        self._waiting = deque(waiting for waiting in self._waiting if waiting.token != token)
        if "timeout_answered_as_ok" in self._knobs.bugs:
            return [AnswerProduce(waiting.token, NO_ERROR, waiting.base_offset) for waiting in expired]
        refuses = "timeout_answered_as_refused" in self._knobs.bugs
        error = ErrorCode.NOT_ENOUGH_REPLICAS if refuses else ErrorCode.REQUEST_TIMED_OUT
        return [AnswerProduce(waiting.token, error, NO_OFFSET) for waiting in expired]

    def fail_waiting(self, error: ErrorCode) -> list[ReplicaEffect]:
        """Answer every waiting produce with ``error``."""
        failed = [AnswerProduce(waiting.token, error, NO_OFFSET) for waiting in self._waiting]
        self._waiting.clear()
        return list(failed)

    # ----------------------------------------------------------------------------------------- the high watermark

    def advance(self, now_ns: int) -> list[ReplicaEffect]:
        """Raise the high watermark as far as possible, and answer the produce requests that waited for it."""
        effects: list[ReplicaEffect] = []
        if not self._frozen():
            target = self._candidate(now_ns)
            if self._follows_followers:
                self._promised = max(self._promised, target)
                target = self._raised_by_followers(target)
            rises = target > self._log.high_watermark or "watermark_falls" in self._knobs.bugs
            if rises and self._log.move_high_watermark(target):
                effects.append(HighWatermarkAdvanced(self._log.high_watermark))
                effects += self._deletions.reached(self.low_watermark) if self._deletions else []
        answers = not ("acks_all_unanswered" in self._knobs.bugs and self._leader_epoch)
        return effects + self._acknowledge() if self._waiting and answers else effects

    def _frozen(self) -> bool:
        if self._never_rises or (self._synchronous and self._isr.proposed is not None):
            return True
        if "frozen_at_min_isr" in self._knobs.bugs and len(self._isr.members) == self.effective_min_isr:
            return True
        return self._freezes and len(self._isr.members) < self.effective_min_isr

    def _candidate(self, now_ns: int) -> Offset:
        """The least log end offset of the leader, the maximal ISR, and followers about to join it."""
        leader_end = self._log.log_end_offset
        maximal = self._isr.maximal
        if self._miscounts:
            return self._miscounted(leader_end)
        least = leader_end
        for node, progress in self._followers.items():
            if progress.log_end_offset < least and (
                node in maximal
                or (
                    self._waits_for_newcomers
                    and progress.was_caught_up(now_ns, self._lag_ns)
                    and self._may_join(node, progress)
                )
            ):
                least = progress.log_end_offset
        return least

    def _may_join(self, node: NodeId, progress: FollowerProgress) -> bool:
        """Whether a follower may join the ISR, as far as is known here (``Partition.isReplicaIsrEligible``).

        A follower without a broker epoch counts as the present incarnation.
        """
        if not self._knows_sessions:
            return True
        epoch = self._sessions.get(node)
        return epoch is not None and progress.log_end_offset != NO_OFFSET and progress.broker_epoch in (-1, epoch)

    def _miscounted(self, leader_end: Offset) -> Offset:
        """The leader's end as leaders with a bug compute it."""
        ends = [one.log_end_offset for node, one in self._followers.items() if node in self._isr.maximal]
        if "silent_followers_count" in self._knobs.bugs:
            return min([leader_end, *(end for end in ends if end != NO_OFFSET)])
        return min(sorted([leader_end, *ends])[1:], default=leader_end)

    def _raised_by_followers(self, target: Offset) -> Offset:
        """The least high watermark in the fetches of the maximal ISR, if below ``target``."""
        members = self._isr.maximal
        return min(
            [target, *(progress.high_watermark for node, progress in self._followers.items() if node in members)]
        )

    def _acknowledge(self) -> list[ReplicaEffect]:
        enough = len(self._isr.maximal) >= self.effective_min_isr
        effects: list[ReplicaEffect] = []
        while self._waiting and self._waiting[0].required_offset <= self._log.high_watermark:
            done = self._waiting.popleft()
            if enough:
                effects.append(AnswerProduce(done.token, NO_ERROR, done.base_offset))
            else:
                effects.append(AnswerProduce(done.token, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, NO_OFFSET))
        return effects

    # ----------------------------------------------------------------------------------------------------- fetch

    def judge(self, fetch: FetchReceived) -> AnswerFetch:
        """The present answer to a follower's fetch, before it counts as progress; changes nothing."""
        if fetch.replica not in self._followers:
            known = fetch.current_leader_epoch != NO_EPOCH
            return self._answer(fetch, ErrorCode.UNKNOWN_LEADER_EPOCH if known else ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if self._is_of_an_earlier_life(fetch):
            return self._answer(fetch, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        diverging, error = self._compare(fetch)
        if error is NO_ERROR and diverging is None and fetch.fetch_offset > self._log.log_end_offset:
            error = ErrorCode.OFFSET_OUT_OF_RANGE
        return self._answer(fetch, error, diverging)

    def _is_of_an_earlier_life(self, fetch: FetchReceived) -> bool:
        """Whether the follower has registered anew since it sent ``fetch``, as far as is known here (KIP-903)."""
        return self._knobs.broker_epoch_check and 0 <= fetch.broker_epoch < self._sessions.get(fetch.replica, -1)

    def _compare(self, fetch: FetchReceived) -> tuple[EpochEnd | None, ErrorCode]:
        if fetch.fetch_offset < self._log.log_start_offset:
            return None, ErrorCode.OFFSET_OUT_OF_RANGE
        if "divergence_unnoticed" in self._knobs.bugs:
            return None, NO_ERROR
        epochs, log_end_offset = self._log.epochs, self._log.log_end_offset
        if fetch.last_fetched_epoch < 0 or (
            fetch.last_fetched_epoch == epochs.latest and fetch.fetch_offset <= log_end_offset
        ):
            return None, NO_ERROR
        end = epochs.end_offset_for(fetch.last_fetched_epoch, log_end_offset)
        if end.leader_epoch == NO_EPOCH or end.end_offset == NO_OFFSET:
            return None, ErrorCode.OFFSET_OUT_OF_RANGE
        diverges = end.leader_epoch < fetch.last_fetched_epoch or end.end_offset < fetch.fetch_offset
        return (end if diverges else None), NO_ERROR

    def _answer(self, fetch: FetchReceived, error: ErrorCode, diverging: EpochEnd | None = None) -> AnswerFetch:
        log = self._log
        watermark = max(self._promised, log.high_watermark) if self._follows_followers else log.high_watermark
        return AnswerFetch(fetch.token, error, watermark, log.log_start_offset, log.log_end_offset, diverging)

    def fetched(self, fetch: FetchReceived) -> list[ReplicaEffect]:
        """Answer a fetch; a good one also acknowledges all records before its offset.

        A fetch that is answered with an error, or with a diverging epoch, is no progress (KAFKA-13141).
        """
        answer = self.judge(fetch)
        if self._is_spuriously_out_of_range(fetch):
            answer = self._answer(fetch, ErrorCode.OFFSET_OUT_OF_RANGE)
        diverges = answer.diverging is not None and not self._knobs.diverging_fetch_is_progress
        if answer.error is not NO_ERROR or diverges:
            return [answer]
        effects = self._progressed(fetch)
        if self._answers_afterwards:
            answer = self._answer(fetch, NO_ERROR, answer.diverging)
        return [answer, *effects]

    def _progressed(self, fetch: FetchReceived) -> list[ReplicaEffect]:
        progress = self._followers[fetch.replica]
        progress.fetched(fetch.fetch_offset, self._log.log_end_offset, fetch.now_ns)
        progress.broker_epoch = fetch.broker_epoch
        progress.high_watermark = fetch.high_watermark
        low_watermark = self.low_watermark if self._deletions else NO_OFFSET
        progress.log_start_offset = fetch.log_start_offset
        followed = self._deletions and self.low_watermark > low_watermark
        effects = self._deletions.reached(self.low_watermark) if followed else []
        return [*self._expand_isr(fetch.replica), *self.advance(fetch.now_ns), *effects]

    def _is_spuriously_out_of_range(self, fetch: FetchReceived) -> bool:
        """Whether this fetch at the log end is refused by the bug KAFKA-2477."""
        overtakes = self._end_unseen and fetch.fetch_offset == self._log.log_end_offset
        self._end_unseen = self._end_unseen and not overtakes
        return overtakes and self._knobs.spurious_out_of_range

    # ------------------------------------------------------------------------------------------------------- ISR

    def tick(self, now_ns: int) -> list[ReplicaEffect]:
        """Repeat an undelivered proposal, or propose an ISR without lagging members."""
        self._ineligible = ()
        if self._isr.proposed is not None and not self._isr.in_flight:
            return [self._propose_again(self._isr.proposed)]
        return [*self._shrink_isr(now_ns), *self.advance(now_ns)]

    def _shrink_isr(self, now_ns: int) -> list[ReplicaEffect]:
        if not self._isr.settled or "isr_never_shrunk" in self._knobs.bugs:
            return []
        members = self._isr.members
        lagging = [
            node
            for node, progress in self._followers.items()
            if node in members and not self._keeps_up(progress, now_ns)
        ]
        kept = tuple(node for node in members if node not in lagging)
        if lagging and "isr_shrunk_alone" in self._knobs.bugs:
            self._isr.commit(kept, self._isr.partition_epoch)
            return []
        return [self._propose(kept)] if lagging else []

    def _keeps_up(self, progress: FollowerProgress, now_ns: int) -> bool:
        """Whether a member of the ISR may stay in it."""
        if self._knobs.in_sync_at_the_end and progress.log_end_offset == self._log.log_end_offset:
            return True
        return progress.was_caught_up(now_ns, self._lag_ns)

    def _expand_isr(self, node: NodeId) -> list[ReplicaEffect]:
        if node in self._isr.members or node in self._ineligible or not self._isr.settled:
            return []
        progress = self._followers[node]
        if not self._may_join(node, progress) or "isr_never_grown" in self._knobs.bugs:
            return []
        reached = progress.log_end_offset
        joined = reached >= self._log.high_watermark
        if self._knobs.isr_join == "hw_and_epoch_start":
            joined = joined and reached >= self._epoch_start
        joined = joined or "isr_joined_early" in self._knobs.bugs
        return [self._propose((*self._isr.members, node))] if joined else []

    def _propose(self, members: tuple[NodeId, ...]) -> ProposeIsr:
        epochs = tuple(self._followers[node].broker_epoch if node in self._followers else -1 for node in members)
        self._isr.propose(members, epochs)
        return ProposeIsr(members, self._leader_epoch, self._isr.partition_epoch, epochs)

    def _propose_again(self, members: tuple[NodeId, ...]) -> ProposeIsr:
        """The same request again, with its broker epochs, so that a member that has restarted since is refused."""
        epochs = self._isr.proposed_epochs
        if self._knobs.empty_isr_retry:
            members, epochs = (), ()
        self._isr.propose(members, epochs)
        return ProposeIsr(members, self._leader_epoch, self._isr.partition_epoch, epochs)

    def isr_answered(self, answer: IsrAnswered, now_ns: int) -> list[ReplicaEffect]:
        """Apply the controller's answer.

        Only ``INELIGIBLE_REPLICA`` means that the proposal was refused; it is not repeated before the next tick.
        After any other error the controller may have adopted it already (the first answer was lost) or have a newer
        state: it stays pending, and is repeated until the controller's state replaces it.
        """
        if answer.error is NO_ERROR:
            current = answer.leader_epoch == self._leader_epoch and answer.partition_epoch >= self._isr.partition_epoch
            if current and self._plausible(answer.isr):
                self._isr.commit(answer.isr, answer.partition_epoch)
        elif answer.error is ErrorCode.INELIGIBLE_REPLICA:
            self._ineligible = self._isr.proposed or ()
            self._isr.withdraw()
        return self.advance(now_ns)

    def _plausible(self, isr: tuple[NodeId, ...]) -> bool:
        if not isr:
            return self._knobs.empty_isr_retry
        return self._node in isr and are_distinct(isr, self._replicas)
