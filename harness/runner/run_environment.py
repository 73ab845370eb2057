"""What a run is made on: a target, the clock that it lives by, and the clients that fit it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

import workloads
from harness.clock import PacedClock, SystemClock
from harness.history.recorder import Recorder
from harness.history.run_directory import RunDirectory
from harness.runner.plan import Plan
from harness.simulation.stack.cluster import SimulatedCluster
from harness.target import Target
from harness.targets.cluster_kind import StartJournal
from harness.targets.kinds import cluster_kind, is_in_virtual_time
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


class Simulated(Protocol):
    """A target that runs inside this process, in virtual time."""

    clock: PacedClock
    cluster: SimulatedCluster


@dataclass(frozen=True, slots=True)
class Voice:
    """Where clients say what the history has no place for.

    Attributes:
        log: takes what they have to say.
        failed: told what has ended the background load before its time.
    """

    log: logging.Logger
    failed: Callable[[BaseException], None] = lambda failure: None


def environment_of(plan: Plan, directory: Path, voice: Voice, journal: StartJournal) -> RunEnvironment:
    """The environment of the plan's target, which keeps its files below ``directory``; ``journal`` notes its start."""
    target = _target(plan, RunDirectory(directory).cluster, journal)
    kind = workloads.KINDS[plan.scenario.workload.name]
    if is_in_virtual_time(plan.target):
        simulated = cast("Simulated", target)

        def in_virtual_time(recorder: Recorder) -> Workload:
            return kind.in_virtual_time(plan.workload, _context(plan, target, recorder, voice), simulated.cluster)

        return RunEnvironment(target, simulated.clock, in_virtual_time)

    def in_real_time(recorder: Recorder) -> Workload:
        return kind.in_real_time(plan.workload, _context(plan, target, recorder, voice))

    return RunEnvironment(target, SystemClock(), in_real_time)


def _target(plan: Plan, directory: Path, journal: StartJournal) -> Target:
    brokers = plan.scenario.cluster.brokers
    if plan.kafka is not None:
        return plan.kafka.source.target(directory, brokers, plan.kafka.settings, journal)
    kind = cluster_kind(plan.target)
    return kind.make(directory, brokers, plan.knobs, plan.settings, seed=plan.seed, journal=journal)


def _context(plan: Plan, target: Target, recorder: Recorder, voice: Voice) -> WorkloadContext:
    return WorkloadContext(
        target.bootstrap(), plan.partitions, recorder, plan.seed, voice.log, voice.failed, plan.carried
    )
