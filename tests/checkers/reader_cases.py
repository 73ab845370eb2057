"""Stories about the final read, where several consumers read a partition to its end; about consumers of groups; and
about reads and answers that come too early.

Importing this module adds them to ``CASES``.
"""

from __future__ import annotations

from harness.checker import Outcome
from harness.findings import QUIET_NS
from tests.checkers.cases import case, write
from tests.checkers.client_randomness import IMPORTED
from tests.checkers.clients import commit, move, poll
from tests.checkers.story import Story


def only_clients(story: Story) -> None:
    """Nobody asked the brokers, and the story is over."""
    story.timeline, story.logs = [], []
    story.row(process=-1, op=next(story.ops), type="ok", f="close")


def nothing_more(story: Story, process: int) -> None:
    """A final reader goes on, and is given nothing for as long as it takes to say that there is no more."""
    poll(story, process, [], final=True)
    story.now += QUIET_NS
    poll(story, process, [], final=True)


STALLED = "The final read of ledger-0 ended at 3, and a later process of the final read was given nothing behind 2"

LOST = (("lost-write", "VIOLATION", 2), ("vanished-read", "VIOLATION", 2))


@case(Outcome.VIOLATION, *LOST, **IMPORTED)
def what_is_lost_between_two_final_reads_is_found(story: Story) -> None:
    write(story, 3)
    poll(story, 900, [0, 1, 2], final=True)
    nothing_more(story, 900)
    poll(story, 901, [0, 1], final=True)
    nothing_more(story, 901)
    only_clients(story)


@case(Outcome.PASS, **IMPORTED)
def a_second_final_read_that_stops_early_proves_nothing(story: Story) -> None:
    write(story, 3)
    poll(story, 900, [0, 1, 2], final=True)
    poll(story, 901, [0, 1], final=True)
    only_clients(story)


@case(Outcome.INCONCLUSIVE, reason=STALLED, **IMPORTED)
def a_second_final_reader_that_was_given_nothing_for_a_moment_may_have_had_a_slow_broker(story: Story) -> None:
    write(story, 3)
    poll(story, 900, [0, 1, 2], final=True)
    poll(story, 901, [0, 1], final=True)
    poll(story, 901, [], final=True)
    only_clients(story)


@case(Outcome.INCONCLUSIVE, reason="ended at 2, and an earlier poll was given offset 2", **IMPORTED)
def a_final_reader_that_was_given_nothing_for_a_moment_may_have_had_a_slow_broker(story: Story) -> None:
    write(story, 3)
    poll(story, 5, [0, 1, 2])
    poll(story, 901, [0, 1], final=True)
    poll(story, 901, [], final=True)
    story.now += QUIET_NS // 2
    poll(story, 901, [], final=True)
    only_clients(story)


@case(Outcome.INCONCLUSIVE, reason="ended at 2, and an earlier poll was given offset 2", **IMPORTED)
def a_final_reader_that_did_not_poll_for_a_while_was_given_nothing_once(story: Story) -> None:
    write(story, 3)
    poll(story, 5, [0, 1, 2])
    poll(story, 901, [0, 1], final=True)
    story.now += 2 * QUIET_NS
    poll(story, 901, [], final=True)
    only_clients(story)


@case(Outcome.INCONCLUSIVE, reason="ended at 2, and an earlier poll was given offset 2", **IMPORTED)
def a_final_reader_whose_polls_fail_has_not_come_to_the_end(story: Story) -> None:
    write(story, 3)
    poll(story, 5, [0, 1, 2])
    poll(story, 901, [0, 1], final=True)
    poll(story, 901, [], final=True)
    story.now += QUIET_NS
    poll(story, 901, [], result="fail", final=True)
    poll(story, 901, [], final=True)
    only_clients(story)


@case(Outcome.INCONCLUSIVE, reason="ended at 2, and an earlier poll was given offset 2", **IMPORTED)
def a_final_reader_that_was_given_other_partitions_has_not_come_to_the_end(story: Story) -> None:
    """Also when somebody else reads those once more, and tells what they hold."""
    story.__init__(story.run, 2)  # type: ignore[misc]
    write(story, 3)
    write(story, 2, p=1)
    poll(story, 5, [0, 1, 2])
    poll(story, 901, [0, 1], final=True)
    for offset in (0, 1):
        poll(story, 901, [], final=True)
        story.now += QUIET_NS // 2 + 1
        poll(story, 901, [offset], 1, final=True)
    poll(story, 901, [], final=True)
    poll(story, 902, [0, 1], 1, final=True)
    only_clients(story)


@case(Outcome.INCONCLUSIVE, reason=STALLED.replace("behind 2", "behind 0"), **IMPORTED)
def a_second_final_reader_that_was_given_nothing_for_long_leaves_it_open(story: Story) -> None:
    write(story, 3)
    poll(story, 900, [0, 1, 2], final=True)
    move(story, 901, "assign", 0, final=True)
    nothing_more(story, 901)
    only_clients(story)


