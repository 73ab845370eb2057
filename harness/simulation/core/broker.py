"""A simulated broker: one replica core on a disk, its fetcher, and its requests to the controller.

The conversations are those of the real broker: fetches parked while there is nothing to answer them with, heartbeats,
proposals that time out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from harness.error_codes import NO_ERROR, ErrorCode
from harness.model import NO_EPOCH, NodeId, Offset
from harness.replication.knobs import Knobs
from harness.replication.log_state import StoredLog
from harness.replication.messages import (
    AnswerDeleteRecords,
    AnswerFetch,
    AnswerProduce,
    Append,
    Appended,
    AppendFailed,
    CheckpointEpochs,
    FetchReceived,
    HighWatermarkAdvanced,
    IsrAnswered,
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
from harness.replication.replica import Replica, ReplicaConfig
from harness.simulation.core.clients import Poll, Produce
from harness.simulation.core.configuration import MS, PARTITION, Configuration
from harness.simulation.core.disk import Disk, laid_out
from harness.simulation.core.fetching import Fetcher
from harness.simulation.core.in_flight import Asked, StateUpdate
from harness.simulation.core.network import Network
from harness.simulation.core.process import Process, Receiver
from harness.simulation.core.scheduler import Scheduler
from harness.simulation.run_observers import ReplicaObservers

ENOSPC = 28
REGISTER_AGAIN_NS = 5 * MS


class Controller(Receiver, Protocol):
    """What a broker sends to the controller: each names the broker, and in which of its lives it has sent it."""

    def registration_arrived(self, sender: tuple[Broker, int]) -> None:
        """It announces a process."""
        ...

    def heartbeat_arrived(self, beat: tuple[Broker, int, int]) -> None:
        """It is alive, under this broker epoch."""
        ...

    def proposal_arrived(self, sent: tuple[Broker, int, int, int, ProposeIsr]) -> None:
        """It leads, and proposes an in-sync set: the number of the proposal, and the broker epoch."""
        ...

    def state_confirmed(self, confirmation: tuple[Broker, int]) -> None:
        """It has taken in the update of that number."""
        ...

    def state_refused(self, refusal: tuple[Broker, int]) -> None:
        """It does not take the update of that number for its own."""
        ...


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
        "_configuration", "_controller", "_fetcher", "_knobs", "_network", "_observers", "_parked", "_performers",
        "_proposal", "_scheduler", "_witness", "broker_epoch", "clean_epoch", "clock_ns", "dirty", "disk",
        "lossy", "node", "replica",
    )  # fmt: skip

    _controller: Controller

    def __init__(
        self,
        node: NodeId,
        configuration: Configuration,
        knobs: Knobs,
        scheduler: Scheduler,
        network: Network,
        *,
        observers: ReplicaObservers,
    ) -> None:
        super().__init__(node, f"b{node}")
        self._configuration = configuration
        self._knobs = knobs
        self._scheduler = scheduler
        self._network = network
        self._observers = observers
        self._witness = observers.witness
        self.node = node
        flush_messages = 0 if "flush_forgotten" in knobs.bugs else configuration.flush_messages
        self.disk = Disk(flush_messages, checkpoints_flushed=configuration.checkpoints_flushed)
        self.replica: Replica | None = None
        self.alive = False
        self.broker_epoch = -1
        self.clean_epoch = -1
        self.clock_ns = 0
        self.dirty = False
        self.lossy = False
        self._fetcher = Fetcher(self, configuration, scheduler, network)
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
            AnswerDeleteRecords: _answer_deletion,
            ProposeIsr: self._propose,
            HighWatermarkAdvanced: self._watermark_advanced,
            ReplicaFailed: self._failed,
        }

    def meet(self, peers: Sequence[Broker], controller: Controller) -> None:
        """Connect it with every broker by its id, itself included, and the controller."""
        self._fetcher.leaders = peers
        self._controller = controller

    @property
    def now_ns(self) -> int:
        """The time of its wall clock."""
        return self._scheduler.now_ns + self.clock_ns

    # ------------------------------------------------------------------------------------------------- life and death

    def start(self) -> None:
        """A new process on what the disk holds; it registers when it can."""
        configuration, scheduler, disk = self._configuration, self._scheduler, self.disk
        self.life += 1
        self.alive = True
        self.replica = Replica(
            self.node,
            PARTITION,
            self._knobs,
            ReplicaConfig(
                min_insync_replicas=configuration.min_insync_replicas,
                replica_lag_time_max_ms=configuration.replica_lag_time_max_ms,
                unclean_leader_election_enable=configuration.unclean_leader_election_enable,
            ),
            StoredLog(
                log_start_offset=disk.start,
                log_end_offset=disk.end,
                epoch_entries=disk.recover_epochs(),
                high_watermark=disk.watermark,
            ),
        )
        disk.clean = False
        self.broker_epoch = -1
        self._fetcher.begin()
        self._parked.clear()
        self._observers.started(self)
        scheduler.after(self, configuration.heartbeat_ms * MS, self._beat, None)
        scheduler.after(self, configuration.replica_lag_time_max_ms * MS // 2, self._tick, None)
        scheduler.after(self, configuration.checkpoint_ms * MS, self._checkpoint_watermark, None)
        if configuration.flush_ms:
            scheduler.after(self, configuration.flush_ms * MS, self._flush, None)
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
        self._observers.handled(self, event, effects)
        performers = self._performers
        for effect in effects:
            performers[type(effect)](effect)
        self._observers.observed(self)

    def _append(self, effect: Append) -> None:
        if self.disk.full:
            self.handle(AppendFailed(ENOSPC))
            return
        payload: Any = effect.payload
        batches = [laid_out(effect.spans[0], payload.values)] if isinstance(payload, Produce) else payload
        self.disk.append(batches)
        self._witness.appended(self, batches)
        self.handle(Appended(self.now_ns))
        if self._parked:
            self._answer_parked()

    def _truncate(self, effect: Truncate) -> None:
        end_before = self.disk.end
        cut = self.disk.truncate(effect.to_offset)
        self._observers.truncated(self, effect, cut, end_before)
        self.handle(Truncated(self.disk.end))

    def _move_start(self, effect: RaiseLogStart | StartLogAt) -> None:
        from_offset = self.disk.start
        self._observers.log_start_moves(self, effect)
        done = self.disk.move_start(effect)
        self._observers.log_start_moved(self, effect, from_offset)
        self.handle(done)

    def _checkpoint_epochs(self, effect: CheckpointEpochs) -> None:
        self.disk.checkpoint_epochs(effect.entries)
        self._witness.epochs_changed(self, effect.entries)

    def _watermark_advanced(self, effect: HighWatermarkAdvanced) -> None:
        self._witness.watermark_advanced(self, effect.high_watermark)
        self._observers.observed(self)  # before the next effect, which may cut the log below it (KAFKA-14704)

    def _failed(self, effect: ReplicaFailed) -> None:
        """The broker, which has only this replica, exits, and is started again in a while."""
        self._witness.failed(self, effect)
        self.die()
        self.dirty = True
        life = self.life
        self._observers.exited(self, effect)
        retry_ns = 2 * self._configuration.session_timeout_ms * MS
        restart_ns = self._scheduler.now_ns + retry_ns
        self._scheduler.at(restart_ns, lambda _: self.start() if self.life == life else None, None)

    # -------------------------------------------------------------------------------------------------------- timers

    def _beat(self, _: None) -> None:
        if self.broker_epoch >= 0:
            controller = self._controller
            beat = (self, self.life, self.broker_epoch)
            self._network.send(self.index, controller, controller.life, controller.heartbeat_arrived, beat)
        self._scheduler.after(self, self._configuration.heartbeat_ms * MS, self._beat, None)

    def _tick(self, _: None) -> None:
        self.handle(Tick(self.now_ns))
        self._scheduler.after(self, self._configuration.replica_lag_time_max_ms * MS // 2, self._tick, None)

    def _checkpoint_watermark(self, _: None) -> None:
        if self.replica is not None:
            self.disk.checkpoint_watermark(self.replica.high_watermark)
        self._scheduler.after(self, self._configuration.checkpoint_ms * MS, self._checkpoint_watermark, None)

    def _flush(self, _: None) -> None:
        self.disk.flush()
        self._scheduler.after(self, self._configuration.flush_ms * MS, self._flush, None)

    # ---------------------------------------------------------------------------------------------- a leader answers

    def fetch_arrived(self, asked: Asked) -> None:
        """A follower's fetch."""
        wanted = asked.wanted
        asked.event = FetchReceived(
            asked, asked.node, wanted.fetch_offset, wanted.leader_epoch, wanted.last_fetched_epoch,
            self.now_ns, asked.broker_epoch, wanted.high_watermark, asked.log_start,
        )  # fmt: skip
        self.handle(asked.event)

    def _answer_fetch(self, answer: AnswerFetch) -> None:
        asked: Any = answer.token
        if answer.error is NO_ERROR:
            self._witness.fetch_served(self, asked.wanted)
            if answer.diverging is None and asked.wanted.fetch_offset >= self.disk.end:
                asked.parked = True
                self._parked.append(asked)
                wait_ns = self._configuration.replica_fetch_wait_max_ms * MS
                self._scheduler.after(self, wait_ns, self._expire_fetch, asked)
                return
        self._respond(asked, answer)

    def _respond(self, asked: Asked, answer: AnswerFetch) -> None:
        good = answer.error is NO_ERROR and answer.diverging is None
        batches = self.disk.read(asked.wanted.fetch_offset, self._configuration.fetch_batches) if good else []
        self._network.send(self.index, asked.follower, asked.life, asked.answered, (asked, answer, batches))

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
                self._witness.fetch_served(self, asked.wanted)
            self._respond(asked, answer)

    def lookup_arrived(self, lookup: Asked) -> None:
        """A follower asks where an epoch ends."""
        if self.replica is None:
            return
        wanted = lookup.wanted
        error, end = self.replica.judge_lookup(wanted.leader_epoch, wanted.requested_epoch)
        if error is NO_ERROR:
            self._witness.lookup_served(self, wanted)
        self._network.send(self.index, lookup.follower, lookup.life, lookup.answered, (lookup, error, end))

    # ------------------------------------------------------------------------------------------------------- clients

    def produce_arrived(self, produce: Produce) -> None:
        """A client's records."""
        count, now_ns = len(produce.values), self.now_ns
        self.handle(ProduceRequested(produce, produce.acks, (count,), produce, now_ns))
        if produce.acks == -1 and not produce.answered:
            configuration = self._configuration
            wait_ms = configuration.produce_wait_ms or configuration.send_timeout_ms
            self._scheduler.after(self, wait_ms * MS, self._expire_produce, produce)

    def _expire_produce(self, produce: Produce) -> None:
        if not produce.answered:
            self.handle(ProduceExpired(produce))

    def _answer_produce(self, answer: AnswerProduce) -> None:
        produce: Any = answer.token
        produce.answered = True
        if answer.error is NO_ERROR:
            self._witness.acknowledged(self, produce, answer.base_offset)
        if produce.acks:
            producer = produce.producer
            result = (produce, answer.error, answer.base_offset)
            self._network.send(self.index, producer, producer.life, producer.answered, result)

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
        self._network.send(self.index, consumer, consumer.life, consumer.answered, (poll, error, found))

    # ------------------------------------------------------------------------------------------------- the controller

    def register(self, _: object = None) -> None:
        """Announce this process until the controller has accepted it."""
        if self.broker_epoch < 0:
            controller = self._controller
            own = (self, self.life)
            self._network.send(self.index, controller, controller.life, controller.registration_arrived, own)
            again_ns = self._configuration.heartbeat_ms * MS // 2 + REGISTER_AGAIN_NS
            self._scheduler.after(self, again_ns, self.register, None)

    def registered(self, broker_epoch: int) -> None:
        """The controller has accepted this process."""
        if self.broker_epoch < 0:
            self.broker_epoch = broker_epoch

    def session_refused(self, _: ErrorCode) -> None:
        """The controller has no such session."""
        if self.broker_epoch >= 0:
            self.broker_epoch = -1
            self.register()

    def state_arrived(self, update: StateUpdate) -> None:
        """A LeaderAndIsr: the broker confirms it, new or not, or refuses it if it is for another incarnation."""
        controller, replica = self._controller, self.replica
        if replica is None:
            return
        if not self.takes_for_its_own(update.broker_epoch):
            self._network.send(self.index, controller, controller.life, controller.state_refused, (self, update.number))
            return
        self._network.send(self.index, controller, controller.life, controller.state_confirmed, (self, update.number))
        _, leader, leader_epoch, partition_epoch, isr, replicas, *_ = update.state
        before = (replica.leader_epoch, replica.partition_epoch)
        self.handle(
            PartitionStateChanged(
                leader, leader_epoch, isr, replicas, partition_epoch, self.now_ns, update.controller_epoch
            )
        )
        if self.replica is None or (replica.leader_epoch, replica.partition_epoch) == before:
            return
        self._witness.state_applied(self, before)
        if replica.leader_epoch != before[0]:
            if self._parked:
                self._answer_parked()
            self._fetcher.leader_changed(replica.leader)

    def takes_for_its_own(self, broker_epoch: int) -> bool:
        """Whether a push of the controller for ``broker_epoch`` is for this process, as far as it can tell."""
        return self._knobs.broker_bounce == "unnoticed" or broker_epoch == self.broker_epoch

    def _propose(self, proposal: ProposeIsr) -> None:
        controller = self._controller
        self._proposal += 1
        sent = (self, self.life, self._proposal, self.broker_epoch, proposal)
        self._witness.proposed(self, proposal)
        self._network.send(self.index, controller, controller.life, controller.proposal_arrived, sent)
        self._scheduler.after(self, self._configuration.request_timeout_ms * MS, self._expire_proposal, self._proposal)

    def _expire_proposal(self, number: int) -> None:
        if number == self._proposal:
            self._proposal += 1
            self.handle(IsrAnswered(ErrorCode.REQUEST_TIMED_OUT, (), NO_EPOCH, -1))

    def proposal_answered(self, answer: tuple[int, IsrAnswered]) -> None:
        """The controller's answer to an ISR proposal; one that comes too late finds its connection closed."""
        number, result = answer
        if number == self._proposal:
            self._proposal += 1
            self.handle(result)


def _answer_deletion(answer: AnswerDeleteRecords) -> None:
    """Call the requester back."""
    ordered: Any = answer.token
    ordered(answer)
