"""Stories about sends of which only a poll, or only an operation that nobody knows the end of, says where they are; and
about values that are sent twice.

Importing this module adds them to ``CASES``.
"""

from __future__ import annotations

import itertools
from typing import Any

from harness.checker import Outcome
from tests.checkers.cases import case, lost, take_long, write
from tests.checkers.client_randomness import IMPORTED
from tests.checkers.clients import Sent, burst, poll, transact
from tests.checkers.reader_cases import only_clients
from tests.checkers.story import GUARANTEES, Story

UNCLEAN: dict[str, Any] = {"guarantees": GUARANTEES | {"unclean_election": True}}


def stored(story: Story, *values: int) -> None:
    """These values are in the log, in this order."""
    for value in values:
        story.append(0, value, (1, 2))


@case(Outcome.VIOLATION, ("nonmonotonic-send", "VIOLATION", 0))
def a_process_whose_later_record_is_read_before_its_earlier_one_is_found(story: Story) -> None:
    story.send(offset=None, append=False)
    story.send(offset=None, append=False)
    stored(story, 1, 0)
    story.finish()


@case(Outcome.VIOLATION, ("nonmonotonic-send", "VIOLATION", 0), **IMPORTED)
def a_record_that_timed_out_and_overtook_an_acknowledged_one_is_found(story: Story) -> None:
    story.send(offset=1, append=False)
    story.send(result="info", append=False)
    stored(story, 1, 0)
    poll(story, 900, [0, 1], final=True)
    only_clients(story)


@case(Outcome.VIOLATION, ("G0-realtime", "VIOLATION", 0))
def a_record_of_another_process_that_timed_out_and_overtook_is_found(story: Story) -> None:
    stored(story, 1, 0)
    story.send(offset=1, append=False, process=0)
    story.send(result="info", append=False, process=1)
    story.finish()


@case(Outcome.VIOLATION, ("int-nonmonotonic-send", "VIOLATION", 0))
def a_transaction_whose_records_are_read_the_other_way_round_is_found(story: Story) -> None:
    transact(story, Sent(offset=None, append=False), Sent(offset=None, append=False))
    stored(story, 1, 0)
    story.finish()


@case(Outcome.VIOLATION, ("int-nonmonotonic-send", "VIOLATION", 1))
def a_burst_of_which_a_record_overtook_another_is_found(story: Story) -> None:
    burst(story, 0, 2, 1, 3, stored=(0, 2, 1, 3))
    story.finish()


@case(Outcome.PASS, ("int-nonmonotonic-send", "WEAK", 0))
def a_burst_that_waited_for_its_leader_alone_is_out_of_order_all_the_same(story: Story) -> None:
    burst(story, 1, 0, stored=(1, 0), acks=1)
    story.finish()


@case(Outcome.PASS)
def records_of_another_process_come_between_those_of_a_burst(story: Story) -> None:
    burst(story, 0, 2, meanwhile=lambda: story.send(process=1))
    story.finish()


@case(Outcome.PASS)
def where_a_record_of_a_burst_is_that_was_not_acknowledged_says_nothing(story: Story) -> None:
    burst(story, "info", 0, 1, stored=(1, 2, 0))
    story.finish()


@case(Outcome.VIOLATION, lost(2))
def the_end_of_a_burst_is_lost_with_the_acknowledgements_that_it_had(story: Story) -> None:
    burst(story, 0, 1, 2, "info", stored=(0, 1))
    story.finish()


@case(Outcome.PASS)
def an_acknowledgement_of_acks_0_says_nothing_of_when_it_was_stored(story: Story) -> None:
    stored(story, 1, 0)
    story.send(offset=None, append=False, acks=0, process=0)
    story.send(offset=0, append=False, process=1)
    story.finish()


@case(Outcome.VIOLATION, ("duplicate", "VIOLATION", 0))
def where_a_record_is_that_lies_there_twice_nobody_can_say(story: Story) -> None:
    write(story, 1)
    story.history[1]["offset"] = 1
    story.send(result="info", append=False)
    stored(story, 0, 1)
    story.partitions[0].logs = {node: [(0, 1), (0, 0), (0, 1)] for node in story.partitions[0].logs}
    poll(story, 900, [0, 1, 2], final=True)
    only_clients(story)


