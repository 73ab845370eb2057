"""Stories about damaged logs, records of no epoch, and leaders that come back in one.

Importing this module adds them to ``CASES``.
"""

from __future__ import annotations

import json
from typing import Any

from harness.checker import Outcome
from harness.payload import FOREIGN_VALUE
from tests.checkers.cases import Expected, case, lose_tail, lost, regression, write
from tests.checkers.sampling import SAMPLED
from tests.checkers.story import GUARANTEES, Row, Story
from tests.checkers.timeline_cases import say_epochs


def damaged(offset: int, verdict: str = "DOCUMENTED") -> Expected:
    return "damaged-record", verdict, offset


def diverged(offset: int, verdict: str = "VIOLATION") -> Expected:
    return "replica-divergence", verdict, offset


# ----------------------------------------------------------------------------------------------------------- damage


def rot(story: Story, node: int, first: int, end: int | None = None) -> None:
    """In the end a batch on a disk does not match its checksum, so that nobody knows what it says.

    It takes the offsets from ``first`` to ``end`` (exclusive; None: one).
    """
    write(story, 4)
    story.finish()
    for row in story.logs:
        if first <= row["offset"] < (end or first + 1):
            row |= {"batch_base_offset": first, "batch_crc": 5000 + first}
            if row["node"] == node:
                row |= {"value": None, "intact": False}


def corrupt(story: Story, node: int = 2, **parameters: Any) -> None:
    """A fault damages a log of ``node``, which comes back with it."""
    harm = {"topic": "ledger", "partition": 0, "offset": 1, "how": "flip", "clean": True, "interrupted": False}
    story.fault("rot", kind="corrupt_log", nodes=[str(node)], parameters=json.dumps(harm | parameters))
    story.restart(node)


def at(story: Story, node: int, offset: int) -> Row:
    return next(row for row in story.logs if (row["node"], row["offset"]) == (node, offset))


@case(Outcome.VIOLATION, damaged(1, "VIOLATION"), diverged(1))
def a_damaged_record_on_a_follower_s_disk_is_found(story: Story) -> None:
    rot(story, 2, 1)


@case(Outcome.PASS, damaged(1), diverged(1, "DOCUMENTED"))
def a_record_that_a_fault_has_damaged_is_put_down_to_it(story: Story) -> None:
    corrupt(story)
    rot(story, 2, 1)


@case(Outcome.PASS, damaged(1), diverged(1, "DOCUMENTED"), diverged(2, "DOCUMENTED"))
def every_record_of_a_batch_that_a_fault_has_damaged_is_put_down_to_it(story: Story) -> None:
    corrupt(story)
    rot(story, 2, 1, 3)


@case(Outcome.VIOLATION, damaged(1, "VIOLATION"), diverged(1))
def a_record_that_a_fault_has_damaged_on_another_disk_is_not_put_down_to_it(story: Story) -> None:
    corrupt(story, 1)
    rot(story, 2, 1)


@case(Outcome.VIOLATION, damaged(1), diverged(1))
def what_a_fault_has_damaged_in_another_partition_is_no_reason_to_differ(story: Story) -> None:
    corrupt(story, partition=1)
    rot(story, 2, 1)


@case(Outcome.VIOLATION, damaged(1), diverged(1))
def a_broker_that_takes_what_a_crash_has_damaged_for_a_record_is_found(story: Story) -> None:
    corrupt(story, clean=False)
    rot(story, 2, 1)


@case(Outcome.VIOLATION, damaged(1), diverged(1))
def a_broker_that_trusts_its_log_after_it_died_while_it_loaded_it_is_found(story: Story) -> None:
    corrupt(story, interrupted=True)
    rot(story, 2, 1)


@case(Outcome.VIOLATION, damaged(1), diverged(1, "DOCUMENTED"), diverged(2))
def what_is_sound_in_a_damaged_log_is_compared(story: Story) -> None:
    corrupt(story)
    rot(story, 2, 1)
    at(story, 2, 2)["batch_crc"] += 1


@case(Outcome.VIOLATION, damaged(1), diverged(1))
def the_others_must_agree_about_what_a_fault_has_damaged_on_one_disk(story: Story) -> None:
    corrupt(story)
    rot(story, 2, 1)
    at(story, 1, 1)["batch_crc"] += 1


