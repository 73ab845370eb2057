"""Stories of share groups. Importing this module adds them to ``CASES``."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from harness.checker import Outcome
from tests.checkers.cases import Expected, case, lost, regression, write
from tests.checkers.excuse_cases import UNCLEAN
from tests.checkers.group_cases import lose_power
from tests.checkers.sharing import LIMIT, WORKLOAD, A, B, accept, acknowledge, acquire, drain
from tests.checkers.story import NODES, Story

Tell = Callable[[Story], None]

LATER_NS = 20_000_000_000
"""Longer than a deposed leader may take to hear of it."""


def share_case(outcome: Outcome, *anomalies: Expected, reason: str = "", **manifest: Any) -> Callable[[Tell], Tell]:
    """As :func:`case`, of a run under the workload, whose limits are known."""

    def register(tell: Tell) -> Tell:
        @wraps(tell)
        def loaded(story: Story) -> None:
            story.workload = WORKLOAD
            tell(story)

        case(outcome, *anomalies, reason=reason, **manifest)(loaded)
        return tell

    return register


def again(offset: int, verdict: str = "VIOLATION") -> Expected:
    return "lost-acknowledgement", verdict, offset


def withheld(offset: int, verdict: str = "VIOLATION") -> Expected:
    return "withheld-record", verdict, offset


def accepted(story: Story, *values: int) -> None:
    """The values, which are at the first offsets, are delivered and accepted."""
    for at, value in enumerate(values):
        acquire(story, A, [(at, value)])
        accept(story, A, at, value)


# ----------------------------------------------------------------------------------------------------- what is accepted


@share_case(Outcome.PASS)
def what_is_accepted_or_rejected_never_comes_back(story: Story) -> None:
    write(story, 3)
    acquire(story, A, [(0, 0), (1, 1), (2, 2)])
    acknowledge(story, A, [(0, 0, "accept"), (1, 1, "reject"), (2, 2, "release")])
    acquire(story, B, [(2, 2)], 2)
    accept(story, B, 2, 2)
    drain(story)
    story.finish()


@share_case(Outcome.VIOLATION, again(0))
def what_was_accepted_may_not_come_back(story: Story) -> None:
    write(story, 1)
    accepted(story, 0)
    acquire(story, B, [(0, 0)], 2)
    accept(story, B, 0, 0)
    drain(story)
    story.finish()


@share_case(Outcome.VIOLATION, again(0))
def what_was_rejected_may_not_come_back(story: Story) -> None:
    write(story, 1)
    acquire(story, A, [(0, 0)])
    acknowledge(story, A, [(0, 0, "reject")])
    drain(story, [(0, 0)])
    story.finish()


@share_case(Outcome.PASS)
def another_group_has_its_own_share(story: Story) -> None:
    write(story, 1)
    accepted(story, 0)
    drain(story)
    drain(story, [(0, 0)], group="share-1")
    story.finish()


@share_case(Outcome.PASS)
def an_accept_of_unknown_outcome_may_have_been_lost(story: Story) -> None:
    write(story, 1)
    acquire(story, A, [(0, 0)])
    accept(story, A, 0, 0, "info")
    drain(story, [(0, 0)])
    story.finish()


@share_case(Outcome.PASS)
def a_consumer_that_was_there_before_may_give_late_what_it_has_fetched_before(story: Story) -> None:
    write(story, 1)
    acquire(story, B, [])
    accepted(story, 0)
    acquire(story, B, [(0, 0)], 1)
    drain(story)
    story.finish()


@share_case(Outcome.PASS)
def another_record_at_the_offset_is_another_record(story: Story) -> None:
    write(story, 1)
    accepted(story, 0)
    drain(story, [(0, 7)])
    story.finish()


@share_case(Outcome.PASS, ("lost-acknowledgement", "DOCUMENTED", 0))
def all_brokers_lost_power_since_it_was_accepted(story: Story) -> None:
    write(story, 1)
    accepted(story, 0)
    lose_power(story, *NODES)
    story.now += LATER_NS
    drain(story, [(0, 0)])
    story.finish()


@share_case(Outcome.INCONCLUSIVE, again(0, "INDETERMINATE"), **UNCLEAN)
def an_unclean_election_of_the_share_coordinator_may_have_given_it_up(story: Story) -> None:
    write(story, 1)
    accepted(story, 0)
    story.fault()
    story.now += LATER_NS
    drain(story, [(0, 0)])
    story.finish()


@share_case(Outcome.INCONCLUSIVE, again(0, "INDETERMINATE"))
def a_leader_that_was_cut_off_may_give_what_was_accepted_from_its_successor(story: Story) -> None:
    write(story, 1)
    story.elect(1)
    accepted(story, 0)
    story.now += LATER_NS
    story.fault(kind="pause", healed_ns=None, heal_proven_ns=None)
    acquire(story, B, [(0, 0)])
    story.faults[-1] |= {"healed_ns": story.now + 1, "heal_proven_ns": story.now + 2}
    story.now += LATER_NS
    drain(story)
    story.finish()


@share_case(Outcome.INCONCLUSIVE, again(0, "INDETERMINATE"))
def a_leader_that_was_just_replaced_may_not_know_it_yet(story: Story) -> None:
    write(story, 1)
    story.elect(1)
    accepted(story, 0)
    acquire(story, B, [(0, 0)])
    drain(story)
    story.finish()


@share_case(Outcome.VIOLATION, again(0))
def a_former_leader_that_has_heard_of_it_gives_nothing_any_more(story: Story) -> None:
    write(story, 1)
    story.elect(1)
    accepted(story, 0)
    story.now += LATER_NS
    acquire(story, B, [(0, 0)])
    accept(story, B, 0, 0)
    drain(story)
    story.finish()


@share_case(Outcome.VIOLATION, again(0))
def a_new_leader_knows_what_the_one_before_has_confirmed(story: Story) -> None:
    write(story, 1)
    accepted(story, 0)
    story.fault(kind="pause", healed_ns=None, heal_proven_ns=None)
    story.elect(1)
    acquire(story, B, [(0, 0)])
    accept(story, B, 0, 0)
    story.faults[-1] |= {"healed_ns": story.now + 1, "heal_proven_ns": story.now + 2}
    drain(story)
    story.finish()


@share_case(Outcome.INVALID, again(0, "INDETERMINATE"), reason="rows .* are missing")
def a_consumer_may_have_polled_before_in_a_gap_of_the_history(story: Story) -> None:
    write(story, 1)
    known = len(story.history)
    acquire(story, B, [])
    gone = story.history[known:]
    accepted(story, 0)
    acquire(story, B, [(0, 0)])
    drain(story)
    story.finish()
    story.history = [row for row in story.history if row not in gone]


# ------------------------------------------------------------------------------------------------ what is not accepted


@share_case(Outcome.VIOLATION, withheld(1))
def a_record_that_was_never_delivered_is_missing(story: Story) -> None:
    write(story, 2)
    accepted(story, 0)
    drain(story)
    story.finish()


@share_case(Outcome.VIOLATION, withheld(0))
def a_record_that_was_released_must_come_again(story: Story) -> None:
    write(story, 1)
    acquire(story, A, [(0, 0)])
    acknowledge(story, A, [(0, 0, "release")])
    drain(story)
    story.finish()


@share_case(Outcome.VIOLATION, withheld(0))
def a_record_whose_consumer_said_nothing_must_come_again(story: Story) -> None:
    write(story, 1)
    acquire(story, A, [(0, 0)], 2)
    drain(story)
    story.finish()


@share_case(Outcome.VIOLATION, withheld(0))
def an_accept_that_was_never_sent_settles_nothing(story: Story) -> None:
    write(story, 1)
    acquire(story, A, [(0, 0)])
    accept(story, A, 0, 0, "fail")
    drain(story)
    story.finish()


@share_case(Outcome.PASS)
def an_accept_of_unknown_outcome_may_have_been_stored(story: Story) -> None:
    write(story, 1)
    acquire(story, A, [(0, 0)])
    accept(story, A, 0, 0, "info")
    drain(story)
    story.finish()


@share_case(Outcome.INCONCLUSIVE, withheld(0, "INDETERMINATE"))
def a_record_that_was_delivered_as_often_as_permitted_is_archived(story: Story) -> None:
    write(story, 1)
    acquire(story, A, [(0, 0)], LIMIT)
    acknowledge(story, A, [(0, 0, "release")])
    drain(story)
    story.finish()


@share_case(Outcome.INCONCLUSIVE, withheld(0, "INDETERMINATE"))
def a_record_may_have_been_delivered_unseen_as_often_as_permitted(story: Story) -> None:
    write(story, 1)
    story.now += LIMIT * 1_000_000_000
    drain(story)
    story.finish()


@share_case(Outcome.INCONCLUSIVE, withheld(0, "INDETERMINATE"))
def a_drain_that_did_not_come_to_its_end_proves_nothing(story: Story) -> None:
    write(story, 1)
    drain(story, result="info")
    story.finish()


@case(Outcome.INCONCLUSIVE, withheld(0, "INDETERMINATE"))
def without_limits_that_are_known_nothing_is_a_violation(story: Story) -> None:
    write(story, 1)
    drain(story)
    story.finish()


@share_case(Outcome.PASS)
def what_is_sent_once_the_drain_has_begun_is_no_matter_of_it(story: Story) -> None:
    write(story, 1)
    accepted(story, 0)
    drain(story)
    write(story, 1)
    story.finish()


@share_case(Outcome.VIOLATION, lost(1), regression(1))
def a_record_that_the_log_has_lost_is_not_withheld(story: Story) -> None:
    write(story, 2)
    accepted(story, 0)
    story.cut(1, 1)
    story.elect(1)
    drain(story)
    story.finish()


@share_case(Outcome.VIOLATION, ("excess-delivery", "VIOLATION", 0))
def no_record_is_delivered_more_often_than_its_group_permits(story: Story) -> None:
    write(story, 1)
    acquire(story, A, [(0, 0)], LIMIT)
    acknowledge(story, A, [(0, 0, "release")])
    acquire(story, A, [(0, 0)], LIMIT + 1)
    accept(story, A, 0, 0)
    drain(story)
    story.finish()


@share_case(Outcome.PASS)
def a_new_leader_counts_anew(story: Story) -> None:
    write(story, 1)
    acquire(story, A, [(0, 0)], LIMIT)
    story.elect(1)
    story.now += LATER_NS
    acquire(story, B, [(0, 0)], 1)
    accept(story, B, 0, 0)
    drain(story)
    story.finish()
