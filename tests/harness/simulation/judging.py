"""A simulated run before the checkers of real ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from checkers import reference
from checkers.judge import Evidence, judge
from checkers.rows import RunRows
from checkers.witnesses import Witnesses
from harness.checker import RunVerdict
from harness.simulation.core.configuration import Setup
from harness.simulation.core.world import Finished, World

COMPARED = ("lost-write", "vanished-read", "replica-divergence")


@dataclass(frozen=True)
class Judged:
    """What the witness and the checkers say about the same run."""

    finished: Finished
    verdict: RunVerdict

    @property
    def witnessed(self) -> Counter[str]:
        """How many losses, vanished reads and diverged offsets the witness has seen, whatever excuses them."""
        seen = {(one.kind, one.offset, one.kind == "replica-divergence" or one.value)
                for one in self.finished.violations}  # fmt: skip
        return Counter(kind for kind, _, _ in seen if kind in COMPARED)

    @property
    def checked(self) -> Counter[str]:
        """The same according to the checkers."""
        return Counter({kind: number for kind in COMPARED if (number := self.verdict.counts.get(kind, 0))})

    def regressed(self) -> tuple[bool, bool]:
        """Whether a leader took office without something committed: by the witness, and by the checkers."""
        return (
            any(one.kind == "hw-regression" for one in self.finished.violations),
            any(one.kind == "hw-regression" for one in self.verdict.anomalies),
        )


def judged(seed: int, setup: Setup) -> Judged:
    world = World(seed, setup, recorded=True)
    finished, recording = world.run(), world.recording
    assert recording is not None
    tables = (recording.history, recording.timeline, recording.replica_logs)
    evidence = Evidence(recording.manifest(setup.generation), recording.faults)
    answers = reference.answer([RunRows(recording.run, *tables)])
    return Judged(finished, judge(evidence, answers, Witnesses(*tables, recording.faults), "reference"))
