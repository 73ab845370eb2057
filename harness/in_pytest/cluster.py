"""The fixture ``seawall_cluster``: a cluster for one test, its faults, and the verdict on what its clients saw."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import faults
from checkers import check
from checkers.verdicts.check import Engine
from harness.checker import Outcome
from harness.cli.findings import details
from harness.client_ports import ClientContext
from harness.client_properties import Access
from harness.clients.librdkafka import close_log, file_log
from harness.clients.threaded_clients import ThreadedClients
from harness.errors import EnvironmentFault, InvalidRun, SeawallError, UsageError
from harness.history.run_directory import RunDirectory, RunState
from harness.in_pytest.history import ClientHistory
from harness.in_pytest.live_run import LiveRun
from harness.in_pytest.wanted import Wanted, planned, slug
from harness.model import TopicPartition
from harness.runner.archive import DirectoryArchive
from harness.runner.journal import Journal, heal_leftovers
from harness.runner.manifest import manifest, now, restless
from harness.runner.nemesis import FaultRecord
from harness.runner.plan import Plan
from harness.runner.run_environment import Voice, environment_of
from harness.target import ClusterView, TopicSpec
from reports import write
from reports.run import read
from reports.sentences import banner

_REPLICAS = 3

Stage = Literal["running", "concluded", "closed"]


class SeawallCluster:
    """A running cluster.

    Args:
        asked: the marker of the test.
        test: the test, as pytest names it.
        runs: the directory of the run directories.
        engine: who decides.

    Attributes:
        directory: the run directory.
        history: what the test's clients did.
    """

    def __init__(self, asked: Wanted, test: str, runs: Path, engine: Engine = "reference") -> None:
        self._asked = asked
        self._test = test
        self._engine = engine
        self._topics: list[dict[str, Any]] = []
        self._steps: list[dict[str, Any]] = []
        self._partitions: list[TopicPartition] = []
        self._started_s, self._started = time.monotonic(), now()
        self._stage: Stage = "running"
        self._told = ""
        self._outcome: Outcome | None = None
        self._last_things = ExitStack()
        plan = self._plan()
        heal_leftovers()
        self.directory = _new_directory(plan, runs / slug(test), self._started)
        try:
            self._run = self._begin(plan)
        except BaseException:
            self.close()
            raise

    def _begin(self, plan: Plan) -> LiveRun:
        directory = self.directory
        journal = self._last_things.enter_context(Journal(directory.path))
        self._last_things.callback(journal.all_is_undone)
        log = file_log(directory.broker_logs / "clients.log", directory.path.name)
        self._last_things.callback(close_log, log)
        environment = environment_of(plan, directory.path, Voice(log), journal)
        run = LiveRun(plan, DirectoryArchive(directory), environment, journal)
        self._last_things.callback(self._clear, run)
        context = ClientContext(
            lambda: ThreadedClients(Access(run.target.bootstrap()), log), self._partitions, run.recorder, plan.seed
        )
        run.start(context)
        self.history = ClientHistory(
            context,
            self._steps,
            {"bootstrap.servers": run.target.bootstrap(), "logger": log, "topic.metadata.refresh.interval.ms": 1000},
        )
        self._run = run
        for name, partitions in self._asked.topics.items():
            self.create_topic(name, partitions)
        return run

    # ---------------------------------------------------------------------------------------------- the cluster

    @property
    def bootstrap(self) -> str:
        """``host:port,...``, as ``bootstrap.servers`` takes it."""
        return self._run.target.bootstrap()

    def view(self) -> ClusterView:
        """The cluster as its controller sees it now: live brokers, leaders, ISRs."""
        return self._run.target.view()

    def leader(self, topic: str, partition: int = 0) -> int:
        """The broker that leads a partition; -1: there is none.

        Raises:
            UsageError: there is no such partition.
        """
        found = self.view().partitions.get(TopicPartition(topic, partition))
        if found is None:
            raise UsageError(f"the cluster has no partition {topic}-{partition}.")
        return found.leader

    def create_topic(self, name: str, partitions: int = 1, replication_factor: int | None = None) -> None:
        """Create a topic, and wait until every partition has a leader and a full ISR.

        Raises:
            UsageError: it cannot be created so.
        """
        factor = min(_REPLICAS, self._asked.brokers) if replication_factor is None else replication_factor
        topic = {"name": name, "partitions": partitions, "replication_factor": factor}
        self._plan(topics=[*self._topics, topic])
        self._run.create_topic(TopicSpec(name, partitions, factor))
        self._topics.append(topic)
        self._partitions += [TopicPartition(name, number) for number in range(partitions)]
        self.history.partitions[name] = partitions

    @contextmanager
    def fault(self, kind: str, **parameters: Any) -> Iterator[FaultRecord]:
        """Keep a fault in force: ``with cluster.fault("kill", node="leader"):``.

        It is aimed, injected and proven by a probe; in the end it is probed again, healed, and proven healed. The
        parameters are those of a scenario (docs/faults.md).

        Raises:
            UsageError: there is no such fault, or the target cannot do it.
            InvalidRun: no probe saw it in effect until its end, or healed.
        """
        name = f"{kind.replace('_', '-')}-{len(self._run.unproven()) + len(self._steps)}"
        written = {"fault": kind, **parameters}
        step = {"inject": {**written, "as": name}}
        if not self._topics:
            raise UsageError(f"fault {kind!r} has no partition to aim at: the test has created no topic.")
        self._plan(steps=[*self._steps, step])
        self._steps.append(step)
        record = self._run.inject(name, faults.parse(written, f"fault({kind!r})"))
        try:
            yield record
        finally:
            self._run.mend(name)
            self._steps.append({"heal": name})
        if unproven := [sentence for sentence in self._run.unproven() if f" {name} " in sentence]:
            raise InvalidRun(unproven[0])

    # ---------------------------------------------------------------------------------------------- the verdict

    def conclude(self) -> Outcome:
        """Heal everything, read everything, stop the cluster, check the run and write its report; once.

        Raises:
            UsageError: no topic was created, or something has sent records beside the history.
        """
        if self._outcome is None:
            if not self._topics:
                raise UsageError("there is nothing to check: the test has created no topic.")
            self._end()
            self._outcome = self._judge()
        if self.history.strange:
            place, offset = next(iter(self.history.strange.items()))
            raise UsageError(
                f"the record at {place} offset {offset} was not sent by the history's clients, so no check knows it.",
                "Send by history.producer(), or with the headers that history.sent() returns.",
            )
        return self._outcome

    @property
    def story(self) -> str:
        """The verdict in sentences, and the path of the report; empty before :meth:`conclude`."""
        return self._told

    def close(self) -> None:
        """Heal and stop whatever has not been; idempotent."""
        if self._stage == "running":
            self._finish("abandoned", "the test ended without a verdict.")

    def _end(self) -> None:
        """The end of every run: heal, settle, read, stop, collect; it breaks off where one of them fails."""
        state, why = "abandoned", "the harness itself failed."
        try:
            self.history.close()
            plan = self._plan()
            made = manifest(plan, self.directory.manifest().run, self._started)
            said = {**made.configuration, "reproduce": f"pytest '{self._test}'"}
            self.directory.write_manifest(replace(made, configuration=said))
            self._run.end_with(plan)
            for phase in (self._run.heal, self._run.stop_load, self._run.settle, self._run.read_everything):
                phase()
            self._run.stop_cluster()
            self._run.collect()
            state, why = "complete", ""
        except InvalidRun as broken:
            why = str(broken)
        finally:
            self._finish("complete" if state == "complete" else "abandoned", why)

    def _finish(self, state: RunState, why: str) -> None:
        self._stage = "concluded"
        self._last_things.close()
        if state == "abandoned":
            self.directory.write_manifest(restless(self.directory.manifest()))
        self.directory.finish(state, time.monotonic() - self._started_s, why)

    def _clear(self, run: LiveRun) -> None:
        run.clear()
        if remains := run.remains():
            raise EnvironmentFault(f"of the cluster there is still {', '.join(remains)}.", "`seawall heal` ends it.")

    def _judge(self) -> Outcome:
        [verdict] = check([self.directory.path], self._engine)
        report = write(self.directory.path)
        found = banner(read(self.directory.path))
        lines = [f"{found.outcome.headline}: {found.finding}.", *found.proof, *details(verdict), f"report: {report}"]
        self._told = "\n".join(dict.fromkeys(lines))
        return verdict.outcome

    def _plan(self, **changed: list[dict[str, Any]]) -> Plan:
        return planned(self._asked, self._test, changed.get("topics", self._topics), changed.get("steps", self._steps))


def assert_no_acked_loss(cluster: SeawallCluster) -> None:
    """Conclude, and raise an AssertionError with the story unless the run passes."""
    __tracebackhide__ = True
    outcome = cluster.conclude()
    if outcome is not Outcome.PASS:
        raise AssertionError(cluster.story)


def story_of(cluster: SeawallCluster) -> str:
    """The story of a test that failed for another reason; it never raises."""
    with suppress(UsageError):  # what it says is no news beside the failure
        try:
            cluster.conclude()
        except SeawallError as problem:
            return f"no verdict: {problem}"
    return cluster.story


def _new_directory(plan: Plan, parent: Path, started: Any) -> RunDirectory:
    """A new directory below ``parent``; another run that starts in the same second gets another number."""
    name = f"{started:%Y%m%dT%H%M%S}"
    for number in range(1, 1000):
        path = parent / (name if number == 1 else f"{name}-{number}")
        if not path.exists():
            with suppress(FileExistsError):
                return RunDirectory.create(path.absolute(), manifest(plan, f"{plan.scenario.id}/{path.name}", started))
    raise EnvironmentFault(f"{parent / name} and its like exist already.", "Remove some of them.")
