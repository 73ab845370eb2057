"""Stories about what an unclean election gives up, by epochs. Importing this module adds them to ``CASES``."""

from __future__ import annotations

from typing import Any

from harness.checker import Outcome
from tests.checkers.cases import case, lose_tail, lost, regression, write
from tests.checkers.story import Story

PERMITTED = {"unclean_election": True, "min_insync_replicas": 2}


def serve_as_a_zombie(story: Story) -> None:
    """Node 0 has not heard of the election of node 1, acknowledges one more record, and shows it to a consumer."""
    old = story.partitions[0]
    election = story.timeline[-1]["time_ns"] + 1
    story.say(
        100, "election", 0,
        {"clean": False, "elected_from_isr": False, "previous_leader": 0, "controller_epoch": 1},
        leader=1, leader_epoch=1, time_ns=election,
    )  # fmt: skip
    story.now = election
    old.isr = {0, 2}
    story.send()
    story.poll(5, [len(old.logs[0]) - 1])
    old.epoch, old.leader, old.isr = 1, 1, {0, 1, 2}
    story.state(1)
    for node in (0, 2):
        story.cut(node, 2)
        story.state(node)


@case(
    Outcome.PASS,
    lost(2, "DOCUMENTED"),
    ("vanished-read", "DOCUMENTED", 2),
    regression(2, "DOCUMENTED"),
    guarantees=PERMITTED,
)
def what_a_zombie_acknowledges_after_an_unclean_election_has_been_given_up(story: Story) -> None:
    write(story, 2)
    serve_as_a_zombie(story)
    story.finish()


@case(Outcome.VIOLATION, lost(2), regression(2), guarantees=PERMITTED)
def what_is_written_in_the_epoch_of_an_unclean_election_is_not_given_up_by_it(story: Story) -> None:
    write(story, 2)
    story.elect(1, clean=False)
    story.send()
    story.cut(2, 2)
    story.elect(2)
    story.finish()


@case(Outcome.VIOLATION, lost(2), regression(2), guarantees=PERMITTED)
def an_unclean_election_recorded_late_does_not_excuse_its_own_epoch(story: Story) -> None:
    """The controller's row is younger than the acknowledgement; the epoch says what came first."""
    write(story, 2)
    story.elect(1, clean=False)
    row = next(r for r in story.timeline if r["kind"] == "election")
    story.send()
    row["time_ns"] = story.now + 1
    story.cut(2, 2)
    story.elect(2)
    story.finish()


@case(
    Outcome.VIOLATION,
    lost(1),
    lost(2, "DOCUMENTED"),
    regression(1),
    regression(2, "DOCUMENTED"),
    guarantees=PERMITTED,
)
def what_the_winner_of_an_unclean_election_had_is_not_given_up_by_it(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 2, clean=False)
    story.cut(2, 1)
    story.elect(2)
    story.finish()


def overwrite(story: Story, *, heard: bool, clean: bool = False) -> None:
    """Node 1 leads with a record of epoch 0 where one of epoch 1 was committed; see ``Story.overwrite``."""
    write(story, 2)
    story.overwrite(heard=heard, clean=clean)
    story.commit()
    story.finish()


@case(
    Outcome.PASS,
    lost(2, "DOCUMENTED"),
    ("inconsistent-offsets", "DOCUMENTED", 2),
    ("incomplete-leader", "DOCUMENTED", 2),
    guarantees=PERMITTED,
)
def where_the_winner_of_an_unclean_election_had_something_else_the_record_is_given_up(story: Story) -> None:
    overwrite(story, heard=False)


@case(Outcome.VIOLATION, lost(2), ("inconsistent-offsets", "VIOLATION", 2), guarantees=PERMITTED)
def what_the_winner_of_an_unclean_election_got_in_the_record_s_epoch_is_not_something_else(story: Story) -> None:
    overwrite(story, heard=True)


@case(
    Outcome.PASS,
    lost(2, "DOCUMENTED"),
    ("inconsistent-offsets", "DOCUMENTED", 2),
    regression(2, "DOCUMENTED"),
    guarantees=PERMITTED,
)
def a_record_that_nobody_read_before_an_unclean_election_gave_it_up_was_of_an_older_epoch(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 2, clean=False)
    story.send()
    story.finish()


@case(Outcome.VIOLATION, lost(2), ("inconsistent-offsets", "VIOLATION", 2), ("incomplete-leader", "VIOLATION", 2))
def a_leader_that_holds_something_else_where_a_record_was_committed_is_found(story: Story) -> None:
    overwrite(story, heard=False, clean=True)


@case(
    Outcome.VIOLATION,
    lost(2),
    ("inconsistent-offsets", "VIOLATION", 2),
    ("incomplete-leader", "DOCUMENTED", 2),
    generation="2.0.1",
)
def before_2_1_a_follower_may_get_records_of_an_epoch_that_it_has_not_heard_of(story: Story) -> None:
    overwrite(story, heard=False, clean=True)


@case(Outcome.VIOLATION, lost(2), ("inconsistent-offsets", "VIOLATION", 2))
def a_leader_that_may_have_got_the_committed_record_is_not_called_incomplete(story: Story) -> None:
    overwrite(story, heard=True, clean=True)