def stored_twice(story: Story, result: str) -> None:
    """Clients alone see that a record lies there twice, whose send ended so."""
    write(story, 1)
    value = story.send(result=result)
    story.append(0, value, (1, 2))
    poll(story, 900, [0, 1, 2], final=True)
    only_clients(story)


@case(Outcome.INCONCLUSIVE, ("duplicate", "INDETERMINATE", 1), guarantees=GUARANTEES | {"timeline": "none"})
def where_clients_alone_are_known_one_may_have_numbered_a_record_anew(story: Story) -> None:
    stored_twice(story, "info")


@case(Outcome.VIOLATION, ("duplicate", "VIOLATION", 1), guarantees=GUARANTEES | {"timeline": "none"})
def but_none_whose_first_try_was_answered_at_once(story: Story) -> None:
    stored_twice(story, "ok")


def twice(story: Story, *authors: tuple[int | None, int | None]) -> None:
    """A record, and another one that lies there twice; each copy as the producer id and epoch has it."""
    write(story, 1)
    value = story.send()
    story.append(0, value, (1, 2))
    story.finish()
    for row in story.logs:
        row["producer_id"], row["producer_epoch"] = authors[row["offset"] - 1] if row["offset"] else (7, 0)


@case(Outcome.VIOLATION, ("duplicate", "VIOLATION", 1))
def a_record_that_is_stored_twice_in_one_epoch_of_its_producer_is_the_leaders_fault(story: Story) -> None:
    twice(story, (7, 0), (7, 0))


@case(Outcome.PASS, ("duplicate", "DOCUMENTED", 1))
def a_record_that_its_producer_sent_again_in_another_epoch_is_not(story: Story) -> None:
    twice(story, (7, 0), (7, 1))


@case(Outcome.PASS, ("duplicate", "DOCUMENTED", 1))
def nor_one_that_was_sent_again_under_another_id(story: Story) -> None:
    twice(story, (7, 0), (8, 0))


@case(Outcome.VIOLATION, ("duplicate", "VIOLATION", 1))
def of_a_copy_without_a_number_there_is_no_telling(story: Story) -> None:
    twice(story, (7, 0), (None, None))


# ------------------------------------------------------------------------ what operations were told that then timed out


@case(Outcome.VIOLATION, ("inconsistent-offsets", "VIOLATION", 1), ("duplicate", "VIOLATION", 1), **IMPORTED)
def a_record_of_a_transaction_that_is_elsewhere_than_its_client_was_told_is_found(story: Story) -> None:
    write(story, 1)
    transact(story, Sent(append=False, offset=1, knows=True), result="info")
    story.send(offset=1)
    stored(story, 1)
    poll(story, 900, [0, 1, 2], final=True)
    only_clients(story)


@case(Outcome.PASS)
def where_a_transaction_that_nobody_saw_was_told_that_its_record_is_says_nothing(story: Story) -> None:
    transact(story, Sent(append=False, offset=0, knows=True), result="info")
    write(story, 2)
    story.finish()


@case(Outcome.VIOLATION, ("torn-transaction", "VIOLATION", 0), **IMPORTED)
def a_record_of_a_transaction_that_everybody_was_taken_past_is_found(story: Story) -> None:
    story.__init__(story.run, 2)  # type: ignore[misc]
    transact(story, Sent(0), Sent(1, append=False, offset=0, knows=True), result="info")
    story.append(1, None, (1, 2))
    story.send(1, offset=1)
    poll(story, 900, [0], 0, final=True)
    poll(story, 900, [1], 1, final=True)
    only_clients(story)


# -------------------------------------------------------------------------------------------- what was delivered before


def overtake(story: Story, *, acks: int = -1, result: str = "ok", isolation: str | None = None) -> None:
    """Somebody is given a record that nobody was told of; then another one is sent, which is stored before it."""
    stored(story, 1, 0)
    story.send(result="info", append=False, process=0)
    poll(story, 20, [1], isolation=isolation)
    story.send(offset=0, append=False, process=1, acks=acks, result=result)


