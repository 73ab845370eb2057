"""What a run should have left behind, according to its ``run.json``: nodes, partitions with their replicas, faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from harness.history import Manifest
from harness.model import CONTROLLER_ID, TopicPartition


@dataclass(frozen=True, slots=True)
class Replicas:
    """Who holds a partition: ``nodes`` where the configuration says so (None: the controller chose), ``number``."""

    number: int
    nodes: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Expected:
    """What must be there.

    Attributes:
        nodes: the brokers and the controller.
        partitions: every configured partition.
        faults: the names of the faults that the schedule injects, or that chaos injects at the least.
        retention: whether the configuration lets a log's start move.
        brokers: whether brokers were there to be asked; not for an imported history, which only clients recorded.
    """

    nodes: tuple[int, ...]
    partitions: Mapping[TopicPartition, Replicas]
    faults: tuple[str, ...]
    retention: bool
    brokers: bool = True


def expected(manifest: Manifest) -> Expected | None:
    """What ``manifest``'s resolved configuration demands; None when it does not say."""
    if "imported" in manifest.configuration:
        return Expected((), {}, (), manifest.guarantees.get("retention") is True, brokers=False)
    try:
        scenario: Mapping[str, Any] = manifest.configuration["scenario"]
        brokers = int(scenario["cluster"]["brokers"])
        return Expected(
            nodes=(*range(brokers), CONTROLLER_ID),
            partitions=dict(_partitions(scenario["topics"], brokers)),
            faults=tuple(_faults(scenario)),
            retention=manifest.guarantees.get("retention") is True,
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _partitions(topics: list[Mapping[str, Any]], brokers: int) -> Iterator[tuple[TopicPartition, Replicas]]:
    for topic in topics:
        nodes = topic.get("replicas")
        number = len(nodes) if nodes else int(topic["replication_factor"])
        if number == brokers:
            nodes = range(brokers)
        for partition in range(int(topic["partitions"])):
            yield TopicPartition(topic["name"], partition), Replicas(number, tuple(nodes) if nodes else None)


def _faults(scenario: Mapping[str, Any]) -> Iterator[str]:
    """A schedule names its faults; chaos numbers them, and each of its mix comes up once in every round."""
    for step in scenario.get("schedule") or ():
        for kind in ("inject", "hold"):
            if step.get(kind):
                yield step[kind]["as"]
    if scenario.get("chaos"):
        rounds = sum(fault.get("weight", 1) for fault in scenario["chaos"]["faults"])
        yield from (f"f{number:03d}" for number in range(1, rounds + 1))
