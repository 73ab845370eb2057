"""Stories in which two pieces of evidence contradict each other. Importing this module adds them to ``CASES``."""

from __future__ import annotations

from typing import Any

from harness.checker import Outcome
from tests.checkers.cases import case, lose_tail, lost, regression, write
from tests.checkers.story import CONTROLLER, GUARANTEES, NODES, Row, Story
from tests.checkers.timeline_cases import decide

# ------------------------------------------------------------------------------------- what the controller decided

FORGOTTEN = ("metadata-divergence", "VIOLATION", None)
BEGUN = {"cause": "topic created"}


def remember(story: Story, **then: Any) -> None:
    """The ISR is broker 0, broker 1 is eligible beside it; then the controller starts again and remembers ``then``."""
    write(story, 1)
    decide(story, partition_epoch=3, isr=[0], detail={"elr": [1], "last_known_elr": [2]})
    story.restart_controller()
    decide(story, partition_epoch=3, isr=[0], detail=then)
    story.finish()


@case(Outcome.VIOLATION, FORGOTTEN)
def a_controller_that_forgets_who_is_eligible_when_it_starts_is_found(story: Story) -> None:
    remember(story)


@case(Outcome.VIOLATION, FORGOTTEN)
def a_controller_that_remembers_another_eligible_replica_is_found(story: Story) -> None:
    remember(story, elr=[2], last_known_elr=[1])


@case(Outcome.PASS)
def a_controller_that_remembers_who_is_eligible_passes(story: Story) -> None:
    remember(story, elr=[1], last_known_elr=[2])


def begin(story: Story, *isr: int, ended: int | None = None) -> None:
    """The partition begins with this ISR, of which the brokers are told, after one's session has ended."""
    for node in NODES:
        story.say(CONTROLLER, "session", None, {"broker": node, "change": "registered"})
    if ended is not None:
        story.say(CONTROLLER, "session", None, {"broker": ended, "change": "expired"})
    decide(story, "election", partition_epoch=0, isr=list(isr), detail=BEGUN)
    for row in story.timeline:
        row["isr"] = row["isr"] and list(isr)
    story.partitions[0].isr = set(isr)
    write(story, 1)
    story.finish()


@case(Outcome.VIOLATION, ("illegal-isr", "VIOLATION", None))
def a_partition_that_begins_without_a_replica_that_is_there_is_found(story: Story) -> None:
    begin(story, 0, 1)


@case(Outcome.PASS)
def a_partition_that_begins_with_all_of_its_replicas_passes(story: Story) -> None:
    begin(story, *NODES)


@case(Outcome.PASS)
def a_partition_may_begin_without_a_broker_that_has_no_session(story: Story) -> None:
    begin(story, 0, 1, ended=2)


@case(Outcome.VIOLATION, ("metadata-divergence", "VIOLATION", None))
def a_broker_that_was_told_of_another_first_isr_is_found(story: Story) -> None:
    decide(story, "election", partition_epoch=0, detail=BEGUN)
    write(story, 1)
    story.state(2)["isr"] = [0, 2]
    story.finish()


def decide_often(story: Story, *epochs: int) -> None:
    """Decisions with these partition epochs, of which a broker hears the highest."""
    for epoch in epochs:
        decide(story, partition_epoch=epoch)
    write(story, 1)
    story.state(1)["partition_epoch"] = max(epochs)
    story.finish()


@case(Outcome.PASS)
def partition_epochs_without_a_gap_pass(story: Story) -> None:
    decide_often(story, 0, 1, 2)


@case(Outcome.INVALID, reason=r"no decision of partition epochs 2 to 3 of ledger-0")
def decisions_that_are_missing_make_the_run_invalid(story: Story) -> None:
    decide_often(story, 0, 1, 4)


@case(Outcome.INVALID, reason=r"no decision of partition epoch 0 of ledger-0")
def a_first_decision_that_is_missing_makes_the_run_invalid(story: Story) -> None:
    decide_often(story, 1, 2)


@case(Outcome.INVALID, reason=r"no decision of partition epoch 2 of ledger-0")
def a_decision_that_brokers_heard_of_and_that_the_controller_lacks_makes_the_run_invalid(story: Story) -> None:
    decide(story, partition_epoch=0)
    decide(story, partition_epoch=1)
    write(story, 1)
    story.state(1)["partition_epoch"] = 2
    story.finish()


@case(Outcome.PASS)
def a_controller_may_have_died_before_it_could_write_down_what_it_decided(story: Story) -> None:
    decide(story, partition_epoch=0)
    story.restart_controller()
    decide_often(story, 2, 3)


