"""What a run should have left behind, according to its ``run.json``: nodes, partitions with their replicas, faults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from checkers.views.recorded_target import may_be_combined
from harness.history.run_directory import Manifest
from harness.model import CONTROLLER_ID, TopicPartition


@dataclass(frozen=True, slots=True)
class Replicas:
    """A partition's replicas: ``number``, and ``nodes`` where the configuration names them (None: it does not)."""

    number: int
    nodes: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Expected:
    """What must be there.

    Attributes:
        nodes: the brokers and the controller.
        partitions: every configured partition.
        faults: the names of the faults that the schedule injects, or that chaos injects at the least.
        kinds: by the name of a fault of the schedule, its kind.
        mix: the kinds of which chaos's faults may be; empty without chaos.
        retention: whether the configuration lets a log's start move.
        brokers: whether brokers were observed; not for a history that only clients recorded, be it imported.
        disks: whether it is known how each replica ended, as it is wherever brokers were observed.
        retry_after_s: after how long without an answer, at the least, a client of the schedule sends again what it does
            not number; None: none does.
        combined: whether brokers are, or may be, the controllers.
        shared_producers: whether an idempotent producer of the schedule sends for several processes.
    """

    nodes: tuple[int, ...]
    partitions: Mapping[TopicPartition, Replicas]
    faults: tuple[str, ...]
    retention: bool
    brokers: bool = True
    disks: bool = True
    retry_after_s: float | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    mix: frozenset[str] = frozenset()
    shared_producers: bool = False
    combined: bool = False


def expected(manifest: Manifest) -> Expected | None:
    """What ``manifest``'s resolved configuration demands; None when it does not state it."""
    if "imported" in manifest.configuration:
        return Expected((), {}, (), manifest.guarantees.get("retention") is True, brokers=False, disks=False)
    try:
        scenario: Mapping[str, Any] = manifest.configuration["scenario"]
        brokers = int(scenario["cluster"]["brokers"])
        watched = knows_states(manifest.guarantees)
        return Expected(
            nodes=(*range(brokers), CONTROLLER_ID) if watched else (),
            partitions=dict(_partitions(scenario["topics"], brokers if watched else None)),
            faults=tuple(_faults(scenario)),
            kinds=dict(_kinds(scenario)),
            mix=frozenset(fault.get("fault", "") for fault in (scenario.get("chaos") or {}).get("faults", ())) - {""},
            retention=manifest.guarantees.get("retention") is True,
            retry_after_s=min(_patience_s(scenario), default=None),
            combined=may_be_combined(manifest.configuration),
            shared_producers=any(send.get("idempotent") for send in _sends(scenario)),
            brokers=watched,
            disks=watched or reads_disks(manifest.guarantees),
        )
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def knows_states(guarantees: Mapping[str, Any]) -> bool:
    """Whether a run's timeline has states of its brokers; not what clients alone recorded, or were told of them."""
    return guarantees.get("timeline") not in ("logs", "metadata", "none")


def reads_disks(guarantees: Mapping[str, Any]) -> bool:
    """Whether no states of brokers were seen, but the files of their disks in the end."""
    return guarantees.get("timeline") == "logs"


def _partitions(topics: list[Mapping[str, Any]], brokers: int | None) -> Iterator[tuple[TopicPartition, Replicas]]:
    """``brokers``: how many there are, with the ids 0, 1, 2 ...; None: that is not known."""
    for topic in topics:
        nodes = topic.get("replicas")
        number = len(nodes) if nodes else int(topic["replication_factor"])
        if brokers is not None and number == brokers:
            nodes = range(brokers)
        for partition in range(int(topic["partitions"])):
            yield TopicPartition(topic["name"], partition), Replicas(number, tuple(nodes) if nodes else None)


def _patience_s(scenario: Mapping[str, Any]) -> Iterator[float]:
    for send in _sends(scenario):
        if send.get("retries") and not send.get("idempotent"):
            yield float(send.get("retry_after_s", 1.0))


def _sends(scenario: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from (step["send"] for step in scenario.get("schedule") or () if step.get("send"))


def _faults(scenario: Mapping[str, Any]) -> Iterator[str]:
    """A schedule names its faults; chaos numbers them, and each of its mix comes up once in every round."""
    yield from (name for name, _ in _kinds(scenario))
    if scenario.get("chaos"):
        rounds = sum(fault.get("weight", 1) for fault in scenario["chaos"]["faults"])
        yield from (f"f{number:03d}" for number in range(1, rounds + 1))


def _kinds(scenario: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The faults of a schedule, and their kinds; what it holds back is a partition."""
    for step in scenario.get("schedule") or ():
        if inject := step.get("inject"):
            yield inject["as"], inject.get("fault", "")
        if hold := step.get("hold"):
            yield hold["as"], "partition"
