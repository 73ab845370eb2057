"""Stories of sends that end with another value than they began with. Importing this module adds to ``CASES``."""

from __future__ import annotations

from harness.checker import Outcome
from tests.checkers.cases import case, lost, write
from tests.checkers.story import Story

OTHER_END = r"row {} ends a send that began with another value or partition"


@case(Outcome.INVALID, lost(1, "INDETERMINATE"), ("inconsistent-offsets", "INDETERMINATE", 1),
      reason=OTHER_END.format(3))  # fmt: skip
def an_acknowledgement_of_a_value_that_was_not_sent_makes_the_run_invalid(story: Story) -> None:
    write(story, 3)
    story.finish()
    story.history[3]["value"] = 77


@case(Outcome.INVALID, reason=OTHER_END.format(2) + ", and so do 1 more")
def answers_that_changed_places_make_the_run_invalid(story: Story) -> None:
    write(story, 3)
    story.finish()
    _, answer, next_, other = story.history[:4]
    for name in ("index", "time_ns"):
        answer[name], next_[name] = next_[name], answer[name]
    answer["op"], other["op"] = other["op"], answer["op"]


@case(Outcome.INVALID, reason=OTHER_END.format(1))
def a_send_that_did_not_happen_and_began_with_another_value_makes_the_run_invalid(story: Story) -> None:
    story.send(result="fail", append=False)
    story.history[1]["value"] = 77
    write(story, 3)
    story.finish()


@case(Outcome.INVALID, reason="of 1 rows each completes an operation that was not invoked before")
def an_acknowledgement_without_an_invocation_is_no_other_end(story: Story) -> None:
    write(story, 3)
    story.finish()
    story.forget(story.history[2])
