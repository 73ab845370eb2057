"""Audits of built-in clusters in virtual time, with hands on the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.audit.audit import Audit, Told, with_topic
from harness.audit.ceiling import Load
from harness.audit.cluster import Audited, stated
from harness.audit.journal import Journal, State
from harness.audit.judging import judge_here
from harness.audit.objectives import NO_OBJECTIVES, Objectives
from harness.broker.settings import Settings
from harness.replication.knobs import CURRENT_GENERATION, generation
from harness.targets.simulated import SimulatedTarget

TOPIC = "seawall-audit-canary"


class Meddler:
    """A paced clock of virtual time that does things to the cluster when their time comes.

    Attributes:
        due: at how many seconds since the start what is done.
    """

    def __init__(self, target: SimulatedTarget) -> None:
        self._world = target.clock
        self._begun_ns = target.clock.monotonic_ns()
        self.due: dict[float, Callable[[], None]] = {}

    def monotonic_ns(self) -> int:
        return self._world.monotonic_ns()

    def wall_ms(self) -> int:
        return self._world.wall_ms()

    def passed_s(self) -> float:
        return (self.monotonic_ns() - self._begun_ns) / 1e9

    def sleep(self, seconds: float) -> None:
        end_s = self.passed_s() + seconds
        for at_s in sorted(at_s for at_s in self.due if at_s <= end_s):
            self._world.sleep(max(0.0, at_s - self.passed_s()))
            self.due.pop(at_s)()
        self._world.sleep(max(0.0, end_s - self.passed_s()))


@contextmanager
def simulated(
    directory: Path, settings: Mapping[str, Any] | None = None, bugs: str = "", brokers: int = 3, seed: int = 1
) -> Iterator[SimulatedTarget]:
    """A cluster in virtual time."""
    knobs = generation(CURRENT_GENERATION, {"bugs": bugs} if bugs else {})
    target = SimulatedTarget.made(
        directory / "cluster", brokers, knobs, Settings.parse(dict(settings or {})), seed=seed
    )
    target.start()
    try:
        yield target
    finally:
        target.stop()


def state_of(target: SimulatedTarget, partitions: int, replication_factor: int, keep_s: float) -> State:
    """Of an audit that begins there."""
    return State(
        target="bootstrap:127.0.0.1:9092",
        prefix="seawall-audit-",
        topic=TOPIC,
        partitions=partitions,
        replication_factor=replication_factor,
        keep_s=keep_s,
        began_ns=target.clock.wall_ms() * 1_000_000,
    )


def audited(target: SimulatedTarget, clock: Meddler, state: State, load: Load, settings: Settings) -> Audited:
    """The cluster, as clients alone see it."""
    return Audited(target, clock, target.new_clients, *stated(state, settings, 3, load))


def audit(
    directory: Path,
    target: SimulatedTarget,
    *,
    for_s: float,
    window_s: float = 60.0,
    rate: float = 3.0,
    partitions: int = 3,
    replication_factor: int = 3,
    keep_s: float = 600.0,
    due: Callable[[Meddler], None] = lambda clock: None,
    told: tuple[str, ...] = (),
    settings: Mapping[str, Any] | None = None,
    objectives: Objectives = NO_OBJECTIVES,
) -> list[Told]:
    """Audit it for some virtual time; ``due`` says what happens to it when."""
    clock, load = Meddler(target), Load(rate, partitions)
    journal = Journal(directory / "audit")
    found: list[Told] = []
    with journal.held():
        state = journal.state() or state_of(target, partitions, replication_factor, keep_s)
        cluster = audited(target, clock, state, load, Settings.parse(dict(settings or {})))
        state = with_topic(cluster, state, journal)
        due(clock)
        journal.tell(told)
        watching = Audit(cluster, state, load, journal, judge=judge_here, tell=found.append, objectives=objectives)
        watching.run(window_s, for_s)
    return found