@case(Outcome.VIOLATION, ("G1c-realtime", "VIOLATION", 0))
def a_record_that_overtakes_one_that_was_delivered_is_found(story: Story) -> None:
    overtake(story)
    story.finish()


@case(Outcome.VIOLATION, ("G1c-realtime", "VIOLATION", 0))
def it_is_found_whatever_the_consumer_was_willing_to_read(story: Story) -> None:
    overtake(story, isolation="read_uncommitted")
    story.finish()


@case(Outcome.VIOLATION, ("G1c-realtime", "VIOLATION", 0))
def a_record_that_timed_out_and_overtook_one_that_was_delivered_is_found(story: Story) -> None:
    overtake(story, result="info")
    story.finish()


@case(Outcome.PASS, ("G1c-realtime", "WEAK", 0))
def a_record_of_acks_1_may_overtake_what_was_delivered(story: Story) -> None:
    overtake(story, acks=1)
    story.finish()


@case(Outcome.VIOLATION, ("G1c-realtime", "VIOLATION", 0))
def a_record_of_a_transaction_that_overtakes_one_that_was_delivered_is_found(story: Story) -> None:
    stored(story, 1, 0)
    story.send(result="info", append=False, process=0)
    poll(story, 20, [1])
    transact(story, Sent(append=False, offset=0))
    story.finish()


@case(Outcome.VIOLATION, ("G1c-realtime", "VIOLATION", 0))
def what_was_delivered_was_committed_whatever_its_sender_waited_for(story: Story) -> None:
    stored(story, 1, 0)
    story.send(offset=1, append=False, process=0, acks=1)
    poll(story, 20, [1])
    story.send(offset=0, append=False, process=1)
    story.finish()


@case(Outcome.VIOLATION, ("G0-realtime", "VIOLATION", 0))
def what_was_acknowledged_and_delivered_is_overtaken_once(story: Story) -> None:
    stored(story, 1, 0)
    story.send(offset=1, append=False, process=0)
    poll(story, 20, [1])
    story.send(offset=0, append=False, process=1)
    story.finish()


@case(Outcome.INVALID, ("G1c-realtime", "INDETERMINATE", 0))
def a_record_that_may_have_been_sent_before_another_one_was_delivered_is_held_against_nobody(story: Story) -> None:
    overtake(story)
    del story.history[-2]
    story.finish()


@case(Outcome.PASS)
def a_record_that_was_sent_before_another_one_was_delivered_may_lie_before_it(story: Story) -> None:
    overtake(story)
    rows = [story.history[at] for at in (0, 4, 1, 2, 3, 5)]
    for index, (row, time_ns) in enumerate(zip(rows, [row["time_ns"] for row in story.history], strict=True)):
        row |= {"index": index, "time_ns": time_ns}
    story.history = rows
    story.finish()


@case(Outcome.PASS, ("duplicate", "DOCUMENTED", 0), guarantees=GUARANTEES | {"idempotent_producers": False})
def a_record_that_is_there_twice_overtakes_nothing(story: Story) -> None:
    stored(story, story.send())
    poll(story, 20, [0, 1])
    story.send()
    story.finish()
    take_long(story)


@case(Outcome.VIOLATION, ("corrupt-read", "VIOLATION", 1))
def of_a_damaged_record_nobody_knows_where_it_belongs(story: Story) -> None:
    overtake(story)
    story.history[3]["intact"] = False
    story.finish()


def give_again(story: Story, *, clean: bool, late: bool = False) -> None:
    """Somebody is given a record, sooner or ``late``; another leader lacks it, and gives its place to others."""
    part = story.partitions[0]
    story.send()
    part.isr = {0, 1}
    story.state(0)
    for _ in range(3):
        story.send(result="info", process=0)
    if not late:
        poll(story, 20, [3])
    lost = part.logs[0][3]
    story.elect(2, clean=clean)
    part.isr = {0, 1, 2}
    if late:
        part.logs[2] += [lost] * 3
        poll(story, 20, [3])
        del part.logs[2][1:]
    story.send(process=1)


REGRESSION, AGAIN = ("hw-regression", "VIOLATION", 1), ("G1c-realtime", "VIOLATION", 1)


