"""The simulated controller's process: the controller core, its durable state, and its pushes to the brokers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from harness.error_codes import NO_ERROR
from harness.model import CONTROLLER_ID, NodeId
from harness.replication.controller import Controller
from harness.replication.controller_messages import (
    AnswerElection,
    AnswerHeartbeat,
    AnswerIsrChange,
    AnswerPlacement,
    AnswerProducerIds,
    AnswerRegistration,
    AnswerTopicChange,
    AnswerTopicCreation,
    ControllerEvent,
    ControllerStarted,
    Elected,
    ElectionRequested,
    HeartbeatReceived,
    IsrChanged,
    IsrChangeRequested,
    PartitionState,
    Persist,
    RegistrationRequested,
    SendDeletions,
    SendMetadata,
    SendPartitionStates,
    SessionChanged,
    TopicCreationRequested,
)
from harness.replication.knobs import Knobs
from harness.replication.messages import IsrAnswered, ProposeIsr, Tick
from harness.simulation.core.broker import Broker
from harness.simulation.core.configuration import MS, PARTITION, Configuration
from harness.simulation.core.in_flight import StateUpdate
from harness.simulation.core.network import Network
from harness.simulation.core.process import Process
from harness.simulation.core.scheduler import Scheduler
from harness.simulation.core.session_updates import Informing
from harness.simulation.run_observers import ControllerObservers

_PUSH_AGAIN_NS = 5 * MS


class _Push(NamedTuple):
    """An unconfirmed state for a broker, of the controller of ``controller_epoch``."""

    number: int
    controller_epoch: int
    state: PartitionState


class ControllerProcess(Process):
    """See the module.

    Args:
        brokers: by their ids.
        configuration: what was drawn.
        knobs: the protocol.
        scheduler: its timers.
        network: carries its pushes.
        observers: called with what it does.
        luck: draws the delays of session updates.

    Attributes:
        core: None while the process is dead.
    """

    node = CONTROLLER_ID

    __slots__ = (
        "_brokers", "_configuration", "_informing", "_knobs", "_network", "_observers", "_performers", "_persisted",
        "_pushes", "_scheduler", "_sent", "core",
    )  # fmt: skip

    def __init__(
        self,
        brokers: Sequence[Broker],
        configuration: Configuration,
        knobs: Knobs,
        scheduler: Scheduler,
        network: Network,
        *,
        observers: ControllerObservers,
        luck: Callable[[], float],
    ) -> None:
        super().__init__(len(brokers), "ctl")
        self._brokers = brokers
        self._configuration = configuration
        self._knobs = knobs
        self._scheduler = scheduler
        self._network = network
        self._observers = observers
        self._persisted: Mapping[str, Any] | None = None
        self._pushes: dict[NodeId, _Push] = {}
        self._sent = 0
        again_ns = configuration.request_timeout_ms * MS
        self._informing = Informing(self, brokers, scheduler, network, again_ns=again_ns, luck=luck)
        self.core: Controller | None = None
        self._performers: dict[type, Callable[[Any], None]] = {
            Persist: self._persist,
            SendPartitionStates: self._push,
            AnswerRegistration: self._answer_registration,
            AnswerHeartbeat: self._answer_heartbeat,
            AnswerIsrChange: self._answer_proposal,
            Elected: observers.elected,
            IsrChanged: observers.isr_changed,
            SessionChanged: observers.session_changed,
            SendMetadata: self._informing.tell,
            SendDeletions: _ignore,
            AnswerTopicCreation: _ignore,
            AnswerTopicChange: _ignore,
            AnswerElection: _ignore,
            AnswerProducerIds: _ignore,
            AnswerPlacement: _ignore,
        }

    @property
    def partition(self) -> PartitionState | None:
        """The state of the partition as this process has it; None while it is dead."""
        return self.core.partitions[0] if self.core is not None and self.core.partitions else None

    def knows(self, node: NodeId) -> bool:
        """Whether the process of a broker that lives now is the one that registered last."""
        broker = self._brokers[node]
        if self.core is None or not broker.alive:
            return False
        incarnation = _incarnation(broker, broker.life)
        return any(record.incarnation_id == incarnation for record in self.core.brokers)

    # ------------------------------------------------------------------------------------------------- life and death

    def start(self) -> None:
        """A new controller goes on where the last one persisted."""
        configuration = self._configuration
        self.life += 1
        self.alive = True
        self._pushes.clear()
        self.core = Controller(
            configuration.session_timeout_ms,
            self._persisted,
            knobs=self._knobs,
            min_insync_replicas=configuration.min_insync_replicas,
            unclean_leader_election_enable=configuration.unclean_leader_election_enable,
        )
        self._observers.started(self)
        self._handle(ControllerStarted(self._scheduler.now_ns))
        self._tick(None)

    def die(self) -> None:
        """The process is gone; what it persisted is not."""
        self.life += 1
        self.alive = self.paused = False
        self.core = None
        self.waiting.clear()
        self._pushes.clear()
        self._informing.forget()

    def found(self) -> None:
        """At the very beginning: every broker is registered and the partition exists, without any message."""
        assert self.core is not None
        for broker in self._brokers:
            self.registration_arrived((broker, broker.life))
        for record in self.core.brokers:
            self._brokers[record.broker].registered(record.epoch)
        replicas = (tuple(broker.node for broker in self._brokers),)
        self._handle(TopicCreationRequested(None, PARTITION.topic, -1, -1, replicas))

    # ----------------------------------------------------------------------------------------------- the core's events

    def _handle(self, event: ControllerEvent) -> None:
        if self.core is None:
            return
        effects = self.core.handle(event)
        self._observers.handled(self, event, effects)
        performers = self._performers
        for effect in effects:
            performers[type(effect)](effect)

    def _tick(self, _: None) -> None:
        self._handle(Tick(self._scheduler.now_ns))
        self._scheduler.after(self, self._configuration.session_timeout_ms * MS // 4, self._tick, None)

    def _persist(self, effect: Persist) -> None:
        self._persisted = effect.snapshot

    # --------------------------------------------------------------------------------------------------- what arrives

    def registration_arrived(self, sender: tuple[Broker, int]) -> None:
        """A broker announces a process."""
        broker, life = sender
        self._handle(
            RegistrationRequested(
                sender, broker.node, _incarnation(broker, life), "h", 1, self._scheduler.now_ns, broker.clean_epoch
            )
        )

    def heartbeat_arrived(self, beat: tuple[Broker, int, int]) -> None:
        """A broker is alive."""
        broker, _, broker_epoch = beat
        self._handle(HeartbeatReceived(beat, broker.node, broker_epoch, self._scheduler.now_ns))

    def proposal_arrived(self, sent: tuple[Broker, int, int, int, ProposeIsr]) -> None:
        """A leader proposes an in-sync set."""
        broker, _, _, broker_epoch, proposal = sent
        self._handle(
            IsrChangeRequested(
                sent,
                broker.node,
                broker_epoch,
                PARTITION,
                proposal.leader_epoch,
                proposal.partition_epoch,
                proposal.isr,
                proposal.broker_epochs,
            )
        )

    def elect(self, leader: NodeId | None) -> None:
        """An operator wants another leader, cleanly."""
        self._handle(ElectionRequested(None, PARTITION, leader, unclean=False, now_ns=self._scheduler.now_ns))

    # ---------------------------------------------------------------------------------------------------- what leaves

    def _answer_registration(self, answer: AnswerRegistration) -> None:
        sender: Any = answer.token
        broker, life = sender
        if answer.error is NO_ERROR:
            self._network.send(self.index, broker, life, broker.registered, answer.broker_epoch)

    def _answer_heartbeat(self, answer: AnswerHeartbeat) -> None:
        beat: Any = answer.token
        broker, life, _ = beat
        if answer.error is not NO_ERROR:
            self._network.send(self.index, broker, life, broker.session_refused, answer.error)

    def _answer_proposal(self, answer: AnswerIsrChange) -> None:
        sent: Any = answer.token
        broker, life, number, *_ = sent
        state = answer.partition
        result = (
            IsrAnswered(answer.error, (), -1, -1)
            if state is None
            else IsrAnswered(answer.error, state.isr, state.leader_epoch, state.partition_epoch)
        )
        self._network.send(self.index, broker, life, broker.proposal_answered, (number, result))

    # ---------------------------------------------------------------------------------------------------- LeaderAndIsr

    def _push(self, effect: SendPartitionStates) -> None:
        """Send a state until the broker confirms it; a newer one replaces it."""
        self._sent += 1
        push = _Push(self._sent, effect.controller_epoch, effect.partitions[0])
        idle = effect.broker not in self._pushes
        self._pushes[effect.broker] = push
        if idle:
            self._send_push(effect.broker)
        else:
            self._transmit(effect.broker, push)

    def _send_push(self, node: NodeId) -> None:
        push = self._pushes.get(node)
        if push is None or self.core is None:
            return
        if node not in self.core.live_brokers:
            del self._pushes[node]
            return
        self._transmit(node, push)
        self._scheduler.after(self, self._configuration.request_timeout_ms * MS, self._send_push, node)

    def _transmit(self, node: NodeId, push: _Push) -> None:
        assert self.core is not None
        broker = self._brokers[node]
        epoch = next(record.epoch for record in self.core.brokers if record.broker == node)
        update = StateUpdate(push.number, push.controller_epoch, epoch, push.state)
        self._network.send(self.index, broker, broker.life, broker.state_arrived, update)

    def state_refused(self, refusal: tuple[Broker, int]) -> None:
        """A broker does not take the state for its own: its registration may not have been answered yet."""
        self._scheduler.after(self, _PUSH_AGAIN_NS, self._push_again, refusal)

    def _push_again(self, refusal: tuple[Broker, int]) -> None:
        broker, number = refusal
        push = self._pushes.get(broker.node)
        if push is not None and push.number == number:
            self._transmit(broker.node, push)

    def state_confirmed(self, confirmation: tuple[Broker, int]) -> None:
        """A broker has confirmed the controller's push."""
        broker, number = confirmation
        push = self._pushes.get(broker.node)
        if push is not None and push.number == number:
            del self._pushes[broker.node]


def _incarnation(broker: Broker, life: int) -> str:
    return f"{broker.node}.{life}"


def _ignore(_: object) -> None:
    """No broker waits for it."""
