"""Starts, signals and stops the processes of a real Kafka cluster."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from harness.clients.conversation import Answer, Conversation
from harness.errors import EnvironmentFault, NoAnswer
from harness.model import CLIENTS, CONTROLLER, CONTROLLER_ID, is_broker, node_id
from harness.target import TopicSpec
from harness.targets.kafka.fetching import Distribution
from harness.targets.kafka.layout import Layout, Listener
from harness.targets.kafka.local import LocalKafka
from harness.targets.kafka.nodes import KafkaNode, KraftNode, ZooKeeperController, new_cluster_id
from harness.targets.kafka.proxies import Proxies
from harness.targets.kafka.real import RealKafka
from harness.targets.kafka.releases import Metadata
from harness.targets.kafka.server_properties import KafkaSettings
from harness.targets.kafka.topics import create_assigned
from harness.targets.kafka.zookeeper import give_control, registered, vacate_control
from harness.targets.link_probe import ping_as_client
from harness.targets.node_evidence import NODE_WIRE, folder_of, wire_rows
from harness.targets.node_process import Spawned
from harness.targets.strays import kill_strays, processes_left
from harness.wire.declaration import Message
from harness.wire.messages.metadata import MetadataRequest, MetadataResponse
from harness.wire.messages.topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse

_ANSWER_TIMEOUT_S = 1.0
_ZOOKEEPER_TIMEOUT_S = 2.0
_HEARD_TIMEOUT_S = 20.0
_ELECTIONS = 3
"""After how long without effect a controller is deposed."""
_NEWEST = 4
"""The newest request version that is used."""

_NOT_HEARD = "the brokers have not all heard of each other"
_LOADING = "Loading logs"
_GROUPS_TOPIC = "__consumer_offsets"
_PROBED_TOPIC = "seawall-probe"
"""A topic that requests name and nothing creates."""
_NOT_CONTROLLER = 41
"""Kafka's error code for a request that only the active controller serves."""


