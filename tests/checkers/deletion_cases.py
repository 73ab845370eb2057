"""Stories of what was deleted on purpose, and of what only looks as if it had been.

Importing this module adds them to ``CASES``.
"""

from __future__ import annotations

import json
from typing import Any

from harness.checker import Outcome
from tests.checkers.cases import case, lose_tail, lost, regression, write
from tests.checkers.clients import Sent, transact
from tests.checkers.sampling import SAMPLED
from tests.checkers.story import NODES, Story

RETENTION: dict[str, Any] = {"guarantees": {"retention": True, "min_insync_replicas": 2}}


def start_over(story: Story, node: int, at: int, reason: str) -> None:
    """A replica begins its log anew, says why, and is elected."""
    part = story.partitions[0]
    part.starts[node] = at
    said = {"from_offset": 0, "to_offset": at, "reason": reason}
    story.state(node, 0, "log_start")["detail"] = json.dumps(said)
    story.state(node)


def lead_from(story: Story, node: int) -> None:
    """It leads, and everybody else begins where it does."""
    part = story.partitions[0]
    story.elect(node)
    story.delete(part.starts[node], nodes=[other for other in NODES if other != node])
    story.finish()


@case(Outcome.VIOLATION, lost(0), lost(1), **RETENTION)
def what_a_follower_has_thrown_away_and_no_leader_deleted_is_lost_when_it_leads(story: Story) -> None:
    write(story, 3)
    start_over(story, 1, 2, "out_of_range")
    story.send()
    lead_from(story, 1)


@case(Outcome.VIOLATION, lost(0), lost(1), ("vanished-read", "VIOLATION", 0), **RETENTION)
def what_was_thrown_away_was_there_for_whoever_had_read_it(story: Story) -> None:
    write(story, 3)
    story.poll(5, [0])
    start_over(story, 1, 2, "leader")
    story.send()
    lead_from(story, 1)


@case(Outcome.PASS, lost(0, "DOCUMENTED"), lost(1, "DOCUMENTED"), **RETENTION)
def a_leader_may_have_died_before_it_could_say_that_it_deleted(story: Story) -> None:
    write(story, 3)
    start_over(story, 1, 2, "leader")
    story.incarnations[0], story.sequences[0] = 1, 0
    story.say(0, "started", None)
    lead_from(story, 1)


@case(Outcome.PASS, lost(0, "DOCUMENTED"), lost(1, "DOCUMENTED"), **RETENTION)
def a_follower_deletes_what_is_too_old_before_its_leader_does(story: Story) -> None:
    write(story, 3)
    start_over(story, 1, 2, "retention")
    story.send()
    lead_from(story, 1)


@case(Outcome.PASS, lost(0, "DOCUMENTED"), **RETENTION)
def a_broker_may_have_died_while_it_deleted(story: Story) -> None:
    write(story, 3)
    story.partitions[0].starts[1] = 1
    story.restart(1)
    story.send()
    lead_from(story, 1)


@case(Outcome.VIOLATION, ("committed-cut", "VIOLATION", 0), **RETENTION)
def that_a_follower_s_own_log_begins_later_does_not_excuse_that_it_was_cut(story: Story) -> None:
    write(story, 3)
    part, log = story.partitions[0], list(story.partitions[0].logs[1])
    part.starts[1] = 3
    emptied = story.state(1, 0, "truncation")
    emptied["detail"] = json.dumps({"from_offset": 3, "to_offset": 0, "reason": "out_of_range"})
    start_over(story, 1, 3, "out_of_range")
    part.starts[1], part.logs[1] = 0, log
    story.send()
    story.finish()


# ----------------------------------------------------------------------------------------------------------- followers


SETTLED: dict[str, Any] = {"guarantees": RETENTION["guarantees"] | {"settles": True}}
DELETED = (lost(0, "DOCUMENTED"), lost(1, "DOCUMENTED"))


def keep(story: Story) -> None:
    """The leader has deleted two records, and node 2 keeps them."""
    write(story, 3)
    story.delete(2, nodes=(0, 1))


@case(Outcome.VIOLATION, *DELETED, ("stuck", "VIOLATION", None), **SETTLED)
def a_follower_that_fetches_on_and_keeps_what_was_deleted_is_found(story: Story) -> None:
    keep(story)
    story.send()
    story.finish()


@case(Outcome.PASS, *DELETED, **SETTLED, generation="0.10")
def before_0_11_a_leader_does_not_tell_its_followers_what_it_has_deleted(story: Story) -> None:
    a_follower_that_fetches_on_and_keeps_what_was_deleted_is_found(story)


@case(Outcome.PASS, *DELETED, **SETTLED)
def a_follower_that_has_fetched_nothing_since_may_not_have_heard_of_a_deletion(story: Story) -> None:
    keep(story)
    story.finish()


@case(Outcome.PASS, *DELETED, **SETTLED)
def what_was_fetched_from_an_earlier_leader_says_nothing_of_what_a_later_one_deletes(story: Story) -> None:
    write(story, 3)
    story.elect(1)
    story.delete(2, nodes=(1, 0))
    story.finish()


@case(Outcome.PASS, *DELETED, **SETTLED)
def a_follower_may_have_deleted_more_than_its_leader(story: Story) -> None:
    write(story, 3)
    story.delete(2)
    start_over(story, 2, 3, "retention")
    story.send()
    story.finish()


