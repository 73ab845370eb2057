"""Tries whether the clock shim reaches the program of a service, by starting that once, alone and without a network."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import docker
from docker.errors import DockerException
from docker.models.containers import Container

from harness.errors import EnvironmentFault
from harness.targets.compose.container_clock import Clocks, looked, takes_shim
from harness.targets.compose.containers import asked_by, is_living, remove, to_its_end
from harness.targets.compose.foreign_file import ForeignBroker
from harness.targets.compose.services import environment
from harness.targets.compose.shimmed import Look, Seen, broker_at, seen_in
from harness.targets.kafka import shim

_WATCHED_S = 3.0
"""For how long: what an image starts first may be a script that makes way for the program."""

_POLL_S = 0.2


def why_no_clock(client: docker.DockerClient, broker: ForeignBroker, service: Mapping[str, Any]) -> str:
    """Why the shim does not move the clock of a service's program, in a sentence; empty: it does.

    Args:
        client: of the engine.
        broker: that runs it.
        service: its own, as the compose file has it, resolved.

    Raises:
        EnvironmentFault: the shim cannot be built, or the engine does not answer.
    """
    image = str(service["image"])
    if not shim.is_available():
        return "The clock shim needs a C compiler: see `seawall doctor`."
    if not takes_shim(client, image):
        return f"The clock shim, built here, has no effect in image {image}: it has another C library, or no shell."
    seen = _seen(client, broker, service)
    if seen is None:
        return f"The program of service {broker.name!r} ended at once, alone, so that its clock could not be looked at."
    if not seen.is_bent:
        return f"The clock shim moves nothing in {seen} of service {broker.name!r}: it is linked statically, or in Go."
    return ""


def _seen(client: docker.DockerClient, broker: ForeignBroker, service: Mapping[str, Any]) -> Seen | None:
    """The program of the service at the last look; None: it had ended before the first."""
    with tempfile.TemporaryDirectory() as scratch:
        variables, volumes = Clocks.additions(Path(scratch))
        Path(scratch).chmod(0o755)  # the image's user reads it
        try:
            with _alone(client, broker.name, service, {**environment(service), **variables}, volumes) as container:
                return _last_look(container, broker_at(broker.port))
        except (DockerException, OSError):
            return None  # it cannot be started alone


def _last_look(container: Container, look: Look) -> Seen | None:
    seen: list[Seen] = []
    deadline = time.monotonic() + _WATCHED_S
    while time.monotonic() < deadline:
        container.reload()
        if not is_living(container):
            break
        try:
            status, said = looked(container, look)
        except EnvironmentFault:
            break  # it has ended meanwhile
        seen = (seen_in(said) if status == 0 else []) or seen
        time.sleep(_POLL_S)
    return seen[-1] if seen else None


@contextmanager
def _alone(
    client: docker.DockerClient, name: str, service: Mapping[str, Any], variables: Mapping[str, str], volumes: list[str]
) -> Iterator[Container]:
    own = {key: service[key] for key in ("entrypoint", "user", "working_dir") if service.get(key)}
    called = f"seawall-asks-{random.SystemRandom().getrandbits(32):08x}"
    settings = {
        "name": called,
        "environment": dict(variables),
        "volumes": volumes,
        "hostname": name,
        "network_mode": "none",
        "labels": asked_by(),
        **own,
    }
    try:
        container = to_its_end(
            lambda: client.containers.create(service["image"], service.get("command"), **settings)
        )  # fmt: skip
        container.start()
        yield container
    finally:
        for left in client.containers.list(all=True, filters={"name": called}, ignore_removed=True):
            remove(left)
