"""Asks a cluster, before the load starts, whether its authorizer lets a client do what the load is made of.

What a cluster does not say, because it has no authorizer or does not know the question, is taken for granted.
"""

from __future__ import annotations

from collections.abc import Collection
from concurrent.futures import Future
from typing import Any

from confluent_kafka import KafkaError, Producer, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient  # type: ignore[attr-defined]

from harness.client_properties import Access
from harness.clients.librdkafka import ClientError, calling, made
from harness.clients.topics import SILENT, admin_client
from harness.errors import EnvironmentFault

_TIMEOUT_S = 10.0
_DENIED = frozenset(
    {
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)


def is_denied(error: KafkaError) -> bool:
    """Whether the authorizer has refused."""
    return error.code() in _DENIED


def lacks(right: str, resource: str) -> str:
    """In words, that a right is missing: its name is that of an operation of Kafka's ACLs."""
    return f"the client lacks the right {right} on {resource}"


def require_of_topic(client: AdminClient, topic: str, rights: Collection[str]) -> None:
    """Refuse to go on without ``rights`` on a topic, such as ``Write``.

    Raises:
        EnvironmentFault: names the first that is missing.
    """
    with calling():
        asked = client.describe_topics(
            TopicCollection([topic]), include_authorized_operations=True, request_timeout=_TIMEOUT_S
        )
    _require(asked[topic], rights, f"topic {topic!r}")


def require_of_group(access: Access, group: str) -> None:
    """Refuse to go on without the right ``Read`` on a group.

    Raises:
        EnvironmentFault: it is missing.
    """
    client = admin_client(access)
    with calling():
        asked = client.describe_consumer_groups([group], include_authorized_operations=True, request_timeout=_TIMEOUT_S)
    _require(asked[group], ("Read",), f"group {group!r}")


def require_of_transactional_id(access: Access, name: str) -> None:
    """Refuse to go on without the right ``Write`` on a transactional id, which is taken over.

    Raises:
        EnvironmentFault: it is missing.
    """
    settings = {**access.properties.values, "bootstrap.servers": access.bootstrap, "transactional.id": name}
    producer = made(Producer, {**settings, "logger": SILENT})
    try:
        with calling():
            producer.init_transactions(_TIMEOUT_S)
    except ClientError as refused:
        if is_denied(refused.error):
            raise _fault("Write", f"transactional id {name!r}") from None


def _require(answer: Future[Any], rights: Collection[str], resource: str) -> None:
    first = next(iter(rights))
    try:
        with calling():
            allowed = answer.result(timeout=_TIMEOUT_S + 1).authorized_operations
    except TimeoutError:
        return
    except ClientError as refused:
        if is_denied(refused.error):
            raise _fault(first, resource) from None
        return
    for right in rights if allowed else ():
        if AclOperation[right.upper()] not in allowed:
            raise _fault(right, resource)


def _fault(right: str, resource: str) -> EnvironmentFault:
    return EnvironmentFault(f"{lacks(right, resource)}.", "Grant it for all names that begin with the run's prefix.")
