from __future__ import annotations

from pathlib import Path

import pytest

from harness import scenario
from harness.errors import UsageError

HEAD = """\
id: small
title: A small scenario
source: a test
topics: [{name: ledger, partitions: 2}]
workload: {name: unique_sends, rate: 10}
"""
CHAOS = HEAD + "chaos: {faults: [{fault: kill, node: any}]}\n"


def refusal(text: str) -> str:
    with pytest.raises(UsageError) as refused:
        scenario.parse(text)
    return str(refused.value)


def schedule(*steps: str) -> str:
    return HEAD + "schedule:\n" + "".join(f"  - {step}\n" for step in steps)


def test_shipped_scenarios_are_valid_named_for_their_files_and_open_with_what_they_prove() -> None:
    found = scenario.shipped()
    assert {"kip-101-double-failover", "random-chaos"} <= {one.id for one in found}
    for one in found:
        text = (Path(scenario.__file__).parent / "scenarios" / f"{one.id}.yaml").read_text()
        assert text.startswith("# Proves: ")
        assert "# Source: " in text


def test_a_scenario_is_found_by_path_and_knows_where_it_came_from(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(CHAOS)
    assert scenario.load(str(path)).origin == str(path)
    assert scenario.load("random-chaos").origin == "random-chaos"


def test_an_unknown_name_gets_the_closest_one() -> None:
    with pytest.raises(UsageError, match="did you mean 'random-chaos'"):
        scenario.load("random-kaos")


def test_a_missing_file_is_named() -> None:
    with pytest.raises(UsageError, match=r"nowhere/x\.yaml cannot be read: No such file"):
        scenario.load("nowhere/x.yaml")


def test_broken_yaml_is_refused_with_its_line() -> None:
    assert "line 6: this is not valid YAML" in refusal(HEAD + "chaos: [}\n")


def test_a_key_written_twice_is_refused() -> None:
    assert "key 'title' is written twice" in refusal(CHAOS + "title: again\n")


def test_a_generation_that_yaml_would_read_as_a_number_must_be_quoted() -> None:
    assert "key 0.10 is no text; put it in quotes" in refusal(CHAOS + "predictions: {0.10: []}\n")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("? [a, b]\n: 1\n", "a list cannot be a key"),
        ("? {a: b}\n: 1\n", "a mapping cannot be a key"),
        ("?\n: 1\n", "there is a key missing before the colon"),
        ("2001-01-01: 1\n", "key 2001-01-01 is no text; put it in quotes"),
    ],
)
def test_a_key_that_is_no_text_is_named_readably(line: str, complaint: str) -> None:
    assert refusal(CHAOS + line) == f"the scenario, line 7: this is not valid YAML: {complaint}."


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_file_is_refused_with_a_remedy(text: str) -> None:
    assert refusal(text) == "the scenario is empty. `seawall scenario show random-chaos` prints one to begin with."


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("preconditions: &all [*all]\n", "the scenario, line 6: the alias 'all' stands for something that contains"),
        (f"preconditions: {'[' * 3000}{']' * 3000}\n", "the scenario, line 6: it is nested more than 64 deep."),
        ("title: 2001-99-99\n", "the scenario: a value is not what it looks like: month must be in 1..12"),
    ],
)
def test_yaml_that_nobody_could_hold_is_refused_in_a_sentence(line: str, complaint: str) -> None:
    assert refusal(CHAOS.replace("title: A small scenario\n", "") + line).startswith(complaint)


@pytest.mark.parametrize("key", ["duration_s", "settle_s"])
def test_a_scenario_takes_no_longer_than_days(key: str) -> None:
    assert f"{key}: inf is refused" in refusal(CHAOS + f"{key}: .inf\n")
    assert f"{key}: 0 is refused" in refusal(CHAOS + f"{key}: 0\n")


def test_either_a_schedule_or_chaos_is_needed_and_not_both() -> None:
    assert "exactly one of schedule and chaos" in refusal(HEAD)
    assert "exactly one of schedule and chaos" in refusal(CHAOS + "schedule: [{wait_s: 1}]\n")


def test_an_unknown_key_deep_in_a_step_is_named_with_its_place() -> None:
    text = schedule("wait_s: 1", "until: {replicas: [{node: 0, hig_watermark: 3}]}")
    assert refusal(text) == "schedule[1].until.replicas[0]: unknown key 'hig_watermark'; did you mean 'high_watermark'?"