# ----------------------------------------------------------------------------------------------------------- consumers


@case(
    Outcome.VIOLATION,
    *[lost(offset, "DOCUMENTED") for offset in range(3)],
    ("vanished-read", "DOCUMENTED", 0),
    ("vanished-read", "DOCUMENTED", 2),
    ("poll-skip", "VIOLATION", 1),
    **RETENTION,
)
def a_record_that_was_deleted_only_after_a_consumer_had_been_taken_past_it_is_missed(story: Story) -> None:
    write(story, 4)
    story.poll(5, [0])
    story.poll(5, [2, 3])
    story.delete(3)
    story.finish()


@case(
    Outcome.VIOLATION,
    lost(0, "DOCUMENTED"),
    lost(1, "DOCUMENTED"),
    ("vanished-read", "DOCUMENTED", 0),
    ("poll-skip", "VIOLATION", 2),
    **RETENTION,
)
def of_what_a_consumer_was_taken_past_only_a_part_had_been_deleted(story: Story) -> None:
    write(story, 4)
    story.poll(5, [0])
    story.delete(2)
    story.poll(5, [3])
    story.finish()


@case(
    Outcome.PASS,
    *[lost(offset, "DOCUMENTED") for offset in range(3)],
    ("vanished-read", "DOCUMENTED", 0),
    ("vanished-read", "DOCUMENTED", 2),
    ("poll-skip", "DOCUMENTED", 1),
    **RETENTION,
)
def all_that_a_consumer_was_taken_past_had_been_deleted(story: Story) -> None:
    write(story, 4)
    story.poll(5, [0])
    story.delete(2)
    story.poll(5, [2, 3])
    story.delete(3)
    story.finish()


@case(Outcome.PASS, *[lost(o, "DOCUMENTED") for o in (0, 1)], ("vanished-read", "DOCUMENTED", 0), **RETENTION)
def a_marker_may_lie_where_a_record_was_that_a_transaction_s_log_no_longer_has(story: Story) -> None:
    transact(story, Sent())
    story.append(0, None, [1, 2])
    story.send(acks=1, append=False, offset=1)
    story.send()
    story.poll(5, [0])
    story.poll(5, [2])
    story.delete(2)
    story.finish()


# --------------------------------------------------------------------------------- acknowledgements without an offset

GONE_0 = lost(0, "DOCUMENTED")
GONE = ("lost-write", "DOCUMENTED", None)
LOST = ("lost-write", "VIOLATION", None)


@case(Outcome.PASS, lost(0, "DOCUMENTED"), GONE, lost(2, "DOCUMENTED"), **RETENTION)
@case(Outcome.PASS, lost(0, "DOCUMENTED"), GONE, lost(2, "DOCUMENTED"), guarantees=SAMPLED | {"retention": True})
def a_record_that_was_acknowledged_without_an_offset_may_have_been_deleted(story: Story) -> None:
    story.send()
    story.send(offset=None)
    write(story, 2)
    story.delete(3)
    story.finish()


@case(Outcome.VIOLATION, lost(0, "DOCUMENTED"), lost(1, "DOCUMENTED"), LOST, **RETENTION)
def what_was_sent_after_the_deletion_was_not_deleted_wherever_it_was(story: Story) -> None:
    write(story, 3)
    story.delete(2)
    story.send(append=False, offset=None)
    story.finish()


@case(
    Outcome.VIOLATION, lost(0, "DOCUMENTED"), LOST, ("vanished-read", "VIOLATION", 1), regression(1),
    **RETENTION,
)  # fmt: skip
def a_record_without_an_offset_that_a_consumer_had_from_behind_what_is_deleted_is_lost(story: Story) -> None:
    story.send()
    story.send(offset=None)
    story.poll(5, [1])
    story.delete(1)
    lose_tail(story, 1)
    story.finish()


def delivered_twice(story: Story, result: str, start: int) -> None:
    """A record is read at offsets 1 and 2; then all logs begin at ``start``."""
    write(story, 1)
    value = story.send(result=result)
    story.append(0, value, (1, 2))
    story.poll(5, [0, 1, 2])
    story.delete(start)
    story.finish()


@case(Outcome.INCONCLUSIVE, GONE_0, ("vanished-read", "DOCUMENTED", 0), ("vanished-read", "DOCUMENTED", 1),
      ("duplicate", "INDETERMINATE", 1), **RETENTION)  # fmt: skip
def of_a_copy_that_was_deleted_no_log_tells_whether_it_was_numbered_anew(story: Story) -> None:
    delivered_twice(story, "info", 2)


@case(Outcome.VIOLATION, GONE_0, ("vanished-read", "DOCUMENTED", 0), ("duplicate", "VIOLATION", 1), **RETENTION)
def two_copies_behind_what_was_deleted_are_numbered_alike(story: Story) -> None:
    delivered_twice(story, "info", 1)


@case(Outcome.VIOLATION, GONE_0, lost(1, "DOCUMENTED"), ("vanished-read", "DOCUMENTED", 0),
      ("vanished-read", "DOCUMENTED", 1), ("duplicate", "VIOLATION", 1), **RETENTION)  # fmt: skip
def a_deleted_copy_was_not_numbered_anew_where_the_first_try_was_answered_at_once(story: Story) -> None:
    delivered_twice(story, "ok", 2)
