"""Every scenario that comes with seawall, on every generation that it is about, in virtual time."""

from __future__ import annotations

import pytest

from harness import scenario
from harness.museum.entry import foretold
from harness.runner import plan
from harness.runner.expectation import expectations
from harness.runner.matrix import abbreviated, cell, chosen, impossible, rows
from harness.runner.observation import Gathered, observe
from harness.runner.rehearsal import rehearse
from harness.scenario import Scenario
from tests.harness.runner.test_expectation import small

REPLAYS = [one for one in scenario.shipped() if one.outcomes]


@pytest.mark.parametrize(
    "is_first", [True, pytest.param(False, marks=pytest.mark.nightly("by day a prediction has one generation"))]
)
@pytest.mark.parametrize("replay", REPLAYS, ids=lambda one: one.id)
def test_what_is_observed_is_what_is_predicted_on_every_generation(replay: Scenario, is_first: bool) -> None:
    firsts, different = firsts_of_predictions(replay), {}
    for generation in (one for one in expectations(replay) if (one in firsts) == is_first):
        made = plan(replay, "simulated", generation)
        rehearsal = rehearse(made)
        seen = cell(made, observe(Gathered.kept(rehearsal.manifest, rehearsal.archive)))
        if not seen.agrees:
            different[generation] = (abbreviated(seen.predicted), abbreviated(seen.observed), *seen.differences)
    assert not different


def firsts_of_predictions(replay: Scenario) -> set[str]:
    """For each prediction of a scenario, the oldest generation of which it is made."""
    oldest: dict[str, str] = {}
    for generation in expectations(replay):
        oldest.setdefault(foretold(replay, generation), generation)
    return set(oldest.values())


def test_another_seed_tells_the_same() -> None:
    replay = scenario.load("kip-101-double-failover")
    for seed in range(1, 4):
        made = plan(replay, "simulated", "0.10", seed)
        rehearsal = rehearse(made)
        assert cell(made, observe(Gathered.kept(rehearsal.manifest, rehearsal.archive))).agrees


def test_a_rehearsal_is_the_same_every_time() -> None:
    made = plan(scenario.load("kip-101-double-failover"), "simulated", "0.10", 7)
    one, other = rehearse(made).archive, rehearse(made).archive
    assert one.history == other.history
    assert one.tables == other.tables


def test_scenarios_are_chosen_by_any_of_their_names_in_the_order_of_the_catalogue() -> None:
    later = small('catalogue: B01\noutcomes: {"0.10": {outcome: [weak]}}')
    first = small('catalogue: A01/x\noutcomes: {"0.10-0.11": {outcome: [lost]}}')
    bare = small()
    assert chosen([later, first, bare], []) == [first, later]
    assert chosen([later, first, bare], ["A01"]) == chosen([later, first], ["A01/x"]) == [first]
    assert chosen([later, first, bare], ["small"]) == [first, later]
    assert list(rows([first, later], ["0.11-4.1"])) == [(first, ["0.11"])]


def test_what_does_not_happen_on_real_kafka_is_told_for_each_generation() -> None:
    one = small('outcomes: {"0.10-4.1": {outcome: [safe]}}\nnot_on_real_kafka: {"0.10, 2.8-3.7": "It cannot."}')
    said = {name: impossible(one, name) for name in expectations(one)}
    assert [name for name, why in said.items() if why == "It cannot."] == ["0.10", "2.8", "3.7"]
    assert said["4.1"] is None