@case(Outcome.PASS, **IMPORTED)
def a_second_final_reader_that_was_given_nothing_of_a_partition_may_not_have_come_to_it(story: Story) -> None:
    write(story, 3)
    poll(story, 900, [0, 1, 2], final=True)
    move(story, 901, "assign", 0, final=True)
    poll(story, 901, [], final=True)
    only_clients(story)


@case(Outcome.PASS, **IMPORTED)
def a_final_reader_that_was_given_nothing_for_a_while_has_not_come_to_the_end(story: Story) -> None:
    story.__init__(story.run, 2)  # type: ignore[misc]
    write(story, 3)
    story.send(1)
    poll(story, 900, [0, 1, 2], final=True)
    poll(story, 901, [0, 1], final=True)
    nothing_more(story, 901)
    poll(story, 901, [0], 1, final=True)
    only_clients(story)


@case(Outcome.PASS, **IMPORTED)
def of_two_final_readers_at_once_the_one_who_was_given_more_is_right(story: Story) -> None:
    write(story, 3)
    poll(story, 900, [0, 1], final=True)
    poll(story, 901, [0, 1], final=True)
    nothing_more(story, 901)
    poll(story, 900, [2], final=True)
    only_clients(story)


@case(Outcome.VIOLATION, *LOST)
def what_is_lost_between_two_final_reads_is_found_where_the_leader_says_where_it_ends(story: Story) -> None:
    write(story, 3)
    poll(story, 900, [0, 1, 2], final=True)
    story.partitions[0].logs = {node: log[:2] for node, log in story.partitions[0].logs.items()}
    story.partitions[0].marks = dict.fromkeys(story.partitions[0].marks, 2)
    story.timeline = [row | {"log_end_offset": 2, "high_watermark": 2} if row["log_end_offset"] == 3 else row
                      for row in story.timeline]  # fmt: skip
    poll(story, 901, [0, 1], final=True)
    story.finish(read=False)


# ------------------------------------------------------------------------------------------------- consumers of groups


@case(Outcome.VIOLATION, ("int-poll-skip", "VIOLATION", 1))
def a_poll_of_a_group_that_leaves_a_record_out_within_itself_is_found(story: Story) -> None:
    write(story, 3)
    move(story, 5, "subscribe", 0)
    story.poll(5, [0, 2])
    story.finish()


@case(Outcome.VIOLATION, ("int-nonmonotonic-poll", "VIOLATION", 0))
def a_poll_of_a_group_that_goes_back_within_itself_is_found(story: Story) -> None:
    write(story, 3)
    move(story, 5, "subscribe", 0)
    story.poll(5, [0, 1, 0, 1])
    story.finish()


@case(Outcome.VIOLATION, ("nonmonotonic-poll", "VIOLATION", 0))
def a_group_that_goes_back_without_a_rebalance_is_found_where_rebalances_are_named(story: Story) -> None:
    write(story, 3)
    move(story, 5, "subscribe", 0)
    op = poll(story, 5, [0])
    move(story, 5, "assigned", 0, result="info", op=op)
    story.poll(5, [0, 1])
    story.poll(5, [0, 1, 2])
    story.finish()


# ------------------------------------------------------------------------------------------------------ early reads


@case(Outcome.VIOLATION, ("unwritten-read", "VIOLATION", 1))
def a_record_that_is_delivered_before_it_is_sent_is_found(story: Story) -> None:
    write(story, 1)
    story.append(0, 1, (1, 2))
    story.poll(5, [0, 1])
    story.send(offset=1, append=False)
    story.finish()


@case(Outcome.PASS)
def a_record_may_be_delivered_before_it_is_acknowledged(story: Story) -> None:
    value = story.send(result="invoke")
    story.poll(5, [0])
    begun = next(row for row in story.history if row["value"] == value)
    about = ("process", "op", "f", "topic", "partition", "value", "acks")
    story.row(**{name: begun[name] for name in about}, type="ok", offset=0)
    story.finish()


# ------------------------------------------------------------------------------------------------ commits of nobody's


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", 3))
def a_group_that_is_told_what_nobody_has_committed_is_found(story: Story) -> None:
    write(story, 4)
    commit(story, 3, "committed")
    story.finish()


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", 3))
def a_group_that_is_told_a_commit_before_anybody_makes_it_is_found(story: Story) -> None:
    write(story, 4)
    commit(story, 3, "committed")
    commit(story, 3)
    story.finish()


@case(Outcome.PASS)
def a_group_may_be_told_a_commit_that_timed_out(story: Story) -> None:
    write(story, 4)
    commit(story, 2, result="info")
    commit(story, None, "committed")
    commit(story, 2, "committed")
    story.finish()


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", 1))
def a_commit_is_of_the_offset_that_was_to_be_committed_whatever_its_end_says(story: Story) -> None:
    write(story, 3)
    begun = commit(story, 3, end=False)
    again = {name: begun[name] for name in ("process", "op", "f", "group", "topic", "partition")}
    story.row(**again, type="ok", offset=1)
    commit(story, 1, "committed")
    story.finish()


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", 2))
def a_group_that_is_told_a_commit_that_failed_is_found(story: Story) -> None:
    write(story, 4)
    commit(story, 2, result="fail")
    commit(story, 2, "committed")
    story.finish()
