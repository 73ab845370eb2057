"""Stories of which somebody saw only what he saw when he looked. Importing this module adds them to ``CASES``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from harness.checker import Outcome
from harness.detection.withheld import samples
from tests.checkers.cases import case, lose_tail, lost, regression, write
from tests.checkers.sampling import SAMPLED
from tests.checkers.story import CONTROLLER, Row, Story

UNCLEAN: Row = SAMPLED | {"unclean_election": True}
LONG = 10_000_000_000
UNSEEN = "[12] acknowledgements with acks=all are above every high watermark"


def see(story: Story, is_seen: Callable[[Mapping[str, Any]], bool] = lambda row: True) -> None:
    """End the story; of what its brokers said only that is known."""
    story.finish()
    story.timeline = samples(story.timeline, is_seen)


# ---------------------------------------------------------------------------------------- nobody is accused in vain


@case(Outcome.PASS, guarantees=SAMPLED)
def a_run_that_somebody_looked_at_twice_passes(story: Story) -> None:
    write(story, 4)
    story.elect(1)
    write(story, 2)
    see(story, lambda row: (row["leader_epoch"], row["log_end_offset"]) in ((0, 2), (1, 6)))


@case(Outcome.PASS, guarantees=SAMPLED)
def a_follower_that_was_seen_long_ago_may_have_what_was_committed_since(story: Story) -> None:
    write(story, 3)
    see(story, lambda row: row["node"] == 0 or row["log_end_offset"] == 0)


@case(Outcome.PASS, guarantees=SAMPLED)
def a_life_that_nobody_saw_is_what_sampling_is(story: Story) -> None:
    write(story, 1)
    story.restart(1)
    story.restart(1)
    write(story, 1)
    see(story, lambda row: row["incarnation"] != 1)


@case(Outcome.INCONCLUSIVE, reason=UNSEEN, guarantees=SAMPLED)
def an_acknowledgement_whose_watermark_nobody_saw_is_no_unjustified_one(story: Story) -> None:
    write(story, 3)
    story.elect(1)
    see(story, lambda row: (row["high_watermark"] or 0) < 2)


@case(Outcome.PASS, guarantees=SAMPLED)
def an_acknowledgement_in_an_epoch_that_a_change_of_the_isr_began_and_nobody_saw_is_no_unjustified_one(
    story: Story,
) -> None:
    write(story, 2)
    story.send(commit=False)
    story.state(0)
    story.partitions[0].marks = dict.fromkeys((0, 1, 2), 3)
    said = {"previous_isr": [0, 1, 2], "controller_epoch": 1}
    story.partitions[0].epoch = 1
    story.say(CONTROLLER, "isr", 0, said, leader=0, leader_epoch=1, partition_epoch=3, isr=[0, 1])
    see(story)


@case(Outcome.INCONCLUSIVE, reason=UNSEEN, guarantees=SAMPLED)
def an_acknowledgement_of_a_leader_that_nobody_saw_is_no_unjustified_one(story: Story) -> None:
    write(story, 2)
    story.elect(1)
    write(story, 1)
    story.elect(2)
    see(story, lambda row: row["leader_epoch"] != 1 and (row["high_watermark"] or 0) < 3)


@case(Outcome.INCONCLUSIVE, reason=UNSEEN, guarantees=SAMPLED)
def a_delivery_of_what_was_committed_after_the_last_look_is_no_uncommitted_one(story: Story) -> None:
    write(story, 2)
    story.send()
    story.poll(5, [2])
    story.elect(1)
    see(story, lambda row: (row["high_watermark"] or 0) < 2)


@case(Outcome.PASS, guarantees=SAMPLED)
def a_tail_that_was_got_again_from_another_leader_between_two_looks_is_no_other_record(story: Story) -> None:
    write(story, 2)
    story.send(result="info", copies=(1,), commit=False)
    story.elect(2)
    write(story, 1)
    story.elect(1)
    see(story, lambda row: row["role"] == "leader" or row["log_end_offset"] == 3)


@case(Outcome.PASS, lost(2, "DOCUMENTED"), ("inconsistent-offsets", "DOCUMENTED", 2), guarantees=UNCLEAN)
def nobody_knows_what_an_unclean_election_gave_up_when_its_winner_was_seen_late(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 2, clean=False)
    write(story, 2, result="info")
    see(story, lambda row: row["leader_epoch"] == 0 or row["high_watermark"] == 4)


@case(Outcome.PASS, regression(1, "DOCUMENTED"), *[("committed-cut", "DOCUMENTED", 1)] * 3, guarantees=UNCLEAN)
def a_fall_at_an_unclean_election_is_excused_also_when_it_shows_one_election_later(story: Story) -> None:
    story.send()
    write(story, 2, result="info")
    lose_tail(story, 1, clean=False)
    write(story, 3, result="info", copies=(), commit=False)
    story.elect(2)
    see(story, lambda row: row["leader_epoch"] != 1 or row["log_end_offset"] == 4)


# ----------------------------------------------------------------------------------------------- what is still seen


@case(Outcome.VIOLATION, regression(1), guarantees=SAMPLED)
def a_watermark_that_was_seen_to_fall_within_a_term_is_a_regression(story: Story) -> None:
    write(story, 3)
    story.state(0)["high_watermark"] = 1
    see(story)


@case(Outcome.VIOLATION, lost(2), regression(2), guarantees=SAMPLED)
def a_leader_that_was_seen_with_too_short_a_log_is_a_regression(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 2)
    see(story)


@case(Outcome.VIOLATION, ("unjustified-ack", "VIOLATION", 2), guarantees=SAMPLED)
def an_acknowledgement_that_a_leader_seen_afterwards_had_not_committed_is_unjustified(story: Story) -> None:
    write(story, 2)
    story.send(commit=False)
    story.state(0)
    story.partitions[0].marks = dict.fromkeys((0, 1, 2), 3)
    see(story)


@case(Outcome.VIOLATION, ("uncommitted-read", "VIOLATION", 2), guarantees=SAMPLED)
def a_delivery_that_a_leader_seen_afterwards_had_not_committed_is_an_uncommitted_one(story: Story) -> None:
    write(story, 2)
    story.send(result="info", commit=False)
    story.poll(5, [2])
    story.state(0)
    story.partitions[0].marks = dict.fromkeys((0, 1, 2), 3)
    see(story)


@case(Outcome.VIOLATION, ("committed-cut", "VIOLATION", 1), guarantees=SAMPLED)
def a_replica_that_no_longer_has_what_it_had_committed_has_cut_it(story: Story) -> None:
    write(story, 3)
    story.cut(1, 1)
    log = list(story.partitions[0].logs[0])
    story.partitions[0].logs[1] = log
    story.state(1)
    story.commit()
    see(story)


@case(Outcome.PASS, guarantees=SAMPLED, generation="2.8")
def before_3_7_a_follower_may_take_for_committed_what_it_is_about_to_cut(story: Story) -> None:
    a_replica_that_no_longer_has_what_it_had_committed_has_cut_it(story)


@case(Outcome.INVALID, reason="Node 2 was never looked at", guarantees=SAMPLED)
def a_node_that_nobody_looked_at_makes_the_run_invalid(story: Story) -> None:
    write(story, 2)
    see(story, lambda row: row["node"] != 2)


@case(Outcome.INVALID, reason=r"timeline of node 100 \(incarnation 0\) has 5 rows where its last one says 6",
      guarantees=SAMPLED)  # fmt: skip
def a_gap_in_what_the_controller_decided_makes_the_run_invalid(story: Story) -> None:
    write(story, 1)
    story.elect(1)
    story.elect(0)
    see(story)
    story.timeline = [row for row in story.timeline if (row["node"], row["sequence"]) != (100, 4)]


# ------------------------------------------------------------------------- what is excused where nobody knows epochs

OF_A_LOSS = (("lost-write", 1), ("lost-write", 2), ("vanished-read", 1), ("vanished-read", 2),
             ("inconsistent-offsets", 1), ("inconsistent-offsets", 2), ("nonmonotonic-send", 1))  # fmt: skip


def lose_without_epochs(story: Story, *, clean: bool = True, after_ns: int = LONG) -> None:
    """Two records are acknowledged and read, and the next leader has others there; records have no epochs."""
    story.now += after_ns
    write(story, 3)
    story.poll(5, [1, 2])
    lose_tail(story, 1, clean=clean)
    write(story, 2)


def see_without_epochs(story: Story, is_seen: Callable[[Mapping[str, Any]], bool] = lambda row: True) -> None:
    """End the story; its records are of format 1."""
    see(story, is_seen)
    for row in story.history:
        row["leader_epoch"] = None
    for row in story.logs:
        row["leader_epoch"] = -1


def judged(verdict: str, regressed: str) -> list[tuple[str, str, int | None]]:
    return [*[(kind, verdict, at) for kind, at in OF_A_LOSS], regression(1, regressed)]


@case(Outcome.VIOLATION, *judged("VIOLATION", "VIOLATION"), guarantees=UNCLEAN)
def an_unclean_election_that_was_over_before_a_send_began_does_not_excuse_its_loss(story: Story) -> None:
    story.elect(2, clean=False)
    lose_without_epochs(story)
    see_without_epochs(story)


@case(Outcome.PASS, *judged("DOCUMENTED", "DOCUMENTED"), guarantees=UNCLEAN)
def an_unclean_election_after_a_send_excuses_its_loss_whatever_its_epoch(story: Story) -> None:
    lose_without_epochs(story, clean=False)
    see_without_epochs(story)


@case(Outcome.VIOLATION, *judged("DOCUMENTED", "VIOLATION"), guarantees=UNCLEAN)
def who_led_before_an_unclean_election_may_acknowledge_until_it_hears_of_it(story: Story) -> None:
    story.elect(2, clean=False)
    lose_without_epochs(story)
    see_without_epochs(story, lambda row: row["node"] != 0 or row["leader_epoch"] != 1)


@case(Outcome.VIOLATION, *judged("DOCUMENTED", "VIOLATION"), guarantees=UNCLEAN)
def what_somebody_said_when_he_was_asked_before_a_send_he_may_have_said_after_it(story: Story) -> None:
    story.elect(2, clean=False)
    lose_without_epochs(story, after_ns=LONG // 10)
    see_without_epochs(story)


# ------------------------------------------------------------------------------------------------ who stopped looking


@case(Outcome.INCONCLUSIVE, reason="4 acknowledgements with acks=all are above every", guarantees=SAMPLED)
def brokers_that_were_looked_at_once_and_never_again_prove_nothing(story: Story) -> None:
    write(story, 4)
    see(story, lambda row: row["log_end_offset"] == 0)


@case(Outcome.PASS, lost(2, "DOCUMENTED"), guarantees=UNCLEAN)
def of_what_was_lost_with_its_leader_before_anybody_looked_no_doubt_is_left(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 2, clean=False)
    see(story, lambda row: row["leader_epoch"] == 1 or (row["log_end_offset"] or 0) < 3)


@case(Outcome.PASS, guarantees=SAMPLED)
def who_was_not_looked_at_for_long_says_so(story: Story) -> None:
    write(story, 3)
    see(story)
    seen = [row for row in story.timeline if (row["node"], row["kind"]) == (1, "state")]
    seen[-1]["detail"] = json.dumps({"unseen_ms": 7500})


def stored(kafka: str, **settings: str) -> dict[str, Any]:
    """A manifest of this release with these settings, in ``_`` for ``.``."""
    topic = {"name": "ledger", "partitions": 1, "replication_factor": 3}
    written = {name.replace("_", "."): value for name, value in settings.items()}
    configuration = {"scenario": {"cluster": {"brokers": 3}, "topics": [topic]}, "settings": written}
    return {"configuration": configuration, "guarantees": SAMPLED, "versions": {"kafka": kafka}}


@case(Outcome.PASS, ("committed-cut", "DOCUMENTED", 1), **stored("2.1.1", log_message_format_version="0.10.2-IV0"))
def a_follower_cuts_records_without_epochs_by_its_own_watermark(story: Story) -> None:
    a_replica_that_no_longer_has_what_it_had_committed_has_cut_it(story)


@case(Outcome.PASS, ("committed-cut", "DOCUMENTED", 1),
      **stored("3.6.1", log_message_format_version="0.10.2", inter_broker_protocol_version="2.8"))  # fmt: skip
def with_an_older_protocol_a_newer_release_heeds_the_format(story: Story) -> None:
    a_replica_that_no_longer_has_what_it_had_committed_has_cut_it(story)


@case(Outcome.VIOLATION, ("committed-cut", "VIOLATION", 1), **stored("3.6.1", log_message_format_version="0.10.2"))
def from_3_0_on_the_format_is_not_heeded(story: Story) -> None:
    a_replica_that_no_longer_has_what_it_had_committed_has_cut_it(story)


@case(Outcome.VIOLATION, ("committed-cut", "VIOLATION", 1), **stored("2.1.1", log_message_format_version="0.11.0"))
def format_2_bears_epochs(story: Story) -> None:
    a_replica_that_no_longer_has_what_it_had_committed_has_cut_it(story)
