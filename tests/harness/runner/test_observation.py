from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from harness.history.run_directory import Manifest
from harness.model import NodeId, TopicPartition
from harness.outcome import Word
from harness.runner.observation import Gathered, differences, observe, shortened, spelled_out
from harness.runner.schedule_log import ScheduleLog
from harness.scenario import Expectation
from harness.wire.messages.quorum import METADATA_TOPIC
from tests.checkers.story import NODES, Story

LEDGER = TopicPartition("ledger", 0)
TOPIC = {"name": "ledger", "partitions": 1, "replication_factor": 3}


def gathered(story: Story, schedule_log: ScheduleLog | None = None, **manifest: Any) -> Gathered:
    configuration = {"scenario": {"cluster": {"brokers": len(NODES)}, "topics": [TOPIC], **story.scenario}}
    guarantees = {"min_insync_replicas": 2, "unclean_election": False, "idempotent_producers": False}
    known: dict[str, Any] = {"state": "complete", "guarantees": guarantees, "configuration": configuration, **manifest}
    whole = Manifest("r", "story", 1, "2025-01-01T00:00:00+00:00", **known)
    timeline = story.collected(sampled=whole.guarantees.get("timeline") == "sampled")
    return Gathered(whole, story.history, timeline, story.logs, story.faults, schedule_log or told(story))


def told(story: Story) -> ScheduleLog:
    """A schedule log that knows the story's values as m0, m1 ..."""
    schedule_log = ScheduleLog([LEDGER])
    values = {row["value"] for row in story.history if row["f"] == "send"}
    schedule_log.values[LEDGER] = {f"m{value}": value for value in sorted(values)}
    schedule_log.replicas[LEDGER] = tuple(map(NodeId, NODES))
    return schedule_log


def quiet(*, sends: int = 3) -> Story:
    story = Story()
    for _ in range(sends):
        story.send()
    return story


def lossy(acks: int = -1, *, clean: bool = True) -> Story:
    """The last of three writes is held by the leader alone, who is deposed."""
    story = quiet(sends=2)
    story.send(acks=acks, copies=(), commit=acks == -1)
    story.elect(1, clean=clean)
    return story


def words(run: Gathered) -> tuple[Word, ...]:
    seen = observe(run)
    assert not seen.invalid
    return seen.words


def test_a_run_in_which_nothing_happens_is_safe() -> None:
    run = gathered(quiet().finish())
    assert words(run) == (Word.SAFE,)
    assert not differences(Expectation(outcome=(Word.SAFE,)), observe(run))


def test_an_acknowledged_record_that_is_gone_is_lost() -> None:
    assert Word.LOST in words(gathered(lossy().finish()))


def test_a_record_that_acks_1_lost_is_weakly_lost() -> None:
    assert words(gathered(lossy(acks=1).finish())) == (Word.WEAK,)


def test_what_an_unclean_election_lost_is_documented_where_it_was_allowed() -> None:
    story = lossy(clean=False).finish()
    allowed = {"min_insync_replicas": 1, "unclean_election": True}
    assert words(gathered(story, guarantees=allowed)) == (Word.DOCUMENTED,)
    assert Word.LOST in words(gathered(story))


def test_a_replica_with_another_record_has_diverged() -> None:
    story = quiet().finish()
    next(row for row in story.logs if row["node"] == 2 and row["offset"] == 1)["batch_crc"] += 1
    assert words(gathered(story)) == (Word.DIVERGED,)


def test_a_value_that_is_there_twice_is_duplicated() -> None:
    story = quiet()
    story.append(0, 1, (1, 2))
    assert words(gathered(story.finish())) == (Word.DUPLICATED,)


@pytest.mark.parametrize(
    ("note", "expected"),
    [
        (lambda schedule_log: schedule_log.unavailable.append("ledger-0 had no leader for 1 s"), Word.UNAVAILABLE),
        (lambda schedule_log: schedule_log.exited.append("node 1: exit status 1"), Word.EXITED),
        (lambda schedule_log: schedule_log.unsettled.append("ledger-0: broker 2 is behind"), Word.STUCK),
    ],
)
def test_what_only_the_schedule_saw_is_observed_too(note: Callable[[ScheduleLog], None], expected: Word) -> None:
    story = quiet().finish()
    schedule_log = told(story)
    note(schedule_log)
    assert words(gathered(story, schedule_log)) == (expected,)


def test_a_partition_without_a_leader_in_the_end_is_unavailable_and_not_stuck() -> None:
    story = quiet().finish()
    schedule_log = told(story)
    schedule_log.unsettled.append("ledger-0: there is no leader")
    schedule_log.leaderless.append("ledger-0")
    assert words(gathered(story, schedule_log)) == (Word.UNAVAILABLE,)


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [((0, 1, 2), Word.SAFE), ((0, 2, 1), Word.REORDERED), ((0, None, 1), Word.SAFE), ((1, None, 0), Word.REORDERED)],
)
def test_records_of_one_producer_in_another_order_are_reordered(
    offsets: tuple[int | None, ...], expected: Word
) -> None:
    story = quiet().finish()
    schedule_log = told(story)
    schedule_log.orders["p", LEDGER] = [(f"m{number}", offset) for number, offset in enumerate(offsets)]
    assert words(gathered(story, schedule_log)) == (expected,)


