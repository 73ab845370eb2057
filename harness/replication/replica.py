"""One replica of one partition: Kafka's replication as ``handle(event) -> effects``, without any I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, assert_never

from harness.model import NO_EPOCH, NO_LEADER, NO_OFFSET, NodeId, Offset, TopicPartition
from harness.replication.epochs import UNDEFINED
from harness.replication.following import next_fetch, truncation_target, unappendable
from harness.replication.isr import InSyncReplicas
from harness.replication.knobs import Knobs
from harness.replication.leadership import Leadership
from harness.replication.log_state import LogState
from harness.replication.messages import (
    AnswerFetch,
    AnswerProduce,
    Append,
    Appended,
    AppendFailed,
    BatchSpan,
    CheckpointEpochs,
    EpochEnd,
    EpochEntry,
    ErrorCode,
    FetchAnswered,
    FetchReceived,
    HighWatermarkAdvanced,
    IsrAnswered,
    NextEpochLookup,
    NextFetch,
    PartitionStateChanged,
    ProduceExpired,
    ProduceRequested,
    ReplicaEffect,
    ReplicaEvent,
    ReplicaFailed,
    Tick,
    Truncate,
    Truncated,
)
from harness.replication.producers import StoredBatch

Role = Literal["leader", "follower", "offline"]


@dataclass(frozen=True, slots=True)
class _Producing:
    """Storage is appending a produce request."""

    token: object
    acks: int
    spans: tuple[BatchSpan, ...]


@dataclass(frozen=True, slots=True)
class _Replicating:
    """Storage is appending fetched batches; then the leader's watermark applies."""

    spans: tuple[BatchSpan, ...]
    high_watermark: Offset


@dataclass(frozen=True, slots=True)
class _Truncating:
    """Storage is truncating."""


