"""A simulated run before the checkers of real ones."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from checkers.verdicts.memory import decided
from harness.checker import RunVerdict
from harness.exploration.depth import Run, run_of
from harness.exploration.loaded_simulation import LoadedSimulation
from harness.model import NO_LEADER
from harness.simulation.core.configuration import Setup
from harness.simulation.finished import Finished

COMPARED = ("lost-write", "vanished-read", "replica-divergence")


@dataclass(frozen=True)
class Judged:
    """What the witness and the checkers say about the same run.

    ``deleted``: what counts as lost or vanished because it was deleted on purpose, of which the witness says nothing.
    """

    finished: Finished
    verdict: RunVerdict
    deleted: Counter[str]

    @property
    def witnessed(self) -> Counter[str]:
        """How many losses, vanished reads and diverged offsets the witness has seen, whatever excuses them."""
        seen = {(one.kind, one.offset, one.kind == "replica-divergence" or one.value)
                for one in self.finished.violations}  # fmt: skip
        return Counter(kind for kind, _, _ in seen if kind in COMPARED) + self.deleted

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
    world = run_of(seed, setup, recorded=True)
    finished, recording = world.run(), world.recording
    assert recording is not None
    tables = (recording.history, recording.timeline, recording.replica_logs)
    verdict = decided(recording.manifest(setup.generation), tables, recording.faults)
    return Judged(finished, verdict, _deleted(world, recording.history))


def _deleted(world: Run, history: list[dict[str, Any]]) -> Counter[str]:
    """The records before the final leader's log start."""
    assert not isinstance(world, LoadedSimulation)
    partition = world.controller.partition
    leads = partition is not None and partition.leader != NO_LEADER
    start = world.brokers[partition.leader].disk.start if partition is not None and leads else 0
    before = [row for row in history if row["type"] == "ok" and row["offset"] is not None and row["offset"] < start]
    found = {(row["f"], row["offset"], row["value"]) for row in before}
    names = {"send": "lost-write", "poll": "vanished-read"}
    return Counter(names[what] for what, _, _ in found)
