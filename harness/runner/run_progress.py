"""Says what a run does at this moment, for a status line: from what the runner knows, without a request to a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.clock import Clock
from harness.history.recorder import Recorder
from harness.model import TopicPartition
from harness.observations import KnowsLeaders
from harness.runner.nemesis import FaultRecord, Nemesis
from harness.runner.plan import Plan
from harness.target import Leadership, Target

Watch = Callable[["RunProgress"], None]
"""Called at the start of a run; it may look at the progress from another thread until the run has ended."""


@dataclass(frozen=True, slots=True)
class RunStatus:
    """A run at one moment; times are of its own clock, which may be virtual.

    Attributes:
        phase: in words.
        phase_s: since when it is in this phase, in seconds.
        lasts_s: how long the phase lasts at least; None: unknown.
        step: of a schedule: its number from 1, of how many, and its kind; None: there is none.
        faults: those in force: name, kind and nodes.
        leaders: by partition, as far as known.
        is_up: whether the cluster serves clients in this phase, unless a fault keeps it from that.
        acknowledged: how many sends have been acknowledged so far.
        errors: how many operations have ended without success so far.
    """

    time_ns: int
    phase: str
    phase_s: float
    lasts_s: float | None
    step: tuple[int, int, str] | None
    faults: tuple[tuple[str, str, tuple[str, ...]], ...]
    leaders: Mapping[TopicPartition, Leadership]
    is_up: bool
    acknowledged: int
    errors: int


class RunProgress:
    """The progress of one run. The run writes it; any one thread may :meth:`look`.

    Attributes:
        replicas: by topic, the number of replicas that each partition has.
    """

    def __init__(self, plan: Plan, target: Target, clock: Clock, recorder: Recorder, nemesis: Nemesis) -> None:
        self.replicas = {topic.name: topic.replication_factor for topic in plan.topics}
        self._kinds = [step.kind for step in plan.schedule.steps.values()]
        self._target = target
        self._clock = clock
        self._recorder = recorder
        self._nemesis = nemesis
        self._phase: tuple[str, int, float | None, bool] = ("starting", clock.monotonic_ns(), None, False)
        self._step: tuple[int, int, str] | None = None

    def begins(self, phase: str, lasts_s: float | None = None, *, is_up: bool = True) -> None:
        """A phase begins, and the last step of a schedule has ended."""
        self._step = None
        self._phase = (phase, self._clock.monotonic_ns(), lasts_s, is_up)

    def step(self, number: int) -> None:
        """A step of the schedule begins; ``number`` from 0."""
        self._step = (number + 1, len(self._kinds), self._kinds[number])

    def look(self) -> RunStatus:
        """The run now."""
        now_ns, (phase, since_ns, lasts_s, is_up) = self._clock.monotonic_ns(), self._phase
        records = {record.name: record for record in list(self._nemesis.records)}
        return RunStatus(
            time_ns=now_ns,
            phase=phase,
            phase_s=max(0, now_ns - since_ns) / 1e9,
            lasts_s=lasts_s,
            step=self._step,
            faults=tuple(_in_force(records[name]) for name in list(self._nemesis.active) if name in records),
            leaders=self._target.known_leaders() if isinstance(self._target, KnowsLeaders) else {},
            is_up=is_up,
            acknowledged=self._recorder.acknowledged,
            errors=self._recorder.errors,
        )


def unwatched(progress: RunProgress) -> None:
    """Looks at nothing."""


def _in_force(record: FaultRecord) -> tuple[str, str, tuple[str, ...]]:
    return record.name, record.kind, tuple(record.fault.nodes()) if record.fault is not None else ()
