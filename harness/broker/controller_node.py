"""The controller node: drives the controller core with requests, time and a durable snapshot."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, assert_never, cast

from harness.broker.complaints import Complaints
from harness.broker.consumer_offsets import ConsumerOffsets
from harness.broker.control_channel import Answer, Operation
from harness.broker.control_fields import MAX_INT32, flag, text, whole, whole_or_none
from harness.broker.controller_requests import controller_handlers
from harness.broker.node_environment import NodeEnvironment
from harness.broker.pusher import Pusher
from harness.broker.session import Request, Session, Sessions
from harness.broker.settings import Address, NodeConfig
from harness.broker.timeline import ReplicaState, StorageRefusal
from harness.broker.topic_ids import TopicIds
from harness.model import NodeId, TopicPartition, node_id
from harness.replication.controller import Controller
from harness.replication.controller_messages import (
    AnswerElection,
    AnswerHeartbeat,
    AnswerIsrChange,
    AnswerPlacement,
    AnswerProducerIds,
    AnswerRegistration,
    AnswerTopicCreation,
    BrokerEndpoint,
    ControllerEffect,
    ControllerEvent,
    ControllerStarted,
    Elected,
    ElectionRequested,
    IsrChanged,
    PartitionState,
    Persist,
    ReplicasAnswered,
    SendMetadata,
    SendPartitionStates,
    SessionChanged,
)
from harness.replication.messages import Tick
from harness.wire.declaration import Message

SNAPSHOT = "controller.json"
_EXIT_HALTED = 1
_TICK_S = 0.05

Token = Callable[[ControllerEffect], None]
"""The ``token`` of every request to the core: takes the core's answer to it."""


