"""Calls of the Docker engine that the fault modules share; a refusal becomes an ``EnvironmentFault``."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, TypeVar

import docker
from docker.errors import APIError, DockerException
from docker.models.containers import Container

from harness.errors import EnvironmentFault
from harness.targets.compose.ownership import is_gone, owner

_T = TypeVar("_T")
_ASKED_BY = "seawall.asked-by"
_TIMEOUT_S = 120
_LIVING = ("running", "paused")


def asked(call: Callable[[], _T]) -> _T:
    """What ``call`` returns.

    Raises:
        EnvironmentFault: the engine refuses, or does not answer.
    """
    try:
        return call()
    except (DockerException, OSError) as problem:
        why = getattr(problem, "explanation", None) or problem
        raise EnvironmentFault(f"the Docker engine refuses: {why}.") from None


def is_living(container: Container) -> bool:
    """Whether a container, as of its last inspection, has processes, paused or not."""
    return container.status in _LIVING


def run_in(container: Container, *words: str, user: str = "") -> tuple[int, str]:
    """Run a program in a container, as ``user``, or else as the container's user: its exit code and output.

    Raises:
        EnvironmentFault: the container is not running, or the engine does not do it.
    """
    status, said = asked(lambda: container.exec_run(list(words), user=user))
    return int(status), said.decode(errors="replace")


def told_by(container: Container, *words: str) -> str:
    """The output of a program that is run in a container.

    Raises:
        EnvironmentFault: as :func:`run_in`; or the program failed.
    """
    status, said = run_in(container, *words)
    if status != 0:
        raise EnvironmentFault(f"{words[0]} in container {container.name} failed: {said.strip() or f'exit {status}'}.")
    return said


def said_in(client: docker.DockerClient, image: str, script: str, **more: Any) -> str:
    """The output of a shell script in a temporary container of an image, without a network.

    It also removes the temporary containers of killed harnesses.

    Raises:
        docker.errors.DockerException, OSError: the engine does not have the image, or there is no shell in it.
    """
    remove_abandoned(client)
    name = f"seawall-asks-{random.SystemRandom().getrandbits(32):08x}"
    settings = {"entrypoint": "/bin/sh", "network_mode": "none", "labels": asked_by(), "name": name, **more}
    try:
        container = to_its_end(lambda: client.containers.create(image, ["-c", script], **settings))
        container.start()
        container.wait(timeout=_TIMEOUT_S)
        return bytes(container.logs(stderr=False)).decode(errors="replace")
    finally:
        for left in client.containers.list(all=True, filters={"name": name}, ignore_removed=True):
            remove(left)


def to_its_end(call: Callable[[], _T]) -> _T:
    """What ``call`` returns; a signal that arrives meanwhile is raised after that.

    The engine would execute the request even if the client no longer waited for the answer.
    """
    with ThreadPoolExecutor(1) as waiting:
        return waiting.submit(call).result()


def remove_abandoned(client: docker.DockerClient) -> list[str]:
    """Remove the temporary containers whose process is gone; returns their names."""
    asking = client.containers.list(all=True, filters={"label": _ASKED_BY}, ignore_removed=True)
    left = [one for one in asking if is_gone(one.labels[_ASKED_BY], runs=is_living(one))]
    for one in left:
        remove(one)
    return [str(one.name) for one in left]


def asked_by() -> dict[str, str]:
    """The label of a temporary container: the process that has made it."""
    return {_ASKED_BY: owner()}


def remove(container: Container) -> None:
    """Kill and remove a container; harmless when it is gone, or going.

    Raises:
        EnvironmentFault: the engine refuses, or does not answer.
    """
    try:
        container.remove(force=True, v=True)
    except APIError as refused:
        if refused.status_code not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            raise EnvironmentFault(f"the Docker engine refuses: {refused.explanation}.") from None
    except (DockerException, OSError) as problem:
        raise EnvironmentFault(f"the Docker engine refuses: {problem}.") from None
