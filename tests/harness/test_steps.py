from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

import harness
from harness import scenario
from harness.errors import UsageError
from harness.outcome import LETTERS, Word
from harness.scenario import Scenario
from harness.schedule import Step

DOCUMENT = Path(harness.__file__).parents[1] / "docs" / "scenarios.md"

HEAD = """\
id: small
title: A small scenario
source: a test
topics: [{name: ledger}]
workload: {name: unique_sends}
schedule:
"""


def scheduled(*steps: str) -> Scenario:
    return scenario.parse(HEAD + "".join(f"  - {step}\n" for step in steps))


def examples() -> list[str]:
    blocks = re.findall(r"```yaml\n(- .*?)```", DOCUMENT.read_text(), re.DOTALL)
    return [yaml.safe_dump(step) for block in blocks for step in yaml.safe_load(block)]


@pytest.mark.parametrize("step", examples())
def test_every_step_that_the_documentation_shows_is_one(step: str) -> None:
    document = yaml.safe_load(step)
    assert Step.model_validate(document).kind in document


def test_the_documentation_names_every_kind_of_step() -> None:
    table = re.findall(r"^\| (`[^|]*`) \|", DOCUMENT.read_text(), re.MULTILINE)
    named = {name for row in table for name in re.findall(r"`(\w+)`", row)}
    assert set(Step.model_fields) - {"generations"} <= named


def test_the_documentation_names_every_word_of_an_outcome() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (\S+) \|", DOCUMENT.read_text(), re.MULTILINE))
    assert rows == {word.value: LETTERS[word] for word in Word}


def test_a_send_knows_how_many_records_it_sends() -> None:
    made = scheduled("send: {records: [a, b, c]}", "send: {per_partition: 2}").schedule or ()
    assert [step.send.count for step in made if step.send] == [3, 2]


@pytest.mark.parametrize(
    ("steps", "sentence"),
    [
        (("send: {}",), "write exactly one of per_partition and records"),
        (("send: {per_partition: 1, records: [a]}",), "write exactly one of per_partition and records"),
        (("send: {records: [1a]}",), "schedule[0].send.records[0]: '1a' is refused"),
        (("send: {per_partition: 1, idempotent: true}",), "an idempotent send needs a producer"),
        (("until: {}",), "nothing to wait for; write leader, leader_epoch, isr"),
        (("until: {within_s: 3, topic: ledger}",), "nothing to wait for"),
        (("{wait_s: 1, sync: [0]}",), "a step is exactly one of send, inject"),
        (("generations: ['0.10']",), "not nothing"),
        (("{wait_s: 1, generations: [new]}",), "schedule[0].generations[0]: 'new' is refused"),
        (("release: h",), "schedule[0]: 'h' was not held before"),
        (("hold: {links: [[0, 1]], as: h}", "hold: {links: [[1, 0]], as: h}"), "schedule[1]: 'h' names a fault twice"),
        (("hold: {links: [], as: h}",), "schedule[0].hold.links"),
        (("hold: {links: [[0, 1]]}",), "schedule[0].hold: 'as' is missing"),
        (("commit: {group: g, offsets: {ledger: 1}}",), "schedule[0].commit.offsets"),
        (("delete_records: {before: end}",), "schedule[0].delete_records.before"),
        (("until: {sent: x}",), "schedule[0]: 'x' was not sent before"),
        (("send: {per_partition: 100001}",), "schedule[0].send.per_partition: 100001 is refused"),
        (("wait_s: .inf",), "schedule[0].wait_s: inf is refused"),
        (("wait_s: .nan",), "schedule[0].wait_s: nan is refused"),
        (("wait_s: 1.0e+9",), "schedule[0].wait_s: 1000000000.0 is refused"),
        (("wait_s: 0",), "schedule[0].wait_s: 0 is refused"),
        (("until: {leader: 1, within_s: .inf}",), "schedule[0].until.within_s: inf is refused"),
        (("unavailable: {for_s: .inf}",), "schedule[0].unavailable.for_s: inf is refused"),
        (("commit: {group: g, offsets: {ledger-0: 1}, within_s: .inf}",), "schedule[0].commit.within_s: inf is"),
        (("send: {records: [a], age_s: -.inf}",), "schedule[0].send.age_s: -inf is refused"),
        (("send: {records: [a], retry_after_s: .inf}",), "schedule[0].send.retry_after_s: inf is refused"),
    ],
)
def test_a_step_that_makes_no_sense_is_refused_with_its_place(steps: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        scheduled(*steps)
    assert sentence in str(refused.value)


def test_a_fault_may_be_held_again_once_it_was_released_under_another_name() -> None:
    made = scheduled("hold: {links: [[0, 1]], as: a}", "release: a", "hold: {links: [[0, 1]], as: b}", "release: b")
    assert [step.kind for step in made.schedule or ()] == ["hold", "release", "hold", "release"]


def test_only_the_end_of_a_transaction_needs_no_record() -> None:
    assert scheduled("send: {records: [], producer: p, transaction: commit}").transacts
    for wrong in ("{records: []}", "{records: [], producer: p, transaction: open}"):
        with pytest.raises(UsageError, match="records is empty: nothing would be sent"):
            scheduled(f"send: {wrong}")


def test_what_belongs_to_another_kind_of_step_is_refused() -> None:
    assert scheduled("consume: {group: g, start: time, age_s: -5}").schedule
    assert scheduled("send: {records: [a], producer: p, transactional_id: t, transaction: open}").transacts
    for wrong, sentence in (
        ("consume: {group: g, start: end, age_s: 5}", "start: time needs age_s, and nothing else takes it"),
        ("consume: {group: g, start: time}", "start: time needs age_s, and nothing else takes it"),
        ("send: {records: [a], producer: p, transactional_id: t}", "transactional_id is of a transaction"),
    ):
        with pytest.raises(UsageError, match=sentence):
            scheduled(wrong)


def test_a_transaction_needs_a_producer_and_every_replica_in_sync() -> None:
    assert scheduled("send: {records: [a], producer: p, transaction: commit}").transacts
    assert not scheduled("send: {records: [a], producer: p}").transacts
    for wrong in ("{records: [a], transaction: abort}", "{records: [a], producer: p, acks: 1, transaction: abort}"):
        with pytest.raises(UsageError, match="a transaction needs a producer and acks=all"):
            scheduled(f"send: {wrong}")
