"""What a seawall that was killed leaves of a target, and the journal that says so beforehand, for ``seawall heal``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


class StartJournal(Protocol):
    """Records what a target starts, so that ``seawall heal`` finds it when the harness has been killed."""

    def node_started(self, name: str, pid: int) -> None:
        """Record that node ``name`` is process ``pid`` now."""
        ...

    def leftover_coming(self, kind: str, what: Mapping[str, Any]) -> None:
        """Record something that does not end with this process and its nodes, before it exists.

        Args:
            kind: the name of the kind of target whose :class:`Leftovers` remove it.
            what: names it, as JSON has it; :attr:`Leftovers.remove` is called with that.

        Raises:
            EnvironmentFault: a plugin's kind has no :class:`Leftovers`.
        """
        ...

    def leftover_gone(self, kind: str, what: Mapping[str, Any]) -> None:
        """Record that something is not there any more, after :meth:`leftover_coming` with the same arguments."""
        ...

    def command_started(self, name: str, pid: int) -> None:
        """Record, before it does anything, that process ``pid`` does or undoes what a leftover tells of.

        It outlives a harness that is killed: ``seawall heal`` waits for its end before it removes any leftover.

        Args:
            name: what is done; the process that had the name before has ended.
            pid: its id.
        """
        ...


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What a seawall that was killed leaves of a kind of target beside processes and its run directory.

    Attributes:
        plural: what they are, in messages, such as ``containers``.
        remove: removes what :meth:`StartJournal.leftover_coming` has recorded, as far as it is there, and returns the
            name of each thing that it has removed. It is called in another process, and again while it raises
            ``EnvironmentFault``: it cannot be done now.
        remove_lost: removes what no journal names any more, but what certainly belongs to a seawall of this user that
            has ended; returns one line for each thing. A kind that cannot know that has none.
    """

    plural: str
    remove: Callable[[Mapping[str, Any]], Sequence[str]]
    remove_lost: Callable[[], Sequence[str]] = list
