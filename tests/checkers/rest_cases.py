"""Stories of clusters that do not come to rest although they were healed. Importing this module adds to ``CASES``."""

from __future__ import annotations

import json
from typing import Any

from harness.checker import Outcome
from harness.detection.withheld import samples
from tests.checkers.cases import case, write
from tests.checkers.lineage_cases import SETTLES, STUCK
from tests.checkers.sampling import SAMPLED
from tests.checkers.story import GUARANTEES, Story

SEEN: dict[str, Any] = {
    "unrest": {
        "still_s": 20.0,
        "looks": 21,
        "missing": {"ledger-0": ["the ISR is [0, 1], not [0, 1, 2]"]},
        "probes": ["node 2: process 7 exists, and answers", "0->2: a request got through"],
    }
}
"""What a runner writes down that saw node 2 stay out of the ISR, and found nothing wrong around it."""

AIMLESS: dict[str, Any] = dict.fromkeys(
    ("injected_ns", "proven_ns", "proof", "healed_ns", "heal_proven_ns", "heal_proof")
)


def without(story: Story) -> None:
    """Node 2 is out of sync in the end."""
    write(story, 2)
    story.partitions[0].isr = {0, 1}
    story.finish()


@case(Outcome.VIOLATION, STUCK, guarantees=SAMPLED, **SEEN)
def a_cluster_that_is_looked_at_now_and_then_is_stuck_when_it_was_seen_to_stand_still(story: Story) -> None:
    without(story)
    story.timeline = samples(story.timeline, lambda _: True)


@case(Outcome.PASS, guarantees=SAMPLED)
def a_cluster_that_is_looked_at_now_and_then_is_not_stuck_by_how_it_ended(story: Story) -> None:
    without(story)
    story.timeline = samples(story.timeline, lambda _: True)


@case(Outcome.VIOLATION, STUCK, guarantees=SETTLES["guarantees"], **SEEN)
def what_the_runner_saw_and_what_the_last_rows_say_is_one_stall(story: Story) -> None:
    without(story)


def unserved(of: str, phrase: str) -> dict[str, Any]:
    """What a runner writes down of a cluster at rest that does not serve its clients."""
    return {"guarantees": SAMPLED, "unrest": SEEN["unrest"] | {"of": of, "missing": {"ledger-0": [phrase]}}}


READS = unserved("reads", "the final read stands at offset 0, and the high watermark is 1")
JOINS = unserved("takeovers", "group-0 has given it to no new member")
SENDS = unserved("sends", "5 sends with acks=all, and none was acknowledged (the last: _MSG_TIMED_OUT)")


@case(Outcome.VIOLATION, STUCK, **JOINS)
def a_partition_that_no_new_member_of_a_group_is_given_is_stuck(story: Story) -> None:
    write(story, 2)
    story.finish()


@case(Outcome.VIOLATION, STUCK, **READS)
def a_partition_that_gives_no_consumer_what_it_holds_is_stuck(story: Story) -> None:
    write(story, 2)
    story.finish()


@case(Outcome.VIOLATION, STUCK, **SENDS)
def a_partition_that_acknowledges_nothing_after_the_healing_is_stuck(story: Story) -> None:
    write(story, 2)
    story.finish()


@case(Outcome.INVALID, reason="was never healed", **SENDS)
def while_a_fault_may_be_in_force_no_partition_has_to_acknowledge(story: Story) -> None:
    write(story, 2)
    story.fault(healed_ns=None, heal_proven_ns=None)
    story.finish()


@case(Outcome.PASS, ("stuck", "DOCUMENTED", None), **READS)
def what_a_fault_has_damaged_is_not_delivered(story: Story) -> None:
    write(story, 2)
    harm = {"topic": "ledger", "partition": 0, "offset": 0, "clean": True}
    story.fault(kind="corrupt_log", nodes=["0"], parameters=json.dumps(harm))
    story.finish()


@case(Outcome.INVALID, reason="was never healed", guarantees=GUARANTEES, **SEEN)
def while_a_fault_may_be_in_force_no_cluster_is_stuck(story: Story) -> None:
    without(story)
    story.fault(healed_ns=None, heal_proven_ns=None)


@case(Outcome.VIOLATION, STUCK, reason="was never injected", **SETTLES)
def a_fault_that_found_nothing_to_aim_at_excuses_no_stall(story: Story) -> None:
    without(story)
    story.fault(**AIMLESS)


@case(Outcome.VIOLATION, STUCK, reason="has only final rows", guarantees=GUARANTEES, **SEEN)
def what_the_runner_saw_needs_no_timeline(story: Story) -> None:
    without(story)
    story.timeline = [row for row in story.timeline if row["node"] != 1 or row["kind"] == "final"]


