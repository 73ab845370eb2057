"""Stories about markers that failures of machines took, and about those that they did not.

Importing this module adds them to ``CASES``.
"""

from __future__ import annotations

from typing import Any

from harness.checker import Outcome
from tests.checkers.cases import Expected, case, lost, regression, write
from tests.checkers.clients import Sent, commit, poll, transact
from tests.checkers.excuse_cases import LEAST_2, darken, shrink
from tests.checkers.group_cases import be_told, commit_twice, lose_power
from tests.checkers.story import NODES, Story
from tests.checkers.transaction_cases import closed, closed_by_the_next_abort, mark, marked

SETTLED: dict[str, Any] = {"generation": "3.7", "guarantees": LEAST_2["guarantees"] | {"settles": True}}

FLUSHED: dict[str, Any] = {
    "configuration": {
        "scenario": {
            "cluster": {"brokers": len(NODES)},
            "topics": [{"name": "ledger", "partitions": 1, "replication_factor": len(NODES)}],
        },
        "settings": {"log.flush.interval.messages": 1},
    }
}

ABORTED_INSTEAD: dict[str, tuple[Expected, ...]] = {
    verdict: (("wrong-marker", verdict, 1), lost(1, verdict), ("int-poll-skip", verdict, 1))
    for verdict in ("VIOLATION", "DOCUMENTED", "INDETERMINATE")
}


def end_one(story: Story, result: str = "ok") -> None:
    """A record, and a transaction of one at offset 1 that is marked at offset 2 as it ended."""
    write(story, 1)
    marked(story, result)


@case(Outcome.PASS, *ABORTED_INSTEAD["DOCUMENTED"], regression(2, "DOCUMENTED"), **LEAST_2)
def a_commit_marker_that_every_power_loss_took_may_leave_its_record_to_the_next_abort(story: Story) -> None:
    end_one(story)
    darken(story, *NODES)
    marked(story, "fail")
    closed_by_the_next_abort(story)


@case(Outcome.PASS, *ABORTED_INSTEAD["DOCUMENTED"], ("vanished-read", "DOCUMENTED", 1), regression(2, "DOCUMENTED"),
      **LEAST_2)  # fmt: skip
def what_was_read_before_its_commit_marker_lost_its_power_may_vanish(story: Story) -> None:
    end_one(story)
    poll(story, 5, [0, 1])
    darken(story, *NODES)
    marked(story, "fail")
    closed_by_the_next_abort(story)


@case(
    Outcome.PASS,
    ("aborted-read", "DOCUMENTED", 1),
    ("wrong-marker", "DOCUMENTED", 1),
    regression(2, "DOCUMENTED"),
    **LEAST_2,
)
def an_abort_marker_that_every_power_loss_took_may_leave_its_record_to_the_next_commit(story: Story) -> None:
    end_one(story, "fail")
    darken(story, *NODES)
    marked(story)
    closed(story, None, None, None, "commit")


@case(
    Outcome.VIOLATION,
    ("aborted-read", "VIOLATION", 1),
    ("wrong-marker", "DOCUMENTED", 1),
    regression(2, "DOCUMENTED"),
    **LEAST_2,
)
def what_was_aborted_was_not_read_because_of_a_power_loss_that_came_later(story: Story) -> None:
    end_one(story, "fail")
    poll(story, 5, [0, 1])
    darken(story, *NODES)
    marked(story)
    closed(story, None, None, None, "commit")


@case(Outcome.PASS, ("open-transaction", "DOCUMENTED", 1), regression(2, "DOCUMENTED"), **SETTLED)
def a_marker_that_every_power_loss_took_may_leave_its_transaction_open(story: Story) -> None:
    end_one(story)
    darken(story, *NODES)
    closed(story)


@case(Outcome.VIOLATION, *ABORTED_INSTEAD["VIOLATION"], **LEAST_2)
def who_kept_its_power_has_the_marker(story: Story) -> None:
    write(story, 1)
    transact(story, Sent(0))
    lose_power(story, 0, 1)
    marked(story, "fail")
    closed_by_the_next_abort(story)


@case(Outcome.PASS, ("open-transaction", "DOCUMENTED", 1), **SETTLED)
def who_had_left_the_isr_before_the_power_went_need_not_have_the_marker(story: Story) -> None:
    write(story, 1)
    transact(story, Sent(0))
    shrink(story, 0, 1)
    lose_power(story, 0, 1)
    shrink(story, 0, 1, 2)
    closed(story)


@case(Outcome.VIOLATION, ("open-transaction", "VIOLATION", 1), **SETTLED, **FLUSHED)
def where_every_write_is_flushed_no_power_loss_takes_a_marker(story: Story) -> None:
    write(story, 1)
    transact(story, Sent(0))
    lose_power(story, *NODES)
    closed(story)


@case(Outcome.VIOLATION, *ABORTED_INSTEAD["VIOLATION"], **LEAST_2)
def no_power_loss_takes_a_marker_of_a_record_that_was_sent_later(story: Story) -> None:
    write(story, 1)
    lose_power(story, *NODES)
    transact(story, Sent(0))
    marked(story, "fail")
    closed_by_the_next_abort(story)


@case(
    Outcome.VIOLATION,
    ("wrong-marker", "VIOLATION", 1),
    lost(1, "DOCUMENTED"),
    ("int-poll-skip", "VIOLATION", 1),
    **LEAST_2,
)
def a_power_loss_after_the_wrong_marker_does_not_excuse_it(story: Story) -> None:
    write(story, 1)
    transact(story, Sent(0))
    marked(story, "fail")
    lose_power(story, *NODES)
    closed_by_the_next_abort(story)


