"""What the clients of consumer groups committed, and what they asked about commits: the rows of each operation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from checkers.views.history import History
from checkers.views.row import Row, where
from harness.model import TopicPartition


class Whose(NamedTuple):
    """A group and a partition that it reads."""

    group: str
    where: TopicPartition


def automatic(history: History) -> Mapping[Whose, int]:
    """Where clients commit by themselves (``auto_commit``), so that the history does not have the commits.

    Returns: from when on, in nanoseconds, a client may have committed there.
    """
    found: dict[Whose, int] = {}
    for row in history.operations:
        if row["f"] == "auto_commit" and None not in (row["topic"], row["group"]):
            whose = Whose(row["group"], where(row))
            found[whose] = min(found.get(whose, row["time_ns"]), row["time_ns"])
    return found


def group_operations(history: History) -> list[list[Row]]:
    """By operation and partition the rows of commits, and of questions about them: the invocation first."""
    found: dict[tuple[int, TopicPartition], list[Row]] = defaultdict(list)
    for row in history.operations:
        if row["f"] in ("commit", "committed") and row["topic"] is not None:
            found[row["op"], where(row)].append(row)
    return [sorted(group, key=lambda r: (r["type"] != "invoke", r["index"])) for group in found.values()]


def commits(history: History) -> list[tuple[Row, Row]]:
    """The first and the last row of each commit, which are the same while its invocation is all that there is."""
    return [(group[0], group[-1]) for group in group_operations(history) if group[0]["f"] == "commit"]
