"""A timeline of samples shows no violation in a run that passes with its whole timeline."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from checkers.verdicts.memory import decided
from harness.checker import RunVerdict, Verdict
from harness.exploration.depth import run_of
from harness.simulation.core.configuration import setup
from harness.simulation.core.recording import Recording
from tests.by_night import seeds
from tests.checkers.sampling import some_of

SETUPS = {
    "0.10": {"faults": "kill,stop:2,pause,partition:2,kill/controller", "disturbances": "elect"},
    "0.11": {
        "unclean.leader.election.enable": "true",
        "faults": "kill:2,partition,power_loss",
        "disturbances": "elect",
    },
    "2.8": {"faults": "power_loss:2,partition,kill"},
    "4.1": {
        "unclean.leader.election.enable": "true",
        "min.insync.replicas": "1",
        "faults": "kill:3,partition:2",
        "disturbances": "elect",
    },
}
SHARES = (0.05, 0.2, 0.5, 0.9)


@seeds(day=12, night=60)
@pytest.mark.parametrize("generation", sorted(SETUPS))
def test_samples_of_a_timeline_show_no_violation_that_the_whole_of_it_does_not(generation: str, seeds: range) -> None:
    chosen, found = setup(generation, SETUPS[generation]), {}
    for seed in seeds:
        run = run_of(seed, chosen, recorded=True)
        run.run()
        assert run.recording is not None
        whole, rng = _violations(_verdict(run.recording, generation)), random.Random(seed)
        run.recording.timeline = some_of(run.recording.timeline, rng, rng.choice(SHARES))
        surplus = _violations(_verdict(run.recording, generation, timeline="sampled")) - whole
        if surplus:
            found[seed] = surplus
    assert not found


def _verdict(recording: Recording, generation: str, **guarantees: object) -> RunVerdict:
    tables = (recording.history, recording.timeline, recording.replica_logs)
    manifest = recording.manifest(generation)
    manifest = replace(manifest, guarantees={**manifest.guarantees, **guarantees})
    return decided(manifest, tables, recording.faults)


def _violations(verdict: RunVerdict) -> set[str]:
    return {anomaly.kind for anomaly in verdict.anomalies if anomaly.verdict is Verdict.VIOLATION}
