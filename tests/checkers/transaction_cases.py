"""Stories about transactions' markers and producers' epochs. Importing this module adds them to ``CASES``."""

from __future__ import annotations

from collections.abc import Sequence

from harness.checker import Outcome
from tests.checkers.cases import case, unseen, write
from tests.checkers.clients import Sent, poll, transact
from tests.checkers.story import NODES, Partition, Story

SETTLES = {"settles": True, "min_insync_replicas": 2}


def mark(story: Story, p: int = 0) -> None:
    """A marker is appended, which the workload knows nothing of."""
    story.append(p, None, [node for node in NODES if node != story.partitions[p].leader])


def marked(story: Story, result: str = "ok") -> None:
    """A transaction of one record, and a marker after it."""
    transact(story, Sent(0), result=result)
    mark(story)


def closed(
    story: Story, *controls: str | None, p: int = 0, producers: Sequence[int] = (), hidden: int = -1, more: int = 1
) -> None:
    """The log ends after some ``more``; its records are of producer 7, or of ``producers``, and some are markers.

    Readers are not given markers, nor what is at the offset ``hidden``.
    """
    write(story, more, p=p)
    story.finish()
    for row in story.logs:
        if row["partition"] == p:
            at = row["offset"]
            row |= {"producer_id": producers[at] if producers else 7, "producer_epoch": 0}
            row["control"] = controls[at] if at < len(controls) else None
    unread = {at for at, control in enumerate(controls) if control is not None} | {hidden}
    story.forget(*[row for row in story.final_rows(p) if row["offset"] in unread])


def closed_by_the_next_abort(story: Story) -> None:
    """The marker at offset 3 aborts what is at 2, and with it what is at 1; nobody is given either."""
    closed(story, None, None, None, "abort", hidden=1)
    story.forget(*[row for row in story.final_rows() if row["offset"] == 2])


@case(Outcome.PASS)
def transactions_that_are_closed_as_they_ended_pass(story: Story) -> None:
    marked(story)
    marked(story, "fail")
    closed(story, None, "commit", None, "abort", hidden=2)


@case(Outcome.PASS)
def a_final_read_up_to_the_markers_at_the_end_of_the_log_has_read_everything(story: Story) -> None:
    write(story, 1)
    marked(story)
    mark(story)
    closed(story, None, None, "commit", "abort", more=0)


@case(Outcome.INCONCLUSIVE, unseen(1), reason="final read of ledger-0 ended at 1, below the final high watermark 3")
def a_final_read_that_lacks_a_record_before_the_last_marker_stopped_early(story: Story) -> None:
    write(story, 1)
    marked(story)
    closed(story, None, None, "commit", hidden=1, more=0)


@case(Outcome.INVALID, unseen(1), reason="should have every offset")
def a_marker_at_the_end_of_a_log_with_a_hole_proves_nothing(story: Story) -> None:
    write(story, 1)
    marked(story)
    closed(story, None, None, "commit", hidden=1, more=0)
    story.logs = [row for row in story.logs if row["offset"] != 1]


def sent_once_and_there_twice(story: Story) -> None:
    write(story, 1)
    transact(story, Sent(0))
    [value] = [value for _, value in story.partitions[0].logs[0][1:]]
    story.append(0, value, (1, 2))
    story.finish()


@case(Outcome.VIOLATION, ("duplicate", "VIOLATION", 1), guarantees={"idempotent_producers": False})
def a_record_of_a_transaction_is_there_once_whatever_other_producers_do(story: Story) -> None:
    sent_once_and_there_twice(story)


@case(
    Outcome.PASS, ("duplicate", "DOCUMENTED", 1),
    guarantees={"idempotent_producers": False}, configuration={"imported": {"from": "jepsen"}},
)  # fmt: skip
def of_an_imported_transaction_the_guarantee_says_whether_its_producer_was_idempotent(story: Story) -> None:
    sent_once_and_there_twice(story)


