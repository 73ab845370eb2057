"""Stories of a compacted topic. Importing this module adds them to ``CASES``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from harness.checker import Outcome
from harness.compacted import TOPIC
from tests.checkers.cases import case, write
from tests.checkers.excuse_cases import UNCLEAN
from tests.checkers.group_cases import lose_power
from tests.checkers.keys import elect_uncleanly, in_sync, keep, lead, put, scan, value_of
from tests.checkers.lineage_cases import SETTLES
from tests.checkers.story import GUARANTEES, NODES, Story

A, A2, B, GONE = value_of(0, 1), value_of(1, 1), value_of(2, 2), value_of(3, 1, deletes=True)
STAY_MS = 20
SHORT: dict[str, Any] = {"guarantees": GUARANTEES | {"tombstones_stay_ms": STAY_MS}}
SHORT_AND_SETTLES: dict[str, Any] = {"guarantees": SETTLES["guarantees"] | {"tombstones_stay_ms": STAY_MS}}


def wait(story: Story, milliseconds: int) -> None:
    """Nothing happens for a while."""
    story.now += milliseconds * 1_000_000


def told(story: Story) -> Story:
    """Something is sent to the other topic, too, and all of it is read."""
    write(story, 2)
    return story.finish()


@case(Outcome.PASS)
def a_value_that_a_later_one_of_its_key_supersedes_may_be_gone(story: Story) -> None:
    put(story, A, 0)
    put(story, B, 1)
    put(story, A2, 2)
    scan(story, 3, [(1, B), (2, A2)])
    told(story)


@case(Outcome.PASS)
def a_superseded_value_may_stay(story: Story) -> None:
    put(story, A, 0)
    put(story, A2, 1)
    scan(story, 2, [(0, A), (1, A2)])
    told(story)


@case(Outcome.VIOLATION, ("lost-key", "VIOLATION", 1))
def the_last_value_of_a_key_may_not_be_gone(story: Story) -> None:
    put(story, A, 0)
    put(story, A2, 1)
    put(story, B, 2)
    scan(story, 3, [(2, B)])
    told(story)


@case(Outcome.VIOLATION, ("lost-key", "VIOLATION", 1))
def an_older_value_does_not_stand_for_the_last_one(story: Story) -> None:
    put(story, A, 0)
    put(story, A2, 1)
    scan(story, 2, [(0, A)])
    told(story)


@case(Outcome.VIOLATION, ("lost-key", "VIOLATION", 1))
def a_tombstone_may_not_be_gone_before_its_time(story: Story) -> None:
    put(story, A, 0)
    put(story, GONE, 1)
    scan(story, 2, [])
    told(story)


@case(Outcome.VIOLATION, ("lost-key", "VIOLATION", 1), **SHORT)
def a_tombstone_may_not_be_gone_before_a_short_time(story: Story) -> None:
    put(story, A, 0)
    put(story, GONE, 1)
    scan(story, 2, [])
    told(story)


@case(Outcome.PASS, **SHORT)
def a_tombstone_may_be_gone_after_its_time(story: Story) -> None:
    put(story, A, 0)
    put(story, GONE, 1)
    wait(story, STAY_MS)
    scan(story, 2, [], final=True)
    told(story)


@case(Outcome.VIOLATION, ("lost-key", "VIOLATION", 1))
def a_tombstone_of_unknown_time_may_not_be_gone(story: Story) -> None:
    put(story, A, 0)
    put(story, GONE, 1)
    wait(story, STAY_MS)
    scan(story, 2, [], final=True)
    told(story)


@case(Outcome.VIOLATION, ("lost-key", "VIOLATION", 1), **SHORT)
def a_deleted_key_may_not_come_back(story: Story) -> None:
    put(story, A, 0)
    put(story, GONE, 1)
    wait(story, STAY_MS)
    scan(story, 2, [(0, A)], final=True)
    told(story)


@case(Outcome.PASS, **SHORT)
def a_reader_that_is_slower_than_a_tombstone_may_be_given_an_older_value_alone(story: Story) -> None:
    put(story, A, 0)
    put(story, GONE, 1)
    scan(story, 2, [(0, A)], lasts_ms=STAY_MS)
    told(story)


@case(Outcome.VIOLATION, ("lost-key", "VIOLATION", 1), **SHORT)
def no_other_value_may_stand_where_a_tombstone_was_acknowledged(story: Story) -> None:
    put(story, A, 0)
    put(story, GONE, 1)
    scan(story, 2, [(1, A2)], lasts_ms=STAY_MS)
    told(story)


@case(Outcome.VIOLATION, ("lost-key", "VIOLATION", 0), **SHORT)
def only_a_tombstone_of_the_key_goes_with_time(story: Story) -> None:
    put(story, A, 0)
    put(story, value_of(4, 2, deletes=True), 1)
    wait(story, STAY_MS)
    scan(story, 2, [], final=True)
    told(story)


@case(Outcome.VIOLATION, ("lost-key", "VIOLATION", 1), **SHORT)
def an_earlier_tombstone_does_not_delete_a_later_value(story: Story) -> None:
    put(story, GONE, 0)
    put(story, A2, 1)
    wait(story, STAY_MS)
    scan(story, 2, [], final=True)
    told(story)


@case(Outcome.PASS, **SHORT)
def a_tombstone_that_was_never_acknowledged_may_have_come_and_gone(story: Story) -> None:
    put(story, A, 0)
    put(story, GONE, None, "info")
    put(story, B, 2)
    wait(story, STAY_MS)
    scan(story, 3, [(2, B)], final=True)
    told(story)


@case(Outcome.VIOLATION, ("lost-key", "VIOLATION", 0), **SHORT)
def a_tombstone_that_was_refused_deletes_nothing(story: Story) -> None:
    put(story, A, 0)
    put(story, GONE, None, "fail")
    put(story, B, 1)
    wait(story, STAY_MS)
    scan(story, 2, [(1, B)], final=True)
    told(story)


def step_clock(story: Story, offset_ms: int) -> None:
    """The wall clock of node 0 is off for a while."""
    about = json.dumps({"node": 0, "offset_ms": offset_ms})
    story.fault(kind="clock", nodes=["0"], parameters=about)


@case(Outcome.PASS, **SHORT)
def a_clock_that_steps_may_make_a_tombstone_go_sooner(story: Story) -> None:
    put(story, A, 0)
    put(story, GONE, 1)
    step_clock(story, STAY_MS)
    scan(story, 2, [], final=True)
    told(story)


@case(Outcome.VIOLATION, ("lost-key", "VIOLATION", 0))
def another_key_s_record_supersedes_nothing(story: Story) -> None:
    put(story, A, 0)
    put(story, B, 1)
    scan(story, 2, [(1, B)])
    told(story)


@case(Outcome.PASS)
def a_later_record_that_was_never_acknowledged_supersedes_too(story: Story) -> None:
    put(story, A, 0)
    put(story, A2, None, "info")
    scan(story, 2, [(1, A2)])
    told(story)


@case(Outcome.PASS)
def a_value_that_was_acknowledged_while_a_reader_read_need_not_be_given_to_it(story: Story) -> None:
    scan(story, 1, [])
    put(story, A, 0)
    told(story)


@case(Outcome.PASS)
def a_reader_need_not_be_given_what_lies_beyond_the_watermark_that_it_was_told(story: Story) -> None:
    put(story, A, 0)
    put(story, B, 1)
    scan(story, 1, [(0, A)])
    told(story)


@case(Outcome.PASS)
def a_reader_that_did_not_come_to_the_end_says_nothing(story: Story) -> None:
    put(story, A, 0)
    scan(story, 1, [], "info")
    told(story)


@case(Outcome.VIOLATION, ("lost-key", "VIOLATION", 0))
def a_key_that_many_readers_miss_is_found_once(story: Story) -> None:
    put(story, A, 0)
    for number in range(3):
        scan(story, 1, [], process=80 + number, final=number == 2)
    told(story)


@case(Outcome.PASS, ("lost-key", "DOCUMENTED", 0), **UNCLEAN)
def an_unclean_election_may_give_a_key_up(story: Story) -> None:
    put(story, A, 0)
    elect_uncleanly(story)
    scan(story, 0, [])
    scan(story, 1, [])
    told(story)


@case(Outcome.VIOLATION, ("lost-key", "VIOLATION", 0), **UNCLEAN)
def an_unclean_election_before_a_key_was_written_does_not_give_it_up(story: Story) -> None:
    elect_uncleanly(story)
    put(story, A, 0)
    scan(story, 1, [])
    told(story)


@case(Outcome.PASS, ("lost-key", "DOCUMENTED", 0))
def a_key_may_be_gone_when_every_replica_lost_power_at_one_time(story: Story) -> None:
    lead(story)
    put(story, A, 0)
    lose_power(story, *NODES)
    scan(story, 1, [])
    told(story)


@case(Outcome.VIOLATION, ("lost-key", "VIOLATION", 0))
def a_record_that_is_none_of_ours_supersedes_nothing(story: Story) -> None:
    put(story, A, 0)
    scan(story, 2, [(1, None)])
    told(story)


@case(Outcome.PASS)
def a_record_behind_the_end_of_a_reading_may_supersede_while_it_reads(story: Story) -> None:
    put(story, A, 0)
    put(story, B, 1)
    put(story, A2, 2)
    scan(story, 2, [(1, B)])
    told(story)


@case(Outcome.PASS)
def a_record_that_was_never_acknowledged_may_supersede_behind_the_end_of_a_reading(story: Story) -> None:
    put(story, A, 0)
    put(story, A2, None, "info")
    put(story, B, 1)
    scan(story, 2, [(1, B)])
    told(story)


@case(Outcome.VIOLATION, ("lost-key", "VIOLATION", 0))
def a_record_that_was_refused_supersedes_nothing(story: Story) -> None:
    put(story, A, 0)
    put(story, A2, None, "fail")
    put(story, B, 1)
    scan(story, 2, [(1, B)])
    told(story)


@case(Outcome.VIOLATION, ("lost-key", "VIOLATION", 0))
def a_record_that_is_sent_after_a_reading_supersedes_nothing_in_it(story: Story) -> None:
    put(story, A, 0)
    put(story, B, 1)
    scan(story, 2, [(1, B)])
    put(story, A2, 2)
    told(story)


@case(Outcome.VIOLATION, ("lost-key", "VIOLATION", 0))
def another_key_s_record_behind_the_end_of_a_reading_supersedes_nothing(story: Story) -> None:
    put(story, A, 0)
    put(story, B, 1)
    put(story, B, 2)
    scan(story, 2, [(1, B)])
    told(story)


@case(Outcome.VIOLATION, ("lost-key", "VIOLATION", 1))
def a_log_may_not_end_before_an_acknowledged_value_at_last(story: Story) -> None:
    put(story, B, 0)
    put(story, A, 1)
    scan(story, 1, [(0, B)], final=True)
    told(story)


@case(Outcome.VIOLATION, ("lost-key", "VIOLATION", 0))
def what_was_never_acknowledged_does_not_excuse_the_last_reading(story: Story) -> None:
    put(story, A, 0)
    put(story, A2, None, "info")
    put(story, B, 1)
    scan(story, 2, [(1, B)], final=True)
    told(story)


@case(Outcome.VIOLATION, ("lost-key", "VIOLATION", 0))
def another_value_at_the_offset_of_an_acknowledged_one_does_not_stand_for_it(story: Story) -> None:
    put(story, A, 0)
    scan(story, 1, [(0, A2)])
    told(story)


@case(Outcome.VIOLATION, ("lost-key", "VIOLATION", 0))
def of_two_values_that_were_acknowledged_at_one_offset_one_is_lost(story: Story) -> None:
    put(story, A, 0)
    put(story, A2, 0)
    scan(story, 1, [(0, A2)], final=True)
    told(story)


def replicated(story: Story, *held: Sequence[tuple[int, int | None]]) -> Story:
    """The final reading is given the last value of each key, and brokers 0, 1 ... hold these records in the end."""
    story.now += 1_000_000
    for node, records in enumerate(held):
        keep(story, node, *records)
    return told(story)


@case(Outcome.PASS, **SETTLES)
def replicas_of_a_compacted_log_may_hold_different_records(story: Story) -> None:
    put(story, A, 0)
    put(story, B, 1)
    put(story, A2, 2)
    in_sync(story, *NODES)
    scan(story, 3, [(1, B), (2, A2)], final=True)
    replicated(story, [(0, A), (1, B), (2, A2)], [(1, B), (2, A2)], [(1, B), (2, A2)])


@case(Outcome.VIOLATION, ("replica-lost-key", "VIOLATION", 2), **SETTLES)
def an_in_sync_replica_may_not_lack_the_last_value_of_a_key(story: Story) -> None:
    put(story, A, 0)
    put(story, B, 1)
    put(story, A2, 2)
    in_sync(story, *NODES)
    scan(story, 3, [(1, B), (2, A2)], final=True)
    replicated(story, [(1, B), (2, A2)], [(1, B), (2, A2)], [(0, A), (1, B)])


@case(Outcome.VIOLATION, ("replica-lost-key", "VIOLATION", 0), **SETTLES)
def a_replica_whose_record_is_damaged_lacks_it(story: Story) -> None:
    put(story, A, 0)
    put(story, B, 1)
    in_sync(story, *NODES)
    scan(story, 2, [(0, A), (1, B)], final=True)
    keep(story, 1, (0, A), intact=False)
    replicated(story, [(0, A), (1, B)], [(1, B)], [(0, A), (1, B)])


@case(Outcome.VIOLATION, ("replica-lost-key", "VIOLATION", 0), **SETTLES)
def an_in_sync_replica_without_any_record_lacks_them_all(story: Story) -> None:
    put(story, A, 0)
    in_sync(story, 0, 1)
    scan(story, 1, [(0, A)], final=True)
    replicated(story, [(0, A)])


@case(Outcome.PASS, **SETTLES)
def a_replica_that_is_not_in_sync_may_lack_anything(story: Story) -> None:
    put(story, A, 0)
    in_sync(story, *NODES)
    in_sync(story, 0, 1)
    scan(story, 1, [(0, A)], final=True)
    replicated(story, [(0, A)], [(0, A)])


@case(Outcome.PASS)
def replicas_of_a_run_that_did_not_come_to_rest_are_not_asked_for_keys(story: Story) -> None:
    put(story, A, 0)
    in_sync(story, *NODES)
    scan(story, 1, [(0, A)], final=True)
    replicated(story, [(0, A)], [], [])


@case(Outcome.PASS, **SETTLES)
def of_a_compacted_log_that_was_not_collected_nothing_is_known(story: Story) -> None:
    put(story, A, 0)
    in_sync(story, *NODES)
    scan(story, 1, [(0, A)], final=True)
    replicated(story)


@case(Outcome.PASS, **SETTLES)
def what_was_sent_after_the_final_reading_began_is_not_asked_of_replicas(story: Story) -> None:
    put(story, A, 0)
    in_sync(story, *NODES)
    scan(story, 1, [(0, A)], final=True)
    put(story, A2, 1)
    replicated(story, [(0, A)], [(0, A)], [(0, A)])


@case(Outcome.VIOLATION, ("replica-lost-key", "VIOLATION", 1), **SETTLES)
def an_in_sync_replica_may_not_lack_a_tombstone_that_stays(story: Story) -> None:
    put(story, A, 0)
    put(story, GONE, 1)
    in_sync(story, *NODES)
    scan(story, 2, [(1, GONE)], final=True)
    replicated(story, [(1, GONE)], [(1, GONE)], [(0, A)])


@case(Outcome.PASS, **SHORT_AND_SETTLES)
def a_key_whose_tombstone_may_be_gone_is_not_asked_of_replicas(story: Story) -> None:
    put(story, A, 0)
    put(story, GONE, 1)
    in_sync(story, *NODES)
    scan(story, 2, [(1, GONE)], final=True)
    replicated(story, [(1, GONE)], [], [(0, A)])


@case(Outcome.VIOLATION, ("lost-key", "VIOLATION", 0), ("replica-lost-key", "VIOLATION", 0), **SETTLES)
def a_key_that_every_replica_lacks_is_lost_to_readers_first(story: Story) -> None:
    put(story, A, 0)
    put(story, B, 1)
    in_sync(story, *NODES)
    scan(story, 2, [(1, B)], final=True)
    replicated(story, [(1, B)], [(1, B)], [(1, B)])


@case(
    Outcome.PASS, ("lost-key", "DOCUMENTED", 0), ("replica-lost-key", "DOCUMENTED", 0),
    guarantees=SETTLES["guarantees"] | {"unclean_election": True},
)  # fmt: skip
def an_unclean_election_may_give_a_replica_s_key_up(story: Story) -> None:
    put(story, A, 0)
    elect_uncleanly(story)
    put(story, B, 0)
    in_sync(story, 1, 0, 2, epoch=1)
    scan(story, 1, [(0, B)], final=True)
    replicated(story, [(0, B)], [(0, B)], [(0, B)])


def harm(story: Story, node: int, **parameters: Any) -> None:
    """A fault damages the log of the topic on a broker's disk, which trusts it."""
    about = {"topic": TOPIC, "partition": 0, "offset": 0, "how": "flip", "clean": True, "interrupted": False}
    story.fault("rot", kind="corrupt_log", nodes=[str(node)], parameters=json.dumps(about | parameters))
    story.restart(node)


@case(Outcome.PASS, ("replica-lost-key", "DOCUMENTED", 0), **SETTLES)
def a_key_that_a_fault_has_damaged_on_a_disk_is_put_down_to_it(story: Story) -> None:
    put(story, A, 0)
    in_sync(story, *NODES)
    harm(story, 1)
    scan(story, 1, [(0, A)], final=True)
    replicated(story, [(0, A)], [], [(0, A)])


@case(Outcome.VIOLATION, ("replica-lost-key", "VIOLATION", 0), **SETTLES)
def a_key_that_is_gone_from_another_disk_is_not_put_down_to_it(story: Story) -> None:
    put(story, A, 0)
    in_sync(story, *NODES)
    harm(story, 1)
    scan(story, 1, [(0, A)], final=True)
    replicated(story, [(0, A)], [(0, A)], [])


@case(Outcome.PASS, ("replica-lost-key", "DOCUMENTED", 0), **SETTLES)
def a_key_is_put_down_to_records_of_another_cluster_in_any_log_of_its_partition(story: Story) -> None:
    put(story, A, 0)
    in_sync(story, *NODES)
    harm(story, 1, how="foreign")
    scan(story, 1, [(0, A)], final=True)
    replicated(story, [(0, A)], [(0, A)], [])