def test_a_step_is_exactly_one_thing() -> None:
    assert "schedule[0]: a step is exactly one of" in refusal(schedule("{wait_s: 1, heal: x}"))


def test_an_until_that_waits_for_nothing_is_refused() -> None:
    assert "schedule[0].until: nothing to wait for" in refusal(schedule("until: {within_s: 3}"))


def test_a_topic_of_kafkas_own_is_refused_because_it_is_compacted() -> None:
    text = schedule("wait_s: 1").replace("name: ledger", "name: __consumer_offsets")
    assert refusal(text).startswith("topics[0].name: '__consumer_offsets' is Kafka's own and compacted: ")


def test_healing_what_was_not_injected_is_refused() -> None:
    assert "schedule[0]: 'dead' was not injected before" in refusal(schedule("heal: dead"))


def test_waiting_for_what_was_not_sent_is_refused() -> None:
    assert "schedule[0]: 'last' was not sent before" in refusal(schedule("until: {sent: last}"))


def test_a_name_given_twice_is_refused() -> None:
    kill = "inject: {fault: kill, node: 0, as: dead}"
    assert "schedule[1]: 'dead' names a fault twice" in refusal(schedule(kill, kill))


def test_a_topic_that_needs_more_brokers_than_there_are_is_refused() -> None:
    text = CHAOS.replace("partitions: 2", "partitions: 2, replication_factor: 4")
    assert "topic 'ledger' needs broker 3, but the cluster has 3 brokers" in refusal(text)


@pytest.mark.parametrize(
    ("key", "text", "sentence"),
    [
        ("topic.partition", "3", "unknown key 'partition'; did you mean 'partitions'?"),
        ("topic.partitions", "many", "'many' is refused"),
        ("nonsense.x", "1", "keys begin with settings., workload., topic., chaos. or replication."),
        ("settings", "1", "keys begin with"),
        ("workload.rate", "&a [*a]", "the alias 'a' stands for something that contains itself."),
        ("topic.partitions", "{2020-01-01: 1}", "is refused"),
        ("topic.partitions", "[" * 3000, "it is nested more than 64 deep."),
    ],
)
def test_an_override_that_means_nothing_is_refused(key: str, text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        scenario.with_overrides(scenario.parse(CHAOS), {key: text})
    assert f"--set {key}={text}" in str(refused.value)
    assert sentence in str(refused.value)


def test_overrides_reach_settings_workload_topics_and_chaos_and_keep_the_origin(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(CHAOS)
    overrides = {
        "settings.min.insync.replicas": "2",
        "workload.rate": "5",
        "topic.partitions": "7",
        "chaos.for_s": "[1, 2]",
        "replication.truncation": "hw",
    }
    changed = scenario.with_overrides(scenario.load(str(path)), overrides)
    assert changed.cluster.settings == {"min.insync.replicas": 2}
    assert changed.workload.parameters() == {"rate": 5}
    assert changed.topics[0].partitions == 7
    assert changed.chaos is not None
    assert changed.chaos.for_s == (1.0, 2.0)
    assert changed.origin == str(path)


@pytest.mark.parametrize("text", ["0.10", "0.10.2", "2.0-IV1", "a,b", "[1, 2]", "2026-11-24"])
def test_a_setting_that_is_no_whole_number_and_no_flag_stays_as_it_is_written(text: str) -> None:
    for written in (text, f'"{text}"'):
        changed = scenario.with_overrides(scenario.parse(CHAOS), {"settings.log.message.format.version": written})
        assert changed.cluster.settings == {"log.message.format.version": text}


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("0.10", "YAML takes it for a number, 0.10 for 0.1; put it into quotes."),
        ("[1]", "[1] is no number, flag or text"),
    ],
)
def test_a_setting_that_yaml_would_change_is_refused(value: str, complaint: str) -> None:
    text = CHAOS + f"cluster: {{settings: {{log.message.format.version: {value}}}}}\n"
    assert refusal(text).startswith(f"cluster.settings.log.message.format.version: {complaint}")


def test_a_schedule_has_no_chaos_to_override() -> None:
    with pytest.raises(UsageError, match="has no chaos"):
        scenario.with_overrides(scenario.parse(schedule("wait_s: 1")), {"chaos.for_s": "[1, 2]"})


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_out_of_range_is_refused(seed: int) -> None:
    with pytest.raises(UsageError, match=str(seed)):
        scenario.checked_seed(seed)


def test_the_largest_seed_is_taken() -> None:
    assert scenario.checked_seed(2**63 - 1) == 2**63 - 1
