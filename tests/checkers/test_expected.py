from __future__ import annotations

import pytest

from checkers.views.expected import Replicas, expected
from harness.history.run_directory import Manifest
from harness.model import TopicPartition
from harness.runner.manifest import manifest, now
from harness.runner.plan import plan
from harness.scenario import load, shipped
from tests.shipped import ON_REAL_KAFKA_ALONE

BUILTIN = [one.id for one in shipped() if one.id not in ON_REAL_KAFKA_ALONE]


def recorded(name: str) -> Manifest:
    return manifest(plan(load(name)), "r", now())


def test_a_schedule_says_which_nodes_replicas_and_faults_there_were() -> None:
    wanted = expected(recorded("kip-101-double-failover"))
    assert wanted is not None
    assert wanted.nodes == (0, 1, 2, 100)
    assert dict(wanted.partitions) == {TopicPartition("ledger", p): Replicas(3, (0, 1, 2)) for p in range(3)}
    assert wanted.faults == ("apart", "hold", "dead", "frozen")
    assert not wanted.retention


def test_chaos_injects_every_fault_of_its_mix_once_at_least() -> None:
    wanted = expected(recorded("random-chaos"))
    assert wanted is not None
    assert wanted.faults == tuple(f"f{number:03d}" for number in range(1, 11))
    assert len(wanted.partitions) == 5


@pytest.mark.parametrize("name", BUILTIN)
def test_every_scenario_says_what_is_expected_of_it(name: str) -> None:
    assert expected(recorded(name)) is not None


def test_where_the_controller_chooses_only_the_number_of_replicas_is_known() -> None:
    topics = [{"name": "t", "partitions": 1, "replication_factor": 2}]
    scenario = {"cluster": {"brokers": 3}, "topics": topics}
    wanted = expected(Manifest("r", "s", 1, "2025-01-01", configuration={"scenario": scenario}))
    assert wanted is not None
    assert wanted.partitions[TopicPartition("t", 0)] == Replicas(2, None)


@pytest.mark.parametrize("configuration", [{}, {"scenario": None}, {"scenario": {"cluster": {"brokers": "many"}}}])
def test_a_configuration_that_does_not_say_so_expects_nothing(configuration: dict[str, object]) -> None:
    assert expected(Manifest("r", "s", 1, "2025-01-01", configuration=configuration)) is None
