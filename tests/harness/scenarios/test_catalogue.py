from __future__ import annotations

import re
from pathlib import Path

import pytest

import workloads
from harness import scenario
from harness.outcome import Word
from harness.replication.knobs import GENERATIONS
from harness.runner.expectation import expectations, generations
from harness.runner.plan import plan
from harness.scenario import Scenario

FOLDER = Path(scenario.__file__).parent / "scenarios"
REPLAYED = {
    *(f"A{number:02}" for number in range(1, 19)),
    *(f"B{number:02}" for number in (1, 3, 5, 7, 8, 11, 13, 14, 16, 18, 21, 23, 24, 25)),
    *(f"C{number:02}" for number in (1, 2, 4, 5, 6, 7, 8)),
    *(f"D{number:02}" for number in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15)),
    *("E01", "E02"),
    *(f"F{number:02}" for number in (1, 2, 3, 4, 5, 6, 7, 9, 10, 11)),
}
SAYS_NO_LOG = {Word.UNAVAILABLE, Word.STUCK}

REPLAYS = [one for one in scenario.shipped() if one.outcomes]
of_every_replay = pytest.mark.parametrize("replay", REPLAYS, ids=lambda one: one.id)


def text_of(replay: Scenario) -> str:
    return (FOLDER / f"{replay.id}.yaml").read_text()


def comment_of(replay: Scenario) -> str:
    lines = text_of(replay).split("\nid: ")[0].splitlines()
    assert all(line.startswith("#") for line in lines)
    return " ".join(line.removeprefix("#").strip() for line in lines)


def test_every_entry_of_the_catalogue_that_is_to_be_replayed_has_a_scenario() -> None:
    assert {(one.catalogue or "").partition("/")[0] for one in REPLAYS} >= REPLAYED


def test_no_two_scenarios_are_the_same_variant_of_an_entry() -> None:
    entries = [one.catalogue for one in REPLAYS]
    assert None not in entries
    assert len(set(entries)) == len(entries)


def test_what_does_not_happen_on_real_kafka_is_of_generations_that_the_scenario_is_about() -> None:
    for one in REPLAYS:
        named = generations((text for ranges in one.not_on_real_kafka for text in ranges.split(",")), one.id)
        assert set(named) <= set(expectations(one)), one.id
        assert all(why.endswith(".") and len(why) > 40 for why in one.not_on_real_kafka.values()), one.id


def test_no_two_scenarios_have_the_same_title() -> None:
    titles = [one.title for one in REPLAYS]
    assert len(set(titles)) == len(titles)


@of_every_replay
def test_it_opens_with_what_it_proves_and_names_its_source(replay: Scenario) -> None:
    comment = comment_of(replay)
    assert re.match(r"Proves: \S.{60,}", comment)
    assert re.search(r"Source: \S.{5,}", comment)


@of_every_replay
def test_it_says_in_words_what_it_needs_and_what_happens(replay: Scenario) -> None:
    for said in (replay.source, replay.preconditions, replay.description):
        assert said.strip()


@of_every_replay
def test_it_says_what_comes_of_it_on_all_generations_that_know_what_it_takes(replay: Scenario) -> None:
    predicted, every = list(expectations(replay)), list(GENERATIONS)
    first = every.index(predicted[0])
    assert predicted == every[first : first + len(predicted)]
    if replay.catalogue and replay.catalogue.startswith("A"):
        assert predicted == every


@of_every_replay
def test_it_says_what_the_logs_hold_in_the_end_unless_a_background_load_fills_them(replay: Scenario) -> None:
    load = workloads.parse(replay.workload.name, replay.workload.parameters())
    if load.has_background_load:
        return
    for expectation in replay.outcomes.values():
        assert expectation.final_logs or SAYS_NO_LOG & set(expectation.outcome)


@of_every_replay
def test_it_can_be_performed_on_every_target(replay: Scenario) -> None:
    for generation in expectations(replay):
        for target in ("builtin", "simulated"):
            assert plan(replay, target, generation).forecast.expectation is not None


@of_every_replay
def test_no_step_is_for_generations_only_on_which_it_is_not_run(replay: Scenario) -> None:
    performed = {
        index for generation in expectations(replay) for index in plan(replay, generation=generation).schedule.steps
    }
    assert performed == set(range(len(replay.schedule or ())))
