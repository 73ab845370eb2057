"""Stories about leaders and their watermarks, and about predictions. Importing this module adds them to ``CASES``."""

from __future__ import annotations

from typing import Any

from harness.checker import Outcome
from harness.findings import KEPT_PER_GROUP
from tests.checkers.cases import LOST_TAIL, Expected, case, lose_tail, lost, regression, unseen, write
from tests.checkers.story import Story

# ------------------------------------------------------------------------------------------- leaders and watermarks


@case(Outcome.VIOLATION, regression(1))
def a_leader_whose_watermark_falls_is_found(story: Story) -> None:
    write(story, 3)
    story.partitions[0].marks[0] = 1
    story.state(0)
    story.commit()
    story.finish()


@case(Outcome.PASS)
def a_follower_may_learn_of_the_watermark_late_and_a_new_leader_may_start_low(story: Story) -> None:
    write(story, 3)
    story.partitions[0].marks[1] = 0
    story.restart(1)
    story.elect(1)
    story.commit()
    story.finish()


@case(Outcome.VIOLATION, lost(0), lost(1), lost(2), regression(1), regression(0))
def a_log_that_is_too_short_counts_once_until_it_gets_shorter(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 1)
    story.elect(2)
    story.cut(0, 0)
    story.elect(0)
    story.finish()


@case(Outcome.VIOLATION, ("two-leaders", "VIOLATION", None))
def two_leaders_of_one_epoch_are_found(story: Story) -> None:
    write(story, 2)
    row = story.state(1)
    row["role"] = "leader"
    story.finish()


@case(Outcome.PASS)
def a_deposed_leader_may_believe_in_its_old_epoch(story: Story) -> None:
    write(story, 2)
    old, sequence = story.state(0), story.sequences[0]
    story.elect(1)
    heard = [row for row in story.timeline if row["node"] == 0 and row["sequence"] >= sequence]
    story.timeline = [row for row in story.timeline if row not in heard]
    story.timeline.append(old | {"time_ns": story.now, "sequence": sequence})
    story.sequences[0] = sequence + 1
    story.finish()


@case(
    Outcome.VIOLATION,
    ("unjustified-ack", "VIOLATION", 2),
    unseen(2),
    reason="did not commit its log from 2",
)
def an_acknowledgement_before_replication_is_found(story: Story) -> None:
    write(story, 2)
    story.send(copies=(), commit=False)
    story.state(0)
    story.finish()


@case(Outcome.VIOLATION, ("unjustified-ack", "VIOLATION", 2))
def an_acknowledgement_that_comes_before_the_watermark_is_found(story: Story) -> None:
    write(story, 2)
    story.send(commit=False)
    story.commit()
    story.finish()


@case(Outcome.PASS)
def an_acknowledgement_may_come_at_the_instant_of_the_watermark(story: Story) -> None:
    write(story, 2)
    story.send()
    risen = next(row for row in story.timeline if row["high_watermark"] == 3)
    story.history[-1]["time_ns"] = risen["time_ns"]
    story.finish()


@case(Outcome.PASS)
def a_leader_may_acknowledge_by_the_watermark_of_its_next_epoch(story: Story) -> None:
    write(story, 2)
    story.send(commit=False, result="invoke")
    story.elect(0)
    story.commit()
    begun = story.history[-1]
    story.row(**{**begun, "index": len(story.history), "time_ns": story.now, "type": "ok", "offset": 2})
    story.finish()


@case(Outcome.PASS)
def a_leader_that_was_killed_may_not_have_written_its_watermark_down(story: Story) -> None:
    write(story, 2)
    story.send(commit=False)
    story.restart(0)
    story.elect(1)
    story.commit()
    story.finish()


@case(Outcome.VIOLATION, ("uncommitted-read", "VIOLATION", 2), reason="did not commit")
def a_record_that_is_delivered_and_never_committed_is_found(story: Story) -> None:
    write(story, 2)
    story.send(result="info", commit=False)
    story.poll(5, [2])
    story.state(0)
    story.finish()


@case(Outcome.VIOLATION, ("uncommitted-read", "VIOLATION", 2))
def a_record_that_is_delivered_before_it_is_committed_is_found(story: Story) -> None:
    write(story, 2)
    story.send(result="info", commit=False)
    story.poll(5, [2])
    story.commit()
    story.finish()


