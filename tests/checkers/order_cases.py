"""Stories of what may be deleted, and what was asked to be. Importing this module adds to ``CASES``."""

from __future__ import annotations

import json
from typing import Any

from harness.checker import Outcome
from harness.detection.withheld import samples
from tests.checkers.cases import case, lost, write
from tests.checkers.rest_cases import AIMLESS
from tests.checkers.sampling import SAMPLED
from tests.checkers.story import GUARANTEES, NODES, Row, Story

PERMITTED = GUARANTEES | {"retention": True}
HOUR_MS = 3_600_000


ALL_NS = 10**12
"""Later than anything in a story."""

WAITED_MS = 20_000


def order(before: int | None, error: str | None = None, **more: Any) -> Row:
    """A DeleteRecords that was sent before anything else, and answered after everything."""
    usual: Row = {
        "topic": "ledger", "partition": 0, "before": before, "timeout_ms": WAITED_MS, "node": None, "invoked_ns": 0,
        "completed_ns": ALL_NS, "error": error, "low_watermark": before if error is None else None,
    }  # fmt: skip
    return usual | more


def configured(*orders: Row, **settings: Any) -> dict[str, Any]:
    """The manifest of a run with these DeleteRecords, and these settings in force."""
    topic = {"name": "ledger", "partitions": 1, "replication_factor": len(NODES)}
    scenario = {"cluster": {"brokers": len(NODES)}, "topics": [topic], "schedule": []}
    known = {name.replace("_", "."): value for name, value in settings.items()}
    configuration = {"scenario": scenario, "settings": known}
    return {"guarantees": PERMITTED, "configuration": configuration, "orders": orders}


def expire(story: Story, reason: str = "retention") -> None:
    """The first of three records goes: every log begins at 1, and says for which reason."""
    write(story, 3)
    story.delete(1)
    for row in story.timeline:
        if row["kind"] == "log_start":
            row["detail"] = row["detail"].replace("delete_records", reason)
    story.finish()


# ----------------------------------------------------------------------------------------------------------- limits


@case(Outcome.VIOLATION, lost(0), **configured(log_retention_ms=HOUR_MS))
def an_hour_deletes_nothing_of_a_run_of_seconds(story: Story) -> None:
    expire(story)


@case(Outcome.VIOLATION, lost(0), **configured(log_retention_hours="1"))
def a_limit_in_hours_is_one_of_hours(story: Story) -> None:
    expire(story)


@case(Outcome.VIOLATION, lost(0), **configured(log_retention_ms="-1"))
def without_a_limit_nothing_grows_too_old(story: Story) -> None:
    expire(story)


@case(Outcome.VIOLATION, lost(0), **configured())
def kafkas_own_limit_is_a_week(story: Story) -> None:
    expire(story)


@case(Outcome.PASS, lost(0, "DOCUMENTED"), **configured(log_retention_ms=1_000))
def what_may_have_grown_as_old_as_the_limit_may_be_gone(story: Story) -> None:
    expire(story)


@case(Outcome.PASS, lost(0, "DOCUMENTED"), **configured(log_retention_ms=HOUR_MS))
def a_clock_that_is_ahead_makes_records_old(story: Story) -> None:
    story.fault(kind="clock", nodes=["0"], parameters='{"offset_ms": 3600000}')
    expire(story)


def move(story: Story, node: int, offset_ms: int = HOUR_MS) -> None:
    """A node's clock is off until the fault is healed."""
    story.fault("off", kind="clock", nodes=[str(node)], parameters=f'{{"offset_ms": {offset_ms}}}')
    story.now += 10


def later(story: Story) -> None:
    """Everything that comes happens long after."""
    story.now += 10_000_000_000


def retire(story: Story, *nodes: int, before: int = 1, reason: str = "retention") -> None:
    """These nodes delete what is before an offset, the first record, and say for which reason."""
    begin = len(story.timeline)
    story.delete(before, nodes=nodes)
    for row in story.timeline[begin:]:
        if row["kind"] == "log_start":
            said = json.loads(row["detail"])
            row["detail"] = json.dumps(said | {"reason": reason})


@case(Outcome.VIOLATION, lost(0), **configured(log_retention_ms=HOUR_MS))
def a_clock_that_is_right_again_makes_nothing_old(story: Story) -> None:
    move(story, 0)
    later(story)
    expire(story)


@case(Outcome.VIOLATION, lost(0), **configured(log_retention_ms=HOUR_MS))
def the_clock_of_another_broker_makes_nothing_old(story: Story) -> None:
    move(story, 1)
    expire(story)


