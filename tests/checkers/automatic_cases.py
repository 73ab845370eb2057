"""Stories about groups whose clients commit by themselves, so that only what the group is given shows its commits.

Importing this module adds them to ``CASES``.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.checker import Outcome
from tests.checkers.cases import case, write
from tests.checkers.clients import commit, poll
from tests.checkers.excuse_cases import LEAST_2
from tests.checkers.generation_cases import FIRST, SECOND, be_given, subscribe
from tests.checkers.group_cases import MINUTE, lose_power, wait
from tests.checkers.resets import be_refused
from tests.checkers.story import NODES, Row, Story


def commit_by_itself(story: Story, process: int, group: str = "g") -> None:
    """From here on the client of a member commits what it was given."""
    about: Row = {"process": process, "op": next(story.ops), "f": "auto_commit", "group": group}
    for kind in ("invoke", "info"):
        story.row(**about, topic="ledger", partition=0, type=kind)


def take_turns(story: Story, first: Sequence[int], told: Sequence[int | None], second: Sequence[int]) -> None:
    """Two members read five records one after the other; before each of its questions the group is ``told`` it."""
    write(story, 5)
    for number, (process, given) in enumerate(((FIRST, first), (SECOND, second))):
        subscribe(story, process)
        be_given(story, process, 4 + number)
        commit_by_itself(story, 90 + number)
        commit(story, told[number], "committed")
        poll(story, process, given, group="g")
    for offset in told[2:]:
        commit(story, offset, "committed")


def end(story: Story) -> None:
    write(story, 1)
    story.finish()


@case(Outcome.PASS)
def a_client_may_commit_by_itself_what_it_was_given(story: Story) -> None:
    take_turns(story, [0, 1, 2], (None, 2, 5), [2, 3, 4])
    end(story)


@case(Outcome.PASS)
def a_client_that_commits_by_itself_need_not_have_done_so_yet(story: Story) -> None:
    take_turns(story, [0, 1, 2], (None, None, 3), [0, 1, 2, 3, 4])
    end(story)


@case(Outcome.VIOLATION, ("group-skip", "VIOLATION", 2))
def a_client_may_not_commit_by_itself_what_nobody_was_given(story: Story) -> None:
    take_turns(story, [0, 1], (None, 3, 5), [3, 4])
    end(story)


@case(Outcome.PASS)
def an_answer_shows_no_commit_of_members_where_clients_commit_when_they_are_told_to(story: Story) -> None:
    write(story, 5)
    commit(story, 5)
    commit(story, 5, "committed")
    poll(story, FIRST, [0, 1], group="g")
    poll(story, SECOND, [3, 4], group="g")
    end(story)


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", 2))
def a_group_is_not_given_an_earlier_commit_than_it_was_given_before(story: Story) -> None:
    take_turns(story, [0, 1, 2], (None, 3, 2), [3, 4])
    end(story)


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", None))
def a_group_that_was_given_a_commit_has_one(story: Story) -> None:
    take_turns(story, [0, 1, 2], (None, 3, None), [3, 4])
    end(story)


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", 3))
def each_answer_is_compared_with_the_one_before_it(story: Story) -> None:
    take_turns(story, [0, 1, 2, 3], (None, 3, 4, 3, 3, 5), [3, 4])
    end(story)


@case(Outcome.PASS)
def a_question_that_is_asked_before_another_one_is_answered_may_have_the_earlier_answer(story: Story) -> None:
    take_turns(story, [0, 1, 2], (None, 2), [2, 3, 4])
    about: Row = {"f": "committed", "group": "g", "topic": "ledger", "partition": 0}
    late: Row = about | {"process": 95, "op": next(story.ops)}
    story.row(**late, type="invoke")
    commit(story, 5, "committed")
    story.row(**late, type="ok", offset=3)
    end(story)


@case(Outcome.PASS)
def somebody_else_may_set_the_offsets_of_such_a_group_back(story: Story) -> None:
    take_turns(story, [0, 1, 2], (None, 3), [3, 4])
    commit(story, 1)
    commit(story, 1, "committed")
    end(story)


@case(Outcome.PASS)
def a_group_of_which_a_member_was_out_of_range_may_begin_again(story: Story) -> None:
    take_turns(story, [0, 1, 2], (None, 3), [3, 4])
    be_refused(story, SECOND, None, group="g")
    commit(story, 0, "committed")
    end(story)


@case(Outcome.PASS, ("lost-commit", "DOCUMENTED", None), **LEAST_2)
def a_commit_of_such_a_group_that_every_power_loss_took_is_documented(story: Story) -> None:
    take_turns(story, [0, 1, 2], (None, 3), [3, 4])
    lose_power(story, *NODES)
    commit(story, None, "committed")
    story.elect(1)
    end(story)


@case(Outcome.INCONCLUSIVE, ("lost-commit", "INDETERMINATE", None), **MINUTE)
def such_a_commit_may_have_been_made_long_before_the_group_was_told_of_it(story: Story) -> None:
    take_turns(story, [0, 1, 2], (None, 3), [3, 4])
    wait(story, 45)
    commit(story, 3, "committed")
    wait(story, 17)
    commit(story, None, "committed")
    end(story)


@case(Outcome.VIOLATION, ("lost-commit", "VIOLATION", None), **MINUTE)
def a_commit_of_such_a_group_may_not_expire_before_its_time(story: Story) -> None:
    take_turns(story, [0, 1, 2], (None, 3), [3, 4])
    wait(story, 40)
    commit(story, None, "committed")
    end(story)


@case(Outcome.INCONCLUSIVE, ("lost-commit", "INDETERMINATE", None), **MINUTE)
def a_commit_of_such_a_group_may_have_expired(story: Story) -> None:
    take_turns(story, [0, 1, 2], (None, 3), [3, 4])
    wait(story, 60)
    commit(story, None, "committed")
    end(story)