class ControllerNode:
    """The cluster's controller on nothing but ports; arguments as :class:`harness.broker.broker.Broker`."""

    def __init__(self, config: NodeConfig, surroundings: NodeEnvironment) -> None:
        self.clock = surroundings.clock
        self.settings = config.settings
        self.knobs = config.knobs
        self.cluster_id = config.cluster_id
        self._config = config
        self._network = surroundings.network
        self._files = surroundings.files
        self._timeline = surroundings.timeline
        self._say = surroundings.say
        self._halt = surroundings.halt
        complaints = Complaints(surroundings.say, surroundings.clock)
        self._sessions = Sessions(controller_handlers(self), surroundings.report, complaints.about)
        self._halted = False
        self._pushers: dict[NodeId, Pusher] = {}
        self._newest_session: dict[str, int] = {}
        self.core = Controller(
            config.settings.broker_session_timeout_ms,
            _state(self._files.read_text(SNAPSHOT)),
            knobs=self.knobs,
            min_insync_replicas=config.settings.min_insync_replicas,
            unclean_leader_election_enable=config.settings.unclean_leader_election_enable,
        )
        self.consumer_offsets = ConsumerOffsets(self._files)
        self._topic_ids = TopicIds(config.cluster_id)

    def start(self) -> None:
        """Begin a new controller epoch and listen."""
        self.handle(ControllerStarted(self.clock.monotonic_ns()))
        self._network.listen(self._config.listener, self._sessions.accept)
        self._say(f"Started controller epoch {self.core.controller_epoch}, {len(self.core.partitions)} partitions.")
        self._network.call_later(_TICK_S, self._tick)

    def stop(self) -> None:
        """Nothing to do: what matters is on disk before it takes effect."""

    def status(self) -> dict[str, Any]:
        """For the control channel."""
        return {
            "controller_epoch": self.core.controller_epoch,
            "brokers": [{"id": one.broker, "live": one.live, "epoch": one.epoch} for one in self.core.brokers],
            "partitions": [_partition_status(state) for state in self.core.partitions],
            "commits": self.consumer_offsets.status(),
        }

    def operations(self) -> dict[str, Operation]:
        """See :class:`harness.broker.node.Node`."""
        return {"elect": self.elect}

    def elect(self, request: dict[str, Any], answer: Answer) -> None:
        """An operator's choice: ``{"topic", "partition", "leader", "unclean"}``; see :class:`ElectionRequested`.

        The answer has ``error``, Kafka's number and its name, and ``partition`` as it is then (null: unknown).
        """
        leader = whole_or_none(request, "leader", 0, MAX_INT32)
        name = TopicPartition(text(request, "topic"), whole(request, "partition", 0, MAX_INT32))

        def elected(outcome: ControllerEffect) -> None:
            assert isinstance(outcome, AnswerElection)
            partition = None if outcome.partition is None else _partition_status(outcome.partition)
            answer({"error_code": int(outcome.error), "error_name": outcome.error.name, "partition": partition})

        self.handle(
            ElectionRequested(
                elected,
                name,
                None if leader is None else NodeId(leader),
                flag(request, "unclean"),
                self.clock.monotonic_ns(),
            )
        )

    def topic_of(self, topic_id: bytes) -> str | None:
        """The topic with this id; None: there is none."""
        for state in self.core.partitions:
            self._topic_ids.of(state.topic_partition.topic)
        return self._topic_ids.name_of(topic_id)

    def write(self, what: str, write: Callable[[], None]) -> None:
        """Write something down; if that fails, the controller halts."""
        try:
            write()
        except OSError as error:
            self._halted = True
            self._say(f"FATAL: Halting: {what} cannot be written: {error.strerror}.")
            refusal = StorageRefusal(error.errno or 0, None, f"write {what}")
            self._timeline.about_node("storage_failed", refusal._asdict())
            self._halt(_EXIT_HALTED)

    def address_of(self, node: str) -> Address:
        """The listener that a broker registered.

        Raises:
            ValueError: no such broker has registered.
        """
        for record in self.core.brokers:
            if record.broker == node_id(node):
                return record.host, record.port
        raise ValueError(f"broker {node} has not registered")

    def heard_on(self, session: Session) -> None:
        """A broker sent a request over ``session``."""
        self._newest_session[session.peer] = max(self._newest_session.get(session.peer, -1), session.number)

    def is_abandoned(self, session: Session) -> bool:
        """Whether its broker has been heard over a newer connection: a mended link may deliver what an old one held."""
        return session.number < self._newest_session.get(session.peer, -1)

    def later(self, act: Callable[[], None]) -> None:
        """Call ``act`` after what is already waiting to be served."""
        self._network.call_later(0, act)

    def handle(self, event: ControllerEvent) -> None:
        """Hand ``event`` to the core and do what it says, in order; nothing after a failed write."""
        if self._halted:
            return
        for effect in self.core.handle(event):
            self._perform(effect)
            if self._halted:
                return

    def answer_unless_halted(self, request: Request, body: Message) -> None:
        """Answer, unless what the answer says could not be written down."""
        if not self._halted:
            request.answer(body)

    def _tick(self) -> None:
        self.handle(Tick(self.clock.monotonic_ns()))
        if not self._halted:
            self._network.call_later(_TICK_S, self._tick)

    # ------------------------------------------------------------------------------------ effects

    def _perform(self, effect: ControllerEffect) -> None:
        match effect:
            case Persist(snapshot):
                text = json.dumps(snapshot)
                self.write("the state", lambda: self._files.replace_text(SNAPSHOT, text, flush=True))
            case SendPartitionStates(broker, controller_epoch, partitions, are_new):
                self._pusher(broker).push_states(controller_epoch, partitions, are_new=are_new)
            case SendMetadata(brokers):
                for broker in brokers:
                    self._pusher(broker).push_metadata(effect)
            case (
                AnswerRegistration()
                | AnswerHeartbeat()
                | AnswerTopicCreation()
                | AnswerIsrChange()
                | AnswerElection()
                | AnswerProducerIds()
                | AnswerPlacement()
            ):
                cast("Token", effect.token)(effect)
            case Elected() | IsrChanged():
                self._record(effect)
            case SessionChanged():
                self._session_changed(effect)
            case _:
                assert_never(effect)

    def _record(self, effect: Elected | IsrChanged) -> None:
        partition = effect.partition
        detail: dict[str, object] = {"controller_epoch": effect.controller_epoch, "cause": effect.cause}
        if partition.elr or partition.last_known_elr:
            detail |= {"elr": partition.elr, "last_known_elr": partition.last_known_elr}
        if isinstance(effect, Elected):
            detail["clean"] = effect.clean
            detail["elected_from_isr"] = effect.elected_from_isr
            detail["previous_leader"] = effect.previous_leader
            self._timeline.about_replica("election", partition.topic_partition, _timeline_state(partition), detail)
        else:
            detail["previous_isr"] = list(effect.previous_isr)
            self._timeline.about_replica("isr", partition.topic_partition, _timeline_state(partition), detail)
        self._say(
            f"{partition.topic_partition}: leader {partition.leader}, leader epoch {partition.leader_epoch}, "
            f"ISR {list(partition.isr)}, partition epoch {partition.partition_epoch}: {effect.cause}."
        )

    def _session_changed(self, effect: SessionChanged) -> None:
        self._timeline.about_node("session", {"broker": effect.broker, "change": effect.change})
        self._say(f"Session of broker {effect.broker}, epoch {effect.broker_epoch}: {effect.change}.")
        pusher = self._pushers.pop(effect.broker, None)
        if pusher is not None:
            pusher.stop()

    def _pusher(self, broker: NodeId) -> Pusher:
        pusher = self._pushers.get(broker)
        if pusher is None:
            record = next(record for record in self.core.brokers if record.broker == broker)
            timeout_s = self.settings.broker_session_timeout_ms / 1000
            pusher = Pusher(self._network, record, timeout_s, self._endpoints, self._replicas_answered)
            self._pushers[broker] = pusher
        return pusher

    def _replicas_answered(self, answer: ReplicasAnswered) -> None:
        # Later, not now: the pusher that has heard it is in the middle of its work.
        self._network.call_later(0, lambda: self.handle(answer))

    def _endpoints(self) -> list[BrokerEndpoint]:
        return [BrokerEndpoint(one.broker, one.host, one.port) for one in self.core.brokers]


def _state(snapshot: str | None) -> Any:
    """What the controller wrote down last; None: it has not written anything yet.

    Raises:
        OSError: the snapshot is no JSON.
    """
    try:
        return None if snapshot is None else json.loads(snapshot)
    except (ValueError, RecursionError):
        raise OSError(f"the snapshot {SNAPSHOT} is garbled") from None


def _timeline_state(partition: PartitionState) -> ReplicaState:
    """The controller's row about a partition: no role and no offsets, which it does not know."""
    return ReplicaState(
        None, partition.leader, partition.leader_epoch, partition.partition_epoch, None, None, None, partition.isr
    )


def _partition_status(state: PartitionState) -> dict[str, Any]:
    topic, number = state.topic_partition
    return {
        "topic": topic,
        "partition": number,
        "leader": state.leader,
        "leader_epoch": state.leader_epoch,
        "partition_epoch": state.partition_epoch,
        "isr": list(state.isr),
        "replicas": list(state.replicas),
        "elr": list(state.elr),
        "last_known_elr": list(state.last_known_elr),
        "last_known_leader": state.last_known_leader,
    }