@case(
    Outcome.INVALID, damaged(1), *[diverged(offset, "DOCUMENTED") for offset in (1, 2, 3)],
    reason="The log of ledger-0 on node 2 has 2 records",
)  # fmt: skip
def nobody_knows_what_a_log_holds_behind_a_batch_that_a_fault_has_torn(story: Story) -> None:
    corrupt(story, how="cut")
    rot(story, 2, 1)
    story.logs = [row for row in story.logs if (row["node"], row["offset"]) not in ((2, 2), (2, 3))]


@case(Outcome.VIOLATION, damaged(1), diverged(0), diverged(1, "DOCUMENTED"), reason="on node 2 has 3 records")
def what_a_log_lacks_before_it_is_damaged_is_not_put_down_to_that(story: Story) -> None:
    corrupt(story)
    rot(story, 2, 1)
    story.logs.remove(at(story, 2, 0))


@case(Outcome.VIOLATION, damaged(1), diverged(1, "DOCUMENTED"), diverged(2), reason="on node 1 has 3 records")
def what_another_log_lacks_is_not_put_down_to_damage(story: Story) -> None:
    corrupt(story)
    rot(story, 2, 1)
    story.logs.remove(at(story, 1, 2))


@case(
    Outcome.INVALID, damaged(1, "INDETERMINATE"), diverged(1, "INDETERMINATE"),
    reason="Fault 'rot' is not among the 0 faults",
)  # fmt: skip
def damage_may_be_put_down_to_a_fault_that_is_missing(story: Story) -> None:
    story.scenario = {"schedule": [{"inject": {"fault": "corrupt_log", "as": "rot"}}]}
    rot(story, 2, 1)


@case(
    Outcome.VIOLATION,
    damaged(3, "INDETERMINATE"),
    diverged(1),
    diverged(3, "INDETERMINATE"),
    reason="Fault 'rot' is not among the 0 faults",
)
def what_differs_before_anything_is_damaged_is_put_down_to_no_fault(story: Story) -> None:
    story.scenario = {"schedule": [{"inject": {"fault": "corrupt_log", "as": "rot"}}]}
    rot(story, 2, 3)
    at(story, 1, 1)["batch_crc"] += 1


@case(Outcome.INCONCLUSIVE, reason="did not commit its log from 2")
def a_damaged_record_above_the_watermark_may_be_cut_yet(story: Story) -> None:
    write(story, 2)
    story.send(result="info", commit=False)
    story.finish()
    at(story, 2, 2)["intact"] = False


# ----------------------------------------------------------------------------------------------------------- foreign


def swap(story: Story, node: int, offset: int) -> None:
    """In the end a log has a sound record of another cluster there."""
    row = at(story, node, offset)
    row |= {"value": FOREIGN_VALUE, "batch_crc": row["batch_crc"] + 1}


def swapped_in(story: Story, **parameters: Any) -> None:
    write(story, 4)
    corrupt(story, how="foreign", **parameters)
    story.finish()
    swap(story, 2, 1)


@case(Outcome.PASS, diverged(1, "DOCUMENTED"))
def no_start_in_good_order_finds_a_record_of_another_cluster(story: Story) -> None:
    swapped_in(story)


@case(Outcome.PASS, diverged(1, "DOCUMENTED"))
def no_start_after_a_crash_finds_a_sound_record_of_another_cluster(story: Story) -> None:
    swapped_in(story, clean=False)


@case(Outcome.PASS, diverged(1, "DOCUMENTED"))
def who_copies_a_record_of_another_cluster_is_as_good_as_its_leader(story: Story) -> None:
    swapped_in(story)
    swap(story, 1, 1)


@case(Outcome.VIOLATION, diverged(1))
def a_record_of_another_cluster_that_no_fault_has_put_there_is_found(story: Story) -> None:
    swapped_in(story, partition=1)


@case(Outcome.VIOLATION, diverged(1, "DOCUMENTED"), diverged(2))
def what_is_not_of_another_cluster_is_compared(story: Story) -> None:
    swapped_in(story)
    at(story, 2, 2)["batch_crc"] += 1


