"""Removes what a killed seawall has left of a target of some kind, by that kind's :class:`Leftovers`.

The kind may be a plugin's, which may be broken, or not be installed any more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.errors import EnvironmentFault, SeawallError
from harness.plugins import plugins_answer_for_themselves
from harness.targets.kinds import KINDS
from harness.targets.leftovers import Leftovers


def require_removable(kind: str) -> None:
    """Check that a kind can remove what a target of it is going to leave. Raises as :func:`remove`."""
    _leftovers(kind)


def remove(kind: str, what: Mapping[str, Any]) -> list[str]:
    """Remove what a journal has as coming; returns the names of what was removed.

    Args:
        kind: the name of a kind of target.
        what: names it, see :meth:`harness.targets.leftovers.StartJournal.leftover_coming`.

    Raises:
        EnvironmentFault: what is still there, and why: it cannot be removed now, or the kind is a plugin's that is
            broken, or not installed.
    """
    try:
        found = _leftovers(kind)
    except EnvironmentFault as problem:
        raise EnvironmentFault(f"what its target has left is still there: {problem}") from problem
    try:
        with plugins_answer_for_themselves():
            removed = found.remove(what)
        _require_names(kind, removed, "remove")
    except SeawallError as problem:
        raise EnvironmentFault(f"its {found.plural} are still there: {problem}") from problem
    return list(removed)


def remove_lost(kind: str) -> list[str]:
    """Remove what targets of a kind have left and no journal names; one line for each, or the reason why not."""
    try:
        found = KINDS[kind].leftovers
        if found is None:
            return []
        with plugins_answer_for_themselves():
            lines = found.remove_lost()
        _require_names(kind, lines, "remove_lost")
    except EnvironmentFault as problem:
        return [f"What targets {kind!r} of killed runs have left is not known: {problem}"]
    return list(lines)


def _leftovers(kind: str) -> Leftovers:
    if kind not in KINDS:
        raise EnvironmentFault(
            f"the plugin of target {kind!r} is not installed.", "Install it, or remove what is left and the journal."
        )
    found = KINDS[kind].leftovers
    KINDS.require(kind, holds=found is not None, else_why="its KIND has no leftovers, and a target of it leaves some.")
    assert found is not None
    return found


def _require_names(kind: str, returned: Sequence[str], name: str) -> None:
    whole = isinstance(returned, list | tuple) and all(isinstance(one, str) for one in returned)
    KINDS.require(kind, holds=whole, else_why=f"its leftovers' {name!r} returned {returned!r}, no list of texts.")
