"""Loads plugins of other distributions: entry points of the groups ``seawall.{faults,workloads,targets,checkers}``.

The name of an entry point is the one in scenarios, and its value the object that seawall's own modules have, too: for a
fault its class, for a workload or a target its ``KIND``. A plugin is loaded when its name is used, so that a broken one
affects only what uses it. What its code raises is an error of the plugin, and not of seawall: see
:func:`plugins_answer_for_themselves`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points, version
from inspect import signature
from pathlib import Path
from traceback import walk_tb
from types import FrameType, TracebackType
from typing import Any, Final, TypeVar

from harness.errors import EnvironmentFault, SeawallError, UsageError

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
            loaded = self._entry.load()
        except Exception as error:
            raise self.broken(_in_words(error)) from error
        _LOADED.append(self)
        return loaded

    def broken(self, why: str) -> EnvironmentFault:
        """The error about one that breaks its contract; ``why`` needs no full stop."""
        return self._error("cannot be used", why)

    def failed(self, error: Exception, at: str) -> EnvironmentFault:
        """The error about one whose code has raised ``error``; ``at``: its file and line."""
        return self._error("has failed", f"{_in_words(error).rstrip('.')}, at {at}")

    def has(self, frame: FrameType, *, itself: bool) -> bool:
        """Whether a frame runs code of its package; ``itself``: of its module, and of the object it names, if any."""
        module = str(frame.f_globals.get("__name__", ""))
        if not itself:
            return module.partition(".")[0] == self._entry.module.partition(".")[0]
        names = frame.f_code.co_qualname.split(".")
        return module == self._entry.module and self._entry.attr in ("", names[0])

    def _error(self, what: str, why: str) -> EnvironmentFault:
        return EnvironmentFault(
            f"plugin {self.name!r} ({self.group}, {self._entry.value}) of {self.distribution} {what}: "
            f"{' '.join(why.split()).rstrip('.')}.",
            "Mend it, or uninstall that distribution.",
        )


_LOADED: Final[list[Plugin]] = []
"""The plugins whose code may have run in this process."""


def installed(group: str) -> list[Plugin]:
    """The plugins of a group, by name, not loaded; two distributions may have one of the same name."""
    found = entry_points(group=group)
    return [Plugin(group, one.name, _distribution(one), one) for one in sorted(found, key=lambda one: one.name)]


@contextmanager
def plugins_answer_for_themselves() -> Iterator[None]:
    """Raise an error that a plugin's code has raised, or what it called, as one that names the plugin.

    Raises:
        EnvironmentFault: names the plugin, its distribution, the error, and the line of the plugin at which it arose.
    """
    try:
        yield
    except SeawallError:
        raise
    except Exception as error:
        if (found := _at_fault(error.__traceback__)) is None:
            raise
        plugin, at = found
        raise plugin.failed(error, at) from error


def _at_fault(traceback: TracebackType | None) -> tuple[Plugin, str] | None:
    """The plugin of the innermost frame that runs a plugin's code, with file and line; None: no frame does.

    Among the plugins of one distribution it is the one whose object has the frame, or an outer one.
    """
    frames = [(frame, line) for frame, line in walk_tb(traceback) if _of(frame, itself=False)][::-1]
    if not frames:
        return None
    inner, line = frames[0]
    exact = [plugin for frame, _ in frames for plugin in _of(frame, itself=True)]
    at = f"{Path(inner.f_code.co_filename).name}:{line}"
    return (exact or _of(inner, itself=False))[0], at


def _of(frame: FrameType, *, itself: bool) -> Sequence[Plugin]:
    return [plugin for plugin in _LOADED if plugin.has(frame, itself=itself)]


class Registry(Mapping[str, KindT]):
    """The kinds that seawall has itself, and those of installed plugins, by name.

    Args:
        group: the entry points' group.
        own: seawall's; a plugin of the same name is not used, see :meth:`unused`. A text is a module, imported when its
            name is used, whose ``KIND`` it is.
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

    def require(self, name: str, *, holds: bool, else_why: str) -> None:
        """Check something that a kind has made or answered.

        Args:
            name: the kind's.
            holds: whether it is as the contract has it.
            else_why: what is wrong if it is not.

        Raises:
            EnvironmentFault: it is not, and the kind is a plugin's.
        """
        if not holds:
            assert name not in self.own, f"{self.group}: {name!r}: {else_why}"
            raise self._plugins[name].broken(else_why)

    def __iter__(self) -> Iterator[str]:
        """The names, those of plugins last; nothing is loaded."""
        yield from self.own
        yield from (name for name in sorted(self._plugins) if name not in self.own)

    def __len__(self) -> int:
        """How many there are."""
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        """Whether there is one; nothing is loaded."""
        return name in self.own or name in self._plugins

    def unused(self, plugin: Plugin) -> str:
        """Why an installed plugin is not used, in a sentence; empty: it is, once its name is."""
        if plugin.name in self.own:
            return f"{plugin.distribution}: not used, seawall has {plugin.name!r} itself."
        used = self._plugins[plugin.name]
        if used.distribution == plugin.distribution:
            return ""
        return f"{plugin.distribution}: not used, {used.distribution} has {plugin.name!r}, too."

    @cached_property
    def _plugins(self) -> Mapping[str, Plugin]:
        """By name; of two distributions that have one, the first by name."""
        by_distribution = sorted(installed(self.group), key=lambda one: one.distribution, reverse=True)
        return {plugin.name: plugin for plugin in by_distribution}

    def _own(self, name: str) -> KindT:
        if isinstance(self.own[name], str):
            self.own[name] = import_module(self.own[name]).KIND
        kind: KindT = self.own[name]
        return kind

    def _load(self, plugin: Plugin) -> KindT:
        loaded: KindT = plugin.load()
        try:
            flaw = self._flaw(plugin.name, loaded)
        except UsageError as refused:
            raise plugin.broken(refused.sentence) from refused
        except Exception as error:
            raise plugin.broken(_in_words(error)) from error
        if flaw:
            raise plugin.broken(flaw)
        return loaded


def takes(function: Callable[..., Any], given: int) -> bool:
    """Whether a function can be called with so many positional arguments."""
    try:
        signature(function).bind(*range(given))
    except TypeError:
        return False
    return True


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


def _in_words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")


def _distribution(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else "an unknown distribution"
