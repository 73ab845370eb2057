"""Stories of clusters that do not know a topic any more, or do not recover. Importing this module adds to ``CASES``."""

from __future__ import annotations

from harness.checker import Outcome
from tests.checkers.cases import case, write
from tests.checkers.story import Story


@case(
    Outcome.VIOLATION, ("lost-topic", "VIOLATION", None),
    unknown_topics=[{"topic": "ledger", "asked_s": 10.0, "looks": 11}],
)  # fmt: skip
def a_topic_that_the_cluster_does_not_know_in_the_end_is_lost(story: Story) -> None:
    write(story, 2)
    story.finish()


@case(Outcome.PASS, unknown_topics=[])
def a_topic_that_the_cluster_knows_is_not_lost(story: Story) -> None:
    write(story, 2)
    story.finish()


WAITS = ["ledger-0: 4 sends with acks=all, and none was acknowledged (the last: _MSG_TIMED_OUT)"]


@case(Outcome.INCONCLUSIVE, unrecovered=WAITS)
def a_cluster_that_does_not_recover_and_cannot_be_probed_is_neither_cleared_nor_blamed(story: Story) -> None:
    write(story, 2)
    story.finish()


@case(
    Outcome.VIOLATION, ("lost-topic", "VIOLATION", None),
    unknown_topics=[{"topic": "ledger", "asked_s": 10.0, "looks": 11}], unrecovered=WAITS,
)  # fmt: skip
def a_cluster_that_does_not_recover_is_to_blame_for_what_it_has_lost(story: Story) -> None:
    write(story, 2)
    story.finish()