@case(Outcome.VIOLATION, lost(0), **configured(log_retention_ms=HOUR_MS))
def a_clock_that_is_behind_makes_nothing_old(story: Story) -> None:
    move(story, 0, -HOUR_MS)
    expire(story)


STAMPED = {"log_message_timestamp_type": "LogAppendTime", "log_retention_ms": HOUR_MS}


@case(Outcome.PASS, lost(0, "DOCUMENTED"), **configured(**STAMPED))
def a_leader_whose_clock_is_behind_stamps_records_that_are_old_already(story: Story) -> None:
    story.fault(
        "off", kind="clock", nodes=["0"], parameters=f'{{"offset_ms": {-HOUR_MS}}}',
        healed_ns=story.now + 5_000_000, heal_proven_ns=story.now + 5_000_000,
    )  # fmt: skip
    write(story, 3)
    later(story)
    retire(story, 0, 1, 2)
    story.finish()


@case(Outcome.VIOLATION, lost(0), **configured(**STAMPED))
def a_follower_whose_clock_is_behind_stamps_nothing(story: Story) -> None:
    move(story, 1, -HOUR_MS)
    expire(story)


def aged(age_s: float, acks: str | int = "all") -> dict[str, Any]:
    """A limit of an hour, and a step whose records are as old as that."""
    run = configured(log_retention_ms=HOUR_MS)
    run["configuration"]["scenario"]["schedule"] = [{"send": {"records": ["a"], "acks": acks, "age_s": age_s}}]
    return run


@case(Outcome.PASS, lost(0, "DOCUMENTED"), **aged(3_600))
def a_record_may_be_as_old_as_its_sender_says(story: Story) -> None:
    expire(story)


@case(Outcome.VIOLATION, lost(0), **aged(3_600, acks=1))
def how_old_the_records_are_that_others_send_makes_none_old(story: Story) -> None:
    expire(story)


@case(Outcome.VIOLATION, lost(0), **aged(-3_600))
def a_record_of_the_future_is_not_old(story: Story) -> None:
    expire(story)


@case(Outcome.VIOLATION, lost(0), **configured(log_retention_ms=HOUR_MS))
def what_a_follower_may_delete_is_no_reason_for_its_leader(story: Story) -> None:
    write(story, 3)
    move(story, 1)
    retire(story, 1)
    later(story)
    retire(story, 0, 2)
    story.finish()


@case(Outcome.PASS, lost(0, "DOCUMENTED"), **configured(log_retention_ms=HOUR_MS))
def what_a_follower_may_delete_is_gone_when_it_leads(story: Story) -> None:
    write(story, 3)
    move(story, 1)
    retire(story, 1)
    later(story)
    story.elect(1)
    retire(story, 0, 2, reason="leader")
    story.finish()


@case(Outcome.PASS, lost(0, "DOCUMENTED"), **configured(log_retention_ms=HOUR_MS))
def what_a_leader_may_delete_is_gone_when_one_leads_that_followed_it(story: Story) -> None:
    write(story, 3)
    move(story, 0)
    retire(story, 0)
    retire(story, 1, 2, reason="leader")
    later(story)
    story.elect(1)
    story.finish()


@case(Outcome.VIOLATION, lost(0), **configured(log_retention_ms=HOUR_MS))
def what_a_leader_may_not_delete_is_no_better_when_one_leads_that_followed_it(story: Story) -> None:
    write(story, 3)
    retire(story, 0)
    later(story)
    move(story, 1)
    retire(story, 1, 2, reason="leader")
    story.elect(1)
    story.finish()


@case(Outcome.PASS, lost(0, "DOCUMENTED"), **configured(log_retention_ms=HOUR_MS))
def a_leader_whose_clock_was_ahead_may_have_died_before_it_could_say_that_it_deleted(story: Story) -> None:
    write(story, 3)
    move(story, 0)
    later(story)
    story.partitions[0].starts[0] = 1
    story.restart(0)
    retire(story, 1, 2, reason="leader")
    story.finish()


@case(
    Outcome.INVALID,
    lost(0, "INDETERMINATE"),
    reason="parameters that is no JSON object",
    **configured(log_retention_ms=HOUR_MS),
)
def parameters_that_are_no_object_move_no_clock(story: Story) -> None:
    story.fault(kind="clock", nodes=["0"], parameters="[1]")
    expire(story)


@case(
    Outcome.INVALID,
    lost(0, "INDETERMINATE"),
    reason="whose offset_ms is no int",
    **configured(log_retention_ms=HOUR_MS),
)
def a_clock_that_was_moved_by_no_number_makes_nothing_old(story: Story) -> None:
    story.fault(kind="clock", nodes=["0"], parameters='{"offset_ms": "x"}')
    expire(story)


