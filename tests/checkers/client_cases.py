"""Stories about what clients alone can tell: transactions, commits, the order of sends and polls.

Importing this module adds them to ``CASES``.
"""

from __future__ import annotations

from typing import Any

from harness.checker import Outcome
from tests.checkers.cases import case, lose_tail, write
from tests.checkers.clients import Polled, Sent, commit, move, poll, transact
from tests.checkers.story import Row, Story

RELAXED: dict[str, Any] = {"min_insync_replicas": 2, "unclean_election": True}


def two_partitions(story: Story) -> None:
    """A second partition, before anything is told."""
    story.__init__(story.run, 2)  # type: ignore[misc]


# --------------------------------------------------------------------------------------------------- order of polls


def read_past_deleted_records(story: Story) -> None:
    """The leader has deleted what a consumer was to read next; the next leader has not."""
    write(story, 4)
    process = story.poll(5, [0])[0]["process"]
    story.delete(3, nodes=[0])
    story.poll(process, [3])
    story.partitions[0].starts[0] = 0
    story.elect(1)
    story.finish()


@case(Outcome.PASS, ("poll-skip", "DOCUMENTED", 1), guarantees={"retention": True})
def a_consumer_may_be_taken_past_what_its_leader_has_deleted(story: Story) -> None:
    read_past_deleted_records(story)


@case(Outcome.VIOLATION, ("poll-skip", "VIOLATION", 1))
def where_nothing_may_be_deleted_nobody_is_taken_past_it(story: Story) -> None:
    read_past_deleted_records(story)


@case(Outcome.VIOLATION, ("poll-skip", "VIOLATION", 1))
def a_consumer_whose_next_poll_leaves_a_record_out_is_found(story: Story) -> None:
    write(story, 4)
    story.poll(5, [0])
    story.poll(5, [3])
    story.finish()


@case(Outcome.VIOLATION, ("corrupt-read", "VIOLATION", 2), ("int-poll-skip", "VIOLATION", 3))
def a_consumer_that_leaves_out_what_follows_somebody_elses_record_is_found(story: Story) -> None:
    write(story, 2)
    story.append(0, None, [1, 2])
    write(story, 3)
    story.poll(5, [1, 2, 5])
    story.finish()


@case(Outcome.VIOLATION, ("int-nonmonotonic-poll", "VIOLATION", 1))
def a_poll_that_goes_back_within_itself_is_found(story: Story) -> None:
    write(story, 3)
    story.poll(5, [0, 1, 1, 2])
    story.finish()


@case(Outcome.PASS)
def a_failed_poll_does_not_move_the_position(story: Story) -> None:
    write(story, 4)
    story.poll(5, [0])
    poll(story, 5, [1, 2], result="fail")
    poll(story, 5, [1], result="info")
    story.poll(5, [1, 2, 3])
    story.finish()


@case(Outcome.VIOLATION, ("nonmonotonic-poll", "VIOLATION", 0))
def a_failed_poll_that_goes_back_is_found_all_the_same(story: Story) -> None:
    write(story, 4)
    story.poll(5, [0, 1])
    poll(story, 5, [0, 1], result="fail")
    story.poll(5, [2, 3])
    story.finish()


@case(Outcome.PASS)
def an_assignment_without_a_partition_forgets_where_it_was(story: Story) -> None:
    two_partitions(story)
    story.send(1)
    write(story, 3)
    move(story, 5, "assign", 0)
    story.poll(5, [0, 1, 2])
    move(story, 5, "assign", 1)
    move(story, 5, "assign", 0)
    story.poll(5, [0, 1])
    story.finish()


@case(Outcome.VIOLATION, ("nonmonotonic-poll", "VIOLATION", 0))
def an_assignment_that_names_a_partition_again_keeps_where_it_was(story: Story) -> None:
    two_partitions(story)
    story.send(1)
    write(story, 3)
    move(story, 5, "assign", 0)
    story.poll(5, [0, 1, 2])
    move(story, 5, "assign", 0, 1)
    story.poll(5, [0, 1])
    story.finish()


