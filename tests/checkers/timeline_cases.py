"""Stories about elections, ISRs, truncations and logs. Importing this module adds them to ``CASES``."""

from __future__ import annotations

import json
from typing import Any

from harness.checker import Outcome
from tests.checkers.cases import case, write
from tests.checkers.sampling import SAMPLED
from tests.checkers.story import CONTROLLER, NODES, Row, Story


def decide(story: Story, kind: str = "isr", **columns: Any) -> Row:
    """A decision of the controller that changes nothing else in the story."""
    known: Row = {"leader": 0, "leader_epoch": 0, "partition_epoch": 0, "isr": list(NODES)} | columns
    detail = {"controller_epoch": story.controller_epoch, "clean": True, "elected_from_isr": True} | known.pop(
        "detail", {}
    )
    return story.say(CONTROLLER, kind, 0, detail, **known)


def finals(story: Story) -> list[Row]:
    return [row for row in story.timeline if row["kind"] == "final"]


# ---------------------------------------------------------------------------------------------------------- epochs


def stamped(story: Story, epoch: int) -> None:
    """The second leader appends two records, the last of which bears ``epoch`` in every log."""
    write(story, 2)
    story.elect(1)
    write(story, 2)
    for log in story.partitions[0].logs.values():
        log[3] = (epoch, log[3][1])
    story.finish()


@case(Outcome.VIOLATION, ("epoch-regression", "VIOLATION", 3), ("epoch-disorder", "VIOLATION", 2))
def a_leader_whose_records_bear_an_older_epoch_than_its_own_is_found(story: Story) -> None:
    stamped(story, 0)


@case(Outcome.PASS)
def a_leader_whose_records_bear_its_epoch_is_not_blamed(story: Story) -> None:
    stamped(story, 1)


@case(Outcome.VIOLATION, ("epoch-regression", "VIOLATION", None))
def a_broker_that_obeys_an_older_word_is_found(story: Story) -> None:
    write(story, 2)
    story.elect(1)
    story.partitions[0].epoch = 0
    story.state(2)
    story.partitions[0].epoch = 1
    story.finish()


@case(Outcome.PASS)
def a_broker_that_has_restarted_may_begin_with_an_older_epoch(story: Story) -> None:
    write(story, 2)
    story.elect(1)
    story.partitions[0].epoch = 0
    story.restart(2)
    story.partitions[0].epoch = 1
    story.state(2)
    story.finish()


@case(Outcome.VIOLATION, ("epoch-regression", "VIOLATION", None), ("epoch-regression", "VIOLATION", None))
def a_controller_that_falls_back_is_found(story: Story) -> None:
    write(story, 2)
    decide(story, leader_epoch=1, partition_epoch=4)
    decide(story, leader_epoch=1, partition_epoch=3)
    decide(story, leader_epoch=1, partition_epoch=5, detail={"controller_epoch": 0})
    story.finish()


@case(Outcome.VIOLATION, ("epoch-disorder", "VIOLATION", 1))
def a_log_whose_epochs_fall_is_found(story: Story) -> None:
    write(story, 3)
    story.elect(1)
    story.finish()
    for row in story.logs:
        row["leader_epoch"] = 2 if row["offset"] == 1 else 0


@case(Outcome.PASS, ("epoch-disorder", "DOCUMENTED", 1), generation="2.0.0")
def in_old_generations_a_log_whose_epochs_fall_is_known(story: Story) -> None:
    a_log_whose_epochs_fall_is_found(story)


def say_epochs(story: Story, entries: list[list[int]], source: str = "live") -> None:
    for row in finals(story):
        if row["node"] == 2:
            row["detail"] = json.dumps({"source": source, "epochs": entries})


@case(Outcome.VIOLATION, ("epoch-cache-mismatch", "VIOLATION", 2))
def an_epoch_that_was_not_written_down_is_found(story: Story) -> None:
    write(story, 2)
    story.elect(1)
    story.send()
    story.finish()
    say_epochs(story, [[0, 0]])


