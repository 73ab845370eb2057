"""What a run is made on: a target, the clock that it lives by, and the clients that fit it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import workloads
from harness.client_ports import ClientContext, Clients, RealTime
from harness.client_properties import Access
from harness.client_tasks.final_reader import FinalReader
from harness.client_tasks.scheduled_client import OrderedClient
from harness.clients.rights import require_of_group, require_of_transactional_id
from harness.clients.threaded_clients import ThreadedClients
from harness.clock import PacedClock, SystemClock
from harness.controls import WireTaps
from harness.findings import QUIET_NS
from harness.history.recorder import Recorder
from harness.history.run_directory import RunDirectory
from harness.observations import BrokerEvidence
from harness.runner.client_libraries import carried_by, client_library
from harness.runner.plan import Plan
from harness.runner.run_clients import RunClients
from harness.target import Target, includes, supports
from harness.targets.kinds import lives_in_virtual_time, require_whole
from harness.targets.leftovers import StartJournal
from harness.workload import Workload

_LINGERS_S = QUIET_NS / 1e9 + 1.0
"""A second more than must be quiet, for a poll takes its time."""


@dataclass(frozen=True, slots=True)
class RunEnvironment:
    """Everything that differs between targets.

    Attributes:
        clients: makes the clients, once the target has been started.
        close: ends what the clients have started besides. Idempotent.
    """

    target: Target
    clock: PacedClock
    clients: Callable[[Recorder], RunClients]
    close: Callable[[], None] = lambda: None


@dataclass(frozen=True, slots=True)
class Voice:
    """Where clients say what the history has no place for.

    Attributes:
        log: takes what they have to say.
        failed: called with what has ended the background load before its time.
    """

    log: logging.Logger
    failed: Callable[[BaseException], None] = lambda failure: None


def environment_of(plan: Plan, directory: Path, voice: Voice, journal: StartJournal) -> RunEnvironment:
    """The environment of the plan's target, which keeps its files below ``directory``; ``journal`` notes its start."""
    target = plan.system.target(RunDirectory(directory).cluster, plan.seed, journal)
    require_whole(target, plan.target)
    if plan.scenario.tap and supports(target, WireTaps):
        target.tap()
    if lives_in_virtual_time(target, plan.target):
        return RunEnvironment(target, target.clock, partial(clients_of, plan, target.new_clients))

    started = ExitStack()

    def clients(recorder: Recorder) -> RunClients:
        access = Access(target.bootstrap(), plan.system.client)
        prefix = plan.system.prefix
        if prefix:
            require_of_group(access, f"{prefix}rights")
            if plan.workload.transacts:
                require_of_transactional_id(access, f"{prefix}rights")
        library = client_library(plan.workload.client, access, voice.log, voice.failed)
        started.callback(library.close)
        real_time = RealTime(access, directory, voice.log, voice.failed, prefix)
        in_real_time = partial(ThreadedClients, access, voice.log, library, prefix)
        return clients_of(plan, in_real_time, recorder, real_time)

    return RunEnvironment(target, SystemClock(), clients, started.close)


def clients_of(
    plan: Plan,
    new_clients: Callable[[], Clients],
    recorder: Recorder,
    real_time: RealTime | None = None,
) -> RunClients:
    """The clients of a run, none of which has begun yet; ``real_time``: None in virtual time."""
    carried = carried_by(plan.workload.client, plan.system.carried)
    context = ClientContext(new_clients, plan.partitions, recorder, plan.seed, carried, real_time)
    name = plan.scenario.workload.name
    workload = workloads.KINDS[name].make(plan.workload, context)
    workloads.KINDS.require(name, holds=isinstance(workload, Workload), else_why=f"it made {workload!r}, no Workload")
    size, isolation = plan.workload.size, plan.workload.isolation
    lingers_s = 0.0 if includes(plan.system.controls, BrokerEvidence) else _LINGERS_S
    return RunClients(workload, OrderedClient(context, size), FinalReader(context, isolation, lingers_s))
