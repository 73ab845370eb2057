"""One replica of one partition: Kafka's replication as ``handle(event) -> effects``, without any I/O."""

from __future__ import annotations

from typing import Literal, NamedTuple, assert_never

from harness.error_codes import NO_ERROR, ErrorCode
from harness.model import NO_EPOCH, NO_LEADER, NO_OFFSET, NodeId, Offset, TopicPartition
from harness.replication.deletions import Deletions
from harness.replication.epochs import UNDEFINED
from harness.replication.following import Cut, Decision, Exit, Following, StartOver, unappendable
from harness.replication.invariants import Invariants
from harness.replication.isr import InSyncReplicas, are_distinct
from harness.replication.knobs import Knobs
from harness.replication.leadership import Leadership
from harness.replication.log_state import LogState, StoredLog
from harness.replication.messages import (
    AnswerDeleteRecords,
    AnswerFetch,
    AnswerProduce,
    Append,
    Appended,
    AppendFailed,
    CheckpointEpochs,
    ConfigsChanged,
    DeleteRecordsExpired,
    DeleteRecordsRequested,
    EpochEnd,
    EpochEndAnswered,
    EpochEntry,
    FetchAnswered,
    FetchReceived,
    HighWatermarkAdvanced,
    IsrAnswered,
    LogStartedAt,
    LogStartRaised,
    NextEpochLookup,
    NextFetch,
    PartitionStateChanged,
    ProduceExpired,
    ProduceRequested,
    RaiseLogStart,
    ReplicaEffect,
    ReplicaEvent,
    ReplicaFailed,
    RetentionReached,
    SessionsHeard,
    StartLogAt,
    Tick,
    Truncate,
    Truncated,
)
from harness.replication.storage import (
    ANSWERS,
    TIMELESS,
    Cutting,
    Producing,
    Raising,
    Replicating,
    Request,
    answers_to_failure,
)

Role = Literal["leader", "follower", "offline"]


class ReplicaConfig(NamedTuple):
    """``min.insync.replicas``, ``replica.lag.time.max.ms`` and ``unclean.leader.election.enable``."""

    min_insync_replicas: int
    replica_lag_time_max_ms: int
    unclean_leader_election_enable: bool = False


