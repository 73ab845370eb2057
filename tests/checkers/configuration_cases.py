"""Stories of runs whose ``run.json`` does, or does not, agree with itself and the clients. It adds to ``CASES``."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from harness.checker import Outcome
from harness.replication.knobs import GENERATIONS
from tests.checkers.cases import case, lose_tail, lost, regression, write
from tests.checkers.guarantee_cases import configured, quiet
from tests.checkers.story import Row, Story

REQUESTED = ["all", 1]


def loaded(**parameters: Any) -> Row:
    """A manifest whose workload has these parameters, beside others."""
    return configured(
        configuration={"workload": {"name": "unique_sends", "rate": 10.0, "idempotent": True, **parameters}}
    )


# ------------------------------------------------------------------------------------------------------------- acks


@case(Outcome.PASS, **loaded(acks=REQUESTED, producers=2))
def acks_that_the_workload_asks_for_are_asked_for(story: Story) -> None:
    write(story, 1, acks=1)
    quiet(story)


@case(Outcome.PASS, **configured(schedule=[{"send": {"acks": 0, "idempotent": True}}]))
def acks_that_a_step_asks_for_are_asked_for(story: Story) -> None:
    write(story, 1, acks=0)
    quiet(story)


@case(Outcome.PASS, **loaded(acks=[1], producers=1, idempotent=False))
def what_is_sent_after_a_load_without_acks_all_is_asked_for(story: Story) -> None:
    write(story, 1, acks=1)
    quiet(story)


@case(Outcome.INVALID, **configured(), reason="has sends with acks=1, and run.json's configuration asks for all")
def acks_that_nothing_asks_for_make_the_run_invalid(story: Story) -> None:
    write(story, 1, acks=1)
    quiet(story)


@case(Outcome.INVALID, **loaded(acks=REQUESTED, producers=1), reason="sends with acks=1, .* asks for all")
def acks_of_a_producer_that_is_not_there_make_the_run_invalid(story: Story) -> None:
    write(story, 1, acks=1)
    quiet(story)


@case(
    Outcome.INVALID,
    lost(2, "INDETERMINATE"),
    regression(2, "INDETERMINATE"),
    **configured(),
    reason="sends with acks=0",
)
def a_lost_write_does_not_become_weak_by_its_acks(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 2)
    story.finish()
    for row in story.history:
        row["acks"] = 0 if row["f"] == "send" else None


# -------------------------------------------------------------------------------------------------------- settings


@case(Outcome.PASS, **configured(written={"min.insync.replicas": "2", "unclean.leader.election.enable": "False"}))
def settings_may_be_written_as_text(story: Story) -> None:
    quiet(story)


@case(Outcome.INVALID, **configured(written={"min.insync.replicas": 3}),
      reason=r"scenario has the setting min\.insync\.replicas 3, and its configuration 2")  # fmt: skip
def a_setting_that_the_scenario_has_otherwise_makes_the_run_invalid(story: Story) -> None:
    quiet(story)


@case(Outcome.INVALID, **configured(scenario={"workload": {"name": "unique_sends", "rate": 5.0}}),
      reason="scenario has the workload's rate 5, and its configuration 10")  # fmt: skip
def a_workload_that_the_scenario_has_otherwise_makes_the_run_invalid(story: Story) -> None:
    quiet(story)


@case(Outcome.INVALID, **configured(configuration={"workload": {"name": "of_a_plugin", "pace": 3}}),
      reason="json's workload cannot be understood: workload: unknown workload 'of_a_plugin'")  # fmt: skip
def a_workload_that_is_not_installed_cannot_be_understood(story: Story) -> None:
    quiet(story)


@case(Outcome.PASS, **configured(
    scenario={"workload": {"name": "unique_sends", "rate": 10, "idempotent": True}}, idempotent_producers=False,
    configuration={"workload": {"name": "unique_sends", "rate": 10.0, "idempotent": False}},
) | {"generation": "0.10"})  # fmt: skip
def nobody_numbers_records_for_a_cluster_that_does_not_know_it(story: Story) -> None:
    quiet(story)


# ------------------------------------------------------------------------------------------------------ predictions


def predicted(kind: str, **more: Any) -> Row:
    """A manifest of 4.1 that predicts an anomaly, whose scenario says what ``more`` has it say."""
    return {**configured(scenario=more, settles=not more), "predictions": [{"kind": kind}], "generation": "4.1"}


OUTCOMES: Row = {
    "0.10": {"outcome": ["diverged"]},
    "2.8, 3.7-4.1": {"outcome": ["lost"], "anomalies": [{"kind": "hw-regression", "verdict": "VIOLATION"}]},
}


@case(Outcome.NOT_REPRODUCED, **predicted("lost-write", outcomes=OUTCOMES))
def what_a_word_of_the_outcome_means_is_predicted(story: Story) -> None:
    quiet(story)


@case(Outcome.NOT_REPRODUCED, **predicted("hw-regression", outcomes=OUTCOMES))
def an_anomaly_of_the_outcome_is_predicted(story: Story) -> None:
    quiet(story)


@case(Outcome.NOT_REPRODUCED, **predicted("duplicate", predictions={"4.1": [{"kind": "duplicate"}]}) | {
    "guarantees": configured()["guarantees"]})  # fmt: skip
def what_is_predicted_for_the_generation_is_predicted(story: Story) -> None:
    quiet(story)


@case(Outcome.INVALID, **predicted("lost-write"), reason="predicts 'lost-write', and its scenario does not, .* 4.1")
def a_prediction_that_the_scenario_does_not_have_makes_the_run_invalid(story: Story) -> None:
    quiet(story)


@case(Outcome.INVALID, **predicted("replica-divergence", outcomes=OUTCOMES), reason="predicts 'replica-divergence'")
def a_prediction_for_another_generation_makes_the_run_invalid(story: Story) -> None:
    quiet(story)


# ------------------------------------------------------------------------------------------------------------ knobs


def known(generation: str, reproduce: str = "", **knobs: Any) -> Row:
    """A manifest that says a generation and has the knobs of 4.1, but for ``knobs``."""
    told = {"knobs": asdict(GENERATIONS["4.1"]) | knobs, "reproduce": f"seawall run x.yaml {reproduce}"}
    return configured(configuration=told) | {"generation": generation}


@case(Outcome.PASS, **known("4.1", "--set replication.bugs=ack_on_append", bugs=["ack_on_append"]))
def a_generation_may_have_bugs(story: Story) -> None:
    quiet(story)


@case(Outcome.INVALID, **known("2.8", "--set replication.bugs=ack_on_append", bugs=["ack_on_append"]),
      reason="says generation '2.8', and its knobs are those of 4.1")  # fmt: skip
def bugs_hide_no_other_generation(story: Story) -> None:
    quiet(story)


@case(Outcome.INVALID, **known("2.8", "--set replication.truncation=hw", truncation="hw"),
      reason="says generation '2.8', and its knobs are those of 4.1")  # fmt: skip
def a_knob_that_is_overridden_hides_no_other_generation(story: Story) -> None:
    quiet(story)