def closed_wrongly(story: Story, control: str, result: str = "ok") -> None:
    write(story, 1)
    marked(story, result)
    closed(story, None, None, control)


@case(Outcome.VIOLATION, ("wrong-marker", "VIOLATION", 1))
def a_committed_transaction_that_is_closed_by_an_abort_marker_is_found(story: Story) -> None:
    closed_wrongly(story, "abort")


@case(Outcome.VIOLATION, ("aborted-read", "VIOLATION", 1), ("wrong-marker", "VIOLATION", 1))
def a_failed_transaction_that_is_closed_by_a_commit_marker_is_found(story: Story) -> None:
    closed_wrongly(story, "commit", result="fail")


@case(Outcome.VIOLATION, ("wrong-marker", "VIOLATION", 1))
def what_a_consumer_of_committed_records_was_given_is_not_closed_by_an_abort_marker(story: Story) -> None:
    closed_wrongly(story, "abort", result="info")


@case(Outcome.PASS)
def a_transaction_of_which_nobody_knows_how_it_ended_may_be_closed_by_either_marker(story: Story) -> None:
    write(story, 1)
    marked(story, "info")
    closed(story, None, None, "abort", hidden=1)


@case(Outcome.VIOLATION, ("wrong-marker", "VIOLATION", 1))
def one_transaction_that_is_closed_by_two_sorts_of_markers_is_found(story: Story) -> None:
    story.partitions[1] = Partition()
    for p in (0, 1):
        write(story, 1, p=p)
    transact(story, Sent(0), Sent(1), result="info")
    for p in (0, 1):
        mark(story, p)
        story.send(p)
    story.finish()
    for row in story.logs:
        control = ("abort", "commit")[row["partition"]] if row["offset"] == 2 else None
        row |= {"producer_id": 7, "producer_epoch": 0, "control": control}
    story.forget(*[row for p in (0, 1) for row in story.final_rows(p) if row["offset"] in (1, 2)])


def left_open(story: Story) -> None:
    write(story, 1)
    marked(story)
    closed(story, None, None, "commit", producers=(7, 7, 8, 7))


@case(Outcome.VIOLATION, ("open-transaction", "VIOLATION", 1), guarantees=SETTLES)
def a_transaction_that_only_another_producer_s_marker_follows_is_open(story: Story) -> None:
    left_open(story)


@case(Outcome.INCONCLUSIVE, ("open-transaction", "INDETERMINATE", 1))
def an_open_transaction_may_be_closed_later_in_a_run_that_promises_nothing(story: Story) -> None:
    left_open(story)


@case(
    Outcome.PASS,
    ("open-transaction", "DOCUMENTED", 1),
    guarantees={"settles": True, "unclean_election": True, "min_insync_replicas": 2},
)
def an_unclean_election_may_have_given_up_a_marker(story: Story) -> None:
    write(story, 1)
    transact(story, Sent(0))
    story.elect(1, clean=False)
    closed(story)


@case(Outcome.VIOLATION, ("torn-transaction", "VIOLATION", None), guarantees=SETTLES)
def of_a_log_that_names_no_producers_no_markers_are_judged(story: Story) -> None:
    write(story, 1)
    transact(story, Sent(0), Sent(0, append=False), result="info")
    poll(story, 5, [1])
    story.finish()


# ----------------------------------------------------------------------------------------------------------- epochs


def of_epochs(story: Story, *epochs: int) -> None:
    """Each record is the first of its sequence of one producer in these epochs."""
    write(story, len(epochs))
    story.finish()
    for row in story.logs:
        at = row["offset"]
        row |= {"producer_id": 7, "producer_epoch": epochs[at], "sequence": epochs[:at].count(epochs[at])}


@case(Outcome.VIOLATION, ("zombie-append", "VIOLATION", 1))
def a_record_of_a_fenced_producer_is_found(story: Story) -> None:
    of_epochs(story, 0, 1, 0)


@case(Outcome.PASS)
def a_producer_s_epoch_may_rise(story: Story) -> None:
    of_epochs(story, 0, 0, 1, 3)
