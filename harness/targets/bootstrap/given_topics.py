"""Topics of a running cluster that its user gives to a run: seawall neither creates them nor deletes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from harness.broker.settings import NO_LIMIT
from harness.errors import UsageError
from harness.targets.bootstrap.promises import STATED, unkept

_DAY_MS = 86_400_000


class Shape(NamedTuple):
    """What a topic is made of.

    Attributes:
        partitions: their number.
        replication_factor: the number of each partition's replicas.
    """

    partitions: int
    replication_factor: int


def refuse_unlike(wanted: Sequence[Shape], given: Mapping[str, Shape], spelling: str) -> None:
    """Refuse topics that are not as the scenario has them.

    Args:
        wanted: the scenario's topics, in its order.
        given: those that take the place of the first of them, in this order, by name.
        spelling: the target, as ``--target`` spells it.

    Raises:
        UsageError: names the first, and how the scenario is changed.
    """
    if len(given) > len(wanted):
        raise UsageError(f"{spelling!r} gives {len(given)} topics, and the scenario has {len(wanted)}.")
    for asked, (name, shape) in zip(wanted, given.items(), strict=False):
        if asked != shape:
            raise UsageError(
                f"topic {name!r} has {shape.partitions} partition(s) with {shape.replication_factor} replica(s), and "
                f"the scenario asks for {asked.partitions} with {asked.replication_factor}.",
                f"Take --set topic.partitions={shape.partitions} "
                f"--set topic.replication_factor={shape.replication_factor}.",
            )


def unfit(configs: Mapping[str, str], told: Mapping[str, str]) -> Iterator[str]:
    """In what the settings of a given topic forbid a run, in words; what the cluster does not tell does not.

    Args:
        configs: what the run counts on, by the names that topics have for settings.
        told: the topic's own.
    """
    yield from unkept({name: value for name, value in configs.items() if name in STATED}, told)
    yield from unkept({"cleanup.policy": "delete", "retention.bytes": NO_LIMIT}, told)
    if 0 <= (age_ms := int(told.get("retention.ms", NO_LIMIT))) < _DAY_MS:
        yield f"retention.ms is {age_ms}, and records are not to age within a day"