# --------------------------------------------------------------------------------------- records in the final logs


def altered(offset: int, verdict: str = "VIOLATION") -> tuple[str, str, int]:
    return "altered-record", verdict, offset


def alter(story: Story, offset: int, value: int | None = 99, nodes: tuple[int, ...] = NODES, **more: Any) -> None:
    """The logs of these nodes hold another value at an offset."""
    for row in story.logs:
        if row["offset"] == offset and row["node"] in nodes:
            row |= {"value": value, **more}


@case(Outcome.VIOLATION, altered(1))
def a_value_that_is_another_one_in_all_logs_is_found(story: Story) -> None:
    write(story, 3)
    story.finish()
    alter(story, 1)


@case(Outcome.VIOLATION, altered(1))
def a_record_of_no_workload_in_the_place_of_one_is_found(story: Story) -> None:
    write(story, 3)
    story.finish()
    alter(story, 1, None)


@case(Outcome.VIOLATION, altered(0), altered(1))
def logs_that_hold_nothing_of_a_workload_where_all_was_delivered_are_found(story: Story) -> None:
    write(story, 2)
    story.finish()
    for offset in (0, 1):
        alter(story, offset, None)


@case(Outcome.VIOLATION, altered(0), ("replica-divergence", "VIOLATION", 0))
def a_leader_whose_log_holds_nothing_of_a_workload_is_found(story: Story) -> None:
    write(story, 1, acks=1)
    story.finish()
    alter(story, 0, None, nodes=(0,))


@case(Outcome.VIOLATION, altered(1), ("replica-divergence", "VIOLATION", 1))
def a_leader_whose_log_differs_from_what_it_delivered_is_found(story: Story) -> None:
    write(story, 3)
    story.finish()
    alter(story, 1, nodes=(0,))


@case(Outcome.VIOLATION, ("replica-divergence", "VIOLATION", 1))
def a_follower_whose_log_differs_is_one_that_diverges(story: Story) -> None:
    write(story, 3)
    story.finish()
    alter(story, 1, nodes=(2,))


@case(Outcome.VIOLATION, ("damaged-record", "VIOLATION", 1), ("damaged-record", "VIOLATION", 1),
      ("damaged-record", "VIOLATION", 1))  # fmt: skip
def a_damaged_record_is_told_as_that_alone(story: Story) -> None:
    write(story, 3)
    story.finish()
    alter(story, 1, None, intact=False)


@case(Outcome.VIOLATION, altered(1), altered(2), ("duplicate", "VIOLATION", 1))
def a_value_that_nobody_sent_may_be_in_the_logs_twice(story: Story) -> None:
    write(story, 3)
    story.finish()
    alter(story, 1, 70)
    alter(story, 2, 70)


def partly_read(story: Story, acks: int = -1) -> None:
    """Of three records only the first is in the final read."""
    write(story, 3, acks=acks)
    story.finish()
    story.forget(*(row for row in story.final_rows() if row["offset"] != 0))


@case(Outcome.VIOLATION, altered(2), ("unseen", "INDETERMINATE", 1), ("unseen", "INDETERMINATE", 2),
      reason="below the final high watermark")  # fmt: skip
def a_log_that_holds_another_record_than_was_acknowledged_is_found(story: Story) -> None:
    partly_read(story)
    alter(story, 2)


@case(Outcome.INCONCLUSIVE, ("unseen", "INDETERMINATE", 1), ("unseen", "INDETERMINATE", 2),
      reason="below the final high watermark")  # fmt: skip
def acknowledgements_that_the_logs_bear_out_are_no_violation(story: Story) -> None:
    partly_read(story)


@case(Outcome.INCONCLUSIVE, ("unseen", "INDETERMINATE", 1), ("unseen", "INDETERMINATE", 2),
      reason="below the final high watermark")  # fmt: skip
def what_lies_above_the_final_high_watermark_may_be_replaced(story: Story) -> None:
    partly_read(story)
    alter(story, 2)
    for row in story.timeline:
        if row["kind"] == "final":
            row["high_watermark"] = 2


# ---------------------------------------------------------------------------------------------- epochs of records

MISNAMED = "inconsistent-epochs"


def name_epochs(story: Story, *epochs: int) -> None:
    """Two records of epoch 0 and two of epoch 1, to which the final read gives these epochs."""
    write(story, 2)
    story.elect(1)
    write(story, 2)
    story.finish()
    for row, epoch in zip(story.final_rows(), epochs, strict=True):
        row["leader_epoch"] = epoch