@case(Outcome.VIOLATION, ("vanished-read", "VIOLATION", 2))
def a_leader_that_was_killed_may_have_committed_what_it_delivered(story: Story) -> None:
    write(story, 2)
    story.send(result="info", copies=(), commit=False)
    story.poll(5, [2])
    story.restart(0)
    story.elect(1)
    story.finish()


# ------------------------------------------------------------------------------------------------------ predictions


@case(Outcome.AS_PREDICTED, lost(2, "EXPECTED"), regression(2, "EXPECTED"), **LOST_TAIL)
def a_predicted_loss_and_what_follows_from_it_are_expected(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 2)
    story.finish()


@case(Outcome.VIOLATION, lost(2, "EXPECTED"), lost(1), regression(1), **LOST_TAIL)
def a_loss_beside_the_predicted_one_is_a_violation(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 1)
    story.finish()


UNREAD = tuple(unseen(offset) for offset in range(3))


def fallen_to(offset: int, verdict: str) -> tuple[Expected, ...]:
    """What a loss from there on is without a final read: the new leader falls, and each replica cuts."""
    return (regression(offset, verdict), *[("committed-cut", verdict, offset)] * 3, *UNREAD)


@case(Outcome.INCONCLUSIVE, *fallen_to(2, "INDETERMINATE"), reason="There is no final read", **LOST_TAIL)
def what_may_follow_from_a_predicted_loss_is_open_where_there_is_no_final_read(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 2)
    story.finish(read=False)


@case(Outcome.VIOLATION, *fallen_to(1, "VIOLATION"), reason="There is no final read", **LOST_TAIL)
def what_begins_below_a_predicted_loss_does_not_follow_from_it_alone(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 1)
    story.finish(read=False)


@case(Outcome.NOT_REPRODUCED, **LOST_TAIL)
def a_predicted_loss_that_does_not_happen_is_a_failed_reproduction(story: Story) -> None:
    write(story, 3)
    story.finish()


@case(Outcome.INVALID, reason="never proven to be in effect", **LOST_TAIL)
def a_predicted_loss_cannot_be_missed_by_a_fault_that_never_was(story: Story) -> None:
    write(story, 3)
    story.fault(proven_ns=None, proof=None)
    story.finish()


@case(Outcome.AS_PREDICTED, lost(2, "EXPECTED"), predictions=[{"kind": "lost-write", "verdict": "WEAK"}])
def a_weak_loss_that_is_predicted_as_such_is_expected(story: Story) -> None:
    write(story, 2)
    story.send(acks=1, copies=(), commit=False)
    story.elect(1)
    story.finish()


@case(Outcome.NOT_REPRODUCED, lost(2, "WEAK"), predictions=[{"kind": "lost-write"}])
def a_weak_loss_reproduces_no_breach(story: Story) -> None:
    a_weak_loss_that_is_predicted_as_such_is_expected(story)


DELETED: dict[str, Any] = {"guarantees": {"retention": True}}


@case(Outcome.NOT_REPRODUCED, lost(0, "DOCUMENTED"), predictions=[{"kind": "lost-write"}], **DELETED)
def what_retention_has_deleted_reproduces_no_breach(story: Story) -> None:
    write(story, 3)
    story.delete(1)
    story.finish()


@case(
    Outcome.AS_PREDICTED,
    lost(0, "EXPECTED"),
    predictions=[{"kind": "lost-write", "verdict": "DOCUMENTED"}],
    **DELETED,
)
def what_retention_has_deleted_is_expected_where_that_is_predicted(story: Story) -> None:
    what_retention_has_deleted_reproduces_no_breach(story)


@case(
    Outcome.VIOLATION,
    lost(2),
    regression(2),
    predictions=[{"kind": "lost-write", "verdict": "DOCUMENTED"}],
)
def a_breach_is_not_expected_where_a_documented_loss_is_predicted(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 2)
    story.finish()


# ------------------------------------------------------------------------------------------- more than is kept of them

MANY = KEPT_PER_GROUP + 15


def lose(story: Story, records: int, spoilt: int | None = None) -> None:
    """The final read leaves out the first records, although every log holds them."""
    write(story, records + 1)
    story.finish()
    story.forget(*story.final_rows()[:records])
    if spoilt is not None:
        next(r for r in story.logs if (r["node"], r["offset"]) == (2, spoilt))["batch_crc"] += 1