class KafkaCluster(RealKafka[KafkaNode]):
    """The base of the target: the nodes, their addresses, the proxies, and which processes run.

    Args:
        directory: where the nodes keep their files; created when missing.
        brokers: how many brokers, with the ids 0, 1, 2 ...
        kafka: the release, and which nodes are controllers.
        settings: of every broker.
        spawned: called with the name and process id of each process right after its start.
    """

    _READY_TIMEOUT_S = 60.0
    _SHUT_DOWN_TIMEOUT_S = 30.0
    _POLL_S = 0.05

    def __init__(
        self, directory: Path, brokers: int, kafka: LocalKafka, settings: KafkaSettings, spawned: Spawned
    ) -> None:
        super().__init__()
        self._directory = directory.resolve()
        self._settings = settings
        self._spawned = spawned
        self._metadata = kafka.release.metadata
        self._control = kafka.control
        self._controllers = self._control.controllers(brokers)
        self._nodes = {name: self._new_node(name, kafka.distribution) for name in self._control.nodes(brokers)}
        self._layout: Layout | None = None
        self._proxies: Proxies | None = None
        self._taps: dict[str, Path] = {}

    def _new_node(self, name: str, distribution: Distribution) -> KafkaNode:
        directory = self._directory / folder_of(name)
        if self._metadata is Metadata.KRAFT:
            return KraftNode(name, directory, distribution, self._spawned, controls=name in self._controllers)
        kind = KafkaNode if is_broker(name) else ZooKeeperController
        return kind(name, directory, distribution, self._spawned)

    # ------------------------------------------------------------------------------------------------ life

    def tap(self) -> None:
        """See :class:`harness.controls.WireTaps`: in the proxies, which lie on every way to a node."""
        self._taps = {name: self._directory / folder_of(name) / NODE_WIRE for name in self._nodes}

    def wire(self) -> Iterator[dict[str, Any]]:
        """See :class:`harness.controls.WireTaps`."""
        return (row for name, path in self._taps.items() for row in wire_rows(node_id(name), path))

    def start(self) -> None:
        """See :class:`harness.target.Target`."""
        assert self._layout is None, "a target starts once"
        self._layout = Layout.claim(len(self.brokers()), self._metadata, self._control)
        self._proxies = Proxies(self._layout, self._directory / "links", self._taps)
        self._proxies.start()
        if self._proxies.pid is not None:
            self._spawned("proxies", self._proxies.pid)
        cluster_id = new_cluster_id()
        for node in self._nodes.values():
            node.configure(self._layout, self._settings, cluster_id)
        for name in reversed(self._nodes):
            self._spawn(self._nodes[name])
        self._await("the nodes have not all come up", self._all_answer)
        if self._metadata is Metadata.ZOOKEEPER:
            self._elect_until(lambda: self._controller_acts() and self._all_know_each_other(), _NOT_HEARD)
        else:
            self._await(_NOT_HEARD, self._all_know_each_other)
        self._create_topic(self._groups_topic())

    def stop(self) -> None:
        """See :class:`harness.target.Target`. By SIGKILL, so that the disks do not change any more."""
        for node in self._nodes.values():
            node.kill()
        if self._proxies is not None:
            self._proxies.stop()
        kill_strays(self._directory)
        for node in self._nodes.values():
            node.forget()
        if self._layout is not None:
            self._layout.release()

    def remains(self) -> Sequence[str]:
        """See :class:`harness.target.Target`."""
        return processes_left(self._directory)

    def bootstrap(self) -> str:
        """See :class:`harness.target.Target`."""
        addresses = (self.layout.seen_by(CLIENTS, name, Listener.CLIENTS) for name in self.brokers())
        return ",".join(f"{host}:{port}" for host, port in addresses)

    def _create_topic(self, topic: TopicSpec) -> None:
        """Ask for the topic, past the proxies, with its replicas on the brokers proper."""
        addresses = (self.layout.real(name, Listener.HARNESS) for name in self.brokers())
        bootstrap = ",".join(f"{host}:{port}" for host, port in addresses)
        create_assigned(bootstrap, topic, list(map(node_id, self.brokers())))

    def _groups_topic(self) -> TopicSpec:
        """``__consumer_offsets``. Kafka would place it at random, with ZooKeeper on the controller's broker, too.

        Its place matters: a follower fetches all partitions of a leader in one request, so that an idle partition
        delays the others by up to ``replica.fetch.wait.max.ms``.
        """
        replicas = min(3, len(self.brokers()))
        configs = {"cleanup.policy": "compact", "compression.type": "producer", "segment.bytes": "1048576"}
        return TopicSpec(_GROUPS_TOPIC, 1, replicas, configs=configs)

    # ------------------------------------------------------------------------------------------------ nodes

    @property
    def _has_begun(self) -> bool:
        return self._layout is not None

    @property
    def layout(self) -> Layout:
        """The addresses of the running cluster."""
        assert self._layout is not None, "the target has not been started"
        return self._layout

    @property
    def proxies(self) -> Proxies:
        """The links of the running cluster."""
        assert self._proxies is not None, "the target has not been started"
        return self._proxies

    def nodes(self) -> Sequence[str]:
        """See :class:`harness.target.Target`."""
        return list(self._nodes)

    def brokers(self) -> list[str]:
        """The names of the brokers that hold replicas, in order."""
        return [name for name in self._nodes if is_broker(name)]

    def pids(self) -> Mapping[str, Sequence[int]]:
        """The ids of each node's processes."""
        return {node.name: node.pids for node in self._nodes.values()}

    def restart(self, node: str) -> None:
        """See :class:`harness.controls.Processes`. With ZooKeeper the broker's old session has to end first."""
        process = self._resting(node)
        if self._metadata is Metadata.ZOOKEEPER and node != CONTROLLER:
            self._await_end_of_session(node)
        self._spawn(process)
        self._await(f"node {node} has not come up", lambda: self._came_up(node))
        if node == CONTROLLER:
            self._give_control()

    def _came_up(self, node: str) -> bool:
        self.proxies.require_running()
        return super()._came_up(node)

    def start_and_die(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        process = self._resting(node)
        logs = {path: path.stat().st_size for path in process.logs.values() if path.exists()}
        self._spawn(process)
        self._await(f"node {node} does not load its logs", lambda: any(_says(_LOADING, *log) for log in logs.items()))
        process.kill()

    def resume(self, node: str) -> None:
        """See :class:`harness.controls.Processes`. With ZooKeeper the node ``controller`` is elected again."""
        super().resume(node)
        if node == CONTROLLER and self._node(node).is_whole:
            self._give_control()

    # ------------------------------------------------------------------------------------------------ internals

    def _environment(self, node: str) -> Mapping[str, str]:
        """The environment variables of a node's processes beside those of this process."""
        del node
        return {}

    def _spawn(self, process: KafkaNode) -> None:
        process.spawn(self._environment(process.name))

    def _answers(self, node: str) -> bool:
        """Whether the node answers the harness now; one that a signal has stopped does not.

        A combined node has to answer as a broker, unless it may be cut off from the others: no broker starts before it
        reaches the active controller.
        """
        process, listeners = self._node(node), self.layout.listeners(node)
        if not process.is_whole or process.is_stopped:
            return False
        as_controller = Listener.CONTROLLER in listeners and (
            Listener.HARNESS not in listeners or self._may_be_out_of_touch(node)
        )
        listener = Listener.CONTROLLER if as_controller else Listener.HARNESS
        return ping_as_client(self.layout.real(node, listener), _ANSWER_TIMEOUT_S, lambda: 0) is None

    def _may_be_out_of_touch(self, node: str) -> bool:
        """Whether too few controllers run to elect one, or the node is cut off from another."""
        running = sum(map(self._goes_on, self._controllers))
        return 2 * running <= len(self._controllers) or self.proxies.cuts_off(node)

    def _all_know_each_other(self) -> bool:
        """Whether every broker knows every broker, and with ZooKeeper the controller."""
        speaking = [name for name in self._nodes if Listener.HARNESS in self.layout.listeners(name)]
        brokers = {node_id(name) for name in speaking}
        metadata = [self._answer_of(name, MetadataRequest(topics=[]), MetadataResponse) for name in speaking]
        return all(
            one is not None
            and {broker.node_id for broker in one.brokers} == brokers
            and (self._metadata is Metadata.KRAFT or one.controller_id == CONTROLLER_ID)
            for one in metadata
        )

    def _answer_of(self, node: str, body: Message, answer: type[Answer]) -> Answer | None:
        """The node's answer, past the proxies; None when it does not answer."""
        conversation = Conversation(node_id(node), self.layout.real(node, Listener.HARNESS), _ANSWER_TIMEOUT_S)
        try:
            return conversation.ask(body, answer, _NEWEST)
        except NoAnswer:
            return None
        finally:
            conversation.close()

    def _give_control(self) -> None:
        """With ZooKeeper: have the node ``controller`` act as Kafka's controller, if it runs and is not cut off."""
        if self._metadata is Metadata.ZOOKEEPER and not self.has_exited(CONTROLLER).holds:
            self._elect_until(self._controller_acts, "the elected controller does not act")

    def _elect_until(self, holds: Callable[[], bool], complaint: str) -> None:
        """With ZooKeeper: have the node ``controller`` elected, and again until ``holds`` is true.

        A controller of 0.10.2.2 can stay without effect in two ways. One that was elected twice in a row sent the state
        of its first epoch last; the brokers refused it, and it sent nothing more. Another refused requests for a minute
        (NOT_CONTROLLER) while ZooKeeper named it. A newly elected controller begins by sending its whole state.
        """
        for _ in range(_ELECTIONS):
            give_control(self.layout.zookeeper, self._READY_TIMEOUT_S)
            with suppress(EnvironmentFault):
                self._await(complaint, holds, _HEARD_TIMEOUT_S)
                return
            vacate_control(self.layout.zookeeper)
        give_control(self.layout.zookeeper, self._READY_TIMEOUT_S)
        self._await(complaint, holds)

    def _controller_acts(self) -> bool:
        """With ZooKeeper: whether the node ``controller`` serves requests that only the active controller serves."""
        asked = CreateTopicsRequest([CreatableTopic(_PROBED_TOPIC, 1, 1)], validate_only=True)
        answer = self._answer_of(CONTROLLER, asked, CreateTopicsResponse)
        return answer is not None and not any(one.error_code == _NOT_CONTROLLER for one in answer.topics)

    def _await_end_of_session(self, node: str) -> None:
        """Wait until the broker's last session has ended; return at once when ZooKeeper does not answer."""
        deadline = time.monotonic() + 2 * self._settings.session_timeout_ms / 1000
        with suppress(EnvironmentFault):
            while (
                node_id(node) in registered(self.layout.zookeeper, _ZOOKEEPER_TIMEOUT_S) and time.monotonic() < deadline
            ):
                time.sleep(self._POLL_S)


def _says(what: str, log: Path, since: int) -> bool:
    """Whether ``what`` is in the log after its first ``since`` bytes."""
    return log.exists() and what.encode() in log.read_bytes()[since:]