@case(Outcome.PASS)
def epochs_that_the_log_and_the_final_read_agree_on_pass(story: Story) -> None:
    name_epochs(story, 0, 0, 1, 1)


@case(Outcome.VIOLATION, (MISNAMED, "VIOLATION", 0))
def a_record_that_is_delivered_as_one_of_a_newer_epoch_is_found(story: Story) -> None:
    name_epochs(story, 1, 0, 1, 1)


@case(Outcome.VIOLATION, (MISNAMED, "VIOLATION", 3))
def a_record_that_is_delivered_as_one_of_an_older_epoch_is_found(story: Story) -> None:
    name_epochs(story, 0, 0, 1, 0)


@case(Outcome.VIOLATION, (MISNAMED, "VIOLATION", 2))
def a_record_of_an_epoch_that_the_log_does_not_have_is_found(story: Story) -> None:
    name_epochs(story, 0, 0, 7, 1)


@case(Outcome.PASS)
def a_consumer_may_not_be_told_of_epochs(story: Story) -> None:
    name_epochs(story, 0, 0, 1, 1)
    for row in story.final_rows():
        row["leader_epoch"] = None


@case(Outcome.PASS)
def what_the_log_does_not_hold_any_more_is_compared_with_nothing(story: Story) -> None:
    name_epochs(story, 0, 0, 1, 1)
    for row in story.logs:
        row["leader_epoch"] = -1
    for row in story.final_rows():
        row["leader_epoch"] = 0


def tail(story: Story, epoch: int | None, *, gone: bool = False) -> None:
    """A consumer under load is given a record of epoch 0 with this epoch; ``gone``: then it is lost, and replaced."""
    write(story, 3)
    for row in story.poll(5, [0, 1, 2]):
        row["leader_epoch"] = 0
    story.history[-1]["leader_epoch"] = epoch
    if gone:
        lose_tail(story, 2)
        write(story, 1)
    story.finish()


@case(Outcome.PASS)
def epochs_that_a_consumer_under_load_is_told_pass(story: Story) -> None:
    tail(story, 0)


@case(Outcome.PASS)
def a_consumer_under_load_may_not_be_told_of_epochs(story: Story) -> None:
    tail(story, None)


@case(Outcome.VIOLATION, (MISNAMED, "VIOLATION", 2))
def an_epoch_that_only_a_consumer_under_load_was_told_wrongly_is_found(story: Story) -> None:
    tail(story, 1)


@case(Outcome.VIOLATION, lost(2), ("vanished-read", "VIOLATION", 2), ("inconsistent-offsets", "VIOLATION", 2),
      regression(2))  # fmt: skip
def the_epoch_of_a_record_that_is_gone_is_no_second_finding(story: Story) -> None:
    tail(story, 0, gone=True)


@case(Outcome.PASS, (MISNAMED, "DOCUMENTED", 2), guarantees=GUARANTEES | {"unclean_election": True})
def what_an_unclean_election_gave_up_may_be_sent_again(story: Story) -> None:
    write(story, 3)
    for row in story.poll(5, [0, 1, 2]):
        row["leader_epoch"] = 0
    story.elect(1, clean=False)
    for log in story.partitions[0].logs.values():
        log[2] = (1, 2)
    story.finish()


# --------------------------------------------------------------------------------------------- nodes that are not there


@case(Outcome.INVALID, reason="There is a log of ledger-0 on node 7, and the configuration has no such broker")
def a_log_of_a_broker_that_does_not_exist_makes_the_run_invalid(story: Story) -> None:
    write(story, 2)
    story.finish()
    story.logs += [row | {"node": 7} for row in story.logs if row["node"] == 0]


@case(Outcome.INVALID, reason="There is a log of ledger-0 on node 101, and the configuration has no such broker")
def a_controller_holds_no_log_of_the_workload(story: Story) -> None:
    write(story, 2)
    story.finish()
    story.logs += [row | {"node": 101} for row in story.logs if row["node"] == 0]


@case(Outcome.INVALID, reason="The timeline has rows of node 7, and the configuration has no such node")
def a_timeline_of_a_broker_that_does_not_exist_makes_the_run_invalid(story: Story) -> None:
    write(story, 2)
    story.incarnations[7] = story.sequences[7] = 0
    story.say(7, "started", None)
    story.finish()


# ---------------------------------------------------------------------------------------------------------- proofs


