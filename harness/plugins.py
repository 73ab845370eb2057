"""Loads plugins of other distributions: entry points of the groups ``seawall.faults``, ``seawall.workloads`` ...

The name of an entry point is the one in scenarios, and its value the object that seawall's own modules have, too: for a
fault its class, for a workload or a target its ``KIND``. A plugin is loaded when its name is used, so that a broken one
affects only what uses it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points, version
from typing import Any, TypeVar

from harness.errors import EnvironmentFault

KindT = TypeVar("KindT")


@dataclass(frozen=True, slots=True)
class Plugin:
    """An installed entry point.

    Attributes:
        group: such as ``seawall.faults``.
        name: as scenarios write it.
        distribution: the name and version of its distribution.
    """

    group: str
    name: str
    distribution: str
    _entry: EntryPoint

    def load(self) -> Any:
        """The object.

        Raises:
            EnvironmentFault: its distribution requires another seawall; or importing it fails, whatever the reason.
        """
        if unmet := _unmet(self._entry):
            raise self.broken(unmet)
        try:
            return self._entry.load()
        except Exception as error:
            raise self.broken(f"{type(error).__name__}: {error}") from error

    def broken(self, why: str) -> EnvironmentFault:
        """The error about it."""
        return EnvironmentFault(
            f"plugin {self.name!r} ({self.group}, {self._entry.value}) of {self.distribution} cannot be used: {why}",
            "Mend it, or uninstall that distribution.",
        )


def installed(group: str) -> list[Plugin]:
    """The plugins of a group, by name, not loaded."""
    found = entry_points(group=group)
    return [Plugin(group, one.name, _distribution(one), one) for one in sorted(found, key=lambda one: one.name)]


class Registry(Mapping[str, KindT]):
    """The kinds that seawall has itself, and those of installed plugins, by name.

    Args:
        group: the entry points' group.
        own: seawall's; a plugin of the same name is not used. A text is a module, imported when its name is used,
            whose ``KIND`` it is.
        flaw: what is wrong with a loaded object that is to have this name; empty: nothing is.
    """

    def __init__(self, group: str, own: dict[str, Any], flaw: Callable[[str, Any], str]) -> None:
        self.own = own
        self.group = group
        self._flaw = flaw
        self._loaded: dict[str, KindT] = {}

    def __getitem__(self, name: str) -> KindT:
        """The kind of that name.

        Raises:
            KeyError: there is none.
            EnvironmentFault: a plugin has that name, but cannot be used.
        """
        if name in self.own:
            return self._own(name)
        if name not in self._loaded:
            self._loaded[name] = self._load(self._plugins[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        """The names, those of plugins last; nothing is loaded."""
        yield from self.own
        yield from (name for name in self._plugins if name not in self.own)

    def __len__(self) -> int:
        """How many there are."""
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        """Whether there is one; nothing is loaded."""
        return name in self.own or name in self._plugins

    @cached_property
    def _plugins(self) -> Mapping[str, Plugin]:
        return {plugin.name: plugin for plugin in installed(self.group)}

    def _own(self, name: str) -> KindT:
        if isinstance(self.own[name], str):
            self.own[name] = import_module(self.own[name]).KIND
        kind: KindT = self.own[name]
        return kind

    def _load(self, plugin: Plugin) -> KindT:
        loaded: KindT = plugin.load()
        if flaw := self._flaw(plugin.name, loaded):
            raise plugin.broken(flaw)
        return loaded


def _unmet(entry: EntryPoint) -> str:
    """The requirement of its distribution that this seawall does not meet; empty: none. pip does not check again."""
    from packaging.requirements import Requirement  # noqa: PLC0415 - most commands use no plugin

    own = version("seawall")
    for written in (entry.dist.requires if entry.dist is not None else None) or ():
        wanted = Requirement(written)
        applies = wanted.name == "seawall" and (wanted.marker is None or wanted.marker.evaluate())
        if applies and not wanted.specifier.contains(own, prereleases=True):
            return f"it requires seawall {wanted.specifier}, and this is {own}."
    return ""


def _distribution(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "an unknown distribution"
