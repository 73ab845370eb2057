"""What the modules that break containers ask of the engine, with its refusals as one sentence."""

from __future__ import annotations

import os
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, TypeVar

import docker
import psutil
from docker.errors import APIError, DockerException
from docker.models.containers import Container

from harness.errors import EnvironmentFault

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
    """Whether a container, as it was when it was looked up, has processes, frozen or not."""
    return container.status in _LIVING


def run_in(container: Container, *words: str, user: str = "") -> tuple[int, str]:
    """Run a program in a container, as ``user``, or else as the container's own: its exit code, and what it said.

    Raises:
        EnvironmentFault: the container is not running, or the engine does not do it.
    """
    status, said = asked(lambda: container.exec_run(list(words), user=user))
    return int(status), said.decode(errors="replace")


def told_by(container: Container, *words: str) -> str:
    """What a program says that is run in a container.

    Raises:
        EnvironmentFault: as :func:`run_in`; or the program failed.
    """
    status, said = run_in(container, *words)
    if status != 0:
        raise EnvironmentFault(f"{words[0]} in container {container.name} failed: {said.strip() or f'exit {status}'}.")
    return said


def said_in(client: docker.DockerClient, image: str, script: str, **more: Any) -> str:
    """What a shell script says in a new container of an image, without a network, which is removed again.

    So are those of harnesses that were killed meanwhile: a label of theirs is the id of its process.

    Raises:
        docker.errors.DockerException, OSError: the engine does not have the image, or there is no shell in it.
    """
    for left in client.containers.list(all=True, filters={"label": _ASKED_BY}, ignore_removed=True):
        if not psutil.pid_exists(int(left.labels[_ASKED_BY])):
            remove(left)
    settings = {"entrypoint": "/bin/sh", "network_mode": "none", "labels": {_ASKED_BY: str(os.getpid())}, **more}
    container = client.containers.create(image, ["-c", script], **settings)
    try:
        container.start()
        container.wait(timeout=_TIMEOUT_S)
        return bytes(container.logs(stderr=False)).decode(errors="replace")
    finally:
        remove(container)


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
