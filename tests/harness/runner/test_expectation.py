from __future__ import annotations

import pytest

from harness import scenario
from harness.errors import UsageError
from harness.outcome import Word
from harness.replication.knobs import GENERATIONS
from harness.runner.expectation import expectations, generations, performed, predictions
from harness.scenario import Prediction, Scenario

HEAD = """\
id: small
title: A small scenario
source: a test
topics: [{name: ledger}]
workload: {name: unique_sends}
schedule: [{wait_s: 1}, {wait_s: 2, generations: ["0.11-2.0.0", "4.1"]}]
"""


def small(text: str = "") -> Scenario:
    return scenario.parse(HEAD + text)


def test_a_range_of_generations_includes_both_ends_in_the_order_of_their_age() -> None:
    assert generations(["4.1", " 0.11-2.0.1"], "x") == ["0.11", "2.0.0", "2.0.1", "4.1"]
    assert generations([f"{min(GENERATIONS)}-4.1"], "x") == list(GENERATIONS)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("0.12", "x: generation '0.12' is not known; did you mean"),
        ("2.0.0-2.2", "x: generation '2.2' is not known"),
        ("2.1-0.10", "x: '2.1-0.10' runs backwards; generations, oldest first: 0.10, 0.11"),
    ],
)
def test_a_range_that_makes_no_sense_is_refused(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        generations([text], "x")
    assert sentence in str(refused.value)


def test_an_expectation_may_be_of_several_generations() -> None:
    made = small('outcomes: {"2.1, 0.10-2.0.0": {outcome: [lost]}, "2.0.1": {outcome: [safe]}}')
    assert {name: one.outcome for name, one in expectations(made).items()} == {
        "0.10": (Word.LOST,), "0.11": (Word.LOST,), "2.0.0": (Word.LOST,), "2.0.1": (Word.SAFE,), "2.1": (Word.LOST,)
    }  # fmt: skip
    assert list(expectations(made)) == ["0.10", "0.11", "2.0.0", "2.0.1", "2.1"]


def test_a_generation_of_which_two_things_are_expected_is_refused() -> None:
    with pytest.raises(UsageError, match=r"generation '0\.11' is named twice"):
        expectations(small('outcomes: {"0.10-0.11": {outcome: [lost]}, "0.11": {outcome: [safe]}}'))


def test_words_predict_anomalies_unless_these_are_predicted_one_by_one() -> None:
    made = small(
        'outcomes: {"0.10": {outcome: [lost, diverged, stuck]}, "0.11": {outcome: [lost, duplicated], anomalies: '
        "[{kind: vanished-read, offset: 3}, {kind: unjustified-ack}]}}"
    )
    assert predictions(made, "0.10") == (Prediction(kind="lost-write"), Prediction(kind="replica-divergence"))
    assert predictions(made, "0.11") == (
        Prediction(kind="vanished-read", offset=3),
        Prediction(kind="unjustified-ack"),
        Prediction(kind="duplicate"),
    )
    assert predictions(made, "2.1") == ()


def test_steps_of_other_generations_are_left_out_and_the_others_keep_their_numbers() -> None:
    steps = small().schedule or ()
    assert [index for index, _ in performed(steps, "2.0.0")] == [0, 1]
    assert [index for index, _ in performed(steps, "2.0.1")] == [0]
    assert [index for index, _ in performed(steps, "4.1")] == [0, 1]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('outcomes: {"0.10": {outcome: [safe, lost]}}', "safe stands alone"),
        ('outcomes: {"0.10": {outcome: [gone]}}', "outcomes.0.10.outcome[0]: 'gone' is refused"),
        ('outcomes: {"0.10": {outcome: []}}', "outcomes.0.10.outcome: "),
        ('outcomes: {"0.10": {outcome: [lost], final_logs: {ledger-0: {"0": [m1]}}}}', "'m1' is refused"),
        ('outcomes: {"0.10": {outcome: [lost], final_logs: {ledger: {"0": [m1@0]}}}}', "final_logs"),
        ('outcomes: {"0.10": {outcome: [lost]}}\npredictions: {"0.10": []}', "either predictions or outcomes"),
        *(
            (
                f'outcomes: {{"0.10": {{outcome: [lost], final_logs: {{ledger-0: {{"0": [m0@0, "{entry}"]}}}}}}}}',
                f"outcomes.0.10.final_logs.ledger-0.0[1]: {complaint}",
            )
            for entry, complaint in [
                ("m9..m1@0", "'m9..m1' runs backwards."),
                ("2:m1..q3@0", "'m1..q3' is no row of names"),
                ("m1..m@0", "'m1..m' is no row of names"),
                ("m..m2@0", "'m..m2' is no row of names"),
                ("m08..m10@0", "'m08..m10' is no row of names"),
                ("m1..m100001@0", "'m1..m100001' is 100001 records; a row has at most 100000."),
                (f"m0..m1{'0' * 30}@0", "'m0..m1000"),
            ]
        ),
        ("catalogue: Z99", "catalogue: 'Z99' is refused"),
    ],
)
def test_outcomes_that_make_no_sense_are_refused(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        small(text)
    assert sentence in str(refused.value)
