"""Stories of replicas, and of clusters, that stand still. Importing this module adds them to ``CASES``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.checker import Outcome
from harness.detection.withheld import samples
from tests.checkers.cases import case, write
from tests.checkers.lineage_cases import SETTLES
from tests.checkers.sampling import SAMPLED
from tests.checkers.story import Story

ALLOWED_MS = 40
S: dict[str, Any] = {"guarantees": {"min_insync_replicas": 2, "laggards_leave_ms": ALLOWED_MS}}
KEPT = ("laggard-in-sync", "VIOLATION", 2)
STALLED = ("stalled-watermark", "VIOLATION", 2)


def go_on(
    story: Story, for_ms: int, every_ms: int = 5, *, commit: bool = False, then: Callable[[], None] = lambda: None
) -> None:
    """Records come in that node 2 does not get, and nobody acknowledges: from the first on for so long.

    ``commit``: whether the leader commits them all the same; ``then``: what happens before each.
    """
    until = story.now + for_ms * 1_000_000
    while story.now <= until:
        then()
        begun = story.now
        story.send(result="info", copies=(1,), commit=commit)
        story.now = max(story.now, begun + every_ms * 1_000_000)


def come_back(story: Story) -> None:
    """Node 2 gets what it lacks, and everything is committed."""
    part = story.partitions[0]
    part.logs[2] = list(part.logs[part.leader])
    story.state(2)
    story.commit()


def lag(story: Story, for_ms: int = 60, **how: Any) -> None:
    write(story, 2)
    go_on(story, for_ms, **how)
    come_back(story)
    story.finish()


@case(Outcome.VIOLATION, KEPT, STALLED, **S)
def a_leader_that_keeps_a_laggard_in_the_isr_is_found(story: Story) -> None:
    lag(story)


@case(Outcome.PASS, **S)
def a_laggard_that_comes_back_in_time_is_none(story: Story) -> None:
    lag(story, for_ms=20)


@case(Outcome.PASS)
def a_run_that_does_not_say_how_long_a_replica_may_lag_is_not_held_to_it(story: Story) -> None:
    lag(story)


@case(Outcome.PASS, **S)
def a_replica_that_stands_still_with_all_that_its_leader_has_does_not_lag(story: Story) -> None:
    write(story, 2)
    for _ in range(30):
        story.state(0)
        story.now += 2_000_000
    story.finish()


@case(Outcome.PASS, **S)
def a_replica_that_moves_is_slow_and_does_not_stand_still(story: Story) -> None:
    part = story.partitions[0]

    def catch_up_a_little() -> None:
        part.logs[2] = part.logs[0][: len(part.logs[2]) + 1]
        story.state(2)
        story.commit(to=len(part.logs[2]))

    write(story, 2)
    story.send(result="info", copies=(1,), commit=False)
    go_on(story, 60, then=catch_up_a_little)
    come_back(story)
    story.finish()


@case(Outcome.PASS, **S)
def a_leader_that_leaves_a_laggard_out_has_done_its_duty(story: Story) -> None:
    write(story, 2)
    go_on(story, 20)
    story.partitions[0].isr = {0, 1}
    go_on(story, 60, commit=True)
    story.partitions[0].isr = {0, 1, 2}
    come_back(story)
    story.finish()


@case(Outcome.PASS, **S)
def a_leader_of_which_nothing_is_heard_for_a_while_may_have_stood_still_itself(story: Story) -> None:
    lag(story, every_ms=15)


@case(
    Outcome.VIOLATION,
    *[(kind, "VIOLATION", at) for kind in ("laggard-in-sync", "stalled-watermark") for at in (2, 15)], **S,
)  # fmt: skip
def each_time_that_a_replica_lags_is_told(story: Story) -> None:
    write(story, 2)
    go_on(story, 60)
    come_back(story)
    go_on(story, 60)
    come_back(story)
    story.finish()


@case(Outcome.VIOLATION, KEPT, **S)
def what_stops_the_laggard_or_parts_it_from_its_leader_excuses_no_leader(story: Story) -> None:
    begun = {"injected_ns": story.now, "proven_ns": story.now}
    lag(story)
    story.fault("stop", kind="pause", nodes=["2"], **begun)
    story.fault("part", nodes=["0", "2"], **begun)


def disturb(story: Story, kind: str, *nodes: str, healed: int = 40) -> None:
    """Between the 20th and the ``healed``-th per cent of a lag of one and a half of what it may last."""
    begun = story.now
    lag(story)
    ended = story.now

    def at(per_cent: int) -> int:
        return begun + (ended - begun) * per_cent // 100

    story.fault(
        kind=kind, nodes=list(nodes), aimed_ns=at(20), injected_ns=at(20), proven_ns=at(20), healed_ns=at(healed),
        heal_proven_ns=at(healed),
    )  # fmt: skip


@case(Outcome.PASS, **S)
def a_leader_that_stood_still_itself_has_had_no_time(story: Story) -> None:
    disturb(story, "pause", "0")


@case(Outcome.PASS, **S)
def a_leader_whose_controller_was_away_has_had_no_time(story: Story) -> None:
    disturb(story, "pause", "controller")


@case(Outcome.PASS, **S)
def a_leader_that_was_cut_off_with_the_laggard_has_had_no_time(story: Story) -> None:
    disturb(story, "partition", "0", "1", "2", "controller")


@case(Outcome.VIOLATION, KEPT, STALLED, **S)
def a_leader_has_time_enough_after_a_fault_that_was_soon_over(story: Story) -> None:
    disturb(story, "pause", "0", healed=22)


@case(Outcome.PASS, **S)
def a_leader_whose_clock_was_wrong_may_reckon_wrongly_afterwards(story: Story) -> None:
    disturb(story, "clock", "0", healed=22)


@case(Outcome.PASS, guarantees=SAMPLED | S["guarantees"])
def who_is_looked_at_now_and_then_is_not_known_to_stand_still(story: Story) -> None:
    lag(story)
    story.timeline = samples(story.timeline, lambda _: True)


@case(
    Outcome.INVALID, *[(kind, "INDETERMINATE", 2) for kind in ("laggard-in-sync", "stalled-watermark")],
    reason="never proven", **S,
)  # fmt: skip
def a_fault_that_nobody_proved_may_have_kept_the_leader(story: Story) -> None:
    lag(story)
    story.fault(kind="power_loss", nodes=["2"], proven_ns=None, healed_ns=None, heal_proven_ns=None)


# --------------------------------------------------------------------------------------------------------- recovery


@case(Outcome.PASS)
def a_run_that_does_not_promise_to_settle_cannot_be_stuck(story: Story) -> None:
    write(story, 2)
    story.partitions[0].isr = {0, 1}
    story.finish()


@case(Outcome.VIOLATION, ("stuck", "VIOLATION", None), **SETTLES)
def a_cluster_that_promises_to_settle_and_stays_out_of_sync_is_stuck(story: Story) -> None:
    write(story, 2)
    story.partitions[0].isr = {0, 1}
    story.finish()


def leave_uncommitted(story: Story) -> None:
    """Everybody in sync has a record that nobody ever commits."""
    write(story, 2)
    story.send(result="info", commit=False)
    story.finish()


@case(Outcome.VIOLATION, ("stuck", "VIOLATION", None), **SETTLES)
def a_watermark_that_does_not_reach_what_everybody_has_is_stuck(story: Story) -> None:
    leave_uncommitted(story)


@case(Outcome.INCONCLUSIVE, reason="did not commit its log from 2 to 2")
def a_watermark_that_may_yet_rise_is_not_stuck(story: Story) -> None:
    leave_uncommitted(story)


@case(Outcome.PASS, **SETTLES)
def a_follower_that_has_yet_to_hear_what_is_committed_is_not_stuck(story: Story) -> None:
    write(story, 2)
    story.partitions[0].marks[2] = 1
    story.finish()
