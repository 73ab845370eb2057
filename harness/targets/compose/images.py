"""Gets the images of a compose file's services that the engine does not have yet."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import docker

from harness.errors import EnvironmentFault
from harness.targets.compose import compose_tool
from harness.targets.compose.image import has_image, how_to_get
from harness.targets.compose.rewriting import Stack


def provide_all(client: docker.DockerClient, file: Path, stack: Stack, services: Iterable[str]) -> None:
    """Get the missing images of services by Compose's ``build`` or ``pull``.

    Raises:
        EnvironmentFault: that fails.
    """
    for service in services:
        _provide(client, file, stack, service)


def _provide(client: docker.DockerClient, file: Path, stack: Stack, service: str) -> None:
    written = stack["services"][service]
    image = written.get("image")
    if image and has_image(client, image):
        return
    try:
        compose_tool.provide(file, service, "build" if written.get("build") else "pull")
    except EnvironmentFault as problem:
        if not image:
            raise
        raise EnvironmentFault(
            f"image {image} of service {service!r} is not on this machine: {problem.sentence}", how_to_get(image)
        ) from None
