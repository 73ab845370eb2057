"""The controller node: drives the controller core with requests and time, and keeps its state in a durable snapshot."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, assert_never, cast

from harness.broker.complaints import Complaints
from harness.broker.control_channel import Answer, Operation
from harness.broker.control_fields import MAX_INT32, flag, text, whole, whole_or_none
from harness.broker.controller_driver import Token
from harness.broker.controller_requests import (
    allocate_producer_ids,
    alter_partition,
    assign_replicas_to_dirs,
    elect_leaders,
    heartbeat,
    register,
)
from harness.broker.controller_topics import (
    alter_configs,
    create_partitions,
    create_topics,
    delete_topics,
    incremental_alter_configs,
)
from harness.broker.newest_sessions import NewestSessions
from harness.broker.node_environment import NodeEnvironment
from harness.broker.pusher import Pusher
from harness.broker.session import Handle, Request, Sessions, answer_api_versions, is_node, only_from
from harness.broker.settings import Address, NodeConfig
from harness.broker.timeline import ReplicaState, StorageRefusal
from harness.broker.topic_ids import topic_id
from harness.model import NodeId, TopicPartition, node_id
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
    ReplicasDeleted,
    SendDeletions,
    SendMetadata,
    SendPartitionStates,
    SessionChanged,
)
from harness.replication.messages import Tick
from harness.wire.declaration import Message
from harness.wire.keys import ApiKey

SNAPSHOT = "controller.json"
_EXIT_HALTED = 1
_TICK_S = 0.05


class ControllerNode:
    """The cluster's controller on nothing but ports; arguments as :class:`harness.broker.broker.Broker`."""

    def __init__(self, config: NodeConfig, environment: NodeEnvironment) -> None:
        self.clock = environment.clock
        self.settings = config.settings
        self.knobs = config.knobs
        self._config = config
        self._network = environment.network
        self._files = environment.files
        self._timeline = environment.timeline
        self._say = environment.supervisor.say
        self._halt = environment.supervisor.halt
        self._halted = False
        self._pushers: dict[NodeId, Pusher] = {}
        self.core = Controller(
            config.settings.broker_session_timeout_ms,
            _state(self._files.read_text(SNAPSHOT)),
            knobs=self.knobs,
            min_insync_replicas=config.settings.min_insync_replicas,
            unclean_leader_election_enable=config.settings.unclean_leader_election_enable,
        )
        self._names = self._topic_names()
        self._newest_sessions = NewestSessions()
        self.handlers: Mapping[ApiKey, Handle] = {
            ApiKey.API_VERSIONS: answer_api_versions,
            **{key: only_from(is_node, partial(self._serve, handle)) for key, handle in self._handlers().items()},
        }
        complaints = Complaints(environment.supervisor.say, environment.clock)
        self._sessions = Sessions(self.handlers, environment.supervisor.report, complaints.about)

    def _handlers(self) -> dict[ApiKey, Handle]:
        """What it serves to brokers."""
        core, clock = self.core, self.clock
        return {
            ApiKey.BROKER_REGISTRATION: partial(register, self, clock, self._config.cluster_id),
            ApiKey.BROKER_HEARTBEAT: partial(heartbeat, self, clock),
            ApiKey.ALTER_PARTITION: partial(alter_partition, self, self._newest_sessions, self._topic_of),
            ApiKey.CREATE_TOPICS: partial(create_topics, self, core, self._config),
            ApiKey.DELETE_TOPICS: partial(delete_topics, self, self._topic_of),
            ApiKey.CREATE_PARTITIONS: partial(create_partitions, self, core),
            ApiKey.ALTER_CONFIGS: partial(alter_configs, self),
            ApiKey.INCREMENTAL_ALTER_CONFIGS: partial(incremental_alter_configs, self),
            ApiKey.ALLOCATE_PRODUCER_IDS: partial(allocate_producer_ids, self),
            ApiKey.ASSIGN_REPLICAS_TO_DIRS: partial(assign_replicas_to_dirs, self, self._topic_of),
            ApiKey.ELECT_LEADERS: partial(elect_leaders, self, core, clock),
        }

    def _serve(self, handle: Handle, request: Request) -> None:
        self._newest_sessions.heard_on(request.session)
        handle(request)

    def start(self) -> None:
        """Begin a new controller epoch and listen."""
        self.handle(ControllerStarted(self.clock.monotonic_ns()))
        self._network.listen(self._config.listener, self._sessions.accept)
        self._say(f"Started controller epoch {self.core.controller_epoch}, {len(self.core.partitions)} partitions.")
        self._network.call_later(_TICK_S, self._tick)

    def stop(self) -> None:
        """Do nothing: the controller writes its state before any effect."""

    def status(self) -> dict[str, Any]:
        """For the control channel."""
        return {
            "controller_epoch": self.core.controller_epoch,
            "brokers": [{"id": one.broker, "live": one.live, "epoch": one.epoch} for one in self.core.brokers],
            "partitions": [_partition_status(state) for state in self.core.partitions],
        }

    def operations(self) -> dict[str, Operation]:
        """See :class:`harness.broker.node.Node`."""
        return {"elect": self.elect}

    def elect(self, request: dict[str, Any], answer: Answer) -> None:
        """Elect as an operator asks: ``{"topic", "partition", "leader", "unclean"}``; see :class:`ElectionRequested`.

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

    def _topic_names(self) -> dict[bytes, str]:
        cluster = self._config.cluster_id
        return {topic_id(cluster, one.topic, one.incarnation): one.topic for one in self.core.topics}

    def _topic_of(self, topic_id: bytes) -> str | None:
        """The topic with this id; None: there is none."""
        return self._names.get(topic_id)

    def write(self, what: str, write: Callable[[], None]) -> None:
        """See :class:`harness.broker.controller_driver.ControllerDriver`."""
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

    def later(self, act: Callable[[], None]) -> None:
        """See :class:`harness.broker.controller_driver.ControllerDriver`."""
        self._network.call_later(0, act)

    def handle(self, event: ControllerEvent) -> None:
        """See :class:`harness.broker.controller_driver.ControllerDriver`."""
        if self._halted:
            return
        for effect in self.core.handle(event):
            self._perform(effect)
            if self._halted:
                return

    def answer_unless_halted(self, request: Request, body: Message) -> None:
        """See :class:`harness.broker.controller_driver.ControllerDriver`."""
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
                self._names = self._topic_names()
            case SendPartitionStates(broker):
                self._pusher(broker).push_states(effect)
            case SendDeletions(broker, controller_epoch, replicas):
                self._pusher(broker).push_deletions(controller_epoch, replicas)
            case SendMetadata(brokers):
                for broker in brokers:
                    self._pusher(broker).push_metadata(effect)
            case (
                AnswerRegistration()
                | AnswerHeartbeat()
                | AnswerTopicCreation()
                | AnswerTopicChange()
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

    def _replicas_answered(self, answer: ReplicasAnswered | ReplicasDeleted) -> None:
        # Later, not now: the pusher that received the answer is still at work.
        self._network.call_later(0, lambda: self.handle(answer))

    def _endpoints(self) -> list[BrokerEndpoint]:
        return [BrokerEndpoint(one.broker, one.host, one.port) for one in self.core.brokers]


def _state(snapshot: str | None) -> Any:
    """The state that the controller wrote last; None: it has not written any yet.

    Raises:
        OSError: the snapshot is no JSON.
    """
    try:
        return None if snapshot is None else json.loads(snapshot)
    except (ValueError, RecursionError):
        raise OSError(f"the snapshot {SNAPSHOT} is garbled") from None


def _timeline_state(partition: PartitionState) -> ReplicaState:
    """The controller's timeline row about a partition, without a role and offsets, which it does not know."""
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
