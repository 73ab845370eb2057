"""Creates topics, and deletes their records, through the Kafka protocol."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any

from confluent_kafka import OFFSET_END, KafkaError
from confluent_kafka import TopicPartition as Assigned
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from harness.client_properties import Access
from harness.clients.librdkafka import ClientError, calling, made
from harness.errors import EnvironmentFault
from harness.history.delete_records_log import GAVE_UP, DeleteRecordsLog
from harness.model import Offset, TopicPartition
from harness.target import TopicSpec

SILENT = logging.getLogger("seawall.clients.topics")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False
"""The log of clients that have nothing to say that their answers do not."""


_IMPATIENT = {"socket.timeout.ms": 3000}
_ANSWER_TIMEOUT_S = 10.0
_AGAIN_AFTER_S = 0.1
_UNHEARD = frozenset(
    {
        KafkaError._TIMED_OUT,  # noqa: SLF001 (librdkafka's own codes begin with an underscore)
        KafkaError._TRANSPORT,  # noqa: SLF001
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001
        KafkaError.NOT_CONTROLLER,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.REQUEST_TIMED_OUT,
    }
)


class _Unheard(EnvironmentFault):
    """No controller has decided, though one may have created the topic: the client may ask again."""


def create_topic(access: Access, topic: TopicSpec, timeout_s: float) -> None:
    """Have the cluster create ``topic``; returns when it has confirmed.

    A request that a controller leaves unanswered, because it was elected or went away meanwhile, is made again.

    Raises:
        EnvironmentFault: the cluster refused, or did not answer within ``timeout_s``.
    """
    asking = Retrying(
        retry=retry_if_exception_type(_Unheard),
        wait=wait_fixed(_AGAIN_AFTER_S),
        stop=stop_after_delay(timeout_s),
        reraise=True,
    )
    for attempt in asking:
        with attempt:
            _ask_for(access, topic, min(timeout_s, _ANSWER_TIMEOUT_S), again=attempt.retry_state.attempt_number > 1)


def _ask_for(access: Access, topic: TopicSpec, timeout_s: float, *, again: bool) -> None:
    admin = admin_client(access, **_IMPATIENT)
    try:
        with calling():
            created = admin.create_topics([_new_topic(topic)], operation_timeout=timeout_s, request_timeout=timeout_s)
            created[topic.name].result(timeout=timeout_s + 1)
    except ClientError as refusal:
        error = refusal.error
        if again and error.code() == KafkaError.TOPIC_ALREADY_EXISTS:
            return
        if error.code() in {KafkaError.TOPIC_AUTHORIZATION_FAILED, KafkaError.CLUSTER_AUTHORIZATION_FAILED}:
            raise EnvironmentFault(
                f"topic {topic.name!r} was not created: the client lacks the right Create on it.",
                "Grant it for all names that begin with the run's prefix.",
            ) from None
        kind = _Unheard if error.code() in _UNHEARD else EnvironmentFault
        raise kind(f"topic {topic.name!r} was not created: {error.str().rstrip('.')}.") from None
    except (ValueError, TypeError) as refusal:
        raise EnvironmentFault(f"topic {topic.name!r} was not created: the client refuses it: {refusal}.") from None
    except TimeoutError:
        raise _Unheard(f"topic {topic.name!r} was not created: no answer in {timeout_s} s.") from None


def delete_records(
    access: Access,
    partitions: Sequence[TopicPartition],
    before: Offset | None,
    timeout_s: float,
    orders: DeleteRecordsLog,
) -> str | None:
    """Ask the partitions' leaders to delete what is before ``before``; None: before the high watermark.

    Args:
        access: to the brokers.
        partitions: at least one.
        before: the first offset to stay.
        timeout_s: how long the leaders may wait for their followers, and the client for the leaders.
        orders: records each partition's order and its result.

    Returns:
        The name of the first error; None for success.
    """
    admin = admin_client(access, **_IMPATIENT)
    asked = [Assigned(name.topic, name.partition, OFFSET_END if before is None else before) for name in partitions]
    numbers = [orders.sent(name, before, round(timeout_s * 1000)) for name in partitions]
    try:
        with calling():
            answers = admin.delete_records(asked, operation_timeout=timeout_s, request_timeout=timeout_s)
    except ClientError as refusal:
        for number in numbers:
            orders.ended(number, refusal.name)
        return refusal.name
    ends = [_deleted(answers[place], timeout_s) for place in asked]
    for number, (error, low_watermark) in zip(numbers, ends, strict=True):
        orders.ended(number, error, low_watermark)
    return next((error for error, _ in ends if error is not None), None)


def _deleted(answer: Future[Any], timeout_s: float) -> tuple[str | None, Offset | None]:
    """What a leader has answered: an error's name, or where every log of its partition begins."""
    try:
        with calling():
            return None, answer.result(timeout=timeout_s + 1).low_watermark
    except ClientError as refusal:
        return refusal.name, None
    except TimeoutError:
        return GAVE_UP, None


def admin_client(access: Access, **settings: Any) -> AdminClient:
    """A client for the administration of a cluster, with ``settings`` by librdkafka's names; it logs nothing.

    Raises:
        EnvironmentFault: librdkafka cannot start it.
    """
    own = {**access.properties.values, "bootstrap.servers": access.bootstrap, "client.id": "seawall-admin", **settings}
    return made(partial(AdminClient, logger=SILENT), own)


def _new_topic(topic: TopicSpec) -> NewTopic:
    configs = dict(topic.configs or {})
    if topic.assignment is None:
        return NewTopic(topic.name, topic.partitions, topic.replication_factor, config=configs)
    assignment = [list(map(int, replicas)) for replicas in topic.assignment]
    return NewTopic(topic.name, topic.partitions, replica_assignment=assignment, config=configs)
