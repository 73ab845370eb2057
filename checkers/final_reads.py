"""Which of several readers of a partition tells what is there in the end.

Several processes may read a partition from its beginning in the final phase, at once or one after the other. The last
of them that came to the end tells what is there; what was delivered before it began was delivered before the end, like
any other read. A process came to the end when it came as far as anybody, or to the final leader's high watermark, or
when it was given records of the partition and then went on, and nobody gave it anything at all for :data:`QUIET_NS`: a
broker that is slow gives nothing for a while, too. (A process that was given nothing may not have come to its
partition yet.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from harness.model import TopicPartition
from spark_analysis.answer import QUIET_NS


class FinalReader(NamedTuple):
    """A process of the final read and one of its partitions, by its operations that ended ``ok``.

    Attributes:
        first: its first row that names the partition.
        reach: one more than the highest offset that it was given; 0: nothing.
        exhausted: it was given records, and nothing at all for :data:`QUIET_NS` until its last poll.
    """

    where: TopicPartition
    first: int
    reach: int
    exhausted: bool


def readers(operations: Iterable[Mapping[str, Any]]) -> list[FinalReader]:
    """Every process of the final read, once for each of its partitions."""
    given: dict[int, int] = {}
    empty: dict[int, int] = {}
    named: dict[tuple[int, TopicPartition], list[Mapping[str, Any]]] = defaultdict(list)
    for row in operations:
        if row["final"] and row["type"] == "ok":
            process, time_ns = row["process"], row["time_ns"]
            if row["topic"] is not None:
                named[process, TopicPartition(row["topic"], row["partition"])].append(row)
                given[process] = max(time_ns, given.get(process, time_ns))
            elif row["f"] == "poll":
                empty[process] = max(time_ns, empty.get(process, time_ns))
    reach = {who: max(0 if x["offset"] is None else x["offset"] + 1 for x in rows) for who, rows in named.items()}
    return [
        FinalReader(
            place,
            min(row["index"] for row in rows),
            reach[process, place],
            reach[process, place] > 0 and empty.get(process, given[process]) - given[process] >= QUIET_NS,
        )
        for (process, place), rows in named.items()
    ]


def since(known: Iterable[FinalReader], watermarks: Mapping[TopicPartition, int | None]) -> dict[TopicPartition, int]:
    """By partition the row with which its final read begins; ``watermarks`` are those of the final leaders."""
    by_place: dict[TopicPartition, list[FinalReader]] = defaultdict(list)
    for reader in known:
        by_place[reader.where].append(reader)
    return {place: max(_ended(ours, watermarks.get(place))) for place, ours in by_place.items()}


def _ended(readers_of_one: list[FinalReader], watermark: int | None) -> list[int]:
    """Where the processes began that came to the end."""
    furthest = max(reader.reach for reader in readers_of_one)
    enough = furthest if watermark is None else min(furthest, watermark)
    return [r.first for r in readers_of_one if r.reach >= enough or r.exhausted]


def is_superseded(row: Mapping[str, Any], begun: Mapping[TopicPartition, int]) -> bool:
    """Whether a row of the final read is about a partition whose final read begins later."""
    if not row["final"] or row["topic"] is None:
        return False
    return bool(row["index"] < begun.get(TopicPartition(row["topic"], row["partition"]), 0))
