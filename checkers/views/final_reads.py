"""Which readers of the final read show what a partition holds in the end.

Several processes may read a partition from its beginning in the final phase, at once or one after the other. The last
one that came to the end is the final read; what was delivered before it began counts as any other read. A process came
to the end when it came as far as any other, or to the final leader's high watermark, or when it was given records of
the partition and all its polls of the last :data:`QUIET_NS` returned nothing: a slow broker returns nothing for a
while, too. (A process that was given nothing of a partition may not have come to it yet.) A process that stopped early,
or failed, proves nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from harness.findings import QUIET_NS
from harness.model import TopicPartition


class FinalReader(NamedTuple):
    """A process of the final read and one of its partitions, by its operations that ended ``ok``.

    Attributes:
        first: its first row that names the partition; ``last``: its last.
        reach: one more than the highest offset that it was given; 0: nothing.
        stalled: its last poll gave nothing at all.
        quiet: and so did polls for :data:`QUIET_NS` before it, and it was given nothing in between, nor failed.
    """

    where: TopicPartition
    first: int
    last: int
    reach: int
    stalled: bool
    quiet: bool

    @property
    def exhausted(self) -> bool:
        """Whether it read to the end."""
        return self.reach > 0 and self.quiet


class Ended(NamedTuple):
    """The processes that show what a partition holds in the end.

    Attributes:
        since: the row with which its final read begins.
        exhausted_at: how far those of its processes came that read until they were given nothing any more.
        short: how far, at the least, a process came that read on later than all of those and was given nothing before
            it came there, so that there may have been more for it; None: there is none.
    """

    since: int
    exhausted_at: frozenset[int]
    short: int | None


def readers(operations: Iterable[Mapping[str, Any]]) -> list[FinalReader]:
    """Every process of the final read, once for each of its partitions."""
    busy: dict[int, int] = {}
    empty: dict[int, list[int]] = defaultdict(list)
    named: dict[tuple[int, TopicPartition], list[Mapping[str, Any]]] = defaultdict(list)
    for row in (row for row in operations if row["final"]):
        process, delivered = row["process"], row["topic"] is not None and row["type"] == "ok"
        if delivered:
            named[process, TopicPartition(row["topic"], row["partition"])].append(row)
        if delivered or (row["f"] == "poll" and row["type"] in ("fail", "info")):
            busy[process] = max(row["time_ns"], busy.get(process, row["time_ns"]))
        elif (row["f"], row["type"]) == ("poll", "ok"):
            empty[process].append(row["time_ns"])
    found = []
    for (process, place), rows in named.items():
        reach = max(0 if row["offset"] is None else row["offset"] + 1 for row in rows)
        since_ns = [time_ns for time_ns in empty[process] if time_ns > busy[process]]
        quiet = bool(since_ns) and max(since_ns) - min(since_ns) >= QUIET_NS
        indices = [row["index"] for row in rows]
        found.append(FinalReader(place, min(indices), max(indices), reach, bool(since_ns), quiet))
    return found


def ended(known: Iterable[FinalReader], watermarks: Mapping[TopicPartition, int | None]) -> dict[TopicPartition, Ended]:
    """By partition, the readers that show what it holds; ``watermarks`` are those of the final leaders."""
    by_place: dict[TopicPartition, list[FinalReader]] = defaultdict(list)
    for reader in known:
        by_place[reader.where].append(reader)
    return {place: _ended(group, watermarks.get(place)) for place, group in by_place.items()}


def _ended(group: list[FinalReader], watermark: int | None) -> Ended:
    furthest = max(reader.reach for reader in group)
    enough = furthest if watermark is None else min(furthest, watermark)
    whole = [reader for reader in group if reader.reach >= enough or reader.exhausted]
    since = max(reader.first for reader in whole)
    last = max(reader.last for reader in whole)
    late = [reader for reader in group if reader.last > last and reader.stalled and (reader.reach or reader.quiet)]
    exhausted_at = frozenset(reader.reach for reader in group if reader.exhausted and reader.first >= since)
    return Ended(since, exhausted_at, min((reader.reach for reader in late), default=None))


def is_superseded(row: Mapping[str, Any], begun: Mapping[TopicPartition, int]) -> bool:
    """Whether a row of the final read is about a partition whose final read begins later.

    A scan of a compacted log is never: it reads all of it in one operation. Nor is a record of a program's output,
    which is read to its end before the final read of its topic begins.
    """
    if not row["final"] or row["topic"] is None or row["f"] in ("scan", "output"):
        return False
    return bool(row["index"] < begun.get(TopicPartition(row["topic"], row["partition"]), 0))
