"""The controller's timeline has every decision about a partition: their partition epochs have no gap.

Each decision raises the partition epoch by one, and the first has 0. If a number is missing, comes after a higher one,
or is named by a broker and by no decision, then a row is missing or altered, or the controller counts otherwise. The
timeline does not show which, so there is no finding, but the run is ``INVALID``, and what rests on the absence of
timeline rows is ``INDETERMINATE``. A killed controller may have persisted a decision without writing its row, so
numbers missing behind the last row of one life do not count. Nor are decisions checked where no broker names a
partition epoch: they then come from a log that numbers them by counting.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from checkers.views.states import States
from harness.facts import StateInterval
from harness.model import TopicPartition


def missing_decisions(states: States) -> list[str]:
    """One sentence for each gap in the partition epochs of one life of the controller."""
    if states.sampled:
        return []
    known = [(place, heard) for place in states.decided if (heard := _heard(states, place)) > 0]
    return [sentence for place, heard in sorted(known) for sentence in _gaps(place, states.decided[place], heard)]


def _heard(states: States, place: TopicPartition) -> int:
    """The highest partition epoch that a broker names; 0: none names one that a decision has raised."""
    known = (one.partition_epoch or 0 for intervals in states.reported.get(place, {}).values() for one in intervals)
    return max(known, default=0)


def _gaps(place: TopicPartition, decisions: list[StateInterval], heard: int) -> Iterator[str]:
    first = decisions[0]
    if first.incarnation == 0 and first.partition_epoch:
        yield _sentence(place, 0, first.partition_epoch)
    for before, after in pairwise(decisions):
        if before.incarnation != after.incarnation or None in (before.partition_epoch, after.partition_epoch):
            continue
        next_epoch = (before.partition_epoch or 0) + 1
        if (after.partition_epoch or 0) > next_epoch:
            yield _sentence(place, next_epoch, after.partition_epoch or 0)
        elif (after.partition_epoch or 0) < next_epoch - 1:
            yield (
                f"In the controller's timeline partition epoch {after.partition_epoch} of {place} comes after "
                f"{before.partition_epoch}."
            )
    last = decisions[-1]
    if last.incarnation == 0 and last.partition_epoch is not None and heard > last.partition_epoch:
        yield _sentence(place, last.partition_epoch + 1, heard + 1)


def _sentence(place: TopicPartition, first: int, end: int) -> str:
    epochs = f"partition epoch {first}" if end - first == 1 else f"partition epochs {first} to {end - 1}"
    return f"The controller's timeline has no decision of {epochs} of {place}."
