"""Stories of leaders whose high watermark stands still. Importing this module adds them to ``CASES``."""

from __future__ import annotations

from harness.checker import Outcome
from harness.detection.withheld import samples
from tests.checkers.cases import case, write
from tests.checkers.laggard_cases import STALLED, S, come_back
from tests.checkers.sampling import SAMPLED
from tests.checkers.story import Story


def wait(story: Story, for_ms: int = 60, every_ms: int = 5) -> None:
    """Broker 2 is out of sync; records come in that all in sync get, and nothing is committed for so long."""
    write(story, 2)
    part = story.partitions[0]
    part.isr -= {2}
    until = story.now + for_ms * 1_000_000
    while story.now <= until:
        begun = story.now
        story.send(result="info", commit=False)
        story.now = max(story.now, begun + every_ms * 1_000_000)
    part.isr |= {2}
    come_back(story)
    story.finish()


def harm(story: Story, kind: str, *nodes: str, before: bool = False) -> None:
    """A fault in the midst of such a time, or over before it begins."""
    begun = story.now
    wait(story)
    at = begun + (story.now - begun) // 2
    times = (begun, begun + 1, begun + 2) if before else (at, at, at + 1_000_000)
    story.fault(
        kind=kind, nodes=list(nodes), aimed_ns=times[0], injected_ns=times[0], proven_ns=times[1],
        healed_ns=times[2], heal_proven_ns=times[2],
    )  # fmt: skip


@case(Outcome.VIOLATION, STALLED, **S)
def a_leader_that_commits_nothing_although_all_in_sync_have_it_is_found(story: Story) -> None:
    wait(story)


@case(Outcome.VIOLATION, STALLED, **S)
def what_happens_to_a_broker_outside_the_isr_keeps_no_leader_from_committing(story: Story) -> None:
    harm(story, "pause", "2")


@case(Outcome.PASS, **S)
def a_member_of_the_isr_that_was_disturbed_may_have_been_waited_for(story: Story) -> None:
    harm(story, "pause", "1")


@case(Outcome.PASS, **S)
def a_leader_that_was_disturbed_may_have_been_late_to_commit(story: Story) -> None:
    harm(story, "pause", "0")


@case(Outcome.PASS, **S)
def an_isr_is_not_changed_while_the_controller_is_away(story: Story) -> None:
    harm(story, "pause", "controller")


@case(Outcome.PASS, **S)
def a_link_of_a_member_may_be_that_to_its_leader(story: Story) -> None:
    harm(story, "partition", "1", "2")


@case(Outcome.VIOLATION, STALLED, **S)
def a_leader_has_time_enough_to_commit_after_a_fault(story: Story) -> None:
    harm(story, "pause", "0", before=True)


@case(Outcome.PASS, **S)
def a_leader_whose_clock_was_wrong_may_wait_too_long_afterwards(story: Story) -> None:
    harm(story, "clock", "0", before=True)


@case(Outcome.PASS, **S)
def a_watermark_that_soon_rises_has_not_stood_still(story: Story) -> None:
    wait(story, for_ms=20)


@case(Outcome.PASS, **S)
def a_leader_that_is_seldom_heard_of_may_have_stood_still_as_a_whole(story: Story) -> None:
    wait(story, every_ms=15)


@case(Outcome.PASS, guarantees=S["guarantees"] | {"min_insync_replicas": 3})
def nothing_is_committed_while_the_isr_is_too_small(story: Story) -> None:
    wait(story)


@case(Outcome.PASS, **S)
def a_change_of_the_isr_begins_the_time_anew(story: Story) -> None:
    write(story, 2)
    part = story.partitions[0]
    for part.isr in ({0, 1}, {0, 1, 2}, {0, 2}, {0, 1, 2}):
        for _ in range(4):
            story.send(result="info", copies=(1, 2), commit=False)
    story.commit()
    story.finish()


@case(Outcome.PASS, guarantees=SAMPLED | S["guarantees"])
def of_a_leader_that_is_looked_at_now_and_then_no_stall_is_judged(story: Story) -> None:
    wait(story)
    story.timeline = samples(story.timeline, lambda _: True)
