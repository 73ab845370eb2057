"""Stories about what replicas cut, and what restarts take. Importing this module adds them to ``CASES``."""

from __future__ import annotations

from typing import Any

from harness.checker import Outcome
from tests.checkers.cases import case, lost, regression, write
from tests.checkers.story import NODES, Story
from tests.checkers.timeline_cases import decide


def cut_in(story: Story, epoch: int | None, nodes: tuple[int, ...] = NODES) -> None:
    """These nodes cut the last record, which is committed, in a leader epoch, and get it back; None: nobody says it."""
    for node in nodes:
        log = list(story.partitions[0].logs[node])
        story.cut(node, 2)
        story.timeline[-2]["leader_epoch"] = epoch
        story.partitions[0].logs[node] = log
        story.state(node)


def elect_uncleanly(story: Story) -> None:
    """Node 1 is elected, in an epoch in which it has the first two records only."""
    decide(story, "election", partition_epoch=9, leader_epoch=1, leader=1, isr=[1], detail={"clean": False})


UNCLEAN: dict[str, Any] = {"guarantees": {"unclean_election": True, "min_insync_replicas": 2}}
CUT_BY_ALL = [*[("committed-cut", "VIOLATION", 2)] * 3, regression(2)]


@case(Outcome.VIOLATION, *CUT_BY_ALL, **UNCLEAN)
def an_unclean_election_does_not_excuse_what_was_cut_in_the_epoch_before_it(story: Story) -> None:
    write(story, 2)
    story.send(result="info")
    cut_in(story, 0)
    elect_uncleanly(story)
    story.commit()
    story.finish()


@case(Outcome.VIOLATION, *CUT_BY_ALL, **UNCLEAN)
def an_unclean_election_does_not_excuse_what_had_been_cut_by_then_in_an_epoch_that_nobody_says(story: Story) -> None:
    write(story, 2)
    story.send(result="info")
    cut_in(story, None)
    elect_uncleanly(story)
    story.commit()
    story.finish()


@case(Outcome.VIOLATION, ("committed-cut", "VIOLATION", 2), **UNCLEAN)
def who_has_not_heard_of_an_unclean_election_has_no_reason_to_cut(story: Story) -> None:
    write(story, 2)
    story.send(result="info")
    elect_uncleanly(story)
    cut_in(story, 0, (2,))
    story.commit()
    story.finish()


@case(
    Outcome.PASS,
    ("committed-cut", "DOCUMENTED", 2),
    ("committed-cut", "DOCUMENTED", 2),
    regression(2, "DOCUMENTED"),
    **UNCLEAN,
)
def who_follows_the_winner_of_an_unclean_election_may_cut_what_it_gave_up(story: Story) -> None:
    write(story, 2)
    story.partitions[0].isr = {0, 2}
    story.state(0)
    story.send(result="info")
    story.elect(1, clean=False)
    for row in story.timeline:
        if row["kind"] == "truncation":
            row["leader_epoch"] = 1
    story.partitions[0].isr = set(NODES)
    story.commit()
    story.finish()


def restart_without(story: Story, to: int, node: int = 2) -> None:
    """A node starts again with a shorter log, and fetches what it lacks."""
    part = story.partitions[0]
    log = list(part.logs[node])
    part.logs[node], part.marks[node] = log[:to], min(part.marks[node], to)
    story.restart(node)
    part.logs[node] = log
    story.state(node)
    story.commit()
    story.finish()


@case(Outcome.VIOLATION, ("committed-cut", "VIOLATION", 1))
def what_is_gone_after_a_restart_that_takes_nothing_is_found(story: Story) -> None:
    write(story, 3)
    story.fault(kind="kill", nodes=["2"])
    restart_without(story, 1)


@case(Outcome.VIOLATION, ("committed-cut", "VIOLATION", 1))
def what_a_fault_took_from_another_disk_is_no_excuse(story: Story) -> None:
    write(story, 3)
    story.restart(1)
    story.fault(kind="power_loss", nodes=["1"])
    restart_without(story, 1)


@case(Outcome.VIOLATION, ("committed-cut", "VIOLATION", 2))
def what_a_fault_took_in_a_life_before_is_no_excuse(story: Story) -> None:
    write(story, 2)
    story.fault(kind="power_loss", nodes=["2"])
    story.restart(2)
    story.send()
    restart_without(story, 2)


@case(Outcome.PASS)
def what_a_power_loss_took_is_not_held_against_the_broker(story: Story) -> None:
    write(story, 3)
    story.fault(kind="power_loss", nodes=["2"])
    restart_without(story, 1)