@case(Outcome.VIOLATION, ("epoch-cache-mismatch", "VIOLATION", 2))
def an_epoch_that_begins_elsewhere_than_in_the_log_is_found(story: Story) -> None:
    write(story, 2)
    story.elect(1)
    story.send()
    story.finish()
    say_epochs(story, [[0, 0], [1, 1]])


@case(Outcome.PASS)
def an_epoch_without_records_may_be_written_down(story: Story) -> None:
    write(story, 2)
    story.elect(1)
    story.elect(2)
    story.send()
    story.finish()
    say_epochs(story, [[0, 0], [2, 2]])


@case(Outcome.PASS)
def a_broker_that_died_may_not_have_written_its_last_epoch_down(story: Story) -> None:
    write(story, 2)
    story.elect(1)
    story.send()
    story.finish()
    say_epochs(story, [[0, 0]], source="disk")


@case(Outcome.INCONCLUSIVE, ("epoch-cache-mismatch", "INDETERMINATE", None))
def epochs_that_could_not_be_read_leave_the_run_open(story: Story) -> None:
    write(story, 2)
    story.finish()
    for row in finals(story):
        row["detail"] = json.dumps({"source": "live", "epochs_unread": "leader-epoch-checkpoint is garbled"})
        row["detail"] = row["detail"] if row["node"] == 2 else None


@case(Outcome.INCONCLUSIVE, reason="acknowledged")
def of_replicas_that_hold_nothing_nobody_wants_to_know_the_epochs(story: Story) -> None:
    story.send(result="info", append=False)
    story.finish()
    for row in finals(story):
        row["detail"] = json.dumps({"source": "live", "epochs_unread": "the replica lies in no log directory"})


# ------------------------------------------------------------------------------------------------- elections and ISR


@case(
    Outcome.VIOLATION,
    ("illegal-isr", "VIOLATION", None),
    ("illegal-isr", "VIOLATION", None),
    ("illegal-isr", "VIOLATION", None),
)
def an_isr_without_its_leader_or_with_a_stranger_or_with_nobody_is_found(story: Story) -> None:
    write(story, 2)
    decide(story, partition_epoch=1, isr=[1, 2])
    decide(story, partition_epoch=3, isr=[0, 7])
    decide(story, partition_epoch=5, isr=[])
    story.finish()


@case(Outcome.VIOLATION, ("illegal-isr", "VIOLATION", None), ("illegal-isr", "VIOLATION", None))
def eligible_leader_replicas_beside_a_full_isr_are_found(story: Story) -> None:
    write(story, 2)
    decide(story, partition_epoch=1, isr=[0, 1], detail={"elr": [2]})
    decide(story, partition_epoch=3, isr=[0], detail={"elr": [0, 2]})
    story.finish()


@case(Outcome.PASS)
def nobody_may_lead_while_eligible_replicas_are_away(story: Story) -> None:
    write(story, 2)
    decide(story, partition_epoch=1, isr=[0], detail={"elr": [1, 2]})
    decide(story, "election", partition_epoch=2, isr=[], leader=-1, detail={"elr": [0, 1, 2]})
    decide(story, "election", partition_epoch=3, isr=[1], leader=1, detail={"elr": [0, 2]})
    decide(story, "election", partition_epoch=4, isr=[0], leader=0, detail={"elr": [1, 2]})
    story.finish()


def forget(story: Story, **detail: Any) -> None:
    """Node 1 leaves an ISR of two, and nothing says that it is eligible."""
    write(story, 2)
    decide(story, partition_epoch=1, isr=[0, 1])
    decide(story, partition_epoch=2, isr=[0], detail=detail)
    story.finish()


@case(Outcome.VIOLATION, ("illegal-isr", "VIOLATION", None))
def a_controller_that_forgets_who_is_eligible_is_found(story: Story) -> None:
    forget(story)


