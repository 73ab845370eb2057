"""The kinds of targets. To add one: its modules with a ``KIND``, and its name in ``_OWN`` here.

A kind is imported when its name is used: those of real Kafka take longer to import than a small run takes to check.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeGuard

from harness.errors import UsageError
from harness.plugins import Registry, takes
from harness.spelling import closest
from harness.target import Target
from harness.targets.cluster_kind import ClusterKind, InVirtualTime
from harness.targets.kafka.source_kind import SourceKind
from harness.targets.leftovers import Leftovers
from harness.targets.system import SystemSource
from harness.targets.target_kind import TargetKind

BUILTIN = "builtin"
"""The default target."""

_OWN: dict[str, Any] = {
    BUILTIN: "harness.targets.builtin",
    "simulated": "harness.targets.simulated",
    "process": "harness.targets.kafka.process_source",
    "compose": "harness.targets.compose.kind",
    "bootstrap": "harness.targets.bootstrap.kind",
    "cluster": "harness.targets.cluster.kind",
}


def _flaw(name: str, loaded: Any) -> str:
    """What is wrong with a plugin's target."""
    if not isinstance(loaded, ClusterKind | SourceKind):
        return f"{loaded!r} is neither a ClusterKind nor a SourceKind."
    if loaded.name != name:
        return f"its name is {loaded.name!r}, not {name!r}."
    makes = loaded.make if isinstance(loaded, ClusterKind) else loaded.find
    if not callable(makes):
        return f"{makes!r} is no function that makes it."
    return "" if loaded.leftovers is None else _flaw_of_leftovers(loaded.leftovers)


def _flaw_of_leftovers(found: Any) -> str:
    if not isinstance(found, Leftovers):
        return f"its leftovers are {found!r}, no Leftovers."
    for name, function, given in (("remove", found.remove, 1), ("remove_lost", found.remove_lost, 0)):
        if not takes(function, given):
            return f"its leftovers' {name!r} takes other arguments."
    return ""


KINDS: Registry[TargetKind] = Registry("seawall.targets", _OWN, _flaw)
"""Every kind of target by its name, those of installed plugins included."""


def require_whole(made: Target, spelling: str) -> None:
    """Check that a target has what the contract, and the controls that it says it supports, ask of it.

    Raises:
        EnvironmentFault: a plugin has made it, and something is missing.
    """
    kind, there = kind_of(spelling), set(dir(made))
    wanted = {"name", "controls", *_members(InVirtualTime if kind.in_virtual_time else Target)}
    missing = sorted(wanted - there) or sorted({one for each in made.controls for one in _members(each)} - there)
    why = f"what it makes, {type(made).__name__}, does not have {missing[0]!r}" if missing else ""
    KINDS.require(kind.name, holds=not missing, else_why=why)


def _members(protocol: type[Target]) -> Iterator[str]:
    return (name for name in dir(protocol) if not name.startswith("_"))


def kind_of(target: str) -> TargetKind:
    """The kind of a target as ``--target`` spells it: ``NAME`` or ``NAME:SOURCE``.

    Raises:
        UsageError: there is no such kind.
        EnvironmentFault: a plugin has that name, but cannot be used.
    """
    name, colon, _ = target.partition(":")
    if name in KINDS and KINDS[name].runs_releases == bool(colon):
        return KINDS[name]
    raise UsageError(f"target {target!r} is not known; {closest(target, list(_spellings()))}")


def source_of(target: str) -> SystemSource:
    """What makes the system of a run on ``target``.

    Raises:
        UsageError: there is no such target, release or distribution, or its compose file is not understood.
        EnvironmentFault: the release has not been fetched, or there is no Docker engine or Compose.
    """
    return kind_of(target).source(target.partition(":")[2])


def with_pattern(target: str, pattern: str) -> str:
    """The target with a pattern of the names of the services that run Kafka.

    Raises:
        UsageError: it has no services.
    """
    kind = kind_of(target)
    if kind.with_pattern is None:
        raise UsageError(f"--service-pattern {pattern!r} is for --target compose:FILE, not for {target!r}.")
    return f"{kind.name}:{kind.with_pattern(target.partition(':')[2], pattern)}"


def _spellings() -> Iterator[str]:
    for name in KINDS:
        yield KINDS[name].spelling if name in _OWN else name


def is_in_virtual_time(target: str) -> bool:
    """Whether runs on that target take no real time. Raises as :func:`kind_of`."""
    return kind_of(target).in_virtual_time


def lives_in_virtual_time(made: Target, spelling: str) -> TypeGuard[InVirtualTime]:
    """The same of a target that :func:`require_whole` has checked."""
    del made
    return is_in_virtual_time(spelling)
