"""Errors of kafka-python by the names that librdkafka has for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from confluent_kafka import KafkaError
from kafka import errors

from harness.errors import EnvironmentFault

ClientT = TypeVar("ClientT")

_OF_CLIENTS: tuple[tuple[type[Exception], str], ...] = (
    (errors.LogTruncationError, "_LOG_TRUNCATION"),
    (errors.NoOffsetForPartitionError, "_AUTO_OFFSET_RESET"),
    (errors.KafkaTimeoutError, "_TIMED_OUT"),
    (errors.KafkaConnectionError, "_TRANSPORT"),
)


def name_of(error: BaseException) -> str:
    """The name of the protocol's error code, or else one of librdkafka's own, or of the exception's class."""
    if isinstance(error, errors.BrokerResponseError) and error.errno is not None:
        return str(KafkaError(error.errno).name())
    for kind, name in _OF_CLIENTS:
        if isinstance(error, kind):
            return name
    return type(error).__name__


def made(kind: Callable[..., ClientT], settings: Mapping[str, Any]) -> ClientT:
    """A client of kafka-python, which looks for the cluster as it is made.

    Raises:
        EnvironmentFault: no broker answered it, or it lacks what the settings ask for.
    """
    try:
        return kind(**settings)
    except (errors.KafkaError, RuntimeError, ValueError) as refused:
        raise EnvironmentFault(
            f"a client of kafka-python could not be made: {name_of(refused)}: {refused}."
        ) from refused