@case(Outcome.PASS, guarantees={"eligible_replicas": False})
def a_controller_that_is_told_to_keep_nobody_eligible_may_forget(story: Story) -> None:
    forget(story)


@case(Outcome.PASS, generation="3.7")
def before_4_1_nobody_is_eligible_who_is_not_in_sync(story: Story) -> None:
    forget(story)


@case(Outcome.PASS, guarantees=SAMPLED)
def a_real_controller_that_forgets_somebody_may_distrust_him(story: Story) -> None:
    forget(story)


@case(Outcome.VIOLATION, ("illegal-isr", "VIOLATION", None), guarantees=SAMPLED)
def a_real_controller_distrusts_nobody_because_of_where_a_replica_lies(story: Story) -> None:
    forget(story, places=True)


@case(Outcome.PASS)
def whoever_shuts_down_uncleanly_is_not_eligible(story: Story) -> None:
    forget(story, cause="broker 1 shut down uncleanly")


@case(Outcome.PASS, guarantees={"min_insync_replicas": 1})
def whoever_leaves_an_isr_that_is_still_large_enough_need_not_stay_eligible(story: Story) -> None:
    forget(story)


@case(Outcome.PASS, guarantees={"min_insync_replicas": 2, "unclean_election": True})
def an_unclean_election_leaves_nobody_eligible(story: Story) -> None:
    write(story, 2)
    decide(story, "election", partition_epoch=1, leader=-1, isr=[], detail={"elr": [1, 2]})
    decide(story, "election", partition_epoch=2, leader=0, isr=[0], detail={"clean": False, "elr": []})
    story.finish()


@case(Outcome.VIOLATION, ("illegal-isr", "VIOLATION", None), generation="3.7")
def before_eligible_leader_replicas_nobody_may_empty_an_isr(story: Story) -> None:
    write(story, 2)
    decide(story, "election", partition_epoch=1, isr=[], leader=-1)
    story.finish()


@case(Outcome.PASS, generation="0.11", guarantees={"unclean_election": True})
def where_anybody_may_lead_old_controllers_keep_no_last_member(story: Story) -> None:
    write(story, 2)
    decide(story, "election", partition_epoch=1, isr=[], leader=-1)
    story.finish()


@case(Outcome.VIOLATION, ("illegal-isr", "VIOLATION", None), generation="0.11")
def where_not_anybody_may_lead_old_controllers_keep_the_last_member(story: Story) -> None:
    write(story, 2)
    decide(story, "election", partition_epoch=1, isr=[], leader=-1)
    story.finish()


@case(Outcome.VIOLATION, ("illegal-isr", "VIOLATION", None))
def a_member_that_joins_without_a_session_is_found(story: Story) -> None:
    write(story, 2)
    decide(story, partition_epoch=1, isr=[0, 1])
    story.say(CONTROLLER, "session", None, {"broker": 2, "change": "expired"})
    decide(story, partition_epoch=2)
    decide(story, partition_epoch=3, isr=[0, 1])
    story.say(CONTROLLER, "session", None, {"broker": 2, "change": "registered"})
    decide(story, partition_epoch=4)
    story.finish()


@case(Outcome.VIOLATION, ("illegal-isr", "VIOLATION", None), generation="3.7")
def from_3_7_on_nobody_joins_without_a_session(story: Story) -> None:
    a_member_that_joins_without_a_session_is_found(story)


@case(Outcome.PASS, generation="2.8")
def before_3_7_whoever_fetches_may_join_without_a_session(story: Story) -> None:
    a_member_that_joins_without_a_session_is_found(story)


@case(Outcome.PASS)
def of_several_sessions_that_end_at_once_the_members_leave_one_by_one(story: Story) -> None:
    write(story, 2)
    decide(story, partition_epoch=1)
    for broker in (1, 2):
        story.say(CONTROLLER, "session", None, {"broker": broker, "change": "expired"})
    cause = "session of broker 1, broker 2 expired"
    decide(story, partition_epoch=2, isr=[0, 2], detail={"cause": cause})
    decide(story, partition_epoch=3, isr=[0], detail={"elr": [2], "cause": cause})
    story.finish()


