"""Defines when a fault is in force: from its injection to its healing, both included.

In virtual time an injection and its healing may share an instant. An interval that left out either end would then be
empty, and a power loss of every broker at one instant would have taken no broker down. Code that compares a time with a
fault's times uses :func:`in_force`. Rows of one table that share an instant are ordered by their sequence; rows of
different nodes that do are not ordered at all, so each of them may have come first.
"""

from __future__ import annotations


def in_force(injected_ns: int | None, healed_ns: int | None, since_ns: float, until_ns: float) -> bool:
    """Whether a fault was in force at some instant from ``since_ns`` to ``until_ns``, both included.

    Args:
        injected_ns: when it was injected; None: never, so it was never in force.
        healed_ns: when it was healed; None: never, so it still is.
        since_ns: the first instant asked for.
        until_ns: the last one.
    """
    if injected_ns is None or injected_ns > until_ns:
        return False
    return healed_ns is None or healed_ns >= since_ns
