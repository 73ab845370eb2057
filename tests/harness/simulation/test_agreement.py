"""The witness, who sees everything, and the checkers, who see what a real run leaves behind, say the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import cast

import pytest

from checkers.registry import KINDS
from checkers.verdicts.check import check
from harness.checker import Anomaly, Outcome, Verdict
from harness.simulation.core.configuration import setup
from harness.simulation.core.core_simulation import CoreSimulation
from harness.simulation.violations import Violation
from tests import by_night
from tests.harness.simulation.judging import Judged, judged

FLAWED = {
    "0.10": {
        "min.insync.replicas": "2",
        "faults": "kill,stop:2,pause,partition:2,kill/controller",
        "disturbances": "elect",
    },
    "0.11": {
        "unclean.leader.election.enable": "true",
        "faults": "kill:2,partition,power_loss",
        "disturbances": "elect",
    },
    "2.0.1": {"faults": "partition:2,pause/controller,kill", "disturbances": "elect:2"},
    "2.1": {
        "faults": "partition:2,pause/controller,kill",
        "disturbances": "elect:2",
        "unclean.leader.election.enable": "true",
    },
    "2.8": {"faults": "power_loss:2,partition,kill"},
    "3.7": {"faults": "power_loss:3,partition", "flush.messages": "0", "flush.ms": "0"},
    "4.1": {"min.insync.replicas": "2"},
}
SHOWN_AS = {
    "lost-write": {"lost-write"},
    "vanished-read": {"vanished-read", "lost-write"},
    "replica-divergence": {"replica-divergence"},
    "hw-regression": {"hw-regression", "incomplete-leader", "replica-divergence"},
    "unjustified-ack": {"unjustified-ack"},
    "stuck": {"stuck"},
    "exited": {"stuck", "lost-write"},
    "R1": {"replica-divergence", "incomplete-leader"},
    "R1b": {"lineage-break", "replica-divergence"},
    "R6": {"epoch-disorder", "replica-divergence"},
    "R7": {"epoch-cache-mismatch"},
    "R10": {"committed-cut", "lost-write", "vanished-read"},
    "T4": {"epoch-regression"},
    "T5": {"illegal-isr"},
    "T7": {"unjustified-advance", "unjustified-join", "incomplete-candidate", "lost-write"},
    "T10": {"unjustified-join", "unjustified-advance", "incomplete-candidate", "lost-write"},
}
"""What a violation of the witness is to the checkers, by its kind, or by its invariant where the kind is ``danger``."""


@pytest.fixture(scope="module", params=by_night.ranges(day=12, night=150, first=33))
def seeds(request: pytest.FixtureRequest) -> range:
    """By day the seeds in which all of FLAWED lose, diverge or give up something, two of them without an excuse."""
    return cast("range", request.param)


@pytest.fixture(scope="module", params=sorted(FLAWED))
def batch(request: pytest.FixtureRequest, seeds: range) -> list[Judged]:
    chosen = setup(request.param, FLAWED[request.param] | {"deletions": "0"})
    return [one for one in (judged(seed, chosen) for seed in seeds) if one.finished.converged]


def test_they_count_the_same_losses_vanished_reads_and_divergences(batch: list[Judged]) -> None:
    assert any(one.witnessed for one in batch)
    assert [one.witnessed for one in batch] == [one.checked for one in batch]


def test_whatever_the_witness_calls_a_violation_the_checkers_do(batch: list[Judged]) -> None:
    unseen = [
        (one.finished.seed, str(violation))
        for one in batch
        for violation in one.finished.violations
        if violation.verdict is Verdict.VIOLATION and not _shown(one) & SHOWN_AS[_name(violation)]
    ]
    assert not unseen


def test_whatever_the_witness_calls_clean_the_checkers_do(batch: list[Judged]) -> None:
    clean = [one for one in batch if all(x.verdict is not Verdict.VIOLATION for x in one.finished.violations)]
    assert clean
    assert {one.finished.seed: _shown(one) for one in clean if _shown(one)} == {}


def _shown(one: Judged) -> set[str]:
    return {anomaly.kind for anomaly in one.verdict.anomalies if anomaly.verdict is Verdict.VIOLATION}


def _name(violation: Violation) -> str:
    return violation.invariant if violation.kind == "danger" else violation.kind


def test_the_checkers_see_no_regression_that_the_witness_does_not(batch: list[Judged]) -> None:
    assert not [one.finished.seed for one in batch if one.regressed() == (False, True)]


def test_a_run_that_breaks_no_promise_passes(batch: list[Judged]) -> None:
    sound = [one for one in batch if not one.finished.violations]
    assert sound
    assert {one.verdict.outcome for one in sound} == {Outcome.PASS}
    unknown = [a for one in sound for a in one.verdict.anomalies if not _is_known(a)]
    assert not unknown


def _is_known(anomaly: Anomaly) -> bool:
    """Whether the generation does not promise it: the witness counts such dangers, and holds them against nobody."""
    return anomaly.verdict is Verdict.DOCUMENTED and KINDS[anomaly.kind].since is not None


@pytest.mark.parametrize(("generation", "first"), [("0.10", 33), ("3.7", 40)])
def test_flawed_batches_are_flawed(generation: str, first: int) -> None:
    chosen = setup(generation, FLAWED[generation])
    runs = (judged(seed, chosen) for seed in range(first, 200))
    broken = (one for one in runs if any(v.verdict is Verdict.VIOLATION for v in one.finished.violations))
    assert any("lost-write" in one.witnessed for one in broken)


@by_night.seeds(day=10, night=60)
@pytest.mark.parametrize("generation", ["0.11", "3.7", "4.1"])
def test_they_count_the_same_where_records_are_deleted_on_purpose(generation: str, seeds: range) -> None:
    chosen = setup(generation, FLAWED[generation] | {"deletions": "5"})
    runs = [one for one in (judged(seed, chosen) for seed in seeds) if one.finished.converged]
    assert 2 * sum(bool(one.deleted) for one in runs) > len(seeds)
    assert [one.witnessed for one in runs] == [one.checked for one in runs]
    assert {one.verdict.outcome for one in runs if not one.finished.violations} == {Outcome.PASS}


def test_a_recorded_run_is_a_run_directory_like_any_other(tmp_path: Path) -> None:
    chosen = setup("0.10", FLAWED["0.10"])
    world = CoreSimulation(4, chosen, recorded=True)
    world.run()
    assert world.recording is not None
    directory = world.recording.write(tmp_path / "run", "0.10")
    (verdict,) = check([directory.path], "reference")
    assert verdict.outcome is not Outcome.INVALID
    assert verdict == judged(4, chosen).verdict


def test_what_the_winner_of_an_unclean_election_had_and_lost_later_is_no_part_of_the_excuse() -> None:
    """One run with both: what the election gave up, and what the next watermark cut."""
    mix = {"faults": "kill:2,partition", "disturbances": "elect"}
    permitted = mix | {"unclean.leader.election.enable": "true", "acks": "all"}
    one = judged(131, setup("0.10", permitted | {"deletions": "0"}))
    seen = Counter(x.verdict for x in one.finished.violations if x.kind == "lost-write")
    assert seen == Counter(x.verdict for x in one.verdict.anomalies if x.kind == "lost-write")
    assert seen == {Verdict.DOCUMENTED: 12, Verdict.VIOLATION: 2}