@case(Outcome.VIOLATION, ("misclassified-election", "VIOLATION", None), ("misclassified-election", "VIOLATION", None))
def an_election_that_is_not_what_it_is_called_is_found(story: Story) -> None:
    write(story, 2)
    decide(story, partition_epoch=1, isr=[0, 1])
    decide(story, "election", partition_epoch=2, leader=2, isr=[2], detail={"elr": [0, 1]})
    decide(story, "election", partition_epoch=3, leader=2, isr=[2], detail={"clean": False})
    story.finish()


def usurp(story: Story) -> None:
    """After an election somebody leads in a later epoch, and the controller has decided nothing of the sort."""
    write(story, 2)
    story.elect(1)
    part = story.partitions[0]
    part.leader, part.epoch = 2, 7
    for node in (2, 0, 1):
        story.state(node)
    write(story, 1)
    story.finish()


@case(Outcome.VIOLATION, ("misclassified-election", "VIOLATION", None))
def a_leader_of_an_epoch_that_nobody_decided_on_is_found(story: Story) -> None:
    usurp(story)


@case(Outcome.PASS)
def a_controller_that_was_started_again_may_not_have_written_down_whom_it_elected(story: Story) -> None:
    usurp(story)
    story.restart_controller()


@case(Outcome.INVALID, ("misclassified-election", "INDETERMINATE", None), reason="The timeline of node 100")
def whom_a_controller_elected_may_be_in_a_gap_of_its_timeline(story: Story) -> None:
    usurp(story)
    story.sequences[CONTROLLER] += 1
    decide(story, partition_epoch=30, leader=2, leader_epoch=9)


@case(Outcome.PASS)
def an_election_whose_decision_before_is_missing_is_not_judged(story: Story) -> None:
    write(story, 2)
    decide(story, partition_epoch=1, isr=[0, 1])
    decide(story, "election", partition_epoch=3, leader=2, isr=[2])
    story.finish()


# ------------------------------------------------------------------------------------------------------ truncations


def cut_and_refetch(story: Story, to: int = 1) -> None:
    """Node 2 cuts what it has, and fetches it again: nothing is lost."""
    log = list(story.partitions[0].logs[2])
    story.cut(2, to)
    story.partitions[0].logs[2] = log
    story.state(2)
    story.commit()
    story.finish()


@case(Outcome.VIOLATION, ("committed-cut", "VIOLATION", 1))
def a_replica_that_cuts_what_is_committed_is_found(story: Story) -> None:
    write(story, 3)
    cut_and_refetch(story)


@case(Outcome.PASS, ("committed-cut", "DOCUMENTED", 1), generation="0.10")
def old_generations_are_known_to_cut_what_is_committed(story: Story) -> None:
    write(story, 3)
    cut_and_refetch(story)


@case(Outcome.PASS)
def a_tail_that_was_never_committed_may_be_cut(story: Story) -> None:
    write(story, 2)
    story.send(result="info", copies=(2,), commit=False)
    story.elect(1)
    story.send()
    story.finish()


@case(Outcome.PASS)
def what_another_leader_has_committed_since_is_not_what_a_stale_tail_holds(story: Story) -> None:
    """Node 0 keeps an uncommitted record at the offset at which node 1 then commits another one."""
    write(story, 2)
    story.send(result="info", copies=(), commit=False)
    tail = list(story.partitions[0].logs[0])
    story.elect(1)
    cut = next(row for row in story.timeline if row["kind"] == "truncation")
    story.send()
    story.finish()
    cut["time_ns"] = story.now
    assert len(tail) == 3