@case(Outcome.VIOLATION, ("nonmonotonic-poll", "VIOLATION", 0))
def an_assignment_that_failed_forgets_nothing(story: Story) -> None:
    two_partitions(story)
    story.send(1)
    write(story, 3)
    story.poll(5, [0, 1, 2])
    move(story, 5, "assign", 1, result="fail")
    story.poll(5, [0, 1])
    story.finish()


@case(Outcome.PASS, ("nonmonotonic-poll", "DOCUMENTED", 1), ("poll-skip", "DOCUMENTED", 2))
def a_group_may_go_back_and_forth(story: Story) -> None:
    write(story, 4)
    move(story, 5, "subscribe", 0)
    story.poll(5, [0, 1])
    story.poll(5, [1])
    story.poll(5, [3])
    story.finish()


@case(Outcome.PASS)
def a_rebalance_exempts_its_partition(story: Story) -> None:
    write(story, 5)
    story.poll(5, [0, 1])
    op = poll(story, 5, [4, 0])
    move(story, 5, "revoked", 0, result="info", op=op)
    op = poll(story, 5, [2])
    move(story, 5, "assigned", 0, result="info", op=op)
    story.poll(5, [0, 1])
    story.finish()


@case(Outcome.VIOLATION, ("nonmonotonic-poll", "VIOLATION", 0))
def a_rebalance_of_another_partition_exempts_nothing(story: Story) -> None:
    two_partitions(story)
    story.send(1)
    write(story, 2)
    op = poll(story, 5, [0, 1])
    move(story, 5, "revoked", 1, result="info", op=op)
    story.poll(5, [0])
    story.finish()


@case(Outcome.PASS)
def an_aborted_record_in_the_log_is_no_gap(story: Story) -> None:
    write(story, 1)
    transact(story, Sent(), result="fail")
    write(story, 1)
    story.poll(5, [0, 2])
    story.finish()
    story.forget(story.final_rows()[1])


@case(Outcome.INCONCLUSIVE)
def what_a_log_holds_twice_that_no_client_of_this_history_sent_is_not_said_to_have_been_sent_once(story: Story) -> None:
    story.append(0, 7, (1, 2))
    story.append(0, 7, (1, 2))
    story.finish(read=False)


# --------------------------------------------------------------------------------------------------- order of sends


@case(Outcome.VIOLATION, ("nonmonotonic-send", "VIOLATION", 0))
def a_process_whose_later_record_comes_first_is_found(story: Story) -> None:
    story.append(0, 1, (1, 2))
    story.append(0, 0, (1, 2))
    story.send(offset=1, append=False)
    story.send(offset=0, append=False)
    story.finish()


@case(Outcome.VIOLATION, ("G0-realtime", "VIOLATION", 0))
def a_record_that_overtakes_the_acknowledged_one_of_another_process_is_found(story: Story) -> None:
    story.append(0, 1, (1, 2))
    story.append(0, 0, (1, 2))
    story.send(offset=1, append=False, process=0)
    story.send(offset=0, append=False, process=1)
    story.finish()


@case(
    Outcome.VIOLATION,
    ("lost-write", "VIOLATION", 0),
    ("inconsistent-offsets", "VIOLATION", 0),
    ("G0-realtime", "VIOLATION", 0),
)
def a_record_that_takes_the_place_of_one_acknowledged_before_it_was_sent_is_found(story: Story) -> None:
    for _ in range(2):
        story.send()
    value = story.send(result="info", append=False, process=1)
    for log in story.partitions[0].logs.values():
        log[0] = (0, value)
    story.finish()


@case(Outcome.PASS)
def sends_that_overlap_may_be_appended_in_any_order(story: Story) -> None:
    for value in (0, 1):
        next(story.values)
        about: Row = {"process": value, "op": next(story.ops), "f": "send", "topic": "ledger", "partition": 0}
        story.row(**about, type="invoke", value=value, acks=-1)
    for offset, invoked in enumerate(reversed([row for row in story.history if row["type"] == "invoke"])):
        story.append(0, invoked["value"], (1, 2))
        again = {name: invoked[name] for name in ("process", "op", "f", "topic", "partition", "value", "acks")}
        story.row(**again, type="ok", offset=offset)
    story.finish()