class Replica:
    """A replica: it starts with the log on its disk, and leads or follows as the controller decides.

    Args:
        node: its broker.
        partition: for messages only.
        knobs: the protocol generation.
        config: what is configured of the topic and the broker.
        stored: the log on its disk. The driver writes the checkpoint of its epochs again if :attr:`epoch_entries`
            differs.

    Attributes:
        leader: by the controller's last state; ``NO_LEADER`` before the first.
        leader_epoch: likewise; ``NO_EPOCH`` before.
        replicas: all replicas of the partition, in order of preference.
        log: its mirror of the log, to look at.
    """

    def __init__(
        self,
        node: NodeId,
        partition: TopicPartition,
        knobs: Knobs,
        config: ReplicaConfig,
        stored: StoredLog,
    ) -> None:
        self.node = node
        self.partition = partition
        self.leader: NodeId = NO_LEADER
        self.leader_epoch = NO_EPOCH
        self.replicas: tuple[NodeId, ...] = ()
        self._knobs = knobs
        self._limits = (config.min_insync_replicas, config.replica_lag_time_max_ms * 1_000_000)
        if "watermark_is_the_end_at_start" in knobs.bugs:
            stored = stored._replace(high_watermark=stored.log_end_offset)
        self.log = LogState(stored, knobs=knobs)
        self._isr = InSyncReplicas(knobs.isr_update)
        self._sessions: dict[NodeId, int] = {}
        self._deletions = Deletions()
        self._leadership: Leadership | None = None
        self._following = Following(
            self.log, knobs, unclean_leader_election_enable=config.unclean_leader_election_enable
        )
        self._storage: Request | None = None
        self._failed = False
        self._now_ns = 0
        self._controller_epoch = NO_EPOCH
        self._invariants = Invariants()

    # ------------------------------------------------------------------------------------------- what it looks like

    @property
    def role(self) -> Role:
        """``follower`` also before the controller's first state, and while there is no leader."""
        if self._failed:
            return "offline"
        return "leader" if self._leadership else "follower"

    @property
    def isr(self) -> tuple[NodeId, ...]:
        """The controller's ISR as known here."""
        return self._isr.members

    @property
    def partition_epoch(self) -> int:
        """The version of :attr:`isr`; -1 before the controller's first state."""
        return self._isr.partition_epoch

    @property
    def high_watermark(self) -> Offset:
        """Exclusive."""
        return self.log.high_watermark

    @property
    def log_end_offset(self) -> Offset:
        """Exclusive."""
        return self.log.log_end_offset

    @property
    def log_start_offset(self) -> Offset:
        """The first offset still held."""
        return self.log.log_start_offset

    @property
    def epoch_entries(self) -> tuple[EpochEntry, ...]:
        """The leader epoch cache, oldest first."""
        return self.log.epochs.entries

    @property
    def remote_log_end_offsets(self) -> dict[NodeId, Offset]:
        """The followers' log end offsets as the leader knows them; ``NO_OFFSET``: unknown. Empty on followers."""
        return self._leadership.remote_log_end_offsets if self._leadership else {}

    def next_request(self) -> NextFetch | NextEpochLookup | None:
        """The fetcher's next request; None: this replica follows no leader."""
        return self._following.next_request() if self._follows() else None

    def _follows(self) -> bool:
        return self._leadership is None and self.leader != NO_LEADER and not self._failed

    @property
    def has_failed(self) -> bool:
        """Whether its storage has, so that it answers nothing any more."""
        return self._failed

    def read_bound(self, replica: NodeId | None) -> Offset:
        """Up to where (exclusive) a fetch may read: a consumer (None) to the watermark, a replica to the end."""
        to_watermark = replica is None and "reads_above_the_watermark" not in self._knobs.bugs
        return self.log.high_watermark if to_watermark else self.log.log_end_offset

    def leader_error(self, current_leader_epoch: int) -> ErrorCode:
        """Why a request to the leader that carries ``current_leader_epoch`` (or ``NO_EPOCH``) is refused.

        For everything that is neither a follower's fetch nor a lookup: consumers' fetches, ListOffsets.
        """
        return self._refusal(current_leader_epoch, fenced=self._knobs.fetch_fencing)

    def _refusal(self, current_leader_epoch: int, *, fenced: bool) -> ErrorCode:
        if self._failed:
            return ErrorCode.KAFKA_STORAGE_ERROR
        # A client that got no epochs may send 0 for a check; a protocol without fencing checks nothing.
        if fenced and current_leader_epoch >= 0 and current_leader_epoch != self.leader_epoch:
            older = current_leader_epoch < self.leader_epoch
            return ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH
        return NO_ERROR if self._leadership else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def judge_lookup(self, current_leader_epoch: int, requested_epoch: int) -> tuple[ErrorCode, EpochEnd]:
        """The answer to OffsetForLeaderEpoch, a follower's or a client's: where ``requested_epoch`` ends here."""
        error = self._refusal(current_leader_epoch, fenced=self._knobs.lookup_fencing)
        return error, UNDEFINED if error is not NO_ERROR else self.end_offset_for(requested_epoch)

    def end_offset_for(self, leader_epoch: int) -> EpochEnd:
        """Where ``leader_epoch`` ends in this log: :meth:`LeaderEpochCache.end_offset_for`, if known."""
        end = self.log.epochs.end_offset_for(leader_epoch, self.log.log_end_offset)
        return EpochEnd(NO_EPOCH, end.end_offset) if self._knobs.truncation == "epoch_offset" else end

    def knows_latest(self) -> bool:
        """Whether consumers may get the high watermark of a leader: :meth:`Leadership.knows_latest`."""
        return self._leadership is None or self._leadership.knows_latest()

    def judge_fetch(self, fetch: FetchReceived) -> AnswerFetch:
        """The present answer to a follower's fetch; changes nothing.

        For completing a parked fetch, which Kafka reads again without counting it as progress again.
        """
        error = self.leader_error(fetch.current_leader_epoch)
        if error is NO_ERROR and self._leadership:
            return self._leadership.judge(fetch)
        return self._refuse_fetch(fetch, error)

    # ---------------------------------------------------------------------------------------------------- handling

    def handle(self, event: ReplicaEvent) -> list[ReplicaEffect]:
        """Take in one event; the effects must be performed in order, before the next event."""
        kind = type(event)
        assert self._storage is None or kind in ANSWERS, f"{self.partition}: {event} before storage answered"
        if kind not in TIMELESS:
            self._now_ns = event.now_ns  # type: ignore[union-attr]
        effects = self._dispatch(event)
        if not self._knobs.bugs:
            self._invariants.check(self, may_lead=self._may_lead_in(self._isr.members))
        return effects

    def _dispatch(self, event: ReplicaEvent) -> list[ReplicaEffect]:  # noqa: C901, PLR0911, PLR0912 (one case per event)
        match event:
            case FetchReceived():
                return self._fetch_received(event)
            case FetchAnswered():
                return self._fetch_answered(event)
            case Appended():
                return self._appended()
            case ProduceRequested():
                return self._produce_requested(event)
            case Tick():
                return self._leadership.tick(event.now_ns) if self._leadership else []
            case PartitionStateChanged():
                return self._partition_state_changed(event)
            case IsrAnswered():
                self._isr.in_flight = False
                return self._leadership.isr_answered(event, self._now_ns) if self._leadership else []
            case SessionsHeard(broker_epochs):
                self._sessions.clear()
                self._sessions.update(broker_epochs)
                return []
            case ConfigsChanged():
                return self._configs_changed(event)
            case EpochEndAnswered():
                return self._lookup_answered(event)
            case ProduceExpired(token):
                return self._leadership.expire(token) if self._leadership else []
            case DeleteRecordsRequested():
                return self._delete_records(event)
            case DeleteRecordsExpired(token):
                return self._deletions.expire(token)
            case RetentionReached(before_offset):
                return self._raise_log_start(before_offset, "retention")
            case Truncated():
                return self._truncated(event)
            case LogStartRaised(log_start_offset):
                return self._log_start_raised(log_start_offset)
            case LogStartedAt(offset):
                return self._log_started_at(offset)
            case AppendFailed(errno):
                return self._storage_failed(errno)
            case _:
                assert_never(event)

    # --------------------------------------------------------------------------------------------- controller's word

    def _configs_changed(self, configs: ConfigsChanged) -> list[ReplicaEffect]:
        self._limits = (configs.min_insync_replicas, self._limits[1])
        self._following.unclean_leader_election_enable = configs.unclean_leader_election_enable
        return self._leadership.require(configs.min_insync_replicas, self._now_ns) if self._leadership else []

    def _partition_state_changed(self, state: PartitionStateChanged) -> list[ReplicaEffect]:
        if self._failed or not self._acceptable(state):
            return []
        self._controller_epoch = max(self._controller_epoch, state.controller_epoch)
        new_epoch = state.leader_epoch > self.leader_epoch
        self.leader, self.leader_epoch, self.replicas = state.leader, state.leader_epoch, state.replicas
        self._isr.commit(state.isr, state.partition_epoch)
        return self._lead(state, new_epoch=new_epoch) if state.leader == self.node else self._follow(state)

    def _acceptable(self, state: PartitionStateChanged) -> bool:
        """Whether ``state`` is new and consistent."""
        if self._knobs.controller_epoch_fencing and NO_EPOCH < state.controller_epoch < self._controller_epoch:
            return False
        if state.leader_epoch < max(self.leader_epoch, 0) or state.partition_epoch < max(self.partition_epoch, 0):
            return False
        another = state.leader != self.leader and "leader_epoch_not_raised" not in self._knobs.bugs
        if state.leader_epoch == self.leader_epoch and (another or state.partition_epoch == self.partition_epoch):
            return False
        may_lead = state.leader != self.node or self._may_lead_in(state.isr)
        return may_lead and are_distinct(state.isr, state.replicas)

    def _may_lead_in(self, isr: tuple[NodeId, ...]) -> bool:
        return self.node in isr or (self._knobs.empty_isr_retry and not isr)

    def _lead(self, state: PartitionStateChanged, *, new_epoch: bool) -> list[ReplicaEffect]:
        effects: list[ReplicaEffect] = []
        if self._leadership is None:
            about = (self.node, self.log, self._isr, (self._sessions, self._deletions), self._knobs)
            minimum, lag_ns = self._limits
            self._leadership = Leadership(*about, min_insync_replicas=minimum, lag_ns=lag_ns)
        self._following.led(self.node, state.leader_epoch)
        self._leadership.enter(state.leader_epoch, state.replicas, state.now_ns)
        if new_epoch and "producers_forgotten" in self._knobs.bugs:
            self.log.forget_producers()
        if new_epoch and self._knobs.epoch_entry == "on_election":
            effects += self._checkpoint_if(self.log.epochs.assign(state.leader_epoch, self.log_end_offset))
        return effects + self._leadership.advance(self._now_ns)

    def _follow(self, state: PartitionStateChanged) -> list[ReplicaEffect]:
        effects = self._leadership.fail_waiting(ErrorCode.NOT_LEADER_OR_FOLLOWER) if self._leadership else []
        self._leadership = None
        return effects + self._decided(self._following.follow(state.leader, state.leader_epoch))

    # ------------------------------------------------------------------------------------------------------- leading

    def _produce_requested(self, request: ProduceRequested) -> list[ReplicaEffect]:
        if self._leadership is None:
            error = ErrorCode.KAFKA_STORAGE_ERROR if self._failed else ErrorCode.NOT_LEADER_OR_FOLLOWER
            return [AnswerProduce(request.token, error, NO_OFFSET)]
        error = self._leadership.refusal(request)
        if error is not NO_ERROR:
            return [AnswerProduce(request.token, error, NO_OFFSET)]
        stored = self._leadership.stored_before(request)
        if stored is not None:
            return self._leadership.stored(
                request.token, request.acks, stored.base_offset, stored.end_offset, self._now_ns
            )
        spans = self._leadership.lay_out(request.record_counts, request.producer)
        self._storage = Producing(request.token, request.acks, spans)
        return [Append(request.payload, spans)]

    def _fetch_received(self, fetch: FetchReceived) -> list[ReplicaEffect]:
        error = self._refusal(fetch.current_leader_epoch, fenced=self._knobs.fetch_fencing)
        if error is NO_ERROR and self._leadership:
            return self._leadership.fetched(fetch)
        return [self._refuse_fetch(fetch, error)]

    def _refuse_fetch(self, fetch: FetchReceived, error: ErrorCode) -> AnswerFetch:
        log = self.log
        return AnswerFetch(fetch.token, error, log.high_watermark, log.log_start_offset, log.log_end_offset, None)

    def _delete_records(self, request: DeleteRecordsRequested) -> list[ReplicaEffect]:
        error = self.leader_error(NO_EPOCH)
        before = self.high_watermark if request.before_offset == -1 else request.before_offset
        if error is NO_ERROR and not 0 <= before <= self.log.deletable("deletes_above_the_watermark"):
            error = ErrorCode.OFFSET_OUT_OF_RANGE
        if error is not NO_ERROR:
            return [AnswerDeleteRecords(request.token, error, NO_OFFSET)]
        if self._leadership and before <= self.log_start_offset:
            return self._leadership.deleted(request.token, before)
        return self._raise_log_start(before, "delete_records", request.token)

    # ----------------------------------------------------------------------------------------------------- following

    def _fetch_answered(self, answer: FetchAnswered) -> list[ReplicaEffect]:
        if not (self._follows() and self._following.awaits_fetch(answer)):
            return [] if self._failed else self._decided(self._following.obeyed_anyway(answer))
        if answer.error is not NO_ERROR:
            return self._decided(self._following.refused(answer))
        decision = self._following.parted(answer)
        if decision is None:
            return self._replicate(answer)
        exposed = self._take_watermark(answer.high_watermark) if self._knobs.hw_from_diverging else []
        return exposed + self._decided(decision)

    def _replicate(self, answer: FetchAnswered) -> list[ReplicaEffect]:
        if not answer.spans:
            return self._caught_up_with(answer.high_watermark, answer.log_start_offset)
        if unappendable(answer.spans, self.log_end_offset):
            return self._decided(self._following.misfit(answer.spans), then=answer)
        self._storage = Replicating(answer.spans, answer.high_watermark, answer.log_start_offset)
        return [Append(answer.payload, answer.spans)]

    def _lookup_answered(self, answer: EpochEndAnswered) -> list[ReplicaEffect]:
        """The leader's answer where an epoch ends; after an error truncate nothing and ask again (KIP-101)."""
        expected = self._follows() and self._following.awaits_lookup(answer)
        if not expected or answer.error is not NO_ERROR:
            return []
        return self._decided(self._following.lookup_answered(answer))

    def _decided(self, decision: Decision | None, then: FetchAnswered | None = None) -> list[ReplicaEffect]:
        match decision:
            case None:
                return []
            case Cut(to_offset, reason):
                return self._cut(to_offset, reason)
            case StartOver(offset, reason):
                self._storage = Cutting(then)
                return [StartLogAt(max(offset, 0), reason)]
            case Exit(reason):
                return self._fail(0, reason)
            case _:
                assert_never(decision)

    def _cut(self, to_offset: Offset, reason: str) -> list[ReplicaEffect]:
        if to_offset < self.log_start_offset:
            return self._decided(StartOver(to_offset, reason))
        if self.log_start_offset < to_offset < self.log_end_offset and "truncates_one_more" in self._knobs.bugs:
            to_offset -= 1
        if to_offset < self.log_end_offset:
            self._storage = Cutting()
            return [Truncate(to_offset, reason)]
        return self._checkpoint_if(self.log.forget_epochs(to_offset)) + self._cut_further()

    def _cut_further(self) -> list[ReplicaEffect]:
        return self._decided(self._following.without_epochs()) if self._leadership is None else []

    def _caught_up_with(self, leader_watermark: Offset, leader_start: Offset) -> list[ReplicaEffect]:
        start = 0 if "log_start_not_followed" in self._knobs.bugs else leader_start
        return self._take_watermark(leader_watermark) + self._raise_log_start(start, "leader")

    def _take_watermark(self, leader_watermark: Offset) -> list[ReplicaEffect]:
        """Apply the follower's rule: the lesser of the leader's watermark and its own log end; it may fall."""
        if self.log.move_high_watermark(self._following.watermark(leader_watermark)):
            return [HighWatermarkAdvanced(self.high_watermark)]
        return []

    def _raise_log_start(self, offset: Offset, reason: str, token: object = None) -> list[ReplicaEffect]:
        """Raise the log start to ``offset``, at most to the high watermark: never delete uncommitted records."""
        bug = "retention_above_the_watermark" if reason == "retention" else "deletes_above_the_watermark"
        to_offset = min(offset, self.log.deletable(bug))
        if to_offset <= self.log.log_start_offset or self._failed:
            return []
        self._storage = Raising(token)
        return [RaiseLogStart(to_offset, reason)]

    # ------------------------------------------------------------------------------------------------ storage's word

    def _appended(self) -> list[ReplicaEffect]:
        storage, self._storage = self._storage, None
        assert isinstance(storage, Producing | Replicating), f"{self.partition}: Appended without Append"
        effects = self._checkpoint_if(self.log.appended(storage.spans))
        if isinstance(storage, Replicating):
            return effects + self._caught_up_with(storage.high_watermark, storage.log_start_offset)
        assert self._leadership is not None
        begin, end = storage.spans[0].base_offset, storage.spans[-1].end_offset
        return effects + self._leadership.stored(storage.token, storage.acks, begin, end, self._now_ns)

    def _truncated(self, truncated: Truncated) -> list[ReplicaEffect]:
        self._cut_done()
        effects = self._checkpoint_if(self.log.truncated(truncated.log_end_offset, truncated.remaining))
        return effects + self._cut_further()

    def _log_started_at(self, offset: Offset) -> list[ReplicaEffect]:
        then = self._cut_done().then
        effects = self._checkpoint_if(self.log.started_at(offset))
        return effects + (self._replicate(then) if then else self._cut_further())

    def _cut_done(self) -> Cutting:
        storage, self._storage = self._storage, None
        assert isinstance(storage, Cutting), f"{self.partition}: storage has cut unasked"
        self._invariants.forget()
        return storage

    def _log_start_raised(self, log_start_offset: Offset) -> list[ReplicaEffect]:
        storage, self._storage = self._storage, None
        assert isinstance(storage, Raising), f"{self.partition}: the log start was raised unasked"
        effects = self._checkpoint_if(self.log.raise_start(log_start_offset))
        if self._leadership is None or storage.token is None:
            return effects
        return effects + self._leadership.deleted(storage.token, log_start_offset)

    def _storage_failed(self, errno: int) -> list[ReplicaEffect]:
        storage, self._storage = self._storage, None
        return [] if self._failed else answers_to_failure(storage) + self._fail(errno, "")

    def _fail(self, errno: int, reason: str) -> list[ReplicaEffect]:
        effects = self._leadership.fail_waiting(ErrorCode.KAFKA_STORAGE_ERROR) if self._leadership else []
        self._leadership = None
        self._failed = True
        return [*effects, ReplicaFailed(errno, reason)]

    def _checkpoint_if(self, changed: bool) -> list[ReplicaEffect]:
        return [CheckpointEpochs(self.epoch_entries)] if changed else []
