"""Stories of clusters that do not know a topic any more. Importing this module adds to ``CASES``."""

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
