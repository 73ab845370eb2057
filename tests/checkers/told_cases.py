"""Stories of clusters that are known by what they tell clients: which falls of a watermark are breaches."""

from __future__ import annotations

from harness.checker import Outcome
from tests.checkers.answers import TOLD, answer, by_answers_alone
from tests.checkers.cases import case, lose_tail, lost, regression, unseen, write
from tests.checkers.story import Story

DIFFERENT = [("inconsistent-offsets", "VIOLATION", offset) for offset in (4, 5)]
KEPT = TOLD | {"retention": False}
UNCLEAN = TOLD | {"unclean_election": True}


def told(story: Story, *marks: tuple[int, int]) -> None:
    """Six records, and answers that name these epochs and watermarks."""
    write(story, 6)
    for epoch, mark in marks:
        answer(story, epoch=epoch, mark=mark)
    story.finish()
    by_answers_alone(story)


@case(Outcome.PASS, guarantees=TOLD)
def a_watermark_that_rises_in_answers_is_as_it_should_be(story: Story) -> None:
    told(story, (0, 0), (0, 3), (0, 3), (2, 3), (2, 6), (3, 6))


@case(Outcome.PASS, guarantees=TOLD)
def a_deposed_leader_may_answer_what_was_true_in_its_epoch(story: Story) -> None:
    told(story, (0, 3), (1, 5), (0, 3), (1, 6), (0, 4))


@case(Outcome.VIOLATION, regression(2), guarantees=TOLD)
def a_watermark_that_falls_in_answers_of_one_epoch_is_found(story: Story) -> None:
    told(story, (1, 5), (1, 2), (1, 6))


@case(Outcome.INCONCLUSIVE, regression(4, "INDETERMINATE"), guarantees=TOLD)
def a_new_leader_that_answers_less_than_was_committed_is_found(story: Story) -> None:
    told(story, (0, 6), (1, 4), (1, 6))


@case(Outcome.INCONCLUSIVE, regression(4, "INDETERMINATE"), guarantees=TOLD)
def a_deposed_leader_that_goes_on_committing_is_found(story: Story) -> None:
    told(story, (0, 3), (1, 4), (0, 6))


@case(Outcome.INCONCLUSIVE, regression(4, "INDETERMINATE"), guarantees=UNCLEAN)
def any_election_may_have_been_unclean_where_that_is_permitted(story: Story) -> None:
    told(story, (0, 6), (1, 4), (1, 6))


@case(Outcome.VIOLATION, regression(2), guarantees=UNCLEAN)
def no_election_explains_what_falls_within_an_epoch(story: Story) -> None:
    told(story, (1, 5), (1, 2), (1, 6))


@case(Outcome.PASS, guarantees=TOLD)
def what_was_not_answered_proves_nothing(story: Story) -> None:
    write(story, 6)
    answer(story, epoch=1, mark=6)
    answer(story, refused="no answer")
    answer(story, epoch=2, mark=6)
    story.finish()
    by_answers_alone(story)


def told_to_begin(story: Story, *starts: int | None, read: bool = True) -> None:
    """Four records that are acknowledged and two that are not, and answers that name these starts of the log."""
    write(story, 4)
    for _ in range(2):
        story.send(result="info")
    story.commit()
    for start in starts:
        answer(story, start=start)
    story.finish(read=read)
    by_answers_alone(story)


@case(Outcome.PASS, guarantees=KEPT)
def a_log_that_begins_where_it_began_is_as_it_should_be(story: Story) -> None:
    told_to_begin(story, 0, None, 0)


@case(Outcome.VIOLATION, ("wrong-deletion", "VIOLATION", 0), guarantees=KEPT)
def a_log_that_begins_behind_what_was_acknowledged_though_nothing_was_to_be_deleted_is_found(story: Story) -> None:
    told_to_begin(story, 0, 3, 0)


@case(Outcome.VIOLATION, ("wrong-deletion", "VIOLATION", 0), *map(unseen, range(4)), guarantees=KEPT)
def a_partition_of_which_everything_is_deleted_is_told_from_one_that_is_not_read(story: Story) -> None:
    told_to_begin(story, 0, 6, read=False)


@case(Outcome.PASS, guarantees=TOLD | {"retention": True})
def retention_may_delete_where_it_is_configured(story: Story) -> None:
    told_to_begin(story, 0, 3)


@case(Outcome.PASS, guarantees=KEPT)
def an_earlier_user_of_a_topic_may_have_had_it_emptied(story: Story) -> None:
    part = story.partitions[0]
    part.logs = {node: [(0, None)] * 3 for node in part.logs}
    part.marks, part.starts = dict.fromkeys(part.logs, 3), dict.fromkeys(part.logs, 3)
    write(story, 2)
    answer(story, start=3)
    story.finish()
    by_answers_alone(story)


@case(Outcome.VIOLATION, lost(4), lost(5), *DIFFERENT, ("nonmonotonic-send", "VIOLATION", 4),
      regression(4, "INDETERMINATE"), guarantees=TOLD)  # fmt: skip
def a_lost_tail_shows_in_what_clients_are_told(story: Story) -> None:
    write(story, 6)
    answer(story)
    lose_tail(story, 4)
    story.commit()
    answer(story)
    write(story, 3)
    story.finish()
    by_answers_alone(story)