@case(Outcome.PASS, ("nonmonotonic-send", "WEAK", 0))
def a_record_of_acks_1_may_be_overtaken(story: Story) -> None:
    story.send(offset=1, append=False, acks=1)
    story.send(offset=0, append=False, acks=1)
    first, second = (row["value"] for row in story.history if row["type"] == "ok")
    story.append(0, second, (1, 2))
    story.append(0, first, (1, 2))
    story.finish()


@case(Outcome.VIOLATION, ("int-nonmonotonic-send", "VIOLATION", 0))
def a_transaction_whose_records_are_stored_the_other_way_round_is_found(story: Story) -> None:
    story.append(0, 1, (1, 2))
    story.append(0, 0, (1, 2))
    transact(story, Sent(offset=1, append=False), Sent(offset=0, append=False))
    story.finish()


@case(Outcome.PASS)
def others_may_write_between_the_records_of_a_transaction(story: Story) -> None:
    transact(story, Sent(), Sent())
    write(story, 1)
    transact(story, Sent(), Sent())
    story.finish()


# ----------------------------------------------------------------------------------------------------- transactions


@case(Outcome.VIOLATION, ("precommitted-read", "VIOLATION", 0))
def a_transaction_that_reads_what_it_writes_is_found(story: Story) -> None:
    transact(story, Sent(), Polled([0]))
    story.finish()


@case(Outcome.VIOLATION, ("precommitted-read", "VIOLATION", 0))
def a_transaction_that_reads_what_it_writes_and_then_times_out_is_found(story: Story) -> None:
    transact(story, Sent(), Polled([0]), result="info")
    write(story, 1)
    story.finish()


@case(Outcome.PASS)
def who_reads_uncommitted_records_may_read_his_own(story: Story) -> None:
    transact(story, Sent(), Polled([0], isolation="read_uncommitted"))
    story.finish()


@case(Outcome.PASS)
def a_transaction_may_read_what_others_committed(story: Story) -> None:
    write(story, 2)
    transact(story, Sent(), Polled([0, 1]))
    story.finish()


@case(Outcome.VIOLATION, ("aborted-read", "VIOLATION", 1))
def a_record_of_a_failed_transaction_is_not_to_be_read(story: Story) -> None:
    write(story, 1)
    transact(story, Sent(), result="fail")
    write(story, 1)
    story.poll(5, [0, 1, 2])
    story.finish()
    story.forget(story.final_rows()[1])


@case(Outcome.PASS)
def who_reads_uncommitted_records_may_read_those_that_fail(story: Story) -> None:
    write(story, 1)
    transact(story, Sent(), result="fail")
    write(story, 1)
    poll(story, 5, [0, 1, 2], isolation="read_uncommitted")
    story.finish()
    story.forget(story.final_rows()[1])


@case(Outcome.VIOLATION, ("torn-transaction", "VIOLATION", None))
def a_transaction_of_which_only_one_record_is_there_is_found(story: Story) -> None:
    transact(story, Sent(), Sent(append=False), result="info")
    write(story, 1)
    story.finish()


@case(Outcome.PASS)
def a_transaction_that_timed_out_may_be_there_as_a_whole(story: Story) -> None:
    transact(story, Sent(), Sent(), result="info")
    write(story, 1)
    story.finish()


@case(Outcome.PASS)
def a_transaction_that_timed_out_may_be_missing_as_a_whole(story: Story) -> None:
    transact(story, Sent(append=False), Sent(append=False), result="invoke")
    write(story, 1)
    story.finish()


