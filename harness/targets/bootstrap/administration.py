"""Asks a running cluster for its brokers, settings and partitions, and creates and deletes topics, as a client may."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, TopicCollection
from confluent_kafka import TopicPartition as Assigned
from confluent_kafka.admin import ClusterMetadata, ConfigResource, OffsetSpec, ResourceType  # type: ignore[attr-defined]

from harness.client_properties import Access
from harness.clients.librdkafka import ClientError, calling
from harness.clients.rights import is_denied, lacks, require_of_topic
from harness.clients.topics import admin_client, create_topic
from harness.errors import EnvironmentFault
from harness.model import NO_LEADER, TopicPartition
from harness.target import ClusterView, PartitionView, TopicSpec
from harness.targets.awaiting import await_that
from harness.targets.bootstrap.broker_numbers import BrokerNumbers
from harness.targets.bootstrap.given_topics import Shape
from harness.targets.bootstrap.unreachable import DECISIVE, unreachable

_TIMEOUT_S = 10.0
_ASK_S = 2.5
_VIEW_S = 2.0
"""How long a view may take: faults must end in time where no broker answers."""

_POLL_S = 0.1
_LEARNS_S = 3.0
_EPOCH_UNKNOWN = -1
"""Metadata tells leader epochs since 2.1 (KIP-320); librdkafka does not pass them on."""


class Administration:
    """A client for the administration of one cluster.

    Args:
        access: to it.

    Attributes:
        withheld: why settings were not told, in words; empty: those that were asked for were told.
    """

    def __init__(self, access: Access) -> None:
        self._access = access
        self.withheld = ""
        self._heard: list[KafkaError] = []
        self._client = admin_client(access, error_cb=self._heard.append)

    def brokers(self) -> Sequence[int]:
        """The ids of the brokers that Metadata names, ascending.

        Raises:
            EnvironmentFault: no broker answers.
        """
        return sorted(self._metadata().brokers)

    def listeners(self) -> Mapping[str, str]:
        """Where each broker has clients connect, as ``host:port``, by its name.

        Raises:
            EnvironmentFault: no broker answers.
        """
        return {str(broker): _spelled(str(one.host), one.port) for broker, one in self._metadata().brokers.items()}

    def view(self, numbers: BrokerNumbers) -> ClusterView:
        """What Metadata says of all partitions now; without partitions when no broker answers."""
        time_ns = time.monotonic_ns()
        seen = self._tried(_VIEW_S)
        if isinstance(seen, ClientError):
            return ClusterView(time_ns, (), {}, None, ())
        live = tuple(sorted(map(numbers.of, seen.brokers)))
        partitions = {
            TopicPartition(name, number): PartitionView(
                numbers.of(one.leader) if one.leader in seen.brokers else NO_LEADER,
                _EPOCH_UNKNOWN,
                tuple(map(numbers.of, one.isrs)),
                tuple(map(numbers.of, one.replicas)),
            )
            for name, topic in seen.topics.items()
            for number, one in topic.partitions.items()
        }
        controllers = (str(numbers.of(seen.controller_id)),) if seen.controller_id in seen.brokers else ()
        return ClusterView(time_ns, live, partitions, next(iter(controllers), None), controllers)

    def hides(self, topics: Collection[str]) -> bool:
        """Whether the authorizer refuses to describe one of ``topics``, which Metadata then leaves out."""
        with calling():
            asked = self._client.describe_topics(TopicCollection(list(topics)), request_timeout=_VIEW_S)
        return any(map(_is_refused, asked.values()))

    def topics(self) -> frozenset[str]:
        """The names of all topics.

        Raises:
            EnvironmentFault: no broker answers.
        """
        return frozenset(self._metadata().topics)

    def shape(self, topic: str) -> Shape:
        """How many partitions a topic has, and replicas of each; a broker may learn late that it has been created.

        Raises:
            EnvironmentFault: no broker answers, or there is no such topic that the client may see.
        """
        deadline = time.monotonic() + _LEARNS_S
        while (known := self._metadata().topics.get(topic)) is None or not known.partitions:
            if time.monotonic() >= deadline:
                said = f"topic {topic!r} is not at {self._access.bootstrap}, or the client may not describe it."
                raise EnvironmentFault(said, "Create it.")
            time.sleep(_POLL_S)
        partitions = known.partitions
        return Shape(len(partitions), min(len(one.replicas) for one in partitions.values()))

    def is_empty(self, topic: TopicSpec) -> bool:
        """Whether no partition of a topic has a record that a consumer would be given.

        Raises:
            EnvironmentFault: a leader does not answer.
        """
        names = [Assigned(topic.name, number) for number in range(topic.partitions)]
        earliest = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        return self._offsets(names, earliest) == self._offsets(names, latest)

    def _offsets(self, names: Sequence[Assigned], spec: OffsetSpec) -> Sequence[int]:
        unknown = f"the offsets of topic {names[0].topic!r} are not answered"
        try:
            with calling():
                asked = self._client.list_offsets(dict.fromkeys(names, spec), request_timeout=_TIMEOUT_S)
                found = [asked[name].result(timeout=_TIMEOUT_S + 1).offset for name in names]
        except (ClientError, TimeoutError) as refusal:
            raise EnvironmentFault(f"{unknown}: {refusal}.") from None
        if min(found) < 0:  # librdkafka's way to say that a leader has not answered in time
            raise EnvironmentFault(f"{unknown} in time.")
        return found

    def _metadata(self) -> ClusterMetadata:
        answer = self._tried(_TIMEOUT_S)
        if isinstance(answer, ClientError):
            raise unreachable(self._access, self._heard, answer, _TIMEOUT_S)
        return answer

    def _tried(self, timeout_s: float) -> ClusterMetadata | ClientError:
        """The answer, or the last refusal; an error that no other try would mend ends it."""
        deadline = time.monotonic() + timeout_s
        self._heard.clear()
        while True:
            try:
                with calling():
                    return self._client.list_topics(timeout=min(_ASK_S, timeout_s))
            except ClientError as refusal:
                self._client.poll(0)  # hears what the errors of connections were
                if any(one.code() in DECISIVE for one in self._heard) or time.monotonic() >= deadline:
                    return refusal

    def broker_configs(self, broker: int) -> Mapping[str, str]:
        """The settings of a broker that have a value, by name; empty: the cluster does not tell, see ``withheld``."""
        found = self._configs(ConfigResource(ResourceType.BROKER, str(broker)), "the cluster")
        if not found and not self.withheld:
            self.withheld = "it names none of its brokers' settings"
        return found

    def topic_configs(self, topic: str) -> Mapping[str, str]:
        """The settings of a topic that have a value, by name; empty: the cluster does not tell."""
        return self._configs(ConfigResource(ResourceType.TOPIC, topic), f"topic {topic!r}")

    def _configs(self, resource: ConfigResource, whose: str) -> Mapping[str, str]:
        try:
            with calling():
                answers = self._client.describe_configs([resource], request_timeout=_TIMEOUT_S)
                entries = answers[resource].result(timeout=_TIMEOUT_S + 1)
        except ClientError as refusal:
            refused = f"it refuses to tell the settings of {whose} ({refusal})"
            self.withheld = lacks("DescribeConfigs", whose) if is_denied(refusal.error) else refused
            return {}
        except TimeoutError:
            self.withheld = f"it does not tell the settings of {whose} within {_TIMEOUT_S:g} s"
            return {}
        return {name: str(entry.value) for name, entry in entries.items() if entry.value is not None}

    def create(self, topic: TopicSpec, timeout_s: float, rights: Collection[str]) -> None:
        """Create a topic, and wait until every partition has a leader and a full ISR.

        Args:
            topic: to create.
            timeout_s: the longest that may take.
            rights: that the client must have on it, such as ``Write``.

        Raises:
            EnvironmentFault: the cluster refused, that took longer than ``timeout_s``, or a right is missing.
        """
        create_topic(self._access, topic, timeout_s)
        self.require_whole(topic, timeout_s, rights)

    def require_whole(self, topic: TopicSpec, timeout_s: float, rights: Collection[str]) -> None:
        """Wait until every partition has a leader and a full ISR; arguments and errors are those of :meth:`create`."""
        names = [TopicPartition(topic.name, number) for number in range(topic.partitions)]
        short = f"topic {topic.name!r} has not got a leader and a full ISR everywhere"
        await_that(lambda: self._are_whole(names), short, (), timeout_s, _POLL_S)
        require_of_topic(self._client, topic.name, rights)

    def _are_whole(self, names: Iterable[TopicPartition]) -> bool:
        partitions = self.view(BrokerNumbers(())).partitions
        found = [partitions.get(name) for name in names]
        return all(one is not None and one.leader != NO_LEADER and len(one.isr) == len(one.replicas) for one in found)

    def delete(self, topics: Sequence[str]) -> Sequence[str]:
        """Delete those of ``topics`` that exist; returns the names of those that it has deleted.

        Raises:
            EnvironmentFault: one could not be deleted, or no broker answers.
        """
        existing = sorted(self.topics().intersection(topics))
        if not existing:
            return ()
        with calling():
            answers = self._client.delete_topics(existing, operation_timeout=_TIMEOUT_S, request_timeout=_TIMEOUT_S)
        for name in existing:
            try:
                with calling():
                    answers[name].result(timeout=_TIMEOUT_S + 1)
            except ClientError as refusal:
                if is_denied(refusal.error):
                    why = lacks("Delete", "it")
                    raise EnvironmentFault(f"topic {name!r} was not deleted: {why}.") from None
                if refusal.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                    raise EnvironmentFault(f"topic {name!r} was not deleted: {refusal}.") from None
            except TimeoutError:
                raise EnvironmentFault(f"topic {name!r} was not deleted: no answer.") from None
        return existing


def _is_refused(answer: Future[Any]) -> bool:
    try:
        with calling():
            answer.result(timeout=_VIEW_S + 1)
    except ClientError as refusal:
        return is_denied(refusal.error)
    except TimeoutError:
        return False
    return False


def _spelled(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
