"""Stories about the ends of brokers' sessions. Importing this module adds them to ``CASES``."""

from __future__ import annotations

from harness.checker import Outcome
from tests.checkers.cases import case, write
from tests.checkers.story import CONTROLLER, Story
from tests.checkers.timeline_cases import decide


@case(Outcome.VIOLATION, ("illegal-isr", "VIOLATION", None))
def a_broker_without_a_session_that_stays_in_the_isr_is_found(story: Story) -> None:
    write(story, 2)
    decide(story, partition_epoch=1)
    story.say(CONTROLLER, "session", None, {"broker": 2, "change": "expired"})
    story.say(CONTROLLER, "session", None, {"broker": 2, "change": "registered"})
    story.finish()


@case(Outcome.PASS)
def a_controller_that_dies_as_a_session_ends_need_not_have_acted_on_it(story: Story) -> None:
    write(story, 2)
    decide(story, partition_epoch=1)
    story.say(CONTROLLER, "session", None, {"broker": 2, "change": "expired"})
    story.restart_controller()
    story.say(CONTROLLER, "session", None, {"broker": 2, "change": "registered"})
    story.finish()


@case(Outcome.PASS)
def the_last_member_of_an_isr_stays_in_it_without_a_session(story: Story) -> None:
    write(story, 2)
    decide(story, partition_epoch=1, isr=[0])
    story.say(CONTROLLER, "session", None, {"broker": 0, "change": "expired"})
    decide(story, "election", partition_epoch=2, isr=[0], leader=-1, detail={"cause": "session of broker 0 expired"})
    story.say(CONTROLLER, "session", None, {"broker": 0, "change": "registered"})
    story.finish()