@case(Outcome.PASS, ("committed-cut", "DOCUMENTED", 2), guarantees={"unclean_election": True, "min_insync_replicas": 2})
def what_an_unclean_election_gave_up_may_be_cut(story: Story) -> None:
    write(story, 2)
    story.send(result="info")
    decide(story, "election", partition_epoch=9, leader_epoch=1, leader=1, isr=[1], detail={"clean": False})
    cut_and_refetch(story, 2)


# ------------------------------------------------------------------------------------------------------------- logs


@case(Outcome.VIOLATION, ("log-overlap", "VIOLATION", 0), ("replica-divergence", "VIOLATION", 1))
def a_log_with_two_records_at_one_offset_is_found(story: Story) -> None:
    write(story, 3)
    story.finish()
    double = next(row for row in story.logs if (row["node"], row["offset"]) == (2, 1))
    story.logs.append(double | {"value": 99, "batch_crc": 99})


def fork(story: Story) -> None:
    """Node 2 keeps a record of its own below what it has in common with the others; all watermarks are below both."""
    write(story, 1)
    for _ in range(2):
        story.send(result="info", commit=False)
    story.elect(1)
    story.finish()
    for row in story.logs:
        if row["offset"] > 0:
            row["leader_epoch"] = 1 if (row["node"], row["offset"]) == (2, 1) else 2
            row["batch_crc"] = row["leader_epoch"] * 100 + row["offset"]


@case(Outcome.VIOLATION, ("lineage-break", "VIOLATION", 1), reason="did not commit")
def replicas_that_differ_before_what_they_share_are_found(story: Story) -> None:
    fork(story)


@case(Outcome.INCONCLUSIVE, ("lineage-break", "DOCUMENTED", 1), generation="2.0.1", reason="did not commit")
def before_2_1_replicas_may_differ_before_what_they_share(story: Story) -> None:
    fork(story)


@case(Outcome.INCONCLUSIVE, reason="did not commit")
def replicas_may_differ_behind_what_they_share(story: Story) -> None:
    write(story, 1)
    story.send(result="info", commit=False)
    story.finish()
    for row in story.logs:
        if row["offset"] == 1:
            row |= {"leader_epoch": row["node"], "batch_crc": row["node"]}


def numbered(story: Story, *sequences: int) -> None:
    write(story, len(sequences))
    story.finish()
    for row in story.logs:
        row |= {"producer_id": 7, "producer_epoch": 0, "sequence": sequences[row["offset"]]}


@case(Outcome.VIOLATION, ("repeated-sequence", "VIOLATION", 0))
def a_batch_that_was_appended_twice_is_found_by_its_sequence(story: Story) -> None:
    numbered(story, 0, 1, 1, 2)


@case(Outcome.VIOLATION, ("sequence-gap", "VIOLATION", 0))
def a_sequence_that_is_missing_is_found(story: Story) -> None:
    numbered(story, 0, 1, 3)


@case(Outcome.VIOLATION, ("sequence-gap", "VIOLATION", 0))
def records_of_a_producer_that_are_not_in_the_order_of_their_sequences_are_found(story: Story) -> None:
    numbered(story, 0, 2, 1, 3)


@case(Outcome.PASS)
def a_coordinator_numbers_nothing_of_what_it_writes_for_a_producer(story: Story) -> None:
    story.__init__(story.run, 2)  # type: ignore[misc]
    write(story, 1)
    for _ in range(3):
        story.append(1, None, (1, 2))
    story.scenario["topics"] = [{"name": "ledger", "partitions": 1, "replication_factor": 3}]
    story.finish()
    story.forget(*(row for row in story.history if row["partition"] == 1))
    for row in (*story.timeline, *story.logs):
        if row["partition"] == 1:
            row |= {"topic": "__consumer_offsets", "partition": 0}
    for row in story.logs:
        if row["topic"] == "__consumer_offsets":
            row |= {"producer_id": 7, "producer_epoch": 0, "sequence": 0}


@case(Outcome.PASS)
def a_producer_may_begin_anywhere(story: Story) -> None:
    numbered(story, 4, 5, 6)
