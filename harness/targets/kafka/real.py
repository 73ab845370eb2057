"""The part of a target that is the same for every way to run real Kafka: signals to nodes, probes and evidence."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from harness.errors import EnvironmentFault
from harness.history.blocks import Block
from harness.model import NodeId, Offset, TopicPartition, node_id
from harness.target import ClusterView, Ending, Leadership, Receipt, ReplicaView, TopicSpec
from harness.targets.awaiting import Talkative, await_that
from harness.targets.kafka.electing import Electing
from harness.targets.kafka.observation import ClusterObservation
from harness.targets.kafka.timeline_sampler import TimelineSampler
from harness.targets.kafka.topics import TIMEOUT_S, is_whole
from harness.targets.replica_logs import ReplicaDisk, metadata_log_blocks, replica_log_blocks


class Node(Talkative, Protocol):
    """A node of real Kafka: the processes, or the containers, that it is made of."""

    @property
    def exists(self) -> bool:
        """Whether one of them exists, stopped or not."""
        ...

    @property
    def is_whole(self) -> bool:
        """Whether all of them exist."""
        ...

    @property
    def is_stopped(self) -> bool:
        """Whether all of them are paused."""
        ...

    @property
    def was_killed(self) -> bool:
        """Whether SIGKILL has ended each of them."""
        ...

    @property
    def was_shut_down(self) -> bool:
        """Whether each of them has ended because it was asked to."""
        ...

    @property
    def has_exited(self) -> bool:
        """Whether one of them has ended itself without being asked to.

        Raises:
            EnvironmentFault: it was out of memory, its shim failed, or a signal from outside the harness ended it, none
                of which is a fault of Kafka.
        """
        ...

    def endings(self) -> Sequence[Ending]:
        """How each of its lives ended that the harness did not end."""
        ...

    def in_words(self) -> str:
        """Their names and states."""
        ...

    def kill(self) -> None:
        """SIGKILL, and wait until they are gone; harmless when they already are."""
        ...

    def pause(self) -> None:
        """Stop them; harmless when they are stopped."""
        ...

    def resume(self) -> None:
        """Resume them; harmless when they run."""
        ...

    def shut_down(self, timeout_s: float) -> bool:
        """SIGTERM; returns whether they have ended within ``timeout_s``."""
        ...


SomeNode = TypeVar("SomeNode", bound=Node)


class RealKafka(ABC, Generic[SomeNode]):
    """The methods of :class:`harness.target.Target` that all targets of real Kafka share; ``_nodes`` by name."""

    _READY_TIMEOUT_S: ClassVar[float]
    """How long all nodes together may take from their start to an answer on a busy machine."""

    _SHUT_DOWN_TIMEOUT_S: ClassVar[float]
    _PATIENCE_S: ClassVar[float] = 10.0
    """For how long a probe waits for an answer of a running node."""

    _POLL_S: ClassVar[float]

    _nodes: dict[str, SomeNode]

    def __init__(self) -> None:
        self._topics: set[str] = set()

    @property
    @abstractmethod
    def _has_begun(self) -> bool:
        """Whether the cluster has started far enough to leave evidence."""

    @property
    @abstractmethod
    def observation(self) -> ClusterObservation:
        """Observes the running cluster."""

    @property
    @abstractmethod
    def sampler(self) -> TimelineSampler:
        """Samples the timeline of the running cluster."""

    @abstractmethod
    def nodes(self) -> Sequence[str]:
        """See :class:`harness.target.Target`."""

    @abstractmethod
    def brokers(self) -> list[str]:
        """The names of the brokers that hold replicas, in order."""

    @abstractmethod
    def _answers(self, node: str) -> bool:
        """Whether the node answers the harness now; one that is stopped does not."""

    @abstractmethod
    def _create_topic(self, topic: TopicSpec) -> None:
        """Ask for the topic, with its replicas on the brokers proper."""

    @abstractmethod
    def _disk(self, broker: str) -> Path:
        """Where the files of a broker are read when the cluster has stopped."""

    @abstractmethod
    def _metadata_logs(self) -> Mapping[NodeId, Path]:
        """The copies of KRaft's metadata log then, by the node that has them; not each need exist."""

    # ------------------------------------------------------------------------------------------------ life

    def kill(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        self._node(node).kill()

    def is_running(self, node: str) -> Receipt:
        """See :class:`harness.target.Target`."""
        one = self._node(node)
        if not one.is_whole:
            return Receipt(False, f"node {node}: {one.in_words()}")
        if not self._answers_soon(node):
            return Receipt(False, f"node {node}: {one.in_words()}, but does not answer")
        return Receipt(True, f"node {node}: {one.in_words()}, and answers")

    def is_dead(self, node: str) -> Receipt:
        """See :class:`harness.controls.Processes`."""
        return self._seen(node, lambda one: one.was_killed)

    def pause(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        one = self._node(node)
        if not one.exists:
            raise EnvironmentFault(f"node {node} cannot be paused: {one.in_words()}.")
        one.pause()

    def resume(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        self._node(node).resume()

    def is_paused(self, node: str) -> Receipt:
        """See :class:`harness.controls.Processes`."""
        return self._seen(node, lambda one: one.is_stopped)

    def shut_down(self, node: str) -> None:
        """See :class:`harness.controls.Processes`."""
        one, timeout_s = self._node(node), self._SHUT_DOWN_TIMEOUT_S
        if not one.exists:
            raise EnvironmentFault(f"node {node} cannot be asked to shut down: {one.in_words()}.")
        if not one.shut_down(timeout_s):
            raise EnvironmentFault(f"node {node} has not shut down in {timeout_s:g} s: {one.log_tail().rstrip('.')}.")

    def is_shut_down(self, node: str) -> Receipt:
        """See :class:`harness.controls.Processes`."""
        return self._seen(node, lambda one: one.was_shut_down)

    def has_exited(self, node: str) -> Receipt:
        """See :class:`harness.target.Target`."""
        return self._seen(node, lambda one: one.has_exited)

    def endings(self) -> Sequence[Ending]:
        """See :class:`harness.target.Target`."""
        found = [one for node in self._nodes.values() for one in node.endings()]
        return sorted(found, key=lambda one: (one.time_ns, one.node))

    def _seen(self, node: str, look: Callable[[SomeNode], bool]) -> Receipt:
        """The result of ``look`` at a node, as a receipt."""
        one = self._node(node)
        return Receipt(look(one), f"node {node}: {one.in_words()}")

    def _node(self, name: str) -> SomeNode:
        if name not in self._nodes:
            raise EnvironmentFault(f"there is no node {name!r}; the nodes are {', '.join(self._nodes)}.")
        return self._nodes[name]

    def _resting(self, node: str) -> SomeNode:
        one = self._node(node)
        if one.exists:
            raise EnvironmentFault(f"node {node} is not at rest: {one.in_words()}.")
        return one

    def _answers_soon(self, node: str) -> bool:
        """Whether a running node answers in time: on a busy machine one answer may take a while."""
        deadline_s = time.monotonic() + self._PATIENCE_S
        while not self._answers(node):
            if not self._goes_on(node) or time.monotonic() > deadline_s:
                return False
            time.sleep(self._POLL_S)
        return True

    def _goes_on(self, node: str) -> bool:
        """Whether a node exists and is not stopped."""
        one = self._node(node)
        return one.exists and not one.is_stopped

    def _came_up(self, node: str) -> bool:
        """Whether the node answers, or has already exited by itself."""
        return self._answers(node) or self.has_exited(node).holds

    def _all_answer(self) -> bool:
        for name, one in self._nodes.items():
            if not one.is_whole:
                said, tail = one.in_words(), one.log_tail()
                state = said if tail in said else f"{said}: {tail}"
                raise EnvironmentFault(f"node {name} ended at once: {state.rstrip('.')}.")
        return all(map(self._answers, self._nodes))

    def _await(self, complaint: str, holds: Callable[[], bool], timeout_s: float | None = None) -> None:
        """Wait for ``timeout_s``, by default as long as nodes may take to start."""
        limit_s = self._READY_TIMEOUT_S if timeout_s is None else timeout_s
        await_that(holds, complaint, self._nodes.values(), limit_s, self._POLL_S)

    def create_topic(self, topic: TopicSpec) -> None:
        """See :class:`harness.target.Target`."""
        self._create_topic(topic)
        self._topics.add(topic.name)
        complaint = f"topic {topic.name!r} does not have a leader and a full ISR everywhere"
        self._await(complaint, lambda: is_whole(self, topic), TIMEOUT_S)

    # ------------------------------------------------------------------------------------------------ observation

    def view(self) -> ClusterView:
        """See :class:`harness.target.Target`."""
        return self.observation.view()

    def known_leaders(self) -> Mapping[TopicPartition, Leadership]:
        """See :class:`harness.observations.KnowsLeaders`: what the sampler has read; this does not make one."""
        sampler: TimelineSampler | None = vars(self).get("sampler")
        return {} if sampler is None else sampler.known_leaders()

    def replica(self, node: str, partition: TopicPartition) -> ReplicaView | None:
        """See :class:`harness.target.Target`."""
        return self.observation.replica(node, partition) if self._goes_on(node) else None

    def committed(self, group: str) -> Mapping[TopicPartition, Offset]:
        """See :class:`harness.target.Target`."""
        return self.observation.committed(group)

    def elect(self, partition: TopicPartition, leader: NodeId | None, *, unclean: bool) -> None:
        """See :class:`harness.controls.Elections`."""
        Electing(self.observation).elect(partition, leader, unclean=unclean)

    # ------------------------------------------------------------------------------------------------ evidence

    def timeline(self, run: str) -> Iterator[dict[str, Any]]:
        """See :class:`harness.target.Target`."""
        return self.sampler.rows(run) if self._has_begun else iter(())

    def replica_logs(self) -> Iterator[Block]:
        """See :class:`harness.target.Target`.

        The logs of the topics that it created, and of KRaft's metadata log; not of Kafka's other topics.
        """
        brokers = self.brokers() if self._has_begun else ()
        yield from replica_log_blocks(
            (ReplicaDisk(node_id(name), self._disk(name), self.sampler.last_log_starts(name)) for name in brokers),
            self._topics,
        )
        for node, directory in self._metadata_logs().items():
            yield from metadata_log_blocks(node, directory)
