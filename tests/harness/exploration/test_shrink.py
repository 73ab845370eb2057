"""Delta debugging: what is left is needed, and still shows it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.exploration.scenario_text import shrunk_document, to_yaml
from harness.exploration.shrink import NothingToShrink, Shrunk, fewest, shrink_seed
from harness.scenario import parse
from harness.simulation.core.configuration import setup
from harness.simulation.violations import LOST

LAST_REPLICA = {
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
    "faults": "power_loss:3,kill,partition,pause",
    "flush.messages": "0",
    "flush.ms": "0",
    "acks": "all",
    "replication.factor": "3",
}
SEED = 109


@pytest.fixture(scope="module")
def shrunk() -> Shrunk:
    return shrink_seed(SEED, setup("3.7", LAST_REPLICA))


@given(st.sets(st.integers(0, 60)), st.data())
def test_exactly_the_parts_that_are_needed_are_left(needed: set[int], data: st.DataObject) -> None:
    parts = data.draw(st.permutations(sorted(needed | set(range(0, 60, 7)))))
    assert list(fewest(parts, lambda some: needed <= set(some))) == [part for part in parts if part in needed]


@given(st.lists(st.integers(0, 9), max_size=30))
def test_no_part_that_is_left_can_be_left_out(parts: list[int]) -> None:
    def shows(some: tuple[int, ...]) -> bool:
        return sum(some) >= sum(parts) // 2

    kept = fewest(parts, shows)
    assert shows(kept)
    assert not [at for at in range(len(kept)) if shows(kept[:at] + kept[at + 1 :])]


def test_a_lost_write_shrinks_to_the_few_faults_that_it_takes(shrunk: Shrunk) -> None:
    assert shrunk.violation.kind == LOST
    kinds = [fault.kind for fault in shrunk.faults]
    assert "power_loss" in kinds
    assert len(kinds) <= 4
    assert (shrunk.configuration.loss, shrunk.configuration.late, shrunk.configuration.producers) == (0, 0, 1)


def test_a_seed_shrinks_to_the_same_every_time(shrunk: Shrunk) -> None:
    again = shrink_seed(SEED, setup("3.7", LAST_REPLICA))
    assert (again.faults, again.configuration, again.violation) == (
        shrunk.faults, shrunk.configuration, shrunk.violation
    )  # fmt: skip


def test_what_is_left_is_a_scenario_that_names_its_faults_in_order(shrunk: Shrunk) -> None:
    scenario = parse(to_yaml(shrunk_document(shrunk, 10), ["a remark"]))
    assert scenario.generation == "3.7"
    assert scenario.schedule is not None
    injected = [step.inject["fault"] for step in scenario.schedule if step.inject is not None]
    assert injected == [fault.kind for fault in shrunk.faults]
    assert scenario.cluster.settings["min.insync.replicas"] == 2


def test_time_in_a_scenario_is_stretched(shrunk: Shrunk) -> None:
    def seconds(scale: int) -> float:
        schedule = shrunk_document(shrunk, scale)["schedule"]
        return float(sum(step.get("wait_s", 0) for step in schedule))

    assert seconds(40) == pytest.approx(10 * seconds(4), rel=0.01)


def test_a_seed_that_breaks_no_promise_has_nothing_to_shrink() -> None:
    with pytest.raises(NothingToShrink, match="seed 1 breaks no promise"):
        shrink_seed(1, setup("4.1", {"min.insync.replicas": "2"}))
