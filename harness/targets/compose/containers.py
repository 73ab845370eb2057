"""What the modules that break containers ask of the engine, with its refusals as one sentence."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import TypeVar

from docker.errors import APIError, DockerException
from docker.models.containers import Container

from harness.errors import EnvironmentFault

_T = TypeVar("_T")
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


def remove(container: Container) -> None:
    """Kill and remove a container; harmless when it is gone, or going.

    Raises:
        EnvironmentFault: the engine refuses, or does not answer.
    """
    try:
        container.remove(force=True)
    except APIError as refused:
        if refused.status_code not in (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            raise EnvironmentFault(f"the Docker engine refuses: {refused.explanation}.") from None
    except (DockerException, OSError) as problem:
        raise EnvironmentFault(f"the Docker engine refuses: {problem}.") from None