@case(Outcome.VIOLATION, ("lost-write", "VIOLATION", 1))
def a_committed_transaction_of_which_a_record_is_missing_has_lost_it(story: Story) -> None:
    transact(story, Sent(), Sent())
    write(story, 1)
    story.finish()
    story.forget(story.final_rows()[1])
    story.logs = [row for row in story.logs if row["offset"] != 1]


# ---------------------------------------------------------------------------------------------------------- commits


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", 1))
def a_group_that_is_told_an_older_commit_is_found(story: Story) -> None:
    write(story, 3)
    commit(story, 1)
    commit(story, 3)
    commit(story, 1, "committed")
    story.finish()


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", None))
def a_group_whose_commit_is_forgotten_is_found(story: Story) -> None:
    write(story, 3)
    commit(story, 3)
    commit(story, None, "committed")
    story.finish()


@case(Outcome.PASS)
def a_group_may_commit_a_lower_offset_and_be_told_it(story: Story) -> None:
    write(story, 3)
    commit(story, None, "committed")
    commit(story, 3)
    commit(story, 1)
    commit(story, 1, "committed")
    story.finish()


@case(Outcome.PASS)
def commits_that_overlap_or_timed_out_may_count_in_any_order(story: Story) -> None:
    write(story, 3)
    begun = commit(story, 2, end=False)
    commit(story, 3)
    again = {name: begun[name] for name in ("process", "op", "f", "group", "topic", "partition", "offset")}
    story.row(**again, type="ok")
    commit(story, 2, "committed")
    commit(story, 1, result="info")
    commit(story, 3)
    commit(story, 1, "committed")
    story.finish()


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", 1))
def of_two_answers_to_one_question_the_later_counts(story: Story) -> None:
    write(story, 3)
    commit(story, 3)
    commit(story, 2, "committed")
    again = {name: story.history[-1][name] for name in ("process", "op", "f", "group", "topic", "partition")}
    story.row(**again, type="ok", offset=1)
    story.finish()


@case(Outcome.PASS)
def a_commit_that_failed_is_none(story: Story) -> None:
    write(story, 3)
    commit(story, 2)
    commit(story, 3, result="fail")
    commit(story, 2, "committed")
    story.finish()


@case(
    Outcome.VIOLATION,
    ("lost-write", "VIOLATION", 2),
    ("hw-regression", "VIOLATION", 2),
    ("commit-beyond-end", "VIOLATION", 3),
)
def a_commit_beyond_a_log_that_was_cut_is_found(story: Story) -> None:
    write(story, 3)
    commit(story, 3)
    lose_tail(story, 2)
    story.finish()


@case(
    Outcome.AS_PREDICTED, ("lost-write", "EXPECTED", 2), ("hw-regression", "EXPECTED", 2),
    ("commit-beyond-end", "EXPECTED", 3), predictions=[{"kind": "lost-write"}],
)  # fmt: skip
def a_commit_beyond_a_log_that_was_cut_as_predicted_follows_from_the_loss(story: Story) -> None:
    write(story, 3)
    commit(story, 3)
    lose_tail(story, 2)
    story.finish()


@case(
    Outcome.AS_PREDICTED, ("lost-write", "EXPECTED", 1), ("lost-write", "EXPECTED", 2),
    ("hw-regression", "EXPECTED", 1), ("inconsistent-offsets", "EXPECTED", 1), ("nonmonotonic-send", "EXPECTED", 1),
    predictions=[{"kind": "lost-write"}],
)  # fmt: skip
def a_send_that_is_stored_before_a_record_whose_loss_is_predicted_follows_from_the_loss(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 1)
    story.send()
    story.finish()


@case(
    Outcome.PASS, ("lost-write", "DOCUMENTED", 2), ("hw-regression", "DOCUMENTED", 2),
    ("commit-beyond-end", "DOCUMENTED", 3), guarantees=RELAXED,
)  # fmt: skip
def a_commit_beyond_a_log_that_an_unclean_election_cut_is_documented(story: Story) -> None:
    write(story, 3)
    commit(story, 3)
    lose_tail(story, 2, clean=False)
    story.finish()
