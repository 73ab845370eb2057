"""When the members of groups subscribed, and which of their rows name a partition and a generation."""

from __future__ import annotations

from collections.abc import Mapping

from checkers.views.history import History
from checkers.views.row import Row


def is_known(row: Row) -> bool:
    """Whether the row names a group, a partition, and a generation that its client was in."""
    return None not in (row["topic"], row["group"], row["generation"]) and row["generation"] >= 0


def subscriptions(history: History) -> Mapping[int, int]:
    """By process, the time at which it subscribed: before its coordinator gave it anything."""
    found: dict[int, int] = {}
    for row in history.operations:
        if row["f"] == "subscribe":
            found[row["process"]] = min(row["time_ns"], found.get(row["process"], row["time_ns"]))
    return found
