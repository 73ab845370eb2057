"""A simulated broker: one replica core on a disk, its fetcher, and what it says to the controller.

The conversations are those of the real broker: one request under way per leader, timeouts, back-off, fetches parked
while there is nothing to answer them with, heartbeats, proposals that time out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harness.model import NO_EPOCH, NO_LEADER, NodeId, Offset
from harness.replication.messages import (
    NO_ERROR,
    AnswerDeleteRecords,
    AnswerFetch,
    AnswerProduce,
    Append,
    Appended,
    AppendFailed,
    CheckpointEpochs,
    EpochEnd,
    EpochEndAnswered,
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
    ProposeIsr,
    RaiseLogStart,
    ReplicaEvent,
    ReplicaFailed,
    StartLogAt,
    Tick,
    Truncate,
    Truncated,
)
from harness.replication.replica import Replica
from harness.simulation.core.clients import Poll, Produce
from harness.simulation.core.configuration import MS, PARTITION
from harness.simulation.core.disk import Batch, Disk, laid_out
from harness.simulation.core.in_flight import Asked, StateUpdate
from harness.simulation.core.process import Process

if TYPE_CHECKING:
    from harness.simulation.core.world import World

ENOSPC = 28
REGISTER_AGAIN_NS = 5 * MS


class Broker(Process):
    """See the module.

    Attributes:
        node: its id, also its index.
        replica: None while it is dead.
        broker_epoch: as the controller gave it; -1: not registered.
        clock_ns: how far its wall clock is off.
        dirty: whether it stopped uncleanly and has not caught up since; see :mod:`harness.simulation.core.budget`.
        lossy: the same after it lost power.
    """

    __slots__ = (
        "_asking", "_backing_off", "_deadline_ns", "_parked", "_performers", "_proposal", "_watching", "_world",
        "broker_epoch", "clean_epoch", "clock_ns", "dirty", "disk", "lossy", "node", "replica",
    )  # fmt: skip

    def __init__(self, world: World, node: NodeId) -> None:
        super().__init__(node, f"b{node}")
        configuration = world.configuration
        self._world = world
        self.node = node
        flush_messages = 0 if "flush_forgotten" in world.knobs.bugs else configuration.flush_messages
        self.disk = Disk(flush_messages, checkpoints_flushed=configuration.checkpoints_flushed)
        self.replica: Replica | None = None
        self.alive = False
        self.broker_epoch = -1
        self.clean_epoch = -1
        self.clock_ns = 0
        self.dirty = False
        self.lossy = False
        self._asking: Asked | None = None
        self._deadline_ns = 0
        self._watching = False
        self._backing_off = False
        self._proposal = 0
        self._parked: list[Asked] = []
        self._performers: dict[type, Callable[[Any], None]] = {
            Append: self._append,
            Truncate: self._truncate,
            RaiseLogStart: self._move_start,
            StartLogAt: self._move_start,
            CheckpointEpochs: self._checkpoint_epochs,
            AnswerProduce: self._answer_produce,
            AnswerFetch: self._answer_fetch,
            AnswerDeleteRecords: world.troublemaker.answered,
            ProposeIsr: self._propose,
            HighWatermarkAdvanced: self._watermark_advanced,
            ReplicaFailed: self._failed,
        }

    @property
    def now_ns(self) -> int:
        """What its wall clock says."""
        return self._world.now_ns + self.clock_ns

    # ------------------------------------------------------------------------------------------------- life and death

    def start(self) -> None:
        """A new process on what the disk holds; it registers when it can."""
        configuration, world = self._world.configuration, self._world
        disk = self.disk
        self.life += 1
        self.alive = True
        self.replica = Replica(
            self.node,
            PARTITION,
            world.knobs,
            min_insync_replicas=configuration.min_insync_replicas,
            replica_lag_time_max_ms=configuration.replica_lag_time_max_ms,
            log_start_offset=disk.start,
            log_end_offset=disk.end,
            epoch_entries=disk.recover_epochs(),
            high_watermark=disk.watermark,
            unclean_leader_election_enable=configuration.unclean_leader_election_enable,
        )
        disk.clean = False
        self.broker_epoch = -1
        self._asking = None
        self._watching = self._backing_off = False
        self._parked.clear()
        world.started(self)
        world.after(self, configuration.heartbeat_ms * MS, self._beat, None)
        world.after(self, configuration.replica_lag_time_max_ms * MS // 2, self._tick, None)
        world.after(self, configuration.checkpoint_ms * MS, self._checkpoint_watermark, None)
        if configuration.flush_ms:
            world.after(self, configuration.flush_ms * MS, self._flush, None)
        self.register()

    def die(self) -> None:
        """The process is gone, and with it what waited for it."""
        self.life += 1
        self.alive = self.paused = False
        self.replica = None
        self.waiting.clear()
        self._parked.clear()
        self.clean_epoch = -1

    def stop(self) -> None:
        """A clean shutdown: everything is written and flushed."""
        assert self.replica is not None
        self.disk.checkpoint_watermark(self.replica.high_watermark)
        self.disk.flush_all()
        self.disk.clean = True
        epoch = self.broker_epoch
        self.die()
        self.clean_epoch = epoch

    # ----------------------------------------------------------------------------------------------- the core's events

    def handle(self, event: ReplicaEvent) -> None:
        """Give an event to the replica and do what it wants done, storage's answers included."""
        replica = self.replica
        if replica is None:
            return
        effects = replica.handle(event)
        if self._world.trace is not None:
            self._world.trace.replica(self, event, effects)
        performers = self._performers
        for effect in effects:
            performers[type(effect)](effect)
        if self._world.recording is not None:
            self._world.recording.observed(self)

    def _append(self, effect: Append) -> None:
        if self.disk.full:
            self.handle(AppendFailed(ENOSPC))
            return
        payload: Any = effect.payload
        batches = [laid_out(effect.spans[0], payload.values)] if isinstance(payload, Produce) else payload
        self.disk.append(batches)
        self._world.witness.appended(self, batches)
        self.handle(Appended(self.now_ns))
        if self._parked:
            self._answer_parked()

    def _truncate(self, effect: Truncate) -> None:
        end_before = self.disk.end
        cut = self.disk.truncate(effect.to_offset)
        self._world.witness.truncated(self, effect, cut)
        if self._world.recording is not None:
            self._world.recording.truncated(self, effect, end_before)
        self.handle(Truncated(self.disk.end))

    def _move_start(self, effect: RaiseLogStart | StartLogAt) -> None:
        from_offset, witness = self.disk.start, self._world.witness
        if isinstance(effect, RaiseLogStart):
            witness.log_start_raised(self, effect)
        else:
            witness.wiped(self, effect)
        done = self.disk.move_start(effect)
        if self._world.recording is not None:
            self._world.recording.log_start_moved(self, effect, from_offset)
        self.handle(done)

    def _checkpoint_epochs(self, effect: CheckpointEpochs) -> None:
        self.disk.checkpoint_epochs(effect.entries)
        self._world.witness.epochs_changed(self, effect.entries)

    def _watermark_advanced(self, effect: HighWatermarkAdvanced) -> None:
        self._world.witness.watermark_advanced(self, effect.high_watermark)
        if self._world.recording is not None:  # before the next effect, which may cut the log below it (KAFKA-14704)
            self._world.recording.observed(self)

    def _failed(self, effect: ReplicaFailed) -> None:
        self._world.replica_failed(self, effect)

    # -------------------------------------------------------------------------------------------------------- timers

    def _beat(self, _: None) -> None:
        world = self._world
        if self.broker_epoch >= 0:
            controller = world.controller
            beat = (self, self.life, self.broker_epoch)
            world.send(self.index, controller, controller.life, controller.heartbeat_arrived, beat)
        world.after(self, world.configuration.heartbeat_ms * MS, self._beat, None)

    def _tick(self, _: None) -> None:
        self.handle(Tick(self.now_ns))
        self._world.after(self, self._world.configuration.replica_lag_time_max_ms * MS // 2, self._tick, None)

    def _checkpoint_watermark(self, _: None) -> None:
        if self.replica is not None:
            self.disk.checkpoint_watermark(self.replica.high_watermark)
        self._world.after(self, self._world.configuration.checkpoint_ms * MS, self._checkpoint_watermark, None)

    def _flush(self, _: None) -> None:
        self.disk.flush()
        self._world.after(self, self._world.configuration.flush_ms * MS, self._flush, None)

    # --------------------------------------------------------------------------------------------- a follower fetches

    def poke(self, _: object = None) -> None:
        """Ask the leader what is to be asked next, unless it is being asked, or not to be asked yet."""
        replica = self.replica
        if replica is None or self._backing_off:
            return
        wanted = replica.next_request()
        if wanted is None or (self._asking is not None and self._asking.wanted.leader == wanted.leader):
            return
        self._ask(wanted)

    def _ask(self, wanted: NextFetch | NextEpochLookup) -> None:
        world = self._world
        asked = self._asking = Asked(self, wanted)
        leader = world.brokers[wanted.leader]
        arrive = leader.fetch_arrived if isinstance(wanted, NextFetch) else leader.lookup_arrived
        world.send(self.index, leader, leader.life, arrive, asked)
        timeout_ns = world.configuration.request_timeout_ms * MS
        self._deadline_ns = world.now_ns + timeout_ns
        if not self._watching:
            self._watching = True
            world.after(self, timeout_ns, self._watch, None)

    def _watch(self, _: None) -> None:
        """Give up on an answer that does not come; the connection is closed then, so it never will."""
        world = self._world
        if self._asking is None:
            self._watching = False
        elif world.now_ns < self._deadline_ns:
            world.after(self, self._deadline_ns - world.now_ns, self._watch, None)
        else:
            self._watching = False
            self._asking.closed = True
            self._asking = None
            self._back_off()

    def _back_off(self) -> None:
        if not self._backing_off:
            self._backing_off = True
            self._world.after(self, self._world.configuration.replica_fetch_backoff_ms * MS, self._resume, None)

    def _resume(self, _: None) -> None:
        self._backing_off = False
        self.poke()

    def fetch_answered(self, answer: tuple[Asked, AnswerFetch, list[Batch]]) -> None:
        """A leader's answer arrives; if the leader is not ours any more the core must see that for itself."""
        asked, told, batches = answer
        if not self._hears(asked):
            return
        replica, wanted = self.replica, asked.wanted
        assert replica is not None
        event = FetchAnswered(
            wanted.leader, wanted.leader_epoch, wanted.fetch_offset,
            told.error, told.high_watermark, told.log_start_offset, told.log_end_offset, told.diverging,
            tuple([batch.span for batch in batches]), batches, self.now_ns,
        )  # fmt: skip
        self.handle(event)
        if self._asking is not None or self._backing_off or self.replica is None:
            return
        following = replica.next_request()
        if told.error is not NO_ERROR or (following == wanted and (batches or told.diverging is not None)):
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

    def lookup_answered(self, answer: tuple[Asked, ErrorCode, EpochEnd]) -> None:
        """The leader says where an epoch ends."""
        asked, error, end = answer
        if not self._hears(asked):
            return
        leader, leader_epoch, requested_epoch = asked.wanted
        self.handle(EpochEndAnswered(leader, leader_epoch, requested_epoch, error, end, self.now_ns))
        if error is not NO_ERROR:
            self._back_off()
        else:
            self.poke()

    # ---------------------------------------------------------------------------------------------- a leader answers

    def fetch_arrived(self, asked: Asked) -> None:
        """A follower's fetch."""
        wanted = asked.wanted
        asked.event = FetchReceived(
            asked, asked.follower.node, wanted.fetch_offset, wanted.leader_epoch, wanted.last_fetched_epoch,
            self.now_ns, asked.broker_epoch, wanted.high_watermark, asked.log_start,
        )  # fmt: skip
        self.handle(asked.event)

    def _answer_fetch(self, answer: AnswerFetch) -> None:
        asked: Any = answer.token
        if answer.error is NO_ERROR:
            self._world.witness.fetch_served(self, asked.wanted)
            if answer.diverging is None and asked.wanted.fetch_offset >= self.disk.end:
                asked.parked = True
                self._parked.append(asked)
                wait_ns = self._world.configuration.replica_fetch_wait_max_ms * MS
                self._world.after(self, wait_ns, self._expire_fetch, asked)
                return
        self._respond(asked, answer)

    def _respond(self, asked: Asked, answer: AnswerFetch) -> None:
        good = answer.error is NO_ERROR and answer.diverging is None
        batches = self.disk.read(asked.wanted.fetch_offset, self._world.configuration.fetch_batches) if good else []
        follower = asked.follower
        self._world.send(self.index, follower, asked.life, follower.fetch_answered, (asked, answer, batches))

    def _expire_fetch(self, asked: Asked) -> None:
        if asked.parked:
            self._parked.remove(asked)
            self._answer_again(asked)

    def _answer_parked(self) -> None:
        parked, self._parked = self._parked, []
        for asked in parked:
            self._answer_again(asked)

    def _answer_again(self, asked: Asked) -> None:
        """Answer a parked fetch as things are now; it has counted as progress already."""
        asked.parked = False
        if self.replica is not None and asked.event is not None:
            answer = self.replica.judge_fetch(asked.event)
            if answer.error is NO_ERROR:
                self._world.witness.fetch_served(self, asked.wanted)
            self._respond(asked, answer)

    def lookup_arrived(self, lookup: Asked) -> None:
        """A follower asks where an epoch ends."""
        if self.replica is None:
            return
        wanted = lookup.wanted
        error, end = self.replica.judge_lookup(wanted.leader_epoch, wanted.requested_epoch)
        if error is NO_ERROR:
            self._world.witness.lookup_served(self, wanted)
        follower = lookup.follower
        self._world.send(self.index, follower, lookup.life, follower.lookup_answered, (lookup, error, end))

    # ------------------------------------------------------------------------------------------------------- clients

    def produce_arrived(self, produce: Produce) -> None:
        """A client's records."""
        count, now_ns = len(produce.values), self.now_ns
        self.handle(ProduceRequested(produce, produce.acks, (count,), produce, now_ns))
        if produce.acks == -1 and not produce.answered:
            configuration = self._world.configuration
            wait_ms = configuration.produce_wait_ms or configuration.send_timeout_ms
            self._world.after(self, wait_ms * MS, self._expire_produce, produce)

    def _expire_produce(self, produce: Produce) -> None:
        if not produce.answered:
            self.handle(ProduceExpired(produce))

    def _answer_produce(self, answer: AnswerProduce) -> None:
        produce: Any = answer.token
        produce.answered = True
        if answer.error is NO_ERROR:
            self._world.witness.acknowledged(self, produce, answer.base_offset)
        if produce.acks:
            producer = produce.producer
            told = (produce, answer.error, answer.base_offset)
            self._world.send(self.index, producer, producer.life, producer.answered, told)

    def poll_arrived(self, poll: Poll) -> None:
        """A consumer wants what lies below the high watermark from its position on."""
        replica = self.replica
        if replica is None:
            return
        consumer, disk = poll.consumer, self.disk
        error = replica.leader_error(NO_EPOCH)
        found: list[tuple[Offset, int, int]] = []
        if error is NO_ERROR:
            start, bound = max(poll.position, disk.start), replica.read_bound(None)
            records = disk.records[start - disk.start : bound - disk.start] if bound > start else []
            found = [(start + at, record.value, record.leader_epoch) for at, record in enumerate(records)]
        self._world.send(self.index, consumer, consumer.life, consumer.answered, (poll, error, found))

    # ------------------------------------------------------------------------------------------------- the controller

    def register(self, _: object = None) -> None:
        """Announce this process until the controller has accepted it."""
        if self.broker_epoch < 0:
            world, controller = self._world, self._world.controller
            world.send(self.index, controller, controller.life, controller.registration_arrived, (self, self.life))
            world.after(self, world.configuration.heartbeat_ms * MS // 2 + REGISTER_AGAIN_NS, self.register, None)

    def registered(self, broker_epoch: int) -> None:
        """The controller has accepted this process."""
        if self.broker_epoch < 0:
            self.broker_epoch = broker_epoch

    def session_refused(self, _: ErrorCode) -> None:
        """The controller knows of no such session."""
        if self.broker_epoch >= 0:
            self.broker_epoch = -1
            self.register()

    def state_arrived(self, update: StateUpdate) -> None:
        """The controller's word: confirmed, be it news or not, or refused, if another process was meant to hear it."""
        world, replica = self._world, self.replica
        if replica is None:
            return
        controller = world.controller
        if world.knobs.broker_bounce != "unnoticed" and update.broker_epoch != self.broker_epoch:
            world.send(self.index, controller, controller.life, controller.state_refused, (self, update.number))
            return
        world.send(self.index, controller, controller.life, controller.state_confirmed, (self, update.number))
        _, leader, leader_epoch, partition_epoch, isr, replicas, *_ = update.state
        before = (replica.leader_epoch, replica.partition_epoch)
        self.handle(
            PartitionStateChanged(
                leader, leader_epoch, isr, replicas, partition_epoch, self.now_ns, update.controller_epoch
            )
        )
        if self.replica is None or (replica.leader_epoch, replica.partition_epoch) == before:
            return
        world.witness.state_applied(self, before)
        if replica.leader_epoch != before[0]:
            if self._parked:
                self._answer_parked()
            if self._asking is not None and self._asking.wanted.leader != replica.leader:
                self._asking = None
            if replica.leader not in (NO_LEADER, self.node):
                self.poke()

    def _propose(self, proposal: ProposeIsr) -> None:
        world, controller = self._world, self._world.controller
        self._proposal += 1
        sent = (self, self.life, self._proposal, self.broker_epoch, proposal)
        world.witness.proposed(self, proposal)
        world.send(self.index, controller, controller.life, controller.proposal_arrived, sent)
        world.after(self, world.configuration.request_timeout_ms * MS, self._expire_proposal, self._proposal)

    def _expire_proposal(self, number: int) -> None:
        if number == self._proposal:
            self._proposal += 1
            self.handle(IsrAnswered(ErrorCode.REQUEST_TIMED_OUT, (), NO_EPOCH, -1))

    def proposal_answered(self, answer: tuple[int, IsrAnswered]) -> None:
        """The controller's answer to an ISR proposal; one that comes too late finds its connection closed."""
        number, told = answer
        if number == self._proposal:
            self._proposal += 1
            self.handle(told)
