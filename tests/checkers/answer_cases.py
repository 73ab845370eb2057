"""Stories of DeleteRecords that are answered, and that are not. Importing this module adds to ``CASES``."""

from __future__ import annotations

from typing import Any

from harness.checker import Outcome
from harness.detection.withheld import samples
from harness.history.delete_records_log import GAVE_UP, LOST
from tests.checkers.cases import case, lost, write
from tests.checkers.order_cases import PERMITTED, configured, order
from tests.checkers.sampling import SAMPLED
from tests.checkers.story import CONTROLLER, Row, Story

SENT_NS, ANSWERED_NS = 100_000_000, 200_000_000
"""When a story's order is sent, and when its client knows what became of it: later than whatever is told before."""

UNANSWERED = ("unanswered-deletion", "VIOLATION", 1)


def found(story: Story) -> None:
    """The controller makes node 0 the first leader, and three records are written."""
    said = {"clean": True, "elected_from_isr": True, "previous_leader": -1, "controller_epoch": 1}
    story.say(
        CONTROLLER, "election", 0, said, leader=0, leader_epoch=0, partition_epoch=0, isr=[0, 1, 2]
    )  # fmt: skip
    write(story, 3)


def asked(error: str | None, virtual: bool = True, before: int = 1, **more: Any) -> Row:
    """A run in which a client asks for one record to be deleted, which ends as is said."""
    usual = {"invoked_ns": SENT_NS, "completed_ns": ANSWERED_NS, "timeout_ms": 50}
    run = configured(order(before, error, **(usual | more)), log_retention_ms="-1")
    return run | {"guarantees": PERMITTED | ({"time": "virtual"} if virtual else {})}


def end(story: Story) -> None:
    """All goes on for a while after the order."""
    story.now = 2 * ANSWERED_NS
    story.finish()


@case(Outcome.VIOLATION, UNANSWERED, **asked(GAVE_UP))
def a_leader_that_is_well_answers_within_its_time(story: Story) -> None:
    found(story)
    end(story)


@case(Outcome.PASS, **asked(GAVE_UP, virtual=False))
def on_a_busy_machine_an_answer_may_be_late(story: Story) -> None:
    found(story)
    end(story)


@case(Outcome.PASS, **asked(GAVE_UP, timeout_ms=101))
def a_client_that_gives_up_before_the_leader_s_time_is_over_may_have_missed_the_answer(story: Story) -> None:
    found(story)
    end(story)


@case(Outcome.PASS, **asked(None, completed_ns=None))
def an_order_may_be_under_way_when_the_run_is_over(story: Story) -> None:
    found(story)
    end(story)


@case(Outcome.PASS, **asked(LOST))
def a_connection_may_be_lost(story: Story) -> None:
    found(story)
    end(story)


@case(Outcome.PASS, **asked("REQUEST_TIMED_OUT"))
def followers_may_be_late(story: Story) -> None:
    found(story)
    end(story)


@case(Outcome.VIOLATION, UNANSWERED, **asked("NOT_LEADER_OR_FOLLOWER", virtual=False))
def whoever_leads_does_not_say_that_it_does_not(story: Story) -> None:
    found(story)
    end(story)


@case(Outcome.VIOLATION, UNANSWERED, **asked("OFFSET_OUT_OF_RANGE"))
def what_is_committed_is_in_range(story: Story) -> None:
    found(story)
    story.elect(0)
    end(story)


@case(Outcome.PASS, **asked("OFFSET_OUT_OF_RANGE", before=4))
def what_lies_beyond_the_high_watermark_is_out_of_range(story: Story) -> None:
    found(story)
    end(story)


@case(Outcome.PASS, **asked("NOT_LEADER_OR_FOLLOWER"))
def a_client_may_ask_who_led_before(story: Story) -> None:
    found(story)
    story.elect(1)
    end(story)


@case(Outcome.VIOLATION, UNANSWERED, **asked("NOT_LEADER_OR_FOLLOWER", node=1))
def a_client_that_says_whom_it_asked_did_not_ask_who_led_before(story: Story) -> None:
    found(story)
    story.elect(1)
    end(story)


@case(Outcome.PASS, **asked("NOT_LEADER_OR_FOLLOWER", node=2))
def a_follower_does_not_lead(story: Story) -> None:
    found(story)
    end(story)


@case(Outcome.PASS, **asked(GAVE_UP, node=0))
def a_leader_that_is_deposed_meanwhile_need_not_answer(story: Story) -> None:
    found(story)
    story.now = SENT_NS
    story.elect(1)
    end(story)


@case(Outcome.PASS, **asked(GAVE_UP))
def a_leader_that_is_started_again_meanwhile_need_not_answer(story: Story) -> None:
    found(story)
    story.now = SENT_NS
    story.restart(0)
    end(story)


@case(Outcome.PASS, **asked(GAVE_UP))
def a_leader_that_stands_still_answers_nothing(story: Story) -> None:
    found(story)
    story.now = SENT_NS
    story.fault(kind="pause", nodes=["0"])
    end(story)


@case(Outcome.VIOLATION, UNANSWERED, **asked(GAVE_UP))
def a_follower_that_stands_still_keeps_no_leader_from_answering(story: Story) -> None:
    found(story)
    story.now = SENT_NS
    story.fault(kind="pause", nodes=["1"])
    end(story)


@case(Outcome.PASS, **asked(GAVE_UP) | {"guarantees": SAMPLED | PERMITTED | {"time": "virtual"}})
def who_is_looked_at_now_and_then_may_have_been_deposed(story: Story) -> None:
    found(story)
    end(story)
    story.timeline = samples(story.timeline, lambda _: True)


# ------------------------------------------------------------------------------------------- answers that come too soon


@case(
    Outcome.VIOLATION,
    lost(0, "DOCUMENTED"),
    ("wrong-deletion", "VIOLATION", 0),
    **configured(order(1, completed_ns=20_000_000), log_retention_ms="-1"),
)
def a_leader_that_answers_before_it_deletes_is_found(story: Story) -> None:
    write(story, 3)
    story.delete(1)
    story.finish()


@case(
    Outcome.VIOLATION,
    ("wrong-deletion", "VIOLATION", 0),
    **configured(order(1, completed_ns=SENT_NS), log_retention_ms="-1"),
)
def a_leader_that_deletes_nothing_is_found_whoever_leads_in_the_end(story: Story) -> None:
    write(story, 3)
    story.now = 2 * SENT_NS
    story.restart(2)
    story.elect(1)
    story.finish()


@case(Outcome.PASS, lost(0, "DOCUMENTED"), **configured(order(1, completed_ns=SENT_NS), log_retention_ms="-1"))
def a_leader_that_deletes_and_then_answers_breaks_no_promise_whoever_leads_in_the_end(story: Story) -> None:
    write(story, 3)
    story.delete(1)
    story.now = 2 * SENT_NS
    story.elect(1)
    story.finish()