def kept(verdict: str) -> list[tuple[str, str, int | None]]:
    return [lost(offset, verdict) for offset in range(KEPT_PER_GROUP)]


def predicting(*offsets: int | None) -> list[dict[str, object]]:
    return [{"kind": "lost-write", "topic": "ledger", "partition": 0, "offset": offset} for offset in offsets]


@case(Outcome.AS_PREDICTED, *kept("EXPECTED"), predictions=predicting(None))
def a_prediction_without_an_offset_is_about_what_was_only_counted_too(story: Story) -> None:
    lose(story, MANY)


@case(
    Outcome.NOT_REPRODUCED,
    *[lost(1 + offset, "WEAK") for offset in range(KEPT_PER_GROUP)],
    predictions=predicting(None, MANY - 1),
)
def weak_losses_that_were_only_counted_are_not_the_predicted_breach(story: Story) -> None:
    write(story, 1)
    write(story, MANY, acks=1, copies=(), commit=False)
    story.elect(1)
    story.finish()


@case(Outcome.VIOLATION, *kept("EXPECTED"), lost(None), predictions=predicting(*range(KEPT_PER_GROUP)))
def losses_beyond_the_predicted_ones_that_were_only_counted_are_violations(story: Story) -> None:
    lose(story, MANY)


@case(Outcome.INCONCLUSIVE, *kept("EXPECTED"), lost(None, "INDETERMINATE"), predictions=predicting(*range(MANY)))
def predicted_losses_that_were_only_counted_are_not_taken_for_granted(story: Story) -> None:
    lose(story, MANY)


@case(Outcome.INCONCLUSIVE, *kept("EXPECTED"), lost(None, "INDETERMINATE"), predictions=predicting(None, MANY - 1))
def a_predicted_loss_that_was_only_counted_is_not_called_missing(story: Story) -> None:
    lose(story, MANY)


@case(
    Outcome.INCONCLUSIVE,
    *kept("EXPECTED"),
    ("replica-divergence", "INDETERMINATE", KEPT_PER_GROUP + 5),
    predictions=predicting(None),
)
def what_may_follow_from_a_predicted_loss_that_was_only_counted_is_no_violation(story: Story) -> None:
    lose(story, MANY, spoilt=KEPT_PER_GROUP + 5)


@case(
    Outcome.AS_PREDICTED,
    *kept("EXPECTED"),
    ("replica-divergence", "EXPECTED", 3),
    predictions=predicting(None),
)
def what_follows_from_a_predicted_loss_that_was_kept_is_expected(story: Story) -> None:
    lose(story, MANY, spoilt=3)


@case(
    Outcome.VIOLATION,
    lost(2, "EXPECTED"),
    regression(2, "EXPECTED"),
    ("inconsistent-offsets", "EXPECTED", 2),
    ("int-nonmonotonic-poll", "VIOLATION", 0),
    **LOST_TAIL,
)
def a_consumer_that_is_thrown_back_further_than_the_predicted_loss_is_found(story: Story) -> None:
    write(story, 3)
    process = story.poll(5, [0, 1])[0]["process"]
    lose_tail(story, 2)
    story.send(result="info")
    story.poll(process, [2, 0])
    story.finish()


# --------------------------------------------------------------------------------------------------- nothing is excused


@case(Outcome.VIOLATION, lost(0), lost(1), lost(2), reason="where it should have every offset from 0 to 3")
def a_log_start_that_nothing_allowed_to_move_excuses_no_loss(story: Story) -> None:
    write(story, 3)
    story.partitions[0].starts = dict.fromkeys((0, 1, 2), 3)
    story.finish()


@case(Outcome.VIOLATION, lost(2), regression(2), guarantees={})
def an_unclean_election_that_nothing_allows_excuses_nothing(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 2, clean=False)
    story.finish()


@case(Outcome.VIOLATION, lost(3), ("int-poll-skip", "VIOLATION", 3), guarantees={"unclean_election": True})
def an_unclean_election_excuses_no_loss_of_what_came_later_when_records_carry_no_epoch(story: Story) -> None:
    write(story, 3)
    story.elect(1, clean=False)
    write(story, 2)
    story.finish()
    story.forget(story.final_rows()[3])
    for row in story.logs:
        row["leader_epoch"] = -1