@case(Outcome.VIOLATION, lost(0), reason="was never injected", **configured(log_retention_ms=HOUR_MS))
def a_clock_that_was_never_moved_makes_nothing_old(story: Story) -> None:
    story.fault(kind="clock", nodes=[], parameters='{"offset_ms": 3600000}', **AIMLESS)
    expire(story)


@case(Outcome.PASS, lost(0, "DOCUMENTED"), **configured(log_retention_ms="-1", log_retention_bytes="400"))
def a_log_that_may_be_too_large_may_lose_its_beginning(story: Story) -> None:
    expire(story)


@case(Outcome.VIOLATION, lost(0), **configured(log_retention_ms="-1", log_retention_bytes="600"))
def a_log_keeps_as_much_as_its_limit_asks_for(story: Story) -> None:
    expire(story)


@case(Outcome.VIOLATION, lost(0), ("wrong-deletion", "VIOLATION", 0), **configured(log_retention_ms=1_000))
def a_limit_deletes_nothing_that_a_broker_says_it_was_asked_to_delete(story: Story) -> None:
    expire(story, "delete_records")


@case(Outcome.VIOLATION, lost(0), **configured(order(1, "REQUEST_TIMED_OUT"), log_retention_ms=HOUR_MS))
def an_order_is_no_reason_for_what_a_broker_says_a_limit_deleted(story: Story) -> None:
    expire(story)


@case(Outcome.VIOLATION, lost(0), **configured(log_retention_ms="-1", log_retention_bytes="1000000"))
def a_log_that_cannot_be_too_large_keeps_its_beginning(story: Story) -> None:
    expire(story)


# ----------------------------------------------------------------------------------------------------------- orders


@case(Outcome.VIOLATION, lost(0), ("wrong-deletion", "VIOLATION", 0), **configured(order(1, "OFFSET_OUT_OF_RANGE")))
def what_a_leader_refused_to_delete_stays(story: Story) -> None:
    expire(story, "delete_records")


@case(
    Outcome.VIOLATION,
    lost(0),
    ("wrong-deletion", "VIOLATION", 0),
    **configured(order(1, "OFFSET_OUT_OF_RANGE"), order(0, "REQUEST_TIMED_OUT")),
)
def what_a_leader_refused_to_delete_stays_whatever_else_it_was_asked(story: Story) -> None:
    expire(story, "delete_records")


@case(Outcome.PASS, lost(0, "DOCUMENTED"), **configured(order(1), log_retention_ms=HOUR_MS))
def what_was_asked_to_be_deleted_may_be_gone(story: Story) -> None:
    expire(story, "delete_records")


@case(
    Outcome.PASS,
    *[lost(offset, "DOCUMENTED") for offset in range(3)],
    **configured(order(None, low_watermark=3), log_retention_ms=HOUR_MS),
)
def up_to_the_high_watermark_is_up_to_wherever_that_was(story: Story) -> None:
    write(story, 3)
    story.delete(3)
    story.send()
    story.finish()


def delete_more(story: Story) -> None:
    """Two records go where one was to."""
    write(story, 3)
    story.delete(2)
    story.finish()


@case(
    Outcome.VIOLATION,
    lost(0, "DOCUMENTED"),
    lost(1),
    ("wrong-deletion", "VIOLATION", 1),
    **configured(order(1), log_retention_ms=HOUR_MS),
)
def one_record_more_than_was_asked_is_one_too_many(story: Story) -> None:
    delete_more(story)


@case(Outcome.VIOLATION, lost(0), ("wrong-deletion", "VIOLATION", 0), **configured(order(1, invoked_ns=ALL_NS)))
def what_was_asked_to_be_deleted_later_is_not_deleted_yet(story: Story) -> None:
    expire(story, "delete_records")


@case(
    Outcome.VIOLATION,
    lost(0, "DOCUMENTED"),
    ("wrong-deletion", "VIOLATION", 0),
    **configured(order(None, low_watermark=1), log_retention_ms=HOUR_MS),
)
def the_high_watermark_is_that_of_the_time(story: Story) -> None:
    expire(story, "delete_records")


UNSAID = configured() | {"orders": None}
del UNSAID["configuration"]["scenario"]["schedule"]


@case(Outcome.PASS, lost(0, "DOCUMENTED"), **UNSAID)
def of_a_run_that_does_not_say_what_was_ordered_nobody_knows_what_may_be_gone(story: Story) -> None:
    expire(story, "delete_records")


