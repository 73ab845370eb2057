"""Executes a schedule: its steps, one after the other, each awaited."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from harness.clock import PacedClock
from harness.controls import Elections, Power
from harness.errors import EnvironmentFault, InvalidRun
from harness.model import NodeId, TopicPartition, node_name
from harness.runner.client_operations import AnyOperation, ClientOperations
from harness.runner.conditions import leaderless, unmet
from harness.runner.nemesis import FaultRecord, Nemesis
from harness.runner.planned_schedule import PlannedSchedule
from harness.runner.reporting import Reporter
from harness.runner.run_clients import RunClients
from harness.runner.schedule_log import ScheduleLog
from harness.schedule import Step
from harness.steps import Elect, Unavailable, Until, meant
from harness.target import Target, supports

_POLL_S = 0.03
_GRACE_S = 6.0


@dataclass(frozen=True, slots=True)
class ExecutionContext:
    """What a schedule acts upon."""

    target: Target
    partitions: Sequence[TopicPartition]
    clients: RunClients
    nemesis: Nemesis
    clock: PacedClock


class ScheduleExecutor:
    """Performs a schedule, and keeps ``schedule_log``.

    Args:
        noted: called with the schedule log after every step.
        begun: called with the number of each step, from 0, before it.
    """

    def __init__(
        self,
        schedule: PlannedSchedule,
        context: ExecutionContext,
        schedule_log: ScheduleLog,
        report: Reporter,
        *,
        noted: Callable[[ScheduleLog], None] = lambda schedule_log: None,
        begun: Callable[[int], None] = lambda number: None,
    ) -> None:
        self.schedule_log = schedule_log
        self._noted = noted
        self._begun = begun
        self._schedule = schedule
        self._partitions = context.partitions
        self._target = context.target
        self._workload = context.clients.workload
        self._nemesis = context.nemesis
        self._clock = context.clock
        self._report = report
        self._operations = ClientOperations(context.partitions, context.clients.scheduled, schedule_log, report)
        self._named: dict[str, AnyOperation] = {}

    def perform(self) -> None:
        """Perform every step.

        Raises:
            InvalidRun: a step did not come true; says which, and what was seen instead.
        """
        for number, (index, step) in enumerate(self._schedule.steps.items()):
            self._begun(number)
            self._perform(index, step, self._schedule.path(index))
            self._noted(self.schedule_log)
        for operation in self._named.values():
            self._await_operation(operation)

    def _perform(self, index: int, step: Step, path: str) -> None:
        match step:
            case Step(heal=str(name)) | Step(release=str(name)):
                record = self._proven(path, self._nemesis.heal(name))
                if record.heal_proven_ns is None:
                    raise InvalidRun(f"{path}: fault {name} was not proven healed: {record.heal_proof}.")
            case Step(until=Until() as until):
                self._report(f"waiting until {_in_words(until)}")
                self._await(path, until.within_s, lambda: self._unmet(until))
            case Step(unavailable=Unavailable() as unavailable):
                self._see_unavailable(unavailable, path)
            case Step(elect=Elect() as elect):
                self._elect(elect, path)
            case Step(sync=tuple() as nodes):
                self._sync(nodes)
            case Step(wait_s=float(wait_s)):
                self._clock.sleep(wait_s)
            case _ if index in self._schedule.faults:
                self._proven(path, self._nemesis.inject(step.name or "", self._schedule.faults[index]))
            case _:
                self._run_operation(self._operations.begin(step, path))

    def _proven(self, path: str, record: FaultRecord) -> FaultRecord:
        if record.proven_ns is None:
            raise InvalidRun(f"{path}: fault {record.name} was not proven: {record.proof}.")
        return record

    def _run_operation(self, operation: AnyOperation) -> None:
        if operation.name is not None:
            self._named[operation.name] = operation
        else:
            self._await_operation(operation)

    def _await_operation(self, operation: AnyOperation) -> None:
        self._await(operation.path, operation.within_s + _GRACE_S, operation.missing)

    def _sync(self, nodes: Iterable[int]) -> None:
        """Have everything reach the disks of these brokers, where a target can lose power at all."""
        if supports(self._target, Power):
            for node in nodes:
                self._target.sync_disk(node_name(NodeId(node)))

    def _elect(self, elect: Elect, path: str) -> None:
        who = "the preferred leader" if elect.leader is None else f"broker {elect.leader}"
        self._report(f"asking for the {'unclean ' if elect.unclean else ''}election of {who}")
        leader = None if elect.leader is None else NodeId(elect.leader)
        assert supports(self._target, Elections), "the plan refuses such a step on a target that lacks it"
        for partition in meant(self._partitions, elect):
            refusal = None
            try:
                self._target.elect(partition, leader, unclean=elect.unclean)
            except EnvironmentFault as refused:
                refusal = refused.sentence
            if (elect.expect == "ok" and refusal) or (elect.expect == "refused" and refusal is None):
                raise InvalidRun(f"{path}: {partition}: the answer is {refusal or 'success'}, not {elect.expect}.")

    def _see_unavailable(self, unavailable: Unavailable, path: str) -> None:
        """Wait until there is no leader, and then see to it that there is none all the time."""
        partitions = meant(self._partitions, unavailable)
        self._report(f"waiting until there is no leader of {', '.join(map(str, partitions))}")
        self._await(path, unavailable.within_s, lambda: leaderless(self._target, partitions))
        end_s = self._now_s() + unavailable.for_s
        while self._now_s() < end_s:
            self._clock.sleep(_POLL_S)
            if led := leaderless(self._target, partitions):
                raise InvalidRun(f"{path}: it did not stay so for {unavailable.for_s:g} s: {'; '.join(led)}.")
        self.schedule_log.unavailable += [f"{name} had no leader for {unavailable.for_s:g} s" for name in partitions]

    def _unmet(self, until: Until) -> Sequence[str]:
        phrases = [] if until.sent is None else self._named[until.sent].missing()
        return phrases + unmet(until, self._target, self._partitions, self._workload.polled())

    def _await(self, path: str, within_s: float, look: Callable[[], Sequence[str]]) -> None:
        deadline_s = self._now_s() + within_s
        while missing := look():
            if self._now_s() >= deadline_s:
                raise InvalidRun(f"{path}: did not come true within {within_s:g} s: {'; '.join(missing)}.")
            self._clock.sleep(_POLL_S)

    def _now_s(self) -> float:
        return self._clock.monotonic_ns() / 1e9


def _in_words(until: Until) -> str:
    written = until.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    written.pop("within_s", None)
    for replica in written.pop("replicas", ()):
        node = replica.pop("node")
        written[f"broker {node}"] = ", ".join(f"{name} {value}" for name, value in replica.items())
    return "; ".join(f"{name} {value}" for name, value in written.items())