class Replica:
    """A replica, from its log as found on disk to leader or follower by the controller's word.

    Args:
        node: the broker it lives on.
        partition: for messages only.
        knobs: the protocol generation.
        min_insync_replicas: ``min.insync.replicas``.
        replica_lag_time_max_ms: ``replica.lag.time.max.ms``.
        log_start_offset: the first offset in the log.
        log_end_offset: exclusive.
        epoch_entries: the leader epochs of the log, oldest first.
        high_watermark: as checkpointed; 0 when it never was.
        producer_batches: the batches of idempotent producers in the log, oldest first.
        unclean_leader_election_enable: ``unclean.leader.election.enable``.

    Attributes:
        leader: as the controller said last; ``NO_LEADER`` before.
        leader_epoch: likewise; ``NO_EPOCH`` before.
        replicas: all replicas of the partition, in order of preference.
    """

    def __init__(
        self,
        node: NodeId,
        partition: TopicPartition,
        knobs: Knobs,
        *,
        min_insync_replicas: int,
        replica_lag_time_max_ms: int,
        log_start_offset: Offset,
        log_end_offset: Offset,
        epoch_entries: Iterable[EpochEntry],
        high_watermark: Offset,
        producer_batches: Iterable[BatchSpan] = (),
        unclean_leader_election_enable: bool = False,
    ) -> None:
        self.node = node
        self.partition = partition
        self.leader: NodeId = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.replicas: tuple[NodeId, ...] = ()
        self._knobs = knobs
        self._min_insync_replicas = min_insync_replicas
        self._unclean_leader_election_enable = unclean_leader_election_enable
        self._lag_ns = replica_lag_time_max_ms * 1_000_000
        self._log = LogState(log_start_offset, log_end_offset, high_watermark, epoch_entries, producer_batches)
        self._isr = InSyncReplicas()
        self._leadership: Leadership | None = None
        self._storage: _Producing | _Replicating | _Truncating | None = None
        self._last_followed: NodeId = NO_LEADER
        self._failed = False
        self._now_ns = 0
        self._led_watermark = (NO_EPOCH, NO_OFFSET)

    # ------------------------------------------------------------------------------------------- what it looks like

    @property
    def role(self) -> Role:
        """``follower`` also before the controller's first word, and while there is no leader."""
        if self._failed:
            return "offline"
        return "leader" if self._leadership else "follower"

    @property
    def isr(self) -> tuple[NodeId, ...]:
        """The in-sync set that the controller is known to have."""
        return self._isr.members

    @property
    def partition_epoch(self) -> int:
        """The version of :attr:`isr`; -1 before the controller's first word."""
        return self._isr.partition_epoch

    @property
    def high_watermark(self) -> Offset:
        """Exclusive."""
        return self._log.high_watermark

    @property
    def log_end_offset(self) -> Offset:
        """Exclusive."""
        return self._log.log_end_offset

    @property
    def log_start_offset(self) -> Offset:
        """The first offset still held."""
        return self._log.log_start_offset

    @property
    def epoch_entries(self) -> tuple[EpochEntry, ...]:
        """The leader epoch cache, oldest first."""
        return self._log.epochs.entries

    @property
    def remote_log_end_offsets(self) -> dict[NodeId, Offset]:
        """What a leader knows of its followers' ends; ``NO_OFFSET``: nothing yet. Empty on followers."""
        return self._leadership.remote_log_end_offsets if self._leadership else {}

    def next_request(self) -> NextFetch | NextEpochLookup | None:
        """What the fetcher must ask for now; None: there is nobody to ask."""
        return self.next_fetch()

    def judge_lookup(self, current_leader_epoch: int, requested_epoch: int) -> tuple[ErrorCode, EpochEnd]:
        """The answer to OffsetForLeaderEpoch: where ``requested_epoch`` ends in this leader's log."""
        error = self.leader_error(current_leader_epoch)
        return error, self.end_offset_for(requested_epoch) if error is ErrorCode.NONE else UNDEFINED

    def next_fetch(self) -> NextFetch | None:
        """What the fetcher must ask for now; None: there is nobody to fetch from."""
        if self._failed or self._leadership or self.leader == NO_LEADER:
            return None
        return next_fetch(self.leader, self.leader_epoch, self._log, self._knobs)

    def read_bound(self, replica: NodeId | None) -> Offset:
        """Up to where (exclusive) a fetch may read: a consumer (None) to the watermark, a replica to the end."""
        return self._log.high_watermark if replica is None else self._log.log_end_offset

    def leader_error(self, current_leader_epoch: int) -> ErrorCode:
        """Why a request to the leader that carries ``current_leader_epoch`` (or ``NO_EPOCH``) is refused.

        For everything that is not a follower's fetch: consumers' fetches, ListOffsets, OffsetForLeaderEpoch.
        """
        if self._failed:
            return ErrorCode.KAFKA_STORAGE_ERROR
        # A client told no epochs may send 0 to have its knowledge checked; a protocol without fencing checks nothing.
        fenced = self._fence(current_leader_epoch if self._knobs.fetch_fencing else NO_EPOCH)
        if fenced is not ErrorCode.NONE or self._leadership:
            return fenced
        return ErrorCode.NOT_LEADER_OR_FOLLOWER

    def end_offset_for(self, leader_epoch: int) -> EpochEnd:
        """The answer to OffsetForLeaderEpoch; see :meth:`LeaderEpochCache.end_offset_for`."""
        return self._log.epochs.end_offset_for(leader_epoch, self._log.log_end_offset)

    def knows_latest(self) -> bool:
        """Whether the watermark has reached the start of this leader's epoch, so that consumers may be told it.

        Before, it may be lower than what an earlier leader had told them (KIP-207). Generations without fencing do
        not know better.
        """
        if self._leadership is None or not self._knobs.fetch_fencing:
            return True
        return self.high_watermark >= self._leadership.epoch_start

    def judge_fetch(self, fetch: FetchReceived) -> AnswerFetch:
        """What a follower's fetch would be answered now; changes nothing.

        For completing a parked fetch, which Kafka reads again without counting it as progress again.
        """
        error = self.leader_error(fetch.current_leader_epoch)
        if error is ErrorCode.NONE and self._leadership:
            return self._leadership.judge(fetch)
        log = self._log
        return AnswerFetch(fetch.token, error, log.high_watermark, log.log_start_offset, log.log_end_offset, None)

    # ---------------------------------------------------------------------------------------------------- handling

    def handle(self, event: ReplicaEvent) -> list[ReplicaEffect]:
        """Take in one event; the effects must be performed in order, before the next event."""
        answers_storage = isinstance(event, Appended | AppendFailed | Truncated)
        assert answers_storage or self._storage is None, f"{self.partition}: {event} before storage answered"
        if not isinstance(event, AppendFailed | IsrAnswered | ProduceExpired | Truncated):
            self._now_ns = event.now_ns
        effects = self._dispatch(event)
        self._check_invariants()
        return effects

    def _dispatch(self, event: ReplicaEvent) -> list[ReplicaEffect]:  # noqa: C901, PLR0911 (one case per event)
        match event:
            case PartitionStateChanged():
                return self._partition_state_changed(event)
            case ProduceRequested():
                return self._produce_requested(event)
            case ProduceExpired(token):
                return self._leadership.expire(token) if self._leadership else []
            case FetchReceived():
                return self._fetch_received(event)
            case FetchAnswered():
                return self._fetch_answered(event)
            case Appended():
                return self._appended()
            case AppendFailed(errno):
                return self._append_failed(errno)
            case Truncated():
                return self._truncated(event)
            case IsrAnswered():
                self._isr.in_flight = False
                return self._leadership.isr_answered(event, self._now_ns) if self._leadership else []
            case Tick(now_ns):
                return self._leadership.tick(now_ns) if self._leadership else []
            case _:
                assert_never(event)

    def _check_invariants(self) -> None:
        log = self._log
        assert log.log_start_offset <= log.high_watermark <= log.log_end_offset, f"{self.partition}: watermark"
        if self._leadership is None:
            return
        assert self.leader == self.node, f"{self.partition}: leads, but the leader is {self.leader}"
        assert self.node in self._isr.members, f"{self.partition}: leads outside its ISR {self._isr.members}"
        epoch, watermark = self._led_watermark
        assert epoch != self.leader_epoch or watermark <= log.high_watermark, f"{self.partition}: watermark fell"
        self._led_watermark = (self.leader_epoch, log.high_watermark)

    # --------------------------------------------------------------------------------------------- controller's word

    def _partition_state_changed(self, state: PartitionStateChanged) -> list[ReplicaEffect]:
        if self._failed or not self._acceptable(state):
            return []
        new_epoch = state.leader_epoch > self.leader_epoch
        self.leader, self.leader_epoch, self.replicas = state.leader, state.leader_epoch, state.replicas
        self._isr.commit(state.isr, state.partition_epoch)
        return self._lead(state, new_epoch=new_epoch) if state.leader == self.node else self._follow(state.leader)

    def _acceptable(self, state: PartitionStateChanged) -> bool:
        """Whether ``state`` is news, and makes sense."""
        if state.leader_epoch < max(self.leader_epoch, 0) or state.partition_epoch < max(self.partition_epoch, 0):
            return False
        if state.leader_epoch == self.leader_epoch and (
            state.leader != self.leader or state.partition_epoch == self.partition_epoch
        ):
            return False
        distinct = len(set(state.isr)) == len(state.isr) and len(set(state.replicas)) == len(state.replicas)
        may_lead = state.leader != self.node or self.node in state.isr
        return distinct and may_lead and set(state.isr) <= set(state.replicas)

    def _lead(self, state: PartitionStateChanged, *, new_epoch: bool) -> list[ReplicaEffect]:
        effects: list[ReplicaEffect] = []
        if self._leadership is None:
            self._leadership = Leadership(
                self.node,
                self._log,
                self._isr,
                self._knobs,
                min_insync_replicas=self._min_insync_replicas,
                lag_ns=self._lag_ns,
            )
        self._last_followed = self.node
        self._leadership.enter(state.leader_epoch, state.replicas, state.now_ns)
        if new_epoch and self._knobs.epoch_entry == "on_election":
            effects += self._checkpoint_if(self._log.epochs.assign(state.leader_epoch, self.log_end_offset))
        return effects + self._leadership.advance(self._now_ns)

    def _follow(self, leader: NodeId) -> list[ReplicaEffect]:
        effects = self._leadership.fail_waiting(ErrorCode.NOT_LEADER_OR_FOLLOWER) if self._leadership else []
        self._leadership = None
        if leader in (NO_LEADER, self._last_followed):
            return effects
        self._last_followed = leader
        if self._knobs.truncation == "hw":
            effects += self._truncate(self.high_watermark, "high_watermark")
        return effects

    # ------------------------------------------------------------------------------------------------------- leading

    def _produce_requested(self, request: ProduceRequested) -> list[ReplicaEffect]:
        if self._leadership is None:
            error = ErrorCode.KAFKA_STORAGE_ERROR if self._failed else ErrorCode.NOT_LEADER_OR_FOLLOWER
            return [AnswerProduce(request.token, error, NO_OFFSET)]
        error = self._produce_error(request, self._leadership)
        if error is not ErrorCode.NONE:
            return [AnswerProduce(request.token, error, NO_OFFSET)]
        stored = self._stored_before(request)
        if stored is not None:
            return self._leadership.stored(
                request.token, request.acks, stored.base_offset, stored.end_offset, self._now_ns
            )
        spans = self._leadership.lay_out(request.record_counts, request.producer)
        self._storage = _Producing(request.token, request.acks, spans)
        return [Append(request.payload, spans)]

    def _stored_before(self, request: ProduceRequested) -> StoredBatch | None:
        """The batch that an idempotent producer sends again, having missed its acknowledgement."""
        if request.producer is None:
            return None
        return self._log.producers.duplicate(request.producer, request.record_counts[0])

    def _produce_error(self, request: ProduceRequested, leadership: Leadership) -> ErrorCode:
        counts, producer = request.record_counts, request.producer
        if not counts or min(counts) < 1:
            return ErrorCode.INVALID_REQUEST
        if producer is not None and (len(counts) > 1 or min(producer) < 0):
            return ErrorCode.INVALID_REQUEST
        error = leadership.gate(request.acks)
        if error is ErrorCode.NONE and producer is not None and self._stored_before(request) is None:
            return self._log.producers.error(producer)
        return error

    def _fence(self, current_leader_epoch: int) -> ErrorCode:
        if current_leader_epoch < 0 or current_leader_epoch == self.leader_epoch:
            return ErrorCode.NONE
        if current_leader_epoch < self.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def _fetch_received(self, fetch: FetchReceived) -> list[ReplicaEffect]:
        answer = self.judge_fetch(fetch)
        if answer.error is ErrorCode.NONE and self._leadership:
            return self._leadership.fetched(fetch)
        return [answer]

    # ----------------------------------------------------------------------------------------------------- following

    def _fetch_answered(self, answer: FetchAnswered) -> list[ReplicaEffect]:
        if self._is_stale(answer):
            return []
        if answer.error is not ErrorCode.NONE:
            out_of_range = answer.error is ErrorCode.OFFSET_OUT_OF_RANGE
            return self._out_of_range(answer.log_end_offset) if out_of_range else []
        if answer.diverging is not None and self._knobs.truncation == "diverging_fetch":
            return self._truncate(truncation_target(answer.diverging, self._log), "diverging_epoch")
        return self._replicate(answer)

    def _replicate(self, answer: FetchAnswered) -> list[ReplicaEffect]:
        if not answer.spans:
            return self._take_watermark(answer.high_watermark)
        if unappendable(answer.spans, self.log_end_offset):
            return []
        self._storage = _Replicating(answer.spans, answer.high_watermark)
        return [Append(answer.payload, answer.spans)]

    def _is_stale(self, answer: FetchAnswered) -> bool:
        """Whether ``answer`` is not the answer to :meth:`next_fetch` (KAFKA-13207)."""
        expected = self.next_fetch()
        if expected is None or answer.leader != expected.leader or answer.fetch_offset != expected.fetch_offset:
            return True
        carried = (expected.leader_epoch, self.leader_epoch) if not self._knobs.fetch_fencing else (self.leader_epoch,)
        return answer.leader_epoch not in carried

    def _out_of_range(self, leader_end: Offset) -> list[ReplicaEffect]:
        """A log longer than the leader's is cut; a log that ends before the leader's start is left alone."""
        if leader_end == NO_OFFSET or leader_end >= self.log_end_offset:
            return []
        if self._knobs.out_of_range == "exit":
            reason = f"log truncation from {self.log_end_offset} to the leader's {leader_end} is not allowed"
            return self._fail(0, reason)
        return self._truncate(leader_end, "out_of_range")

    def _take_watermark(self, leader_watermark: Offset) -> list[ReplicaEffect]:
        """The follower's rule: the lesser of the leader's watermark and its own end; it may fall."""
        if self._log.move_high_watermark(leader_watermark):
            return [HighWatermarkAdvanced(self.high_watermark)]
        return []

    def _truncate(self, target: Offset, reason: str) -> list[ReplicaEffect]:
        to_offset = max(target, self.log_start_offset)
        if to_offset >= self.log_end_offset:
            return self._checkpoint_if(self._log.epochs.truncate_from_end(to_offset))
        self._storage = _Truncating()
        return [Truncate(to_offset, reason)]

    # ------------------------------------------------------------------------------------------------ storage's word

    def _appended(self) -> list[ReplicaEffect]:
        storage, self._storage = self._storage, None
        assert isinstance(storage, _Producing | _Replicating), f"{self.partition}: Appended without Append"
        effects = self._checkpoint_if(self._log.appended(storage.spans))
        if isinstance(storage, _Replicating):
            return effects + self._take_watermark(storage.high_watermark)
        assert self._leadership is not None
        first, last = storage.spans[0], storage.spans[-1]
        return effects + self._leadership.stored(
            storage.token, storage.acks, first.base_offset, last.end_offset, self._now_ns
        )

    def _truncated(self, truncated: Truncated) -> list[ReplicaEffect]:
        assert isinstance(self._storage, _Truncating), f"{self.partition}: Truncated without Truncate"
        self._storage = None
        return self._checkpoint_if(self._log.truncated(truncated.log_end_offset, truncated.remaining))

    def _append_failed(self, errno: int) -> list[ReplicaEffect]:
        storage, self._storage = self._storage, None
        if self._failed:
            return []
        effects: list[ReplicaEffect] = []
        if isinstance(storage, _Producing):
            effects.append(AnswerProduce(storage.token, ErrorCode.KAFKA_STORAGE_ERROR, NO_OFFSET))
        return effects + self._fail(errno, "")

    def _fail(self, errno: int, reason: str) -> list[ReplicaEffect]:
        effects = self._leadership.fail_waiting(ErrorCode.KAFKA_STORAGE_ERROR) if self._leadership else []
        self._leadership = None
        self._failed = True
        return [*effects, ReplicaFailed(errno, reason)]

    def _checkpoint_if(self, changed: bool) -> list[ReplicaEffect]:
        return [CheckpointEpochs(self.epoch_entries)] if changed else []