@case(Outcome.VIOLATION, diverged(1))
def the_others_must_agree_where_one_has_a_record_of_another_cluster(story: Story) -> None:
    swapped_in(story)
    at(story, 1, 1)["batch_crc"] += 1


@case(Outcome.VIOLATION, diverged(1), reason="on node 1 has 3 records")
def what_another_log_lacks_is_not_put_down_to_a_record_of_another_cluster(story: Story) -> None:
    swapped_in(story)
    story.logs.remove(at(story, 1, 1))


@case(Outcome.VIOLATION, diverged(1))
def a_record_of_another_cluster_and_an_older_epoch_should_have_been_cut(story: Story) -> None:
    write(story, 1)
    story.elect(1)
    write(story, 1)
    corrupt(story, how="foreign")
    story.finish()
    swap(story, 2, 1)
    at(story, 2, 1)["leader_epoch"] = 0


@case(Outcome.VIOLATION, damaged(1), diverged(1))
def no_record_of_another_cluster_is_a_reason_to_trust_a_damaged_one(story: Story) -> None:
    corrupt(story, how="foreign")
    rot(story, 2, 1)


@case(Outcome.INVALID, diverged(1, "INDETERMINATE"), reason="Fault 'rot' is not among the 0 faults")
def a_record_of_another_cluster_may_be_put_down_to_a_fault_that_is_missing(story: Story) -> None:
    story.scenario = {"schedule": [{"inject": {"fault": "corrupt_log", "as": "rot"}}]}
    write(story, 4)
    story.finish()
    swap(story, 2, 1)


# --------------------------------------------------------------------------------------------------------- no epochs


def die_with_a_tail(story: Story, *, committed: int, epochs: bool = False) -> None:
    """Node 0 dies with a record that nobody else has; the next leader writes another one at its offset.

    Its disk says that ``committed`` records are; and there are no ``epochs`` in the logs.
    """
    write(story, 2)
    story.send(copies=(), commit=False, result="info")
    part = story.partitions[0]
    tail, part.isr = list(part.logs[0]), {1, 2}
    story.cut(0, 2)
    story.elect(1)
    part.isr = {1, 2}
    story.send(copies=(2,))
    part.logs[0], part.marks[0] = tail, committed
    story.finish()
    for row in story.logs if not epochs else ():
        row["leader_epoch"] = -1
    for row in story.timeline:
        if (row["kind"], row["node"]) == ("final", 0):
            row["role"] = "offline"


@case(Outcome.PASS, generation="0.10")
def records_of_no_epoch_are_not_of_one_epoch(story: Story) -> None:
    die_with_a_tail(story, committed=2)


@case(Outcome.VIOLATION, diverged(2), generation="0.10")
def records_of_no_epoch_must_be_the_same_below_the_watermarks(story: Story) -> None:
    die_with_a_tail(story, committed=3)


@case(Outcome.PASS)
def records_of_two_epochs_may_differ_above_the_watermark(story: Story) -> None:
    die_with_a_tail(story, committed=2, epochs=True)


# ------------------------------------------------------------------------------------------ two lives in one epoch


def come_back(story: Story, *, end: int, lives: int = 1) -> None:
    """A leader writes a third record for acks=1, and comes back in the same epoch with a log that ends at ``end``.

    Where that is before the record, it writes another one there. Once more it may come back, and has lost nothing.
    """
    write(story, 2)
    story.send(acks=1, copies=(), commit=False)
    part = story.partitions[0]
    story.fault("dark", kind="power_loss", nodes=["0"])
    part.logs[0] = part.logs[0][:end]
    story.restart(0)
    if end == 2:
        story.send(copies=(), commit=False, result="info")
    for _ in range(1, lives):
        story.restart(0)
    for node in (1, 2):
        part.logs[node] = list(part.logs[0])
        story.state(node)
    story.commit()


NOT_COMMITTED = (lost(2, "WEAK"), ("inconsistent-offsets", "WEAK", 2))


@case(Outcome.PASS, *NOT_COMMITTED)
def a_record_that_was_gone_when_its_leader_came_back_was_never_committed(story: Story) -> None:
    come_back(story, end=2)
    story.poll(5, [2])
    story.finish()