@pytest.mark.parametrize(
    ("given", "position", "expected"),
    [
        ({0, 1, 2}, 3, Word.SAFE),
        ({0, 1}, 2, Word.SAFE),
        ({0, 2}, 3, Word.SKIPPED),
        (set(), 1, Word.SKIPPED),
        (set(), 0, Word.SAFE),
        (set(), 9, Word.SAFE),
    ],
)
def test_a_group_has_skipped_what_lies_behind_it_and_was_given_to_none_of_its_members(
    given: set[int], position: int, expected: Word
) -> None:
    story = quiet().finish()
    schedule_log = told(story)
    schedule_log.groups["g"].given[LEDGER] |= given
    schedule_log.groups["g"].position[LEDGER] = position
    assert words(gathered(story, schedule_log)) == (expected,)


def test_a_run_that_did_not_come_to_its_end_proves_nothing_and_says_why() -> None:
    seen = observe(gathered(quiet().finish(), state="abandoned", why="schedule[3].until: did not come true."))
    assert seen.invalid == ("schedule[3].until: did not come true.",)
    assert differences(Expectation(outcome=(Word.SAFE,)), seen) == ["schedule[3].until: did not come true."]


def test_an_unproven_fault_proves_nothing() -> None:
    story = quiet()
    story.fault(proven_ns=None)
    assert "was never proven" in observe(gathered(story.finish())).invalid[0]


def test_an_incomplete_final_read_is_forgiven_only_where_something_kept_it_from_its_end() -> None:
    story = quiet().finish(read=False)
    assert observe(gathered(story)).invalid
    schedule_log = told(story)
    schedule_log.leaderless.append("ledger-0")
    assert not observe(gathered(story, schedule_log)).invalid


def test_every_word_and_no_other_must_be_observed() -> None:
    seen = observe(gathered(lossy(acks=1).finish()))
    assert differences(Expectation(outcome=(Word.WEAK,)), seen) == []
    assert differences(Expectation(outcome=(Word.STUCK, Word.LOST)), seen) == [
        "predicted and not observed: stuck, lost.",
        "observed and not predicted: weak.",
    ]


def test_an_anomaly_that_no_word_is_about_must_be_predicted() -> None:
    story = quiet()
    story.append(0, 77, (1, 2))  # a value that nobody sent
    seen = observe(gathered(story.finish()))
    assert seen.words == (Word.SAFE,)
    assert [anomaly.kind for anomaly in seen.unexpected] == ["unwritten-read"]
    assert differences(Expectation(outcome=(Word.SAFE,)), seen)[0].startswith("unexpected unwritten-read: ")
    assert not observe(gathered(story, predictions=[{"kind": "unwritten-read"}])).unexpected


def test_what_was_read_and_vanished_is_lost_too_unless_losses_are_predicted_one_by_one() -> None:
    story = quiet(sends=2)
    story.send(result="info", copies=(), commit=False)
    story.commit(to=3)
    story.poll(5, [2])
    story.elect(1)
    story.finish()
    lost = Expectation(outcome=(Word.LOST,))
    assert observe(gathered(story)).words == (Word.LOST,)
    assert not differences(lost, observe(gathered(story, predictions=[{"kind": "lost-write"}])))
    exact = [{"kind": "lost-write", "offset": 2}]
    told_by_one = differences(lost, observe(gathered(story, predictions=exact)))
    assert [one.split(":")[0] for one in told_by_one] == [
        "unexpected vanished-read", "unexpected hw-regression",
        *["unexpected unjustified-advance"] * 2,  # of either follower, which had nothing of it
        "predicted and not found",
    ]  # fmt: skip


def test_offsets_that_a_loss_has_freed_break_no_order() -> None:
    lost = quiet(sends=2)
    for _ in range(2):
        lost.send(copies=())
    lost.elect(1)
    lost.send(process=1)
    disordered = Story()
    disordered.send(offset=1, append=False, process=0)
    disordered.send(offset=0, append=False, process=1)
    for value in (1, 0):
        disordered.append(0, value, (1, 2))
    found = [{one.kind for one in observe(gathered(story.finish())).unexpected} for story in (lost, disordered)]
    assert ["G0-realtime" in kinds for kinds in found] == [False, True]


def test_a_prediction_that_nothing_meets_is_a_difference() -> None:
    seen = observe(gathered(quiet().finish(), predictions=[{"kind": "lost-write", "offset": 2}]))
    assert [one for one in differences(Expectation(outcome=(Word.SAFE,)), seen) if "not found" in one]


def test_logs_are_told_by_names_and_epochs() -> None:
    story = quiet(sends=2)
    story.elect(1)
    story.send()
    run = gathered(story.finish())
    next(row for row in story.logs if row["node"] == 2 and row["offset"] == 1)["intact"] = False
    story.logs = [row for row in story.logs if row["node"] != 0]
    story.logs[0]["value"] = None
    run = gathered(story)
    assert observe(run).logs[LEDGER] == {
        NodeId(0): (),
        NodeId(1): ("?@0", "m1@0", "m2@1"),
        NodeId(2): ("m0@0", "m1@0!", "m2@1"),
    }


