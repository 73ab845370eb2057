"""Which library the clients of a run are of: librdkafka, or Apache Kafka's own in Java."""

from __future__ import annotations

import logging
from collections.abc import Callable

from harness.clients.java.driver import built, has_share_groups
from harness.clients.java.library import Java
from harness.clients.library import ClientLibrary
from harness.clients.librdkafka_library import Librdkafka
from harness.errors import UsageError
from harness.targets.kafka.fetching import find
from harness.workload import JAVA, LIBRDKAFKA, WorkloadParameters

_SHARING = "Set workload.client to java:4.3.0."


def require_client(load: WorkloadParameters, target: str, *, in_virtual_time: bool) -> None:
    """Refuse the client of a workload where it cannot be had, before anything starts.

    Raises:
        UsageError: there is no such release, or the target has clients of its own.
        EnvironmentFault: the release was not fetched, or this machine has no JDK.
    """
    client, shares = load.client, load.share_limits is not None
    if client == LIBRDKAFKA:
        if shares:
            raise UsageError(f"workload.client={client} has no share consumers.", _SHARING)
        return
    if in_virtual_time:
        raise UsageError(
            f"workload.client={client} is a client in real time, and target {target!r} has clients of its own.",
            "Run it on --target builtin, process:RELEASE or compose:FILE.",
        )
    classpath = find(client.removeprefix(JAVA)).classpath
    if shares and not has_share_groups(classpath):
        raise UsageError(f"workload.client={client} has no share consumers, which came with 4.2.", _SHARING)
    built(classpath)


def client_library(
    client: str, bootstrap: str, log: logging.Logger, failed: Callable[[BaseException], None]
) -> ClientLibrary:
    """The library that a workload names, for the brokers at ``bootstrap``.

    Args:
        client: as the workload names it.
        bootstrap: ``host:port,...``.
        log: takes what the library has to say.
        failed: called if it cannot go on.

    Raises:
        UsageError, EnvironmentFault: as :func:`require_client`.
    """
    if client == LIBRDKAFKA:
        return Librdkafka(bootstrap, log)
    return Java(bootstrap, find(client.removeprefix(JAVA)).classpath, log, failed)