def keep(story: Story) -> None:
    write(story, 3)
    story.finish()


KEPT = ("wrong-deletion", "VIOLATION", 0)


@case(Outcome.VIOLATION, KEPT, **configured(order(2), log_retention_ms=HOUR_MS))
def what_a_leader_says_that_it_has_deleted_is_gone(story: Story) -> None:
    keep(story)


@case(Outcome.VIOLATION, KEPT, **configured(order(2)) | {"guarantees": SAMPLED | PERMITTED})
def what_a_leader_that_is_looked_at_now_and_then_has_deleted_is_gone(story: Story) -> None:
    keep(story)
    story.timeline = samples(story.timeline, lambda _: True)


BY_STORY = {"configuration": configured()["configuration"], "guarantees": SAMPLED | PERMITTED}


def answer(story: Story, *, deletes: bool = False, again: bool = False) -> None:
    """The second of three leaders answers that two records are deleted; all are looked at, and the first has heard.

    ``deletes``: they are, and every log begins later from then on; ``again``: it is started again meanwhile.
    """
    write(story, 3)
    story.elect(1)
    story.state(0)
    sent_ns, answered_ns = story.now + 10**10, story.now + 2 * 10**10
    story.orders = [order(2, invoked_ns=sent_ns, completed_ns=answered_ns)]
    story.now = sent_ns
    if again:
        story.restart(1)
    story.now = answered_ns
    if deletes:
        story.delete(2)
    story.state(1)
    story.elect(2)
    story.finish()
    story.timeline = samples(story.timeline, lambda _: True)


@case(Outcome.VIOLATION, KEPT, **BY_STORY)
def a_log_of_every_leader_that_may_have_deleted_its_beginning_still_has_it(story: Story) -> None:
    answer(story)


@case(Outcome.PASS, lost(0, "DOCUMENTED"), lost(1, "DOCUMENTED"), **BY_STORY)
def a_leader_whose_log_was_seen_to_begin_later_has_deleted_its_beginning(story: Story) -> None:
    answer(story, deletes=True)


@case(Outcome.PASS, **BY_STORY)
def a_leader_that_was_started_again_since_may_have_deleted_and_forgotten(story: Story) -> None:
    answer(story, again=True)


@case(Outcome.PASS, **configured(order(2, "REQUEST_TIMED_OUT"), order(2, "OFFSET_OUT_OF_RANGE")))
def what_a_leader_may_refuse_may_still_be_there(story: Story) -> None:
    keep(story)


@case(Outcome.INVALID, reason="abandoned", **configured(order(2, completed_ns=None)) | {"state": "abandoned"})
def what_a_run_that_broke_off_was_to_delete_may_still_be_there(story: Story) -> None:
    keep(story)


@case(Outcome.PASS, **configured(order(2)))
def a_leader_that_was_elected_since_may_not_have_heard_of_a_deletion(story: Story) -> None:
    write(story, 3)
    story.delete(2, nodes=(0,))
    story.elect(1)
    story.finish()


@case(Outcome.PASS, **configured(order(2)))
def a_broker_that_was_started_again_may_find_an_older_beginning(story: Story) -> None:
    write(story, 3)
    story.delete(2)
    story.partitions[0].starts = dict.fromkeys(NODES, 0)
    story.restart(0)
    story.finish()


@case(
    Outcome.PASS,
    *(lost(offset, "DOCUMENTED") for offset in range(4)),
    **configured(order(4, completed_ns=1), order(4, invoked_ns=2 * ALL_NS)) | {"guarantees": SAMPLED | PERMITTED},
)
def a_log_that_began_further_on_already_does_not_hide_a_later_order(story: Story) -> None:
    begin_again_before(story, 3 * ALL_NS)


@case(
    Outcome.VIOLATION,
    *(lost(offset) for offset in range(4)),
    **configured(order(4, completed_ns=1), order(4, invoked_ns=4 * ALL_NS)) | {"guarantees": SAMPLED | PERMITTED},
)
def an_order_that_came_when_the_records_were_gone_explains_nothing(story: Story) -> None:
    begin_again_before(story, 3 * ALL_NS)


def begin_again_before(story: Story, gone_ns: int) -> None:
    """The log of node 2 begins at 4 before the record at 3 is sent, and much later those of all do."""
    part = story.partitions[0]
    write(story, 3)
    part.starts[2] = 4
    later(story)
    write(story, 1)
    story.state(2)
    story.now = gone_ns
    for node in NODES:
        part.starts[node] = 4
        story.state(node)
    write(story, 1)
    story.finish()
