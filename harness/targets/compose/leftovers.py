"""Removes the Compose projects that a killed harness has left on the engine.

The journal has the names of a project and its containers. Where the journal is lost, too, a label identifies it:
everything that the overlay touches has a label with the seawall process that made it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import docker
import psutil
from docker.errors import DockerException

from harness.errors import EnvironmentFault
from harness.program import end
from harness.targets.compose.beside import LABEL, OWNER
from harness.targets.compose.containers import is_living, remove_abandoned
from harness.targets.compose.ownership import is_gone
from harness.targets.compose.project import connected
from harness.targets.compose.removal import removed
from harness.validation import Document, validated

NAME = "compose"
"""As ``--target`` and the journal spell this kind."""


@dataclass(frozen=True, slots=True)
class ProjectLeft:
    """What the journal has of a project that is coming.

    Attributes:
        project: its name.
        containers: the names of its intended containers.
    """

    project: str
    containers: Sequence[str]


class _Document(Document[ProjectLeft]):
    """The same as JSON."""


def remove(left: Mapping[str, Any]) -> list[str]:
    """Remove the project of a :class:`ProjectLeft`; returns what was removed.

    Raises:
        EnvironmentFault: the engine does not do it.
        UsageError: the entry of the journal is no project's.
    """
    found = validated(_Document, left, "", whole="its entry in the journal").root
    return remove_project(found.project, found.containers)


def remove_project(name: str, containers: Sequence[str] = ()) -> list[str]:
    """End the compose tool that may still work on a project, and remove the project; returns what was removed.

    Args:
        name: of the project.
        containers: the names of its intended containers, where they are known.

    Raises:
        EnvironmentFault: the engine does not do it.
    """
    _end_tool(name)
    with closing(connected()) as client:
        return removed(client, name, containers)


def remove_lost() -> list[str]:
    """Remove every project whose owner is gone; one line for each, and none where no engine answers."""
    try:
        client = connected()
    except EnvironmentFault:
        return []
    with closing(client):
        try:
            lost, asking = _lost(client), remove_abandoned(client)
        except (DockerException, EnvironmentFault) as problem:
            return [f"What killed harnesses have left in containers is not known: {problem}."]
    removed = [f"Removed {', '.join(asking)}, by which a killed harness had inspected an image."] if asking else []
    return [*removed, *(_line(name) for name in lost)]


def _line(name: str) -> str:
    try:
        removed = remove_project(name)
    except EnvironmentFault as problem:
        return f"Project {name} was abandoned, and its containers are still there: {problem}"
    return f"Project {name} was abandoned, and no journal names it: removed {', '.join(removed) or 'nothing'}."


def _lost(client: docker.DockerClient) -> list[str]:
    """The names of the projects whose owner is gone."""
    bearing = {"label": OWNER}
    containers = client.containers.list(all=True, filters=bearing, ignore_removed=True)
    running = {one.labels[LABEL] for one in containers if is_living(one)}
    labels = [one.labels for one in containers]
    labels += [one.attrs["Labels"] for one in client.volumes.list(filters=bearing)]
    return sorted({one[LABEL] for one in labels if is_gone(one[OWNER], runs=one[LABEL] in running)})


def _end_tool(project: str) -> None:
    """End the compose tool of this project, which would recreate what is being removed."""
    end([process for process in psutil.process_iter(["cmdline"]) if project in (process.info["cmdline"] or ())])