def keep_a_given_up_record(story: Story, epoch: int) -> None:
    """Node 0 ends with the record that an unclean election gave up, below a watermark, in that epoch."""
    write(story, 3)
    lose_tail(story, 2, clean=False)
    write(story, 1)
    story.finish()
    row = next(row for row in story.logs if (row["node"], row["offset"]) == (0, 2))
    row |= {"leader_epoch": 0, "value": 2, "batch_crc": 2}
    next(row for row in story.timeline if (row["kind"], row["node"]) == ("final", 0))["leader_epoch"] = epoch


GIVEN_UP = (lost(2, "DOCUMENTED"), regression(2, "DOCUMENTED"), ("inconsistent-offsets", "DOCUMENTED", 2))


@case(Outcome.PASS, *GIVEN_UP, ("replica-divergence", "DOCUMENTED", 2), guarantees=PERMITTED)
def who_has_not_heard_of_an_unclean_election_may_hold_what_it_gave_up(story: Story) -> None:
    keep_a_given_up_record(story, 0)


@case(Outcome.VIOLATION, *GIVEN_UP, ("replica-divergence", "VIOLATION", 2), guarantees=PERMITTED)
def who_has_heard_of_an_unclean_election_must_not_hold_what_it_gave_up(story: Story) -> None:
    keep_a_given_up_record(story, 1)


# -------------------------------------------------------------------------------------------------------- overlaps


def hold_also(story: Story, *offsets: int) -> None:
    """In the end node 2's log holds records of another epoch, too."""
    write(story, 4)
    story.finish()
    first = next(row for row in story.logs if row["node"] == 2)
    story.logs += [first | {"offset": at, "leader_epoch": 1, "value": 90 + at, "batch_crc": 90 + at} for at in offsets]


OVERLAP = ("log-overlap", "VIOLATION", 1)
DISORDER = ("epoch-disorder", "VIOLATION", 1)
DIVERGED = tuple(("replica-divergence", "VIOLATION", at) for at in (1, 2, 3))


@case(Outcome.VIOLATION, OVERLAP, DISORDER, *DIVERGED)
def a_log_that_holds_several_offsets_twice_is_found(story: Story) -> None:
    hold_also(story, 1, 2, 3)


@case(Outcome.VIOLATION, OVERLAP, DISORDER, *DIVERGED)
def a_log_that_overlaps_one_that_goes_on_is_found(story: Story) -> None:
    hold_also(story, 1, 2, 3, 4, 5)


@case(Outcome.VIOLATION, DISORDER, *DIVERGED[:2])
def epochs_that_take_turns_are_in_disorder_and_hold_every_offset_once(story: Story) -> None:
    hold_also(story, 1, 2)
    story.logs = [r for r in story.logs if r["node"] != 2 or r["leader_epoch"] == 1 or r["offset"] not in (1, 2)]


# ---------------------------------------------------------------------------------------------------------- at rest

SETTLES: dict[str, Any] = {"guarantees": {"min_insync_replicas": 2, "settles": True}}


def end_with_another_record(story: Story) -> None:
    """Node 2 has another record than the others at offset 2, which it does not take for committed itself."""
    write(story, 3)
    story.finish()
    mine = next(row for row in story.logs if (row["node"], row["offset"]) == (2, 2))
    mine |= {"value": 77, "leader_epoch": 1, "batch_crc": 5}
    next(r for r in story.timeline if (r["kind"], r["node"]) == ("final", 2))["high_watermark"] = 2


STUCK = ("stuck", "VIOLATION", None)


@case(Outcome.VIOLATION, ("replica-divergence", "VIOLATION", 2), **SETTLES)
def at_rest_whoever_is_in_sync_has_what_its_leader_has_whatever_it_calls_committed(story: Story) -> None:
    end_with_another_record(story)


@case(Outcome.VIOLATION, ("replica-divergence", "VIOLATION", 2), STUCK, reason="did not commit its log", **SETTLES)
def at_rest_even_what_nobody_calls_committed_is_the_same_everywhere(story: Story) -> None:
    end_with_another_record(story)
    for row in story.timeline:
        if row["kind"] == "final":
            row["high_watermark"] = 2


@case(Outcome.PASS)
def before_everything_has_come_to_rest_a_replica_is_held_to_its_own_watermark(story: Story) -> None:
    end_with_another_record(story)


@case(Outcome.INVALID, reason="was never healed", **SETTLES)
def while_a_fault_is_not_healed_nothing_has_come_to_rest(story: Story) -> None:
    end_with_another_record(story)
    story.fault(healed_ns=None, heal_proven_ns=None)


@case(Outcome.PASS, ("stuck", "DOCUMENTED", None), **SETTLES)
def a_replica_that_is_down_is_held_to_its_own_watermark(story: Story) -> None:
    end_with_another_record(story)
    next(r for r in story.timeline if (r["kind"], r["node"]) == ("final", 2))["role"] = "offline"
    for row in story.timeline:
        if row["kind"] == "final":
            row["isr"] = [0, 1]


@case(Outcome.VIOLATION, STUCK, **SETTLES)
def a_replica_that_is_out_of_sync_is_held_to_its_own_watermark(story: Story) -> None:
    end_with_another_record(story)
    for row in story.timeline:
        if row["kind"] == "final":
            row["isr"] = [0, 1]