@case(Outcome.VIOLATION, ("open-transaction", "VIOLATION", 1), **SETTLED)
def a_transaction_that_stays_open_without_a_power_loss_is_found(story: Story) -> None:
    write(story, 1)
    transact(story, Sent(0))
    closed(story)


@case(Outcome.VIOLATION, ("aborted-read", "VIOLATION", 1), **LEAST_2)
def a_record_of_no_transaction_has_no_marker_that_a_power_loss_may_take(story: Story) -> None:
    write(story, 1)
    story.send(result="fail")
    lose_power(story, *NODES)
    write(story, 1)
    story.finish()


MISSING: dict[str, Any] = {"schedule": [{"inject": {"fault": "power_loss", "as": "dark"}}]}


@case(Outcome.INVALID, *ABORTED_INSTEAD["INDETERMINATE"], reason="Fault 'dark' is not among the 0 faults")
def a_power_loss_that_is_missing_among_the_faults_may_have_taken_a_marker(story: Story) -> None:
    story.scenario = dict(MISSING)
    write(story, 1)
    transact(story, Sent(0))
    marked(story, "fail")
    closed_by_the_next_abort(story)


@case(Outcome.VIOLATION, ("aborted-read", "VIOLATION", 1), reason="Fault 'dark' is not among the 0 faults")
def a_record_of_no_transaction_is_a_violation_whatever_is_missing_among_the_faults(story: Story) -> None:
    story.scenario = dict(MISSING)
    write(story, 1)
    story.send(result="fail")
    write(story, 1)
    story.finish()


# ------------------------------------------------------------------------------------------------ Kafka's own topics


def four_brokers(story: Story) -> None:
    """A fourth broker, which holds nothing of the workload's."""
    story.scenario = {
        "cluster": {"brokers": 4},
        "topics": [{"name": "ledger", "partitions": 1, "replication_factor": 3, "replicas": [0, 1, 2]}],
    }
    story.incarnations[3] = story.sequences[3] = 0
    story.say(3, "started", None)


@case(Outcome.INCONCLUSIVE, ("lost-commit", "INDETERMINATE", 1), **LEAST_2)
def the_broker_that_kept_its_power_may_have_no_copy_of_the_groups_topic(story: Story) -> None:
    four_brokers(story)
    commit_twice(story)
    lose_power(story, *NODES)
    be_told(story, 1)


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", 1), **LEAST_2)
def of_two_that_kept_their_power_one_has_a_copy_of_the_groups_topic(story: Story) -> None:
    four_brokers(story)
    commit_twice(story)
    lose_power(story, 0)
    be_told(story, 1)


@case(Outcome.INCONCLUSIVE, ("lost-commit", "INDETERMINATE", 1), **LEAST_2)
def who_is_in_no_isr_may_have_an_old_copy_of_the_groups_topic(story: Story) -> None:
    commit_twice(story)
    shrink(story, 0, 1)
    lose_power(story, 0, 1)
    shrink(story, 0, 1, 2)
    be_told(story, 1)


@case(Outcome.INCONCLUSIVE, ("wrong-marker", "INDETERMINATE", 1), **LEAST_2)
def what_the_coordinator_had_written_down_may_be_gone(story: Story) -> None:
    """The brokers of the partition keep their power but one; a fourth one loses its own."""
    four_brokers(story)
    write(story, 1)
    transact(story, Sent(0), result="info")
    poll(story, 5, [0, 1])
    shrink(story, 0)
    lose_power(story, 1, 2)
    story.faults[-1]["nodes"].append("3")
    story.incarnations[3], story.sequences[3] = 1, 0
    story.say(3, "started", None)
    shrink(story, 0, 1, 2)
    marked(story, "fail")
    closed(story, None, None, None, "abort")
    story.forget(*[row for row in story.final_rows() if row["offset"] == 2])


# -------------------------------------------------------------------------------------------- offsets of transactions


def commit_in_transaction(story: Story, result: str) -> None:
    """A group has committed offset 1; then offset 2 in a transaction that ends so, with a record at offset 3."""
    write(story, 3)
    story.poll(5, [0, 1, 2])
    commit(story, 1)
    op, value = next(story.ops), next(story.values)
    send = {"f": "send", "topic": "ledger", "partition": 0, "value": value, "acks": -1, "mop": 0}
    offsets = {"f": "commit", "topic": "ledger", "partition": 0, "group": "g", "offset": 2, "mop": 1}
    about = {"process": 5, "op": op, "txn": True}
    for row in (send, offsets):
        story.row(**about, **row, type="invoke")
    story.append(0, value, [1, 2])
    for row in (send | {"offset": 3 if result == "ok" else None}, offsets):
        story.row(**about, **row, type=result)
    mark(story)


def end_so(story: Story, control: str) -> None:
    closed(story, None, None, None, None, control, hidden=3 if control == "abort" else -1)


@case(Outcome.PASS)
def an_offset_is_committed_with_its_transaction(story: Story) -> None:
    commit_in_transaction(story, "ok")
    commit(story, 2, "committed")
    end_so(story, "commit")


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", 1))
def an_offset_that_is_not_committed_with_its_transaction_is_lost(story: Story) -> None:
    commit_in_transaction(story, "ok")
    commit(story, 1, "committed")
    end_so(story, "commit")


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", 2))
def an_offset_that_is_committed_without_its_transaction_is_found(story: Story) -> None:
    commit_in_transaction(story, "fail")
    commit(story, 2, "committed")
    end_so(story, "abort")


@case(Outcome.PASS)
def of_a_transaction_that_timed_out_the_offset_may_be_committed_or_not(story: Story) -> None:
    commit_in_transaction(story, "info")
    commit(story, 1, "committed")
    end_so(story, "abort")