LACKING: dict[str, dict[str, Any]] = {"missing": {"missing": {}}, "looks": {"looks": 10}, "probes": {"probes": []}}


def lacking(name: str) -> dict[str, Any]:
    """``SEEN`` without what shows that the cluster stood still."""
    return {"unrest": SEEN["unrest"] | LACKING[name]}


@case(Outcome.INVALID, reason="unrest does not name what each partition", guarantees=SAMPLED, **lacking("missing"))
def an_unrest_of_no_partition_proves_nothing_against_a_cluster(story: Story) -> None:
    without(story)


@case(Outcome.INVALID, reason="unrest has 10 looks, and a runner takes at least 11", guarantees=SAMPLED,
      **lacking("looks"))  # fmt: skip
def an_unrest_of_few_looks_proves_nothing_against_a_cluster(story: Story) -> None:
    without(story)


@case(Outcome.INVALID, reason="unrest names no probe", guarantees=SAMPLED, **lacking("probes"))
def an_unrest_without_probes_proves_nothing_against_a_cluster(story: Story) -> None:
    without(story)


@case(Outcome.VIOLATION, STUCK, reason="unrest has 10 looks", guarantees=SETTLES["guarantees"], **lacking("looks"))
def a_broken_unrest_does_not_keep_the_last_rows_from_being_looked_at(story: Story) -> None:
    without(story)


@case(Outcome.VIOLATION, STUCK, guarantees=SETTLES["guarantees"],
      reason="unrest does not name", **lacking("missing"))  # fmt: skip
def an_unrest_of_no_partition_does_not_either(story: Story) -> None:
    without(story)


def leaderless(eligible: list[int], gone: list[int]) -> dict[str, Any]:
    """What a runner writes down of a partition that has no leader."""
    seen = SEEN["unrest"] | {"missing": {"ledger-0": ["there is no leader"]}}
    return {"guarantees": SAMPLED, "unrest": seen | {"eligible": {"ledger-0": eligible}, "gone": gone}}


@case(Outcome.PASS, ("stuck", "DOCUMENTED", None), **leaderless([2], [2]))
def nobody_leads_while_all_that_may_be_elected_have_ended_themselves(story: Story) -> None:
    write(story, 2)
    story.finish()


@case(Outcome.VIOLATION, STUCK, **leaderless([1, 2], [2]))
def who_may_be_elected_and_is_there_has_to_be_elected(story: Story) -> None:
    write(story, 2)
    story.finish()


@case(Outcome.VIOLATION, STUCK, **leaderless([], []))
def a_partition_of_which_nobody_lost_anything_always_has_somebody_to_elect(story: Story) -> None:
    write(story, 2)
    story.finish()


@case(Outcome.VIOLATION, STUCK, **leaderless([], [2]))
def a_broker_that_has_exited_excuses_no_partition_without_eligible_replicas(story: Story) -> None:
    write(story, 2)
    story.finish()


@case(Outcome.PASS, ("stuck", "DOCUMENTED", None), **leaderless([], []))
def where_all_who_were_in_sync_lost_power_nobody_may_be_elected_cleanly(story: Story) -> None:
    write(story, 2)
    story.fault(kind="power_loss")
    story.finish()


@case(Outcome.PASS, ("stuck", "DOCUMENTED", None), guarantees=SAMPLED, **SEEN)
def a_follower_refuses_what_a_fault_has_damaged_in_its_leaders_log(story: Story) -> None:
    write(story, 2)
    harm = {"topic": "ledger", "partition": 0, "offset": 0, "clean": True}
    story.fault(kind="corrupt_log", nodes=["0"], parameters=json.dumps(harm))
    story.finish()


def lag_behind(story: Story) -> None:
    """The last record of the second partition is not committed when the run ends."""
    story.__init__(story.run, 2)  # type: ignore[misc]
    write(story, 2)
    story.append(1, None, (1, 2), commit=False)
    story.scenario["topics"] = [{"name": "ledger", "partitions": 2, "replication_factor": 3}]
    story.finish()


@case(Outcome.VIOLATION, STUCK, **SETTLES)
def a_partition_whose_last_record_is_not_committed_in_the_end_is_stuck(story: Story) -> None:
    lag_behind(story)


@case(Outcome.PASS, **SETTLES)
def a_coordinator_may_write_to_kafkas_own_topic_until_the_end(story: Story) -> None:
    lag_behind(story)
    story.scenario["topics"][0]["partitions"] = 1
    for row in (*story.timeline, *story.logs):
        if row["partition"] == 1:
            row |= {"topic": "__consumer_offsets", "partition": 0}
