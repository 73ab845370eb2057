"""The life of one run: it starts the cluster and the load, lets the nemesis work, settles, reads and collects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial

from harness.clock import PacedClock
from harness.errors import EnvironmentFault, InvalidRun
from harness.model import NO_LEADER, TopicPartition, is_kafkas_own
from harness.observations import BrokerEvidence, NodeStates, ShowsLogs
from harness.runner import settle as settling
from harness.runner.archive import Archive
from harness.runner.chaos import Chaos
from harness.runner.collect import collect
from harness.runner.journal import Undo
from harness.runner.nemesis import Nemesis
from harness.runner.overlapping_chaos import OverlappingChaos
from harness.runner.plan import Plan
from harness.runner.planned_chaos import PlannedChaos
from harness.runner.reporting import Reporter
from harness.runner.run_clients import RunClients
from harness.runner.run_environment import RunEnvironment
from harness.runner.run_progress import RunProgress
from harness.runner.schedule_executor import ExecutionContext, ScheduleExecutor
from harness.runner.schedule_log import ScheduleLog
from harness.runner.service import Sends, reads, takeovers
from harness.runner.unknown_topics import UnknownTopic, unknown_topics
from harness.runner.unrest import STILL_TIMES, Look, RecoveryAspect, Unrest, observed, probed, rest, still_for_s
from harness.target import PartitionView, Target, supports

_FINAL_READ_TIMEOUT_S = 30.0
_POLL_S = 0.05


class RunLifecycle:
    """Everything that one run uses; :meth:`clear` leaves nothing of it behind, however far the run came.

    Attributes:
        progress: what it does at this moment.
        waited: whether the cluster had the time to come to rest that it was promised.
    """

    def __init__(
        self, plan: Plan, archive: Archive, environment: RunEnvironment, journal: Undo, report: Reporter
    ) -> None:
        self._plan = plan
        self._archive = archive
        self._report = report
        self._environment = environment
        self._target = environment.target
        self._recorder = archive.recorder(environment.clock)
        self._nemesis = Nemesis(self._target, journal, environment.clock, plan.seed, report, noted=archive.take_faults)
        self.progress = RunProgress(plan, self._target, environment.clock, self._recorder, self._nemesis)
        self._schedule_log = ScheduleLog(plan.partitions)
        self._clients: RunClients | None = None
        self._collected = False
        self.waited = False

    def start_cluster(self) -> None:
        """Start the nodes and create the topics."""
        self.progress.begins("starting the cluster", is_up=False)
        cluster = self._plan.scenario.cluster
        self._report(self._plan.system.begins(cluster.brokers))
        self._target.start()
        for topic in self._plan.topics:
            self._target.create_topic(topic)

    def start_load(self) -> None:
        """Start the workload's producers and consumers."""
        self.progress.begins("starting the load")
        plan = self._plan
        self._clients = self._environment.clients(self._recorder)
        self._report(f"starting workload {plan.scenario.workload.name} on {len(plan.partitions)} partitions")
        self._clients.workload.start()

    def run_faults(self) -> None:
        """Perform the schedule, or let chaos loose; a schedule that waits in vain may have found a stuck cluster.

        Raises:
            InvalidRun: it did not come to its end.
        """
        try:
            self._run_faults()
        except InvalidRun:
            with suppress(InvalidRun, EnvironmentFault):  # the first of several reasons is the one to tell
                self._look_for_a_stall()
            raise

    def _look_for_a_stall(self) -> None:
        """Heal everything, and write down whether the cluster is stuck; see :meth:`_watched`."""
        self.heal()
        self.stop_load()
        if self._plan.forecast.expectation is None:
            self._awaited()

    def _run_faults(self) -> None:
        assert self._clients is not None
        if self._plan.chaos is not None:
            self._run_chaos(self._plan.chaos)
        else:
            self.progress.begins("schedule")
            plan, clock = self._plan, self._environment.clock
            context = ExecutionContext(self._target, plan.partitions, self._clients, self._nemesis, clock)
            noted = self._archive.take_schedule_log
            begun = self.progress.step
            ScheduleExecutor(
                plan.schedule, context, self._schedule_log, self._report, noted=noted, begun=begun
            ).perform()

    def _run_chaos(self, chaos: PlannedChaos) -> None:
        faults = "random faults" if chaos.faults else "load without faults"
        self.progress.begins(faults, chaos.duration_s)
        self._report(f"{faults} for {chaos.duration_s:g} s, seed {self._plan.seed}")
        if chaos.faults:
            chaos_of(self._plan, chaos, self._target, self._nemesis, self._environment.clock).unleash()
        else:
            self._environment.clock.sleep(chaos.duration_s)

    def heal(self) -> None:
        """Heal whatever is still in force."""
        self.progress.begins("healing")
        self._nemesis.heal_all()

    def stop_load(self) -> None:
        """Stop producers and tailing consumers; every outstanding answer comes in first."""
        assert self._clients is not None
        self.progress.begins("stopping the load")
        self._report("stopping the load")
        self._clients.stop()

    def settle(self) -> None:
        """Wait until the cluster is whole again; that it does not get there may be what the scenario expects."""
        self.progress.begins("waiting for full ISRs")
        self._report("waiting until every replica is in sync")
        missing = self._settle() if self._plan.forecast.expectation is not None else self._awaited()
        if self._clients is not None:
            self._clients.workload.finish(self._report)
        if not missing and self._plan.forecast.expectation is None and self._plan.workload.has_background_load:
            missing = self._sent_again()
        if not missing and self._plan.forecast.expectation is None and self._plan.workload.held_for_s:
            missing = self._taken_over()
        self.waited = True
        partitions = self._target.view().partitions
        self._schedule_log.unsettled = missing
        self._schedule_log.replicas = {name: tuple(seen.replicas) for name, seen in partitions.items()}
        self._schedule_log.leaderless = [str(name) for name, seen in partitions.items() if seen.leader == NO_LEADER]
        self._schedule_log.exited = list(_exited(self._target)) if supports(self._target, NodeStates) else []

    def _settle(self) -> list[str]:
        return settling.settle(
            self._target, self._plan.partitions, self._plan.scenario.settle_s, self._environment.clock
        )

    def _awaited(self) -> list[str]:
        """What a cluster of which nothing is predicted still lacks when it is stuck; raises as :meth:`_watched`."""
        missing = self._settle()
        if missing and self._plan.system.schedules_by_wall_clock and settling.restart_the_misled(self._nemesis):
            missing = self._settle()
        look = partial(rest, self._target, self._plan.partitions)
        return self._watched("rest", "the healed cluster did not settle", look) if missing else []

    def _sent_again(self) -> list[str]:
        """Send each partition a record until one is acknowledged, for the load ended before the cluster had recovered.

        Returns what a cluster still lacks that is stuck; raises as :meth:`_watched`.
        """
        assert self._clients is not None
        plan, clock = self._plan, self._environment.clock
        timeout_s = max(plan.workload.answered_within_s, still_for_s(plan.system.known_settings()) / STILL_TIMES)
        takes = [name for name, seen in self._target.view().partitions.items() if self._takes_records(name, seen)]
        sends = Sends(self._clients.scheduled, takes, timeout_s=timeout_s, idempotent=plan.workload.numbers_records)
        self._report(f"sending again to {len(takes)} partitions")
        deadline_ns = clock.monotonic_ns() + round(plan.scenario.settle_s * 1e9)
        while not (recovered := sends.look().recovered) and clock.monotonic_ns() < deadline_ns:
            clock.sleep(_POLL_S)
        missing = [] if recovered else self._watched("sends", "the healed cluster does not acknowledge", sends.look)
        self._clients.stop()
        return missing or self._awaited()

    def _taken_over(self) -> list[str]:
        """Have new clients take over what those of the load have held: a rebalance, or a transaction, may never end.

        Returns what a cluster still lacks that is stuck; raises as :meth:`_watched`. Nothing is asked of it where the
        partitions of Kafka's own topics, which the coordinators need, are not whole.
        """
        assert self._clients is not None
        workload, clock = self._clients.workload, self._environment.clock
        deadline_ns = clock.monotonic_ns() + round(self._plan.scenario.settle_s * 1e9)
        while not (whole := self._coordinators_can_store()) and clock.monotonic_ns() < deadline_ns:
            clock.sleep(_POLL_S)
        if not whole:
            return []
        self._report("taking over what clients of the load have held")
        look = partial(takeovers, workload.take_over())
        while not (recovered := look().recovered) and clock.monotonic_ns() < deadline_ns:
            clock.sleep(_POLL_S)
        lacks = "the healed cluster does not let new clients take over"
        still_s = STILL_TIMES * self._plan.workload.held_for_s
        missing = [] if recovered else self._watched("takeovers", lacks, look, still_s)
        self._clients.stop()
        return missing

    def _coordinators_can_store(self) -> bool:
        view = self._target.view().partitions
        own = (seen for name, seen in view.items() if is_kafkas_own(name.topic))
        return bool(view) and all(seen.leader != NO_LEADER and len(seen.isr) == len(seen.replicas) for seen in own)

    def _takes_records(self, name: TopicPartition, seen: PartitionView) -> bool:
        """Whether a partition at rest has to take records with acks=all: all of its replicas are there, and enough."""
        enough = self._plan.system.known_settings().min_insync_replicas
        return name in self._plan.partitions and len(seen.isr) == len(seen.replicas) >= enough

    def _watched(
        self, of: RecoveryAspect, lacks: str, look: Callable[[], Look], least_s: float = 0.0
    ) -> list[str]:  # fmt: skip
        """What a cluster that did not recover in time still lacks when it gets no nearer, and only it is to blame.

        Where no node can be probed that is never known: then it is what the cluster lacks when it gets no nearer. A
        cluster that has lost topics is not waited for, where clients' answers are all that is known of it.

        ``least_s``: for how long it must have got no nearer, where that is longer than for other clients.

        Raises:
            InvalidRun: a probe blames the environment, or a fault is not known to be healed.
        """
        settling.require_healed(self._nemesis.records, lacks)
        target = self._target
        if not supports(target, BrokerEvidence) and self._unknown_topics():
            return list(look().missing)
        if not supports(target, NodeStates):
            return self._unproven(of, lacks, look, least_s)
        if (unrest := self._observed(of, lacks, look, least_s)) is None:
            return []
        unrest = probed(target, unrest)
        settling.require_unblamed(lacks, unrest.missing, unrest.blamed)
        self._report(f"it is stuck: {settling.in_short(unrest.missing)}")
        self._archive.take_unrest(unrest.to_json(self._plan.partitions))
        return list(unrest.missing)

    def _unproven(
        self, of: RecoveryAspect, lacks: str, look: Callable[[], Look], least_s: float
    ) -> list[str]:  # fmt: skip
        """As :meth:`_watched`, where no node can be probed."""
        if (unrest := self._observed(of, lacks, look, least_s)) is None:
            return []
        self._unknown_topics()
        self._archive.take_unrecovered(unrest.missing)
        self._report(f"{lacks}: {settling.in_short(unrest.missing)}; whether the cluster is to blame cannot be known")
        return list(unrest.missing)

    def _unknown_topics(self) -> Sequence[UnknownTopic]:
        """The topics that the cluster does not know any more, for the archive, too."""
        topics = {topic.name for topic in self._plan.topics}
        if unknown := unknown_topics(self._target, topics, self._environment.clock):
            self._report(f"the cluster does not know {', '.join(one.topic for one in unknown)} any more")
        self._archive.take_unknown_topics(unknown)
        return unknown

    def _observed(
        self, of: RecoveryAspect, lacks: str, look: Callable[[], Look], least_s: float = 0.0
    ) -> Unrest | None:
        """What :func:`harness.runner.unrest.observed` finds; the last parameter as in :meth:`_watched`."""
        still_s = max(still_for_s(self._plan.system.known_settings()), least_s)
        self._report(f"{lacks}; looking whether anything gets nearer within {still_s:g} s")
        return observed(self._target, of, look, still_s, self._environment.clock)

    def read_everything(self) -> None:
        """Read every partition from the start to its end, as far as one can, and close the history."""
        self.progress.begins("final read")
        assert self._clients is not None
        self._report("reading everything from the beginning")
        timeout_s = self._plan.scenario.settle_s if self._schedule_log.unsettled else _FINAL_READ_TIMEOUT_S
        if not self._clients.final_read.read(timeout_s) and not self._schedule_log.unsettled:
            lacks = f"the final read did not reach every end within {timeout_s:g} s"
            look = partial(reads, self._clients.final_read)
            if not self._plan.scenario.transacts:
                self._schedule_log.unsettled = self._watched("reads", lacks, look)
            elif self._observed("reads", lacks, look) is not None:
                raise InvalidRun(f"{lacks}.")  # what ends a transaction is never delivered, and may be all that is left
        self._clients.stop()
        self._recorder.close()

    def read_logs(self) -> None:
        """Read the logs of brokers that this run does not stop."""
        if isinstance(self._target, ShowsLogs):
            self.progress.begins("reading the brokers' logs")
            self._target.read_logs()

    def stop_cluster(self) -> None:
        """Stop the nodes."""
        self.progress.begins("stopping the cluster", is_up=False)
        self._target.stop()

    def collect(self) -> None:
        """Hand over what the nodes, the nemesis and the schedule know."""
        self.progress.begins("collecting the evidence", is_up=False)
        if not self._collected:
            if self._clients is not None:
                self._archive.take_program(self._clients.workload.program())
            collect(
                self._archive, self._target, self._nemesis, self._schedule_log, self._recorder.orders,
                is_tapped=self._plan.scenario.tap,
            )  # fmt: skip
            self._collected = True

    def remains(self) -> Sequence[str]:
        """What is still there of the run, in words: faults that are not healed, and what the target has left.

        A fault of a target that is gone altogether is gone with it.

        Raises:
            EnvironmentFault: it cannot be known.
        """
        return self._target.remains()

    def clear(self) -> None:
        """Heal, stop and write down whatever has not been; each part is tried whatever becomes of the others."""
        self.progress.begins("healing and stopping")
        with ExitStack() as last_things_first:
            last_things_first.callback(self.collect)
            last_things_first.callback(self._recorder.flush)
            last_things_first.callback(self._archive.make_room)
            last_things_first.callback(self._target.stop)
            if self._clients is not None:
                last_things_first.callback(self._clients.stop)
                last_things_first.callback(self._clients.workload.end)
            last_things_first.callback(self._nemesis.heal_all)


def _exited(target: NodeStates) -> Iterator[str]:
    """How nodes have exited by themselves, but for those whose disk had no space left."""
    for node in target.nodes():
        if (ended := target.has_exited(node)).holds and not target.has_refused_write(node).holds:
            yield ended.seen


def chaos_of(
    plan: Plan, chaos: PlannedChaos, target: Target, nemesis: Nemesis, clock: PacedClock
) -> Chaos | OverlappingChaos:
    """Random faults, one at a time or several."""
    by_wall_clock = plan.system.schedules_by_wall_clock
    if chaos.rules.at_once > 1:
        return OverlappingChaos(chaos, plan.partitions, target, nemesis, clock, by_wall_clock=by_wall_clock)
    awaited = plan.partitions if by_wall_clock else ()
    return Chaos(chaos, awaited, target, nemesis, clock)
