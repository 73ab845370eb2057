"""What a run is made on: a target, the clock that it lives by, and the clients that fit it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import workloads
from harness.clock import PacedClock, SystemClock
from harness.history.recorder import Recorder
from harness.history.run_directory import RunDirectory
from harness.runner.journal import Journal
from harness.runner.plan import Plan
from harness.runner.real import RealKafka
from harness.target import Target
from harness.targets.builtin import BuiltinTarget
from harness.targets.simulated import SimulatedTarget
from harness.workload import Workload
from workloads.workload_context import WorkloadContext


@dataclass(frozen=True, slots=True)
class RunEnvironment:
    """Everything that differs between targets.

    Attributes:
        workload: makes the clients, once the target has been started.
    """

    target: Target
    clock: PacedClock
    workload: Callable[[Recorder], Workload]


class NodeStarted(Protocol):
    """Told the name and process id of every process that the target starts."""

    def __call__(self, name: str, pid: int) -> None:
        """Write it down."""
        ...


@dataclass(frozen=True, slots=True)
class Voice:
    """Where clients say what the history has no place for.

    Attributes:
        log: takes what they have to say.
        failed: told what has ended the background load before its time.
    """

    log: logging.Logger
    failed: Callable[[BaseException], None]


def builtin(plan: Plan, directory: Path, voice: Voice, started: NodeStarted) -> RunEnvironment:
    """Real processes, which keep their files below ``directory``, in real time."""
    brokers = plan.scenario.cluster.brokers
    target = BuiltinTarget(RunDirectory(directory).cluster, brokers, plan.knobs, plan.settings, started)
    return RunEnvironment(target, SystemClock(), _measuring(plan, target, voice))


def simulated(plan: Plan, directory: Path, log: logging.Logger) -> RunEnvironment:
    """The same brokers in this process and in virtual time; ``directory`` is for evidence, once they have stopped."""
    brokers = plan.scenario.cluster.brokers
    target = SimulatedTarget(RunDirectory(directory).cluster, brokers, plan.knobs, plan.settings, seed=plan.seed)

    def workload(recorder: Recorder) -> Workload:
        around = WorkloadContext(target.bootstrap(), plan.partitions, recorder, plan.seed, log)
        kind = workloads.KINDS[plan.scenario.workload.name]
        return kind.in_virtual_time(plan.workload, around, target.cluster)

    return RunEnvironment(target, target.clock, workload)


def real(plan: Plan, kafka: RealKafka, directory: Path, voice: Voice, journal: Journal) -> RunEnvironment:
    """Real Kafka, which keeps its files below ``directory``, in real time."""
    brokers = plan.scenario.cluster.brokers
    target = kafka.source.target(RunDirectory(directory).cluster, brokers, kafka.settings, journal)
    return RunEnvironment(target, SystemClock(), _measuring(plan, target, voice))


def _measuring(plan: Plan, target: Target, voice: Voice) -> Callable[[Recorder], Workload]:
    """The clients of a cluster in real time."""

    def workload(recorder: Recorder) -> Workload:
        around = WorkloadContext(
            target.bootstrap(), plan.partitions, recorder, plan.seed, voice.log, voice.failed, plan.carried
        )
        return workloads.KINDS[plan.scenario.workload.name].in_real_time(plan.workload, around)

    return workload


def environment_of(plan: Plan, directory: Path, voice: Voice, journal: Journal) -> RunEnvironment:
    """The environment of the plan's target, which tells ``journal`` what it starts."""
    if plan.kafka is not None:
        return real(plan, plan.kafka, directory, voice, journal)
    match plan.target:
        case BuiltinTarget.name:
            return builtin(plan, directory, voice, journal.node_started)
        case SimulatedTarget.name:
            return simulated(plan, directory, voice.log)
        case unknown:
            raise AssertionError(f"target {unknown!r} was planned")
