"""Stories of sends that are refused, with a reason or without. Importing this module adds to ``CASES``."""

from __future__ import annotations

from typing import Any

from harness.checker import Outcome
from harness.detection.withheld import samples
from tests.checkers.cases import case, lose_tail, lost, regression, write
from tests.checkers.client_randomness import IMPORTED
from tests.checkers.reader_cases import only_clients
from tests.checkers.sampling import SAMPLED
from tests.checkers.story import CONTROLLER, GUARANTEES, NODES, Story

UNJUSTIFIED = ("unjustified-refusal", "VIOLATION", None)
OUT_OF_ORDER = ("unjustified-refusal", "VIOLATION", 2)
UNCLEAN: dict[str, Any] = {"guarantees": GUARANTEES | {"unclean_election": True}}
IN_ORDER = "OUT_OF_ORDER_SEQUENCE_NUMBER"


def refuse(story: Story, error: str = IN_ORDER, process: int = 0, result: str = "info") -> None:
    """A send ends with an error, and nothing is appended."""
    story.send(result=result, append=False, error=error, process=process)


def refused(story: Story, error: str = IN_ORDER) -> None:
    """The process's fourth send ends with an error, and that is all."""
    write(story, 3)
    refuse(story, error)
    story.finish()


# -------------------------------------------------------------------------------------------------- called invalid


@case(Outcome.VIOLATION, UNJUSTIFIED)
def the_first_batch_of_a_producer_that_is_called_invalid_is_found(story: Story) -> None:
    write(story, 2)
    refuse(story, "INVALID_REQUEST", process=7)
    story.finish()


@case(Outcome.VIOLATION, UNJUSTIFIED)
def acks_that_are_called_invalid_are_found(story: Story) -> None:
    write(story, 2)
    refuse(story, "INVALID_REQUIRED_ACKS", result="fail")
    story.finish()


@case(Outcome.VIOLATION, UNJUSTIFIED, UNJUSTIFIED)
def each_error_is_found_once_however_many_sends_it_ended(story: Story) -> None:
    write(story, 2)
    for error in ("INVALID_RECORD", "INVALID_MSG", "INVALID_RECORD"):
        refuse(story, error)
    story.finish()


@case(Outcome.VIOLATION, UNJUSTIFIED, guarantees=SAMPLED)
def a_send_that_a_real_broker_calls_invalid_is_found(story: Story) -> None:
    refused(story, "INVALID_RECORD")
    story.timeline = samples(story.timeline, lambda _: True)


@case(Outcome.VIOLATION, UNJUSTIFIED)
def a_fault_makes_no_send_invalid(story: Story) -> None:
    write(story, 2)
    story.fault(kind="disk_full", nodes=["0"])
    refuse(story, "INVALID_REQUEST")
    story.finish()


@case(Outcome.PASS)
def a_refusal_that_clocks_settings_or_the_state_of_the_cluster_justify_passes(story: Story) -> None:
    write(story, 2)
    for error in ("NOT_ENOUGH_REPLICAS", "INVALID_TIMESTAMP", "MSG_SIZE_TOO_LARGE", "UNKNOWN", "_TIMED_OUT",
                  "UNSUPPORTED_FOR_MESSAGE_FORMAT", "TOPIC_AUTHORIZATION_FAILED", "UNKNOWN_PRODUCER_ID"):  # fmt: skip
        refuse(story, error)
    story.finish()


@case(Outcome.PASS, **IMPORTED)
def what_clients_of_others_were_refused_nobody_knows_to_be_valid(story: Story) -> None:
    write(story, 3)
    refuse(story, "INVALID_REQUEST")
    story.poll(900, range(3), final=True)
    only_clients(story)


@case(Outcome.INVALID, ("unjustified-refusal", "INDETERMINATE", None), reason="row 1 ends a send that began with")
def a_refusal_of_another_value_than_was_sent_is_none(story: Story) -> None:
    refuse(story, "INVALID_REQUEST")
    story.history[1]["value"] = 77
    write(story, 2)
    story.finish()


# ------------------------------------------------------------------------------------------ said not to follow on


@case(Outcome.VIOLATION, OUT_OF_ORDER)
def a_producer_that_was_acknowledged_everything_is_in_order(story: Story) -> None:
    refused(story)


@case(Outcome.VIOLATION, OUT_OF_ORDER)
def a_producer_that_was_acknowledged_everything_has_no_older_epoch(story: Story) -> None:
    refused(story, "INVALID_PRODUCER_EPOCH")


@case(Outcome.VIOLATION, OUT_OF_ORDER)
def a_new_leader_has_to_know_the_producers_in_its_log(story: Story) -> None:
    write(story, 3)
    story.elect(1)
    write(story, 2, process=1)
    refuse(story)
    story.finish()


@case(Outcome.PASS)
def the_first_batch_of_a_process_may_be_one_of_many_of_its_producer(story: Story) -> None:
    write(story, 3)
    refuse(story, process=1)
    story.finish()


@case(Outcome.PASS)
def a_producer_that_gave_a_batch_up_may_be_out_of_order(story: Story) -> None:
    write(story, 2)
    story.send(result="info", append=False)
    write(story, 1)
    refuse(story)
    story.finish()


@case(Outcome.PASS)
def a_producer_of_which_a_batch_is_still_under_way_may_be_out_of_order(story: Story) -> None:
    write(story, 2)
    story.send(result="invoke", append=False)
    refuse(story)
    story.finish()