@case(Outcome.VIOLATION, ("vanished-read", "VIOLATION", 3), REGRESSION, AGAIN)
def an_offset_that_is_given_again_after_a_loss_is_found(story: Story) -> None:
    give_again(story, clean=True)
    story.finish()


@case(
    Outcome.AS_PREDICTED, ("vanished-read", "EXPECTED", 3), ("hw-regression", "EXPECTED", 1),
    ("G1c-realtime", "EXPECTED", 1), predictions=[{"kind": "vanished-read"}, {"kind": "hw-regression"}],
)  # fmt: skip
def an_offset_that_is_given_again_after_a_predicted_loss_follows_from_it(story: Story) -> None:
    give_again(story, clean=True)
    story.finish()


@case(
    Outcome.PASS, ("vanished-read", "DOCUMENTED", 3), ("hw-regression", "DOCUMENTED", 1),
    ("G1c-realtime", "DOCUMENTED", 1), **UNCLEAN,
)  # fmt: skip
def an_offset_that_an_unclean_election_gave_up_may_be_given_again(story: Story) -> None:
    give_again(story, clean=False)
    story.finish()


@case(
    Outcome.INCONCLUSIVE, ("hw-regression", "DOCUMENTED", 1), ("G1c-realtime", "DOCUMENTED", 1),
    *[("committed-cut", "DOCUMENTED", 1)] * 2, *[("unseen", "INDETERMINATE", at) for at in (0, 1)], **UNCLEAN,
)  # fmt: skip
def what_a_consumer_fetched_before_an_unclean_election_may_be_given_to_it_later(story: Story) -> None:
    give_again(story, clean=False, late=True)
    story.finish(read=False)


# -------------------------------------------------------------------------------------------------------- sent twice

RESENT = "values are sent more than once, 1 in all"


def send_again(story: Story, value: int, **end: Any) -> None:
    """Another operation sends the value."""
    about = {"process": 1, "op": next(story.ops), "f": "send", "topic": "ledger", "partition": 0, "value": value}
    story.row(**about, type="invoke", acks=-1)
    story.row(**about, acks=-1, **end)


@case(Outcome.INVALID, ("aborted-read", "INDETERMINATE", 0), reason=RESENT)
def a_value_that_an_application_sent_again_makes_the_run_invalid(story: Story) -> None:
    value = story.send(result="fail")
    story.send()
    send_again(story, value, type="fail")
    story.finish()


@case(Outcome.INVALID, reason=RESENT)
def a_value_that_was_acknowledged_and_sent_again_makes_the_run_invalid(story: Story) -> None:
    value = story.send()
    send_again(story, value, type="info")
    story.finish()


@case(Outcome.INVALID, ("duplicate", "INDETERMINATE", 0), reason=RESENT)
def a_value_that_was_acknowledged_twice_may_be_no_duplicate(story: Story) -> None:
    value = story.send()
    story.append(0, value, (1, 2))
    send_again(story, value, type="ok", offset=1)
    story.finish()


IN_DOUBT = tuple((kind, "INDETERMINATE", 1) for kind in ("wrong-marker", "int-poll-skip", "duplicate"))


@case(Outcome.INVALID, *IN_DOUBT, reason=RESENT)
def a_value_that_an_application_sent_again_in_another_transaction_blames_no_marker(story: Story) -> None:
    write(story, 1)
    for result in ("fail", "ok"):
        story.values = itertools.count(1)
        transact(story, Sent(0), result=result)
        story.append(0, None, (1, 2))
    story.values = itertools.count(2)
    write(story, 1)
    story.finish()
    said = {2: "abort", 4: "commit"}
    for row in story.logs:
        row |= {"producer_id": 7, "producer_epoch": 0, "control": said.get(row["offset"])}
    story.forget(*[row for row in story.final_rows() if row["offset"] in (1, 2, 4)])


@case(Outcome.PASS)
def a_value_may_be_sent_to_two_partitions(story: Story) -> None:
    story.__init__(story.run, 2)  # type: ignore[misc]
    story.send()
    story.values = itertools.count()
    story.send(1)
    story.finish()