def test_the_metadata_log_is_none_of_those_that_are_told() -> None:
    story = quiet(sends=2).finish()
    story.logs += [{**row, "topic": METADATA_TOPIC, "value": None} for row in story.logs]
    story.timeline += [{**row, "topic": METADATA_TOPIC} for row in story.timeline if row["kind"] == "final"]
    assert list(observe(gathered(story)).logs) == [LEDGER]


def test_a_log_that_starts_late_says_where() -> None:
    story = quiet(sends=4)
    for node in NODES:
        story.partitions[0].starts[node] = 2
    guarantees = {"min_insync_replicas": 2, "retention": True}
    seen = observe(gathered(story.finish(), guarantees=guarantees))
    assert set(seen.logs[LEDGER].values()) == {("2:m2@0", "m3@0")}


def expected_logs(**logs: list[str]) -> Expectation:
    document = {
        "outcome": ["safe"],
        "final_logs": {"ledger-0": {k.replace("_", ",").lstrip(","): v for k, v in logs.items()}},
    }
    return Expectation.model_validate_json(json.dumps(document))


def test_final_logs_are_compared_literally() -> None:
    seen = observe(gathered(quiet().finish()))
    assert differences(expected_logs(all=["m0..m2@0"]), seen) == []
    assert differences(expected_logs(_0_2=["m0@0", "m1..m2@0"]), seen) == []
    assert differences(expected_logs(_1=["m0..m2@1"], _2=[], _7=["m0@0"]), seen) == [
        "the log of ledger-0 on broker 1 is m0..m2@0, not m0..m2@1.",
        "the log of ledger-0 on broker 2 is m0..m2@0, not (empty).",
        "the log of ledger-0 on broker 7 is not there, not m0@0.",
    ]


def test_all_means_every_assigned_replica_whether_there_is_evidence_of_it_or_not() -> None:
    seen = observe(gathered(quiet().finish()))
    seen = replace(seen, logs={LEDGER: {node: log for node, log in seen.logs[LEDGER].items() if node != 2}})
    assert differences(expected_logs(all=["m0..m2@0"]), seen) == [
        "the log of ledger-0 on broker 2 is not there, not m0..m2@0."
    ]


def test_all_means_nothing_where_nobody_knows_the_assignment() -> None:
    story = quiet().finish()
    schedule_log = told(story)
    schedule_log.replicas.clear()
    assert differences(expected_logs(all=["m0..m2@0"]), observe(gathered(story, schedule_log))) == [
        "the brokers of ledger-0 are unknown."
    ]


def test_rows_of_names_are_spelled_out_and_shortened_again() -> None:
    log = spelled_out(["5:m5..m7@0", "x@0", "u1@2", "u2@2", "b1..b3@2"])
    assert log == ("5:m5@0", "m6@0", "m7@0", "x@0", "u1@2", "u2@2", "b1@2", "b2@2", "b3@2")
    assert shortened(log) == "5:m5..m7@0 x@0 u1@2 u2@2 b1..b3@2"
    assert shortened(()) == "(empty)"
    assert (
        shortened(("5:?@0", *["?@0"] * 300, "?@2", "?@2", "m1@2", "m1@2", "m1@2"))
        == "5:?@0 300x?@0 ?@2 ?@2 m1@2 m1@2 m1@2"
    )
    assert spelled_out(["m08..m09@1"]) == ("m08@1", "m09@1")
    assert shortened(("m0@0", "m1@0!", "m2@0", "m4@0")) == "m0@0 m1@0! m2@0 m4@0"


def test_a_schedule_log_survives_being_written() -> None:
    story = quiet().finish()
    schedule_log = told(story)
    schedule_log.orders["p", LEDGER] = [("m0", 3), ("m1", None)]
    schedule_log.groups["g"].given[LEDGER] |= {1, 2}
    schedule_log.groups["g"].position[LEDGER] = 3
    schedule_log.exited.append("node 1")
    document = json.loads(json.dumps(schedule_log.to_json()))
    assert ScheduleLog.from_json(document).to_json() == schedule_log.to_json()
    assert ScheduleLog.from_json(document).orders == schedule_log.orders
    assert ScheduleLog.from_json(document).replicas == {LEDGER: (0, 1, 2)}
    assert ScheduleLog.from_json(document).groups["g"].given == schedule_log.groups["g"].given


@pytest.mark.parametrize(("timeline", "accused"), [("complete", ["unjustified-ack"]), ("sampled", [])])
def test_who_only_looks_now_and_then_does_not_know_what_came_first(timeline: str, accused: list[str]) -> None:
    """The watermark above the last record is seen after that was acknowledged."""
    story = quiet()
    story.send(commit=False)
    story.commit()
    guarantees = {"min_insync_replicas": 2, "unclean_election": False, "timeline": timeline}
    seen = observe(gathered(story.finish(), guarantees=guarantees))
    assert [one.kind for one in seen.unexpected] == accused