@case(Outcome.PASS)
def a_producer_that_did_not_wait_for_all_may_be_out_of_order(story: Story) -> None:
    write(story, 3, acks=1)
    refuse(story)
    story.finish()


@case(Outcome.VIOLATION, lost(2), regression(2))
def a_refusal_by_a_leader_that_has_lost_the_record_before_is_no_second_finding(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 2)
    refuse(story)
    story.finish()


@case(Outcome.PASS, regression(2, "DOCUMENTED"), ("committed-cut", "DOCUMENTED", 2), **UNCLEAN)
def a_leader_that_an_unclean_election_chose_may_lack_the_record_for_a_while(story: Story) -> None:
    write(story, 3)
    part, begin = story.partitions[0], len(story.timeline)
    story.cut(1, 2)
    for row in story.timeline[begin:]:
        row["leader_epoch"] = 1
    lead(story, 1, clean=False)
    refuse(story)
    part.isr = {2}
    story.elect(2, clean=False)
    story.finish()


def lead(story: Story, node: int, *, clean: bool = True) -> None:
    """A node takes over, without node 0, and the others have not heard of it."""
    part = story.partitions[0]
    part.leader, part.epoch, part.isr = node, part.epoch + 1, {1, 2} if clean else {node}
    said = {"clean": clean, "elected_from_isr": clean, "previous_leader": 0, "controller_epoch": 1}
    story.say(CONTROLLER, "election", 0, said, leader=node, leader_epoch=part.epoch, partition_epoch=3 * part.epoch,
              isr=sorted(part.isr))  # fmt: skip
    story.state(node)


def depose(story: Story, *, heard: bool) -> None:
    """Node 1 takes over while node 0 may still believe that it leads, and takes three records; the next is refused."""
    part = story.partitions[0]
    write(story, 1, process=1)
    lead(story, 1)
    if heard:
        story.state(0)
    write(story, 2)
    refuse(story)
    part.isr = set(NODES)
    part.logs[0] = list(part.logs[1])
    story.state(0)
    story.commit()
    story.finish()


@case(Outcome.PASS)
def a_deposed_leader_that_has_not_heard_of_it_does_not_know_what_came_later(story: Story) -> None:
    depose(story, heard=False)


@case(Outcome.VIOLATION, OUT_OF_ORDER)
def a_deposed_leader_that_has_heard_of_it_refuses_nothing(story: Story) -> None:
    depose(story, heard=True)


@case(Outcome.PASS)
def a_leader_that_wrote_no_row_may_have_had_anything(story: Story) -> None:
    write(story, 3)
    said = {"clean": True, "elected_from_isr": True, "previous_leader": 0, "controller_epoch": 1}
    story.say(CONTROLLER, "election", 0, said, leader=1, leader_epoch=1, partition_epoch=3, isr=[0, 1, 2])
    story.partitions[0].epoch = 1
    refuse(story)
    story.elect(0)
    story.finish()


@case(Outcome.PASS, generation="2.0.1")
def before_2_1_a_later_leader_may_have_had_another_record_there(story: Story) -> None:
    write(story, 3)
    story.elect(1)
    refuse(story)
    story.finish()


@case(Outcome.VIOLATION, OUT_OF_ORDER, generation="2.0.1")
def before_2_1_the_leader_that_wrote_the_record_has_it(story: Story) -> None:
    refused(story)


@case(Outcome.PASS, guarantees=SAMPLED)
def who_thought_to_lead_a_sampled_timeline_does_not_say(story: Story) -> None:
    refused(story)
    story.timeline = samples(story.timeline, lambda _: True)


@case(Outcome.PASS)
def a_log_of_another_cluster_has_producers_of_its_own(story: Story) -> None:
    write(story, 3)
    story.fault(kind="corrupt_log", nodes=["0"], proof="node 0: bytes changed", heal_proof="node 0: process 1 answers")
    story.restart(0)
    refuse(story)
    story.finish()


@case(Outcome.PASS)
def a_controller_with_a_new_disk_may_give_out_a_producer_s_id_again(story: Story) -> None:
    write(story, 3)
    story.fault(kind="wipe_disk", nodes=["controller"])
    story.restart_controller()
    refuse(story)
    story.finish()


def shared(story: Story, *, idempotent: bool) -> None:
    story.scenario = {"schedule": [{"send": {"records": ["m0"], "producer": "p", "idempotent": idempotent}}]}
    refused(story)


@case(Outcome.PASS)
def what_fails_one_batch_of_a_shared_producer_fails_them_all(story: Story) -> None:
    shared(story, idempotent=True)


@case(Outcome.VIOLATION, OUT_OF_ORDER)
def a_schedule_whose_producers_number_nothing_changes_nothing(story: Story) -> None:
    shared(story, idempotent=False)


@case(Outcome.INVALID, ("unjustified-refusal", "INDETERMINATE", 2), reason="The history has a gap: rows 4 to 5 are")
def what_the_producer_had_sent_before_may_be_in_a_gap(story: Story) -> None:
    write(story, 2)
    story.send(result="info", append=False)
    write(story, 1)
    refuse(story)
    story.finish()
    del story.history[4:6]


def of_transaction(story: Story) -> None:
    for row in story.history[-2:]:
        row["txn"] = True


@case(Outcome.PASS)
def a_send_in_a_transaction_is_not_judged(story: Story) -> None:
    write(story, 3)
    refuse(story, "INVALID_REQUEST", process=4, result="fail")
    of_transaction(story)
    story.finish()