def killed(story: Story, **columns: Any) -> None:
    write(story, 2)
    story.restart(1)
    usual: Row = {
        "kind": "kill", "nodes": ["1"], "parameters": '{"node": "1"}', "proof": "node 1 is gone, by SIGKILL",
        "heal_proof": "node 1 is running and answers",
    }  # fmt: skip
    story.fault(**{**usual, **columns})
    story.finish()


@case(Outcome.PASS)
def a_proof_about_the_node_that_its_fault_is_filed_under_passes(story: Story) -> None:
    killed(story)


@case(Outcome.INVALID, reason=r"Fault 'cut' \(kill\) is filed under 1, and its proof is about 2")
def a_proof_about_another_node_makes_the_run_invalid(story: Story) -> None:
    killed(story, proof="node 2 is gone, by SIGKILL")


@case(Outcome.INVALID, reason=r"Fault 'cut' \(kill\) is filed under 1, and its proof of healing is about 0")
def a_proof_of_healing_about_another_node_makes_the_run_invalid(story: Story) -> None:
    killed(story, heal_proof="node 0: process 12 answers")


@case(Outcome.INVALID, reason=r"Fault 'cut' \(kill\) is filed under 1, and its parameters are about 2")
def parameters_about_another_node_make_the_run_invalid(story: Story) -> None:
    killed(story, parameters='{"node": "2"}')


@case(Outcome.INVALID, reason=r"Fault 'cut' \(partition\) is filed under 0, 1, and its proof is about 2")
def a_proof_about_another_link_makes_the_run_invalid(story: Story) -> None:
    seen = "0->1: a probe got lost, and 18 more bytes are withheld; 2->1: a probe got lost"
    killed(
        story, kind="partition", nodes=["0", "1"], parameters="{}", proof=seen, heal_proof="0->1: a probe got through"
    )


@case(Outcome.PASS)
def a_link_to_a_controller_of_a_quorum_is_one_to_the_controller(story: Story) -> None:
    seen = "1->controller-2: a probe got lost, and 18 more bytes are withheld; clients->1: a probe got lost"
    about = {"kind": "partition", "nodes": ["1", "controller"], "parameters": "{}"}
    killed(story, **about, proof=seen, heal_proof="1->controller: a probe got through")


@case(Outcome.INVALID, reason=r"Fault 'cut' \(pause\) is filed under 7, and the configuration has no such broker")
def a_fault_of_a_broker_that_does_not_exist_makes_the_run_invalid(story: Story) -> None:
    killed(story, kind="pause", nodes=["7"], parameters="{}", proof="stopped", heal_proof="answers")


@case(Outcome.INVALID, lost(2, "INDETERMINATE"), regression(2, "INDETERMINATE"), reason="its proof is about 0")
def what_a_misfiled_fault_may_excuse_is_no_violation(story: Story) -> None:
    write(story, 3)
    story.fault(kind="power_loss", nodes=["1"], proof="node 0 is gone, by SIGKILL")
    lose_tail(story, 2)
    story.restart(1)
    story.finish()


WIDE = r"Fault 'dark' \(power_loss\) is filed under 0, 1, 2, and its {} about 2"


def dark(story: Story, **columns: Any) -> None:
    """The third record is lost; a power loss is filed under every broker."""
    write(story, 3)
    times = {"injected_ns": story.now + 1, "proven_ns": story.now + 2, "healed_ns": story.now + 3}
    usual: Row = {"kind": "power_loss", "nodes": ["0", "1", "2"], "heal_proven_ns": story.now + 4, **times}
    story.fault("dark", **{**usual, **columns})
    lose_tail(story, 2)
    for node in (0, 1, 2):
        story.restart(node)
    story.finish()


@case(Outcome.PASS, lost(2, "DOCUMENTED"), regression(2, "DOCUMENTED"))
def a_power_loss_that_names_no_node_excuses_what_every_broker_it_is_filed_under_lost(story: Story) -> None:
    dark(story)


@case(Outcome.INVALID, lost(2, "INDETERMINATE"), regression(2, "INDETERMINATE"), reason=WIDE.format("proof is"))
def a_power_loss_of_one_broker_excuses_nothing_when_it_is_filed_under_all(story: Story) -> None:
    seen = "node 2 is gone, by SIGKILL"
    dark(story, parameters='{"node": 2}', proof=seen, heal_proof="node 2: process 12 answers")


@case(Outcome.INVALID, lost(2, "INDETERMINATE"), regression(2, "INDETERMINATE"), reason=WIDE.format("parameters are"))
def parameters_that_name_one_of_the_brokers_filed_make_the_run_invalid(story: Story) -> None:
    dark(story, parameters='{"node": 2}')
