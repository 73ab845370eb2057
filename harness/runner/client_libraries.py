"""Which library the clients of a run are of: librdkafka, Apache Kafka's own in Java, or kafka-python."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable

from harness.client_properties import Access, ClientProperties
from harness.clients.java.driver import built, has_share_groups
from harness.clients.java.library import Java
from harness.clients.java.security import security
from harness.clients.library import ClientLibrary
from harness.clients.librdkafka_library import Librdkafka
from harness.errors import EnvironmentFault, UsageError
from harness.payload import Carried
from harness.targets.kafka.fetching import find
from harness.workload import JAVA, KAFKA_PYTHON, LIBRDKAFKA, WorkloadParameters

_SHARING = "Set workload.client to java:4.3.0."


def require_client(
    workload: WorkloadParameters, target: str, properties: ClientProperties, *, in_virtual_time: bool
) -> None:
    """Refuse a client that cannot be had, or cannot run the workload, before anything starts.

    Raises:
        UsageError: there is no such release, the target has clients of its own, or the client lacks a protocol,
            or cannot have ``properties``.
        EnvironmentFault: the release was not fetched, or this machine has no JDK, or kafka-python is not installed.
    """
    client, shares = workload.client, workload.share_limits is not None
    if client == LIBRDKAFKA:
        if shares:
            raise UsageError(f"workload.client={client} has no share consumers.", _SHARING)
        return
    if in_virtual_time:
        raise UsageError(
            f"workload.client={client} is a client in real time, and target {target!r} has clients of its own.",
            "Run it on --target builtin, process:RELEASE or compose:FILE.",
        )
    if client == KAFKA_PYTHON:
        if shares:
            raise UsageError(f"workload.client={client} has no share consumers.", _SHARING)
        if workload.assigned_by_coordinators:
            raise UsageError(
                f"workload.client={client} knows no groups of the consumer protocol (KIP-848).",
                "Set workload.protocol=[classic], or choose another client.",
            )
        kafka_python(Access("", properties))
        return
    classpath = find(client.removeprefix(JAVA)).classpath
    if shares and not has_share_groups(classpath):
        raise UsageError(f"workload.client={client} has no share consumers, which came with 4.2.", _SHARING)
    security(properties)
    built(classpath)


def client_library(
    client: str, access: Access, log: logging.Logger, failed: Callable[[BaseException], None]
) -> ClientLibrary:
    """The library that a workload names, for the brokers of ``access``.

    Args:
        client: as the workload names it.
        access: to the brokers.
        log: takes what the library has to say.
        failed: called if it cannot go on.

    Raises:
        UsageError, EnvironmentFault: as :func:`require_client`.
    """
    if client == LIBRDKAFKA:
        return Librdkafka(access, log)
    if client == KAFKA_PYTHON:
        return kafka_python(access)
    return Java(access, find(client.removeprefix(JAVA)).classpath, log, failed)


def carried_by(client: str, stored: Carried) -> Carried:
    """What of the records that ``client`` sends the cluster stores, which stores what ``stored`` says."""
    return stored._replace(null_headers=client != KAFKA_PYTHON)


def kafka_python(access: Access) -> ClientLibrary:
    """kafka-python's clients for the brokers of ``access``.

    Raises:
        EnvironmentFault: it is not installed.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # it reads its schemas in a way that Python deprecates
            from harness.clients.kafka_python.library import KafkaPython  # noqa: PLC0415 (it may not be installed)
    except ImportError as missing:
        raise EnvironmentFault(
            f"workload.client={KAFKA_PYTHON} needs kafka-python 3: {missing}.", "pip install 'seawall[kafka-python]'"
        ) from missing
    return KafkaPython(access)
