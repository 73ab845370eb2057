"""What only the simulated target can be asked, beside what :mod:`test_contract` asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import EnvironmentFault
from harness.targets.simulated import SimulatedTarget
from tests.harness.targets.contract import LEDGER, Trial, on_trial


@pytest.fixture
def trial(tmp_path: Path) -> Iterator[Trial]:
    with on_trial("simulated", tmp_path) as one:
        yield one


def test_a_restarted_node_has_its_whole_budget_again(trial: Trial) -> None:
    assert isinstance(trial.target, SimulatedTarget)
    disk = trial.target.cluster.nodes["2"].disk
    trial.target.limit_disk("2", 100_000)
    for _ in range(30):
        trial.send()
    trial.target.kill("2")
    assert disk.free_bytes is not None
    assert disk.free_bytes < 98_500
    trial.target.restart("2")
    assert disk.free_bytes > 99_000


def test_a_dead_or_frozen_node_answers_nothing_at_once(trial: Trial) -> None:
    target = trial.target
    target.kill("1")
    target.pause("2")
    for node in ("1", "2"):
        assert target.replica(node, LEDGER) is None
        assert not target.is_running(node).holds
        for ask in (target.clock_offset_ms, target.is_disk_full, target.sync_disk, target.shut_down):
            with pytest.raises(EnvironmentFault, match=f"node {node} does not answer"):
                ask(node)
    with pytest.raises(EnvironmentFault, match="cannot be signalled"):
        target.pause("1")
    target.pause("controller")
    assert target.view().partitions == {}
