"""Reference: periods of at least replica.lag.time.max.ms in which a leader's rows follow each other without a gap."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from checkers.views.row import Row
from harness.facts import LOOKS


def leads(row: Row) -> bool:
    """Whether the row is a leader's and names its ISR."""
    return row["kind"] == "state" and row["role"] == "leader" and None not in (row["isr"], row["leader_epoch"])


def version(row: Row) -> tuple[object, ...]:
    """What a leader's rows about one partition have in common that are of one version of its ISR."""
    return tuple(row[name] for name in ("node", "incarnation", "leader_epoch", "partition_epoch"))


def lasting(rows: Iterable[Row], key: Callable[[Row], object], lag_ns: int) -> Iterator[tuple[Row, Row]]:
    """The first and the last row of each such group.

    Args:
        rows: of one partition.
        key: what the rows of a group have in common.
        lag_ns: how long a group lasts at least; its rows are a :data:`LOOKS`-th of that apart at most.
    """
    groups: dict[object, list[Row]] = defaultdict(list)
    ended: list[list[Row]] = []
    for row in sorted(rows, key=lambda r: (r["time_ns"], r["sequence"])):
        group = groups[key(row)]
        if group and (row["time_ns"] - group[-1]["time_ns"]) * LOOKS > lag_ns:
            ended.append(group.copy())
            group.clear()
        group.append(row)
    for group in (*ended, *groups.values()):
        if group[-1]["time_ns"] - group[0]["time_ns"] >= lag_ns:
            yield group[0], group[-1]
