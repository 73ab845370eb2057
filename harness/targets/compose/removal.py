"""Removes what is left of a project on the engine, until a search finds nothing more.

The engine still executes the requests of a compose tool that was killed midway. It lists a container only when that is
complete, which takes seconds where images are copied, and creates the container's volumes without any label. But the
container's name is taken from the beginning.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any

import docker
from docker.errors import APIError, DockerException
from docker.models.containers import Container

from harness.errors import EnvironmentFault
from harness.targets.compose.containers import asked_by, to_its_end
from harness.targets.compose.project import PROJECT_LABEL, TOOLS_IMAGE, image_of

_POLL_S = 0.2
_TIMEOUT_S = 120.0
_PASSING = (HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT)
"""The engine's status codes for what is gone, is being removed, or is still used by such a thing."""


def removed(client: docker.DockerClient, project: str, awaited: Collection[str] = ()) -> list[str]:
    """Remove all that belongs to a project; returns the names of what was removed.

    Args:
        client: of the engine.
        project: its name.
        awaited: the names of containers that the engine may just be creating.

    Raises:
        EnvironmentFault: something remains, which the message names; or the engine does not answer.
    """
    try:
        _await_end_of_making(client, awaited)
        return _removed(client, project)
    except (DockerException, OSError) as problem:
        why = getattr(problem, "explanation", None) or problem
        raise EnvironmentFault(f"project {project} could not be removed: {why}.") from None


def _removed(client: docker.DockerClient, project: str) -> list[str]:
    gone: dict[str, None] = {}
    deadline = time.monotonic() + _TIMEOUT_S
    while left := list(_things(client, project)):
        gone |= dict.fromkeys(one.name for one in left if _remove(one))
        if time.monotonic() > deadline and (still := left_of(client, project)):
            raise EnvironmentFault(f"of project {project} there is still {', '.join(still)}.")
    return list(gone)


def left_of(client: docker.DockerClient, project: str) -> list[str]:
    """The names of the containers, volumes and networks of a project.

    Raises:
        EnvironmentFault: the engine does not answer.
    """
    try:
        return [one.name for one in _things(client, project)]
    except (DockerException, OSError) as problem:
        raise EnvironmentFault(f"the Docker engine does not answer: {problem}.") from None


def _things(client: docker.DockerClient, project: str) -> Iterator[Any]:
    """Things by their label, and by their name the volumes of a container, which have no label."""
    ours = {"label": f"{PROJECT_LABEL}={project}"}
    yield from client.containers.list(all=True, filters=ours, ignore_removed=True)
    for kind in (client.volumes, client.networks):
        labelled = {one.name: one for one in kind.list(filters=ours)}
        named = {one.name: one for one in kind.list(filters={"name": project})}
        yield from (one for name, one in {**named, **labelled}.items() if name in labelled or _is_of(name, project))


def _is_of(name: str, project: str) -> bool:
    return name.startswith((f"{project}_", f"{project}-"))


def _remove(one: Any) -> bool:
    """Whether it was removed; a thing that is still in use is left for the next search."""
    is_container = hasattr(one, "exec_run")
    try:
        one.remove(**({"force": True, "v": True} if is_container else {}))
    except APIError as refused:
        if refused.status_code not in _PASSING:
            raise
        return False
    return True


def _await_end_of_making(client: docker.DockerClient, names: Collection[str]) -> None:
    """Wait until each of these names is free, or belongs to a listed container.

    Raises:
        EnvironmentFault: it takes too long.
    """
    if not names:
        return
    deadline = time.monotonic() + _TIMEOUT_S
    with _taker(client) as taker:
        for name in names:
            while not _takes(taker, name) and not _lists(client, name):
                if time.monotonic() > deadline:
                    raise EnvironmentFault(f"the engine has been making container {name} for {_TIMEOUT_S:g} s.")
                time.sleep(_POLL_S)


@contextmanager
def _taker(client: docker.DockerClient) -> Iterator[Container]:
    """A container that is renamed to test whether names are free."""
    settings = {"network_mode": "none", "labels": asked_by()}
    container = to_its_end(lambda: client.containers.create(image_of(TOOLS_IMAGE), ["true"], **settings))
    try:
        yield container
    finally:
        container.remove(force=True)


def _takes(taker: Container, name: str) -> bool:
    try:
        taker.rename(name)
    except APIError as refused:
        if refused.status_code != HTTPStatus.CONFLICT:
            raise
        return False
    return True


def _lists(client: docker.DockerClient, name: str) -> bool:
    listed = client.containers.list(all=True, filters={"name": name}, ignore_removed=True)
    return any(one.name == name for one in listed)
