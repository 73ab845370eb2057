"""Stories of records that are there twice, and of why they may be. Importing this module adds to ``CASES``."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from harness.checker import Outcome
from harness.detection.withheld import samples
from harness.findings import RESENT_NS
from tests.checkers.cases import case, write
from tests.checkers.sampling import SAMPLED
from tests.checkers.story import GUARANTEES, NODES, Row, Story

PLAIN: dict[str, Any] = {"guarantees": GUARANTEES | {"idempotent_producers": False}}
REPEATED, EXCUSED = ("duplicate", "VIOLATION", 0), ("duplicate", "DOCUMENTED", 0)


def calm(_: Story) -> None:
    """Nothing happens."""


def send_twice(story: Story, happens: Callable[[Story], None] = calm, *, result: str = "ok") -> None:
    """A record is appended twice, and what ``happens`` does so while its send is under way, which takes long."""
    about: Row = {"process": 0, "op": next(story.ops), "f": "send", "topic": "ledger", "partition": 0}
    about |= {"value": next(story.values), "acks": -1}
    story.row(**about, type="invoke")
    part = story.partitions[0]
    story.append(0, about["value"], set(NODES) - {part.leader})
    happens(story)
    story.now += RESENT_NS
    story.append(0, about["value"], set(NODES) - {part.leader})
    story.row(**about, type=result, offset=len(part.logs[part.leader]) - 1 if result == "ok" else None)


def hit(story: Story, kind: str = "pause", **columns: Any) -> None:
    """A fault that lasts a millisecond."""
    story.fault("f1", kind=kind, healed_ns=story.now + 1_000_000, heal_proven_ns=story.now + 1_000_000, **columns)


@case(Outcome.VIOLATION, REPEATED, **PLAIN)
def a_client_that_is_answered_at_once_has_sent_its_record_once(story: Story) -> None:
    write(story, 2)
    story.append(0, 0, {1, 2})
    story.elect(1)
    story.finish()


@case(Outcome.VIOLATION, REPEATED, **PLAIN)
def a_client_that_is_answered_late_has_no_reason_to_send_again(story: Story) -> None:
    send_twice(story)
    story.finish()


@case(Outcome.VIOLATION, ("duplicate", "VIOLATION", 1), **PLAIN)
def an_answer_without_an_offset_does_not_say_when_a_record_was_appended(story: Story) -> None:
    write(story, 1)
    send_twice(story)
    story.history[-1]["offset"] = None
    story.finish()


@case(Outcome.VIOLATION, REPEATED, **PLAIN)
def a_client_that_is_not_answered_has_no_reason_to_send_again(story: Story) -> None:
    send_twice(story, result="info")
    story.finish()


@case(Outcome.VIOLATION, REPEATED, **PLAIN)
def a_broker_that_is_started_again_and_leads_only_later_makes_no_client_send_again(story: Story) -> None:
    send_twice(story, lambda story: story.restart(2))
    story.now += 10_000_000_000
    story.elect(2)
    story.finish()


@case(Outcome.VIOLATION, REPEATED, **PLAIN)
def what_happens_before_a_send_or_after_it_makes_no_client_send_again(story: Story) -> None:
    hit(story, nodes=["0"])
    story.restart(0)
    story.elect(0)
    story.now += 2_000_000
    send_twice(story)
    story.elect(1)
    hit(story, nodes=["1"])
    story.finish()


@case(Outcome.PASS, EXCUSED, **PLAIN)
def a_client_whose_leader_is_deposed_may_send_again(story: Story) -> None:
    send_twice(story, lambda told: told.elect(1))
    story.finish()


@case(Outcome.PASS, EXCUSED, **PLAIN)
def a_client_that_is_never_answered_may_send_again_at_any_time(story: Story) -> None:
    send_twice(story, result="info")
    story.elect(1)
    story.send()
    story.finish()


@case(Outcome.PASS, EXCUSED, **PLAIN)
def a_client_whose_leader_hears_late_that_it_is_deposed_may_send_again(story: Story) -> None:
    begin = len(story.timeline)
    story.elect(1)
    early = [row for row in story.timeline[begin:] if row["node"] == 0]
    story.timeline = [row for row in story.timeline if row not in early]
    story.sequences[0] -= len(early)
    send_twice(story)
    story.finish()


@case(Outcome.PASS, EXCUSED, **PLAIN)
def a_client_whose_leader_is_started_again_may_send_again(story: Story) -> None:
    send_twice(story, lambda told: told.restart(0))
    story.finish()


@case(Outcome.VIOLATION, REPEATED, **PLAIN)
def a_start_of_a_follower_breaks_no_client_s_connection(story: Story) -> None:
    send_twice(story, lambda told: told.restart(1))
    story.finish()


@case(Outcome.PASS, EXCUSED, **PLAIN)
def a_client_whose_leader_was_hit_may_send_again(story: Story) -> None:
    send_twice(story, lambda told: hit(told, nodes=["0"]))
    story.finish()


@case(Outcome.VIOLATION, REPEATED, **PLAIN)
def a_fault_of_a_follower_makes_no_client_send_again(story: Story) -> None:
    send_twice(story, lambda told: hit(told, nodes=["1"]))
    story.finish()


@case(Outcome.VIOLATION, REPEATED, **PLAIN)
def a_wrong_clock_makes_no_client_send_again(story: Story) -> None:
    send_twice(story, lambda told: hit(told, "clock", nodes=["0"], parameters=json.dumps({"offset_ms": 9})))
    story.finish()


@case(Outcome.PASS, EXCUSED, **PLAIN)
def a_client_that_is_cut_off_from_its_leader_may_send_again(story: Story) -> None:
    links = json.dumps({"links": [["clients", 0]]})
    send_twice(story, lambda told: hit(told, "partition", nodes=["0"], parameters=links))
    story.finish()


@case(Outcome.VIOLATION, REPEATED, **PLAIN)
def brokers_that_are_cut_off_from_each_other_hear_their_clients(story: Story) -> None:
    links = json.dumps({"links": [[0, 1], [1, 0]]})
    send_twice(story, lambda told: hit(told, "partition", nodes=["0", "1"], parameters=links))
    story.finish()


def shrink(story: Story) -> None:
    """The ISR is the leader alone for a time."""
    for isr in ({0}, set(NODES)):
        story.partitions[0].isr = isr
        story.state(0)


@case(Outcome.PASS, EXCUSED, **PLAIN)
def a_client_whose_record_is_on_too_few_replicas_may_send_again(story: Story) -> None:
    send_twice(story, shrink)
    story.finish()


@case(Outcome.VIOLATION, REPEATED, guarantees=PLAIN["guarantees"] | {"min_insync_replicas": 1})
def an_isr_that_is_large_enough_makes_no_client_send_again(story: Story) -> None:
    send_twice(story, shrink)
    story.finish()


def orders(story: Story, **send: Any) -> None:
    """The schedule has a client that tries again when it was not answered for 40 ms."""
    known = {"per_partition": 1, "retries": 2, "retry_after_s": 0.04}
    story.scenario["schedule"] = [{"send": {"per_partition": 1, "retries": 0, "retry_after_s": 0.01}}]
    story.scenario["schedule"] += [{"send": known | send}]


@case(Outcome.PASS, EXCUSED, **PLAIN)
def a_client_that_has_waited_for_long_enough_may_send_again(story: Story) -> None:
    orders(story)
    send_twice(story)
    story.finish()


@case(Outcome.VIOLATION, REPEATED, **PLAIN)
def a_client_that_has_not_waited_for_long_enough_has_not_sent_again(story: Story) -> None:
    orders(story, retry_after_s=1.0)
    send_twice(story)
    story.finish()


@case(Outcome.VIOLATION, REPEATED, **PLAIN)
def a_client_that_numbers_its_records_may_send_them_as_often_as_it_likes(story: Story) -> None:
    orders(story, idempotent=True, producer="p")
    send_twice(story)
    story.finish()


@case(Outcome.INVALID, ("duplicate", "INDETERMINATE", 0), reason="has .* rows where", **PLAIN)
def what_makes_a_client_send_again_may_be_in_the_gap_of_a_timeline(story: Story) -> None:
    send_twice(story)
    story.finish()
    gone = next(row for row in story.timeline if (row["node"], row["kind"], row["sequence"]) == (1, "state", 3))
    story.timeline.remove(gone)


@case(Outcome.VIOLATION, REPEATED, guarantees=SAMPLED | PLAIN["guarantees"])
def a_client_whose_leader_is_looked_at_now_and_then_has_no_reason_either(story: Story) -> None:
    send_twice(story)
    story.finish()
    story.timeline = samples(story.timeline, lambda _: True)


@case(Outcome.PASS, EXCUSED, guarantees=SAMPLED | PLAIN["guarantees"])
def an_election_that_is_seen_late_may_have_made_a_client_send_again(story: Story) -> None:
    send_twice(story)
    story.elect(1)
    story.finish()
    story.timeline = samples(story.timeline, lambda _: True)