@case(Outcome.PASS, *NOT_COMMITTED)
def a_log_that_has_grown_again_does_not_bring_a_record_back(story: Story) -> None:
    come_back(story, end=2, lives=2)
    story.poll(5, [2])
    story.finish()


@case(Outcome.VIOLATION, lost(2), regression(2))
def a_record_that_its_leader_still_had_when_it_came_back_may_be_committed_then(story: Story) -> None:
    come_back(story, end=3)
    lose_tail(story, 2)
    story.finish()


@case(Outcome.VIOLATION, lost(2), regression(2))
def a_record_that_was_committed_before_its_leader_came_back_must_survive(story: Story) -> None:
    write(story, 2)
    story.send(acks=1)
    story.restart(0)
    lose_tail(story, 2)
    story.finish()


# -------------------------------------------------------------------------------------------- what is written down


MISNOTED = "epoch-cache-mismatch"


@case(Outcome.VIOLATION, (MISNOTED, "VIOLATION", 0))
def a_first_epoch_that_was_not_written_down_is_found(story: Story) -> None:
    write(story, 2)
    story.finish()
    say_epochs(story, [])


@case(Outcome.PASS, generation="0.10")
def before_0_11_nobody_writes_the_first_epoch_down(story: Story) -> None:
    a_first_epoch_that_was_not_written_down_is_found(story)


@case(Outcome.PASS)
def there_is_nothing_to_write_down_of_records_without_epochs(story: Story) -> None:
    a_first_epoch_that_was_not_written_down_is_found(story)
    for row in story.logs:
        row["leader_epoch"] = -1


def delete_what_is_older(story: Story, before: int, entries: list[list[int]]) -> None:
    """Epoch 1 begins at offset 2; the logs begin at ``before``, and what was deleted still lies on node 2's disk."""
    write(story, 2)
    story.elect(1)
    write(story, 2)
    story.delete(before)
    story.partitions[0].starts[2] = 0
    story.finish()
    for row in story.timeline:
        if (row["kind"], row["node"]) == ("final", 2):
            row["log_start_offset"] = before
    say_epochs(story, entries)


DELETING: dict[str, Any] = {"guarantees": GUARANTEES | {"retention": True}}


@case(Outcome.PASS, lost(0, "DOCUMENTED"), lost(1, "DOCUMENTED"), **DELETING)
def an_epoch_that_lies_below_the_log_s_start_need_not_be_written_down(story: Story) -> None:
    delete_what_is_older(story, 2, [[1, 2]])


@case(Outcome.VIOLATION, (MISNOTED, "VIOLATION", 0), lost(0, "DOCUMENTED"), **DELETING)
def an_epoch_in_which_the_log_begins_must_be_written_down(story: Story) -> None:
    delete_what_is_older(story, 1, [[1, 2]])


def delete_and_begin_earlier_again(story: Story, entries: list[list[int]]) -> None:
    delete_what_is_older(story, 2, entries)
    for row in story.timeline:
        if (row["kind"], row["node"]) == ("final", 2):
            row["log_start_offset"] = 0


@case(Outcome.PASS, lost(0, "DOCUMENTED"), lost(1, "DOCUMENTED"), **DELETING)
def a_log_s_start_may_be_an_older_one_again_without_its_epochs(story: Story) -> None:
    delete_and_begin_earlier_again(story, [[1, 2]])


@case(Outcome.VIOLATION, (MISNOTED, "VIOLATION", 2), lost(0, "DOCUMENTED"), lost(1, "DOCUMENTED"), **DELETING)
def an_epoch_behind_what_was_deleted_must_be_written_down(story: Story) -> None:
    delete_and_begin_earlier_again(story, [])


@case(Outcome.PASS, *(lost(offset, "DOCUMENTED") for offset in range(3)), guarantees=SAMPLED | {"retention": True})
def a_log_s_start_that_moves_between_two_looks_at_a_broker_is_seen(story: Story) -> None:
    write(story, 2)
    story.elect(1)
    write(story, 3)
    part = story.partitions[0]
    for node in part.starts:
        part.starts[node] = 4
        story.state(node)
        part.starts[node] = 3
        story.restart(node)
    story.finish()
    say_epochs(story, [[1, 4]])
