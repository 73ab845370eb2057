"""Stories with their verdicts: for every kind of anomaly one that must be found, and near misses that must pass.

A case's name says what would be wrong if its verdict were another. Both engines are held to them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.checker import Outcome
from harness.findings import RESENT_NS
from tests.checkers.story import Story

Expected = tuple[str, str, int | None]
"""Kind, verdict and offset of an anomaly."""

LOST_TAIL: dict[str, Any] = {"predictions": [{"kind": "lost-write", "topic": "ledger", "partition": 0, "offset": 2}]}


@dataclass(frozen=True)
class Case:
    """A story, and the verdict that it deserves. ``reason`` is a pattern that one of the reasons must match."""

    name: str
    tell: Callable[[Story], None]
    outcome: Outcome
    anomalies: tuple[Expected, ...]
    reason: str
    manifest: dict[str, Any]

    def story(self, run: str) -> Story:
        story = Story(run)
        self.tell(story)
        return story


CASES: list[Case] = []


def case(
    outcome: Outcome, *anomalies: Expected, reason: str = "", **manifest: Any
) -> Callable[[Callable[[Story], None]], Callable[[Story], None]]:
    def register(tell: Callable[[Story], None]) -> Callable[[Story], None]:
        before = sum(one.tell is tell for one in CASES)
        name = f"{tell.__name__}_{before + 1}" if before else tell.__name__
        CASES.append(Case(name, tell, outcome, anomalies, reason, manifest))
        return tell

    return register


def lost(offset: int | None, verdict: str = "VIOLATION") -> Expected:
    return "lost-write", verdict, offset


def unseen(offset: int, verdict: str = "INDETERMINATE") -> Expected:
    return "unseen", verdict, offset


def regression(offset: int, verdict: str = "VIOLATION") -> Expected:
    return "hw-regression", verdict, offset


def write(story: Story, records: int, **how: Any) -> None:
    for _ in range(records):
        story.send(**how)


def lose_tail(story: Story, end: int, *, clean: bool = True) -> None:
    """Node 1 forgets everything from ``end`` on and is elected all the same; uncleanly, that is why it forgets."""
    begin = len(story.timeline)
    story.cut(1, end)
    for row in story.timeline[begin:]:
        row["leader_epoch"] = story.partitions[0].epoch + (not clean)
    story.elect(1, clean=clean)


# ------------------------------------------------------------------------------------------------- nothing is wrong


@case(Outcome.PASS)
def a_quiet_run_passes(story: Story) -> None:
    write(story, 3)
    story.poll(5, [0, 1, 2])
    story.fault()
    story.finish()


@case(Outcome.PASS)
def a_clean_failover_passes(story: Story) -> None:
    write(story, 3)
    story.elect(1)
    write(story, 2)
    story.poll(5, range(5))
    story.finish()


# ----------------------------------------------------------------------------------------------------- lost writes


@case(Outcome.VIOLATION, lost(2), regression(2))
def a_lost_tail_that_nobody_read_is_found(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 2)
    story.finish()


@case(Outcome.VIOLATION, lost(0), lost(1), lost(2), regression(0), reason="Nothing was read")
def the_loss_of_everything_is_found(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 0)
    story.finish()


@case(Outcome.VIOLATION, lost(1))
def a_hole_is_found(story: Story) -> None:
    write(story, 3)
    story.finish()
    story.forget(story.final_rows()[1])
    story.logs = [row for row in story.logs if row["offset"] != 1]


@case(Outcome.VIOLATION, lost(2), ("inconsistent-offsets", "VIOLATION", 2), regression(2))
def an_overwritten_record_is_found(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 2)
    write(story, 1)
    story.finish()


@case(Outcome.VIOLATION, lost(2), ("vanished-read", "VIOLATION", 2), regression(2))
def a_record_that_was_read_and_then_lost_is_found(story: Story) -> None:
    write(story, 3)
    story.poll(5, [0, 1, 2])
    lose_tail(story, 2)
    story.finish()


@case(Outcome.VIOLATION, lost(5))
def an_acknowledgement_beyond_the_end_of_the_log_is_a_loss(story: Story) -> None:
    write(story, 3)
    story.send(append=False, offset=5)
    story.finish()
    # Whether it was justified is another question: some leader claims to have committed that far.
    for row in story.timeline:
        if row["kind"] == "state" and row["role"] == "leader":
            row["high_watermark"] = row["log_end_offset"] = 6


@case(Outcome.PASS)
def an_unacknowledged_record_may_be_lost(story: Story) -> None:
    write(story, 2)
    story.send(result="info", copies=(), commit=False)
    story.elect(1)
    write(story, 1)
    story.finish()


@case(Outcome.PASS)
def an_open_send_may_be_there_or_not(story: Story) -> None:
    write(story, 2)
    story.send(result="invoke")
    story.send(result="invoke", append=False)
    story.finish()


@case(Outcome.PASS, lost(2, "WEAK"))
def a_lost_record_of_acks_1_is_weak(story: Story) -> None:
    write(story, 2)
    story.send(acks=1, copies=(), commit=False)
    story.elect(1)
    story.finish()


@case(Outcome.PASS, lost(2, "WEAK"), ("inconsistent-offsets", "WEAK", 2))
def a_record_of_acks_1_may_be_overwritten_and_the_new_one_committed(story: Story) -> None:
    write(story, 2)
    story.send(acks=1, copies=(), commit=False)
    story.elect(1)
    write(story, 2)
    story.finish()


@case(Outcome.VIOLATION, lost(2), regression(2))
def a_committed_record_of_acks_1_must_survive(story: Story) -> None:
    write(story, 2)
    story.send(acks=1)
    lose_tail(story, 2)
    story.finish()


@case(Outcome.VIOLATION, lost(2), ("vanished-read", "VIOLATION", 2), ("uncommitted-read", "VIOLATION", 2))
def a_record_of_acks_1_that_was_read_must_survive(story: Story) -> None:
    write(story, 2)
    story.send(acks=1, copies=(), commit=False)
    story.poll(5, [2])
    story.elect(1)
    story.finish()


@case(Outcome.PASS, lost(None, "WEAK"))
def a_lost_record_of_acks_0_is_weak(story: Story) -> None:
    write(story, 2)
    story.send(acks=0, offset=None, append=False)
    story.finish()


@case(Outcome.PASS)
def a_record_of_acks_0_is_looked_for_at_every_offset(story: Story) -> None:
    write(story, 2)
    story.send(acks=0, offset=None)
    story.finish()


@case(Outcome.PASS, lost(2, "DOCUMENTED"), regression(2, "DOCUMENTED"), guarantees={"unclean_election": True})
def an_unclean_election_excuses_a_loss(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 2, clean=False)
    story.finish()


@case(Outcome.VIOLATION, lost(2), regression(2))
def an_unclean_election_that_is_forbidden_excuses_nothing(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 2, clean=False)
    story.finish()


@case(Outcome.VIOLATION, lost(2), regression(2), guarantees={"unclean_election": True})
def an_unclean_election_before_the_write_excuses_nothing(story: Story) -> None:
    story.elect(2, clean=False)
    write(story, 3)
    lose_tail(story, 2)
    story.finish()


@case(Outcome.PASS, lost(0, "DOCUMENTED"), lost(1, "DOCUMENTED"), guarantees={"retention": True})
def what_retention_removed_is_documented(story: Story) -> None:
    write(story, 4)
    story.delete(2)
    story.finish()


@case(
    Outcome.VIOLATION,
    lost(0, "DOCUMENTED"),
    lost(1, "DOCUMENTED"),
    ("committed-cut", "VIOLATION", 1),
    guarantees={"retention": True, "min_insync_replicas": 2},
)
def a_follower_s_cut_is_not_excused_by_what_retention_removed_later(story: Story) -> None:
    part = story.partitions[0]
    for _ in range(3):
        story.send()
    story.cut(1, 1)
    part.logs[1] = list(part.logs[0])
    story.state(1)
    story.commit()
    story.delete(2)
    story.send()
    story.finish()


@case(Outcome.INCONCLUSIVE, unseen(2), unseen(3), reason=r"final read of ledger-0 ended at 2, below the final .* 4")
def a_final_read_that_stops_early_proves_no_loss(story: Story) -> None:
    write(story, 4)
    story.finish()
    story.forget(*story.final_rows()[2:])


@case(Outcome.VIOLATION, lost(0), unseen(2), unseen(3), reason="ended at 2")
def a_hole_is_found_in_a_final_read_that_stops_early(story: Story) -> None:
    write(story, 4)
    story.finish()
    rows = story.final_rows()
    story.forget(rows[0], *rows[2:])
    story.logs = [row for row in story.logs if row["offset"] != 0]


@case(Outcome.INCONCLUSIVE, reason="ledger-0 has no final leader")
def without_a_final_leader_nobody_knows_where_the_log_ends(story: Story) -> None:
    write(story, 3)
    story.finish()
    story.timeline = [r for r in story.timeline if (r["kind"], r["role"]) != ("final", "leader")]


@case(Outcome.INCONCLUSIVE, unseen(2, "WEAK"), reason="did not commit its log from 2 to 2")
def a_record_above_the_final_high_watermark_is_not_called_lost(story: Story) -> None:
    write(story, 2)
    story.send(acks=1, commit=False)
    story.finish()


@case(Outcome.INCONCLUSIVE, reason="There is no final read")
def without_a_final_read_nothing_is_called_lost(story: Story) -> None:
    write(story, 3)
    story.poll(5, [0, 1, 2])
    story.finish(read=False)


# -------------------------------------------------------------------------------------------------- vanished reads


@case(Outcome.VIOLATION, ("vanished-read", "VIOLATION", 2), regression(2))
def a_read_record_must_stay_even_if_its_send_was_never_acknowledged(story: Story) -> None:
    write(story, 2)
    story.send(result="info")
    story.poll(5, [2])
    lose_tail(story, 2)
    story.finish()


@case(
    Outcome.VIOLATION,
    ("vanished-read", "VIOLATION", 2),
    ("inconsistent-offsets", "VIOLATION", 2),
    regression(2),
)
def two_values_read_at_one_offset_are_found(story: Story) -> None:
    write(story, 2)
    story.send(result="info")
    story.poll(5, [2])
    lose_tail(story, 2)
    write(story, 1)
    story.finish()


# ---------------------------------------------------------------------------------------------- replica divergence


@case(Outcome.VIOLATION, ("replica-divergence", "VIOLATION", 1))
def two_bytes_that_differ_on_two_disks_are_found(story: Story) -> None:
    write(story, 3)
    story.finish()
    next(r for r in story.logs if (r["node"], r["offset"]) == (2, 1))["batch_crc"] += 1


@case(Outcome.VIOLATION, ("replica-divergence", "VIOLATION", 1))
def a_committed_record_that_one_replica_lacks_is_found(story: Story) -> None:
    write(story, 3)
    story.finish()
    story.logs = [r for r in story.logs if (r["node"], r["offset"]) != (2, 1)]


@case(Outcome.VIOLATION, ("replica-divergence", "VIOLATION", 2))
def two_records_of_one_epoch_at_one_offset_are_found_above_the_watermark(story: Story) -> None:
    write(story, 2)
    story.send(result="info", copies=(), commit=False)
    story.finish()
    row = next(r for r in story.logs if (r["node"], r["offset"]) == (0, 2))
    story.logs.append(row | {"node": 2, "value": 77})
    for final in story.timeline:
        if final["kind"] == "final":
            final["log_end_offset"] = 2


@case(Outcome.PASS)
def an_uncommitted_tail_of_a_dead_replica_may_differ(story: Story) -> None:
    write(story, 2)
    story.send(result="info", copies=(), commit=False)
    tail = list(story.partitions[0].logs[0])
    story.elect(1)
    write(story, 1)
    story.finish()
    story.logs = [r for r in story.logs if (r["node"], r["offset"]) != (0, 2)]
    row = next(r for r in story.logs if r["node"] == 0)
    story.logs.append(row | {"offset": 2, "leader_epoch": tail[2][0], "value": tail[2][1]})
    next(r for r in story.timeline if (r["kind"], r["node"]) == ("final", 0))["high_watermark"] = 2


@case(Outcome.PASS, ("stuck", "DOCUMENTED", None), guarantees={"settles": True, "min_insync_replicas": 2})
def a_watermark_on_disk_may_be_ahead_of_the_log_that_survived(story: Story) -> None:
    write(story, 3)
    story.finish()
    story.logs = [r for r in story.logs if (r["node"], r["offset"]) != (2, 2)]
    end = next(r for r in story.timeline if (r["kind"], r["node"]) == ("final", 2))
    end |= {"log_end_offset": 2, "role": "offline"}


@case(Outcome.PASS, guarantees={"retention": True})
def a_replica_need_not_hold_what_is_below_its_log_start(story: Story) -> None:
    write(story, 3)
    story.finish()
    story.logs = [r for r in story.logs if (r["node"], r["offset"]) != (2, 0)]
    next(r for r in story.timeline if (r["kind"], r["node"]) == ("final", 2))["log_start_offset"] = 1


# ----------------------------------------------------------------------------------------------------- single reads


@case(Outcome.VIOLATION, ("unwritten-read", "VIOLATION", 2))
def a_value_that_nobody_sent_is_found(story: Story) -> None:
    write(story, 2)
    story.append(0, 999, {1, 2})
    story.finish()


@case(Outcome.VIOLATION, ("aborted-read", "VIOLATION", 2))
def a_value_whose_send_failed_is_found(story: Story) -> None:
    write(story, 2)
    story.send(result="fail")
    story.finish()


@case(Outcome.PASS)
def a_value_whose_send_may_have_happened_may_be_read(story: Story) -> None:
    write(story, 2)
    story.send(result="info")
    story.finish()


@case(Outcome.VIOLATION, ("corrupt-read", "VIOLATION", 1))
def a_damaged_payload_is_found(story: Story) -> None:
    write(story, 3)
    story.poll(5, [0, 1])[1]["intact"] = False
    story.finish()


@case(Outcome.VIOLATION, lost(1), ("corrupt-read", "VIOLATION", 1))
def a_record_that_is_no_longer_one_is_corrupt_and_lost(story: Story) -> None:
    write(story, 3)
    story.finish()
    story.final_rows()[1].update(value=None, intact=False)


@case(Outcome.VIOLATION, ("duplicate", "VIOLATION", 0))
def a_value_that_is_twice_in_the_log_is_found(story: Story) -> None:
    write(story, 2)
    story.append(0, 0, {1, 2})
    story.finish()


@case(Outcome.PASS, ("duplicate", "DOCUMENTED", 0), guarantees={"idempotent_producers": False})
def a_value_that_is_twice_in_the_log_is_what_producers_without_idempotence_may_do(story: Story) -> None:
    a_value_that_is_twice_in_the_log_is_found(story)
    take_long(story)


def take_long(story: Story) -> None:
    """The first send took so long that its client may have sent the record twice, for its leader had been paused."""
    story.history[0]["time_ns"] -= RESENT_NS
    begun_ns = story.history[0]["time_ns"]
    times = dict.fromkeys(("aimed_ns", "injected_ns", "proven_ns", "healed_ns", "heal_proven_ns"), begun_ns)
    story.fault("freeze", kind="pause", nodes=["0"], **times)


@case(
    Outcome.VIOLATION,
    lost(0),
    ("inconsistent-offsets", "VIOLATION", 0),
    ("duplicate", "VIOLATION", 0),
)
def a_record_that_is_not_where_the_acknowledgement_said_is_found(story: Story) -> None:
    story.send(result="info")
    story.send(offset=0)
    story.finish()


@case(Outcome.PASS)
def a_value_may_be_read_any_number_of_times(story: Story) -> None:
    write(story, 2)
    for process in range(5, 9):
        story.poll(process, [0, 1])
    story.finish()


@case(Outcome.VIOLATION, ("nonmonotonic-poll", "VIOLATION", 1))
def a_consumer_that_is_taken_back_is_found(story: Story) -> None:
    write(story, 3)
    story.poll(5, [0, 1])
    story.poll(5, [1, 2])
    story.finish()


@case(Outcome.VIOLATION, ("int-poll-skip", "VIOLATION", 1))
def a_consumer_that_is_taken_past_a_record_is_found(story: Story) -> None:
    write(story, 4)
    story.poll(5, [0, 3])
    story.finish()


@case(Outcome.PASS)
def another_consumer_may_begin_where_it_likes(story: Story) -> None:
    write(story, 3)
    story.poll(5, [0, 1, 2])
    story.poll(6, [1, 2])
    story.poll(7, [2])
    story.finish()


@case(Outcome.PASS)
def an_offset_that_holds_no_record_of_the_workload_is_no_gap(story: Story) -> None:
    write(story, 1)
    story.append(0, None, {1, 2})
    write(story, 1)
    story.poll(5, [0, 2])
    story.finish()
    story.forget(story.final_rows()[1])