@case(Outcome.PASS)
def what_a_broker_says_while_it_shuts_down_was_on_the_disk_that_is_then_wiped(story: Story) -> None:
    write(story, 3)
    gone_ns = story.now + 5_000_000
    healed = {"healed_ns": gone_ns + 1, "heal_proven_ns": gone_ns + 2}
    story.fault("wiped", kind="wipe_disk", nodes=["2"], proven_ns=gone_ns, **healed)
    story.say(
        2, "state", 0, role="follower", leader=-1, leader_epoch=story.partitions[0].epoch, partition_epoch=0,
        high_watermark=3, log_end_offset=3, log_start_offset=0, isr=[0, 1, 2],
    )  # fmt: skip
    restart_without(story, 1)


@case(Outcome.PASS)
def what_was_damaged_may_be_found_after_several_restarts(story: Story) -> None:
    write(story, 3)
    story.fault(kind="corrupt_log", nodes=["2"])
    story.restart(2)
    story.state(2)
    story.restart(2)
    restart_without(story, 1)


@case(Outcome.PASS)
def a_restart_may_cost_a_tail_that_was_never_committed(story: Story) -> None:
    write(story, 2)
    story.send(result="info", commit=False)
    restart_without(story, 2)


RETENTION: dict[str, Any] = {"guarantees": {"retention": True, "min_insync_replicas": 2}}


def delete_unheard(story: Story, to: int) -> None:
    """Nodes 0 and 1 delete everything below an offset, and node 2 starts again with one record before it has heard."""
    part = story.partitions[0]
    for node in (0, 1):
        part.starts[node] = to
        story.say(
            node, "log_start", 0, {"reason": "retention"}, log_start_offset=to, log_end_offset=len(part.logs[node])
        )
        story.state(node)
    restart_without(story, 1)


@case(Outcome.VIOLATION, ("committed-cut", "VIOLATION", 2), **RETENTION)
def of_what_is_gone_after_a_restart_only_what_had_not_been_deleted_is_missed(story: Story) -> None:
    story.send(result="info")
    story.send(result="info")
    story.send()
    delete_unheard(story, 2)


@case(Outcome.PASS, **RETENTION)
def what_had_been_deleted_is_not_missed_after_a_restart(story: Story) -> None:
    story.send(result="info")
    story.send(result="info")
    story.partitions[0].isr = {0, 1}
    story.state(0)
    story.send()
    delete_unheard(story, 2)


@case(Outcome.PASS)
def what_was_cut_after_a_power_loss_is_only_what_was_left(story: Story) -> None:
    """The first row after the restart is a truncation: it says from where on."""
    write(story, 3)
    part, log = story.partitions[0], list(story.partitions[0].logs[2])
    story.fault(kind="power_loss", nodes=["2"])
    story.incarnations[2], story.sequences[2] = 1, 0
    story.say(2, "started", None)
    part.logs[2], part.marks[2] = log[:1], 1
    story.say(2, "truncation", 0, {"from_offset": 1, "to_offset": 1, "reason": "leader said so"})
    story.state(2)
    part.logs[2] = log
    story.state(2)
    story.commit()
    story.finish()


def delete(story: Story, before: int) -> None:
    """The leader deletes what lies before an offset, then the others; what is left they all commit."""
    story.delete(before)
    story.commit()
    story.finish()


@case(
    Outcome.VIOLATION,
    lost(0, "DOCUMENTED"),
    lost(1, "DOCUMENTED"),
    ("uncommitted-deletion", "VIOLATION", 2),
    guarantees={"retention": True, "min_insync_replicas": 2},
)
def a_leader_that_deletes_what_is_not_committed_is_found(story: Story) -> None:
    write(story, 2)
    story.send(result="info", commit=False)
    delete(story, 3)


@case(Outcome.PASS, lost(0, "DOCUMENTED"), guarantees={"retention": True, "min_insync_replicas": 2})
def a_leader_may_delete_what_is_committed(story: Story) -> None:
    write(story, 3)
    delete(story, 1)


@case(Outcome.VIOLATION, ("committed-cut", "VIOLATION", 1), generation="0.11")
def before_2_0_1_a_restart_takes_nothing_either(story: Story) -> None:
    write(story, 3)
    restart_without(story, 1)


@case(Outcome.PASS, lost(0, "DOCUMENTED"), guarantees={"retention": True, "min_insync_replicas": 2})
def what_has_been_deleted_may_lie_on_a_disk_for_a_while_yet(story: Story) -> None:
    write(story, 3)
    delete(story, 1)
    first = next(row for row in story.logs if row["node"] == 0)
    story.logs.append(first | {"offset": 0, "value": 0, "batch_base_offset": 0, "batch_crc": 0})
