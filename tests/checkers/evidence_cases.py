"""Stories of which some of the evidence was lost: none of them may pass.

Importing this module adds them to ``CASES``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.checker import Outcome
from harness.findings import GAPS_KEPT
from tests.checkers.cases import case, lose_tail, lost, regression, unseen, write
from tests.checkers.clients import Polled, Sent, transact
from tests.checkers.story import CONTROLLER, NODES, Row, Story


def told(story: Story) -> Story:
    """Three records, one restart of node 1, and an end."""
    write(story, 3)
    story.restart(1)
    return story.finish()


def drop(rows: list[Row], gone: Callable[[Row], bool]) -> None:
    rows[:] = [row for row in rows if not gone(row)]


@case(Outcome.PASS)
def the_story_that_these_cases_falsify_passes(story: Story) -> None:
    told(story)


# ------------------------------------------------------------------------------------------------------------ nodes


@case(Outcome.INVALID, reason=r"incarnation 1\) has only final rows")
def a_timeline_of_final_rows_alone_makes_the_run_invalid(story: Story) -> None:
    told(story)
    drop(story.timeline, lambda r: r["kind"] != "final")


@case(Outcome.INVALID, reason="Node 1 has no timeline of its incarnation 0")
def an_incarnation_without_a_row_makes_the_run_invalid(story: Story) -> None:
    told(story)
    drop(story.timeline, lambda r: (r["node"], r["incarnation"]) == (1, 0))


@case(Outcome.INVALID, reason="Node 2 has no timeline of its incarnation 0")
def a_node_that_is_nowhere_makes_the_run_invalid(story: Story) -> None:
    told(story)
    drop(story.timeline, lambda r: r["node"] == 2)
    drop(story.logs, lambda r: r["node"] == 2)


@case(Outcome.INVALID, reason=f"Node {CONTROLLER} has no timeline of its incarnation 0")
def a_controller_without_a_timeline_makes_the_run_invalid(story: Story) -> None:
    told(story)
    drop(story.timeline, lambda r: r["node"] == CONTROLLER)


@case(Outcome.INVALID, reason=r"node 0 \(incarnation 0\) has 3 rows where its final rows say \d+")
def a_timeline_without_its_tail_makes_the_run_invalid(story: Story) -> None:
    told(story)
    drop(story.timeline, lambda r: r["node"] == 0 and r["kind"] != "final" and r["sequence"] > 2)


ADVANCED = ("unjustified-advance", "INDETERMINATE", 2)


def cut_short(story: Story) -> None:
    """Node 1 has five records and is killed; of that life the rows about the last three are gone."""
    write(story, 5)
    story.restart(1)
    story.finish()
    life = [row for row in story.timeline if (row["node"], row["incarnation"]) == (1, 0)]
    gone = next(row["sequence"] for row in life if row["log_end_offset"] == 3)
    drop(story.timeline, lambda r: (r["node"], r["incarnation"]) == (1, 0) and r["sequence"] >= gone)


@case(Outcome.INVALID, ADVANCED, reason=r"node 1 \(incarnation 0\) has no final row")
def the_timeline_of_a_killed_life_that_breaks_off_is_no_violation(story: Story) -> None:
    cut_short(story)
    story.broken_off = {(1, 0)}


@case(Outcome.INVALID, ADVANCED, reason=r"node 1 \(incarnation 0\) has 6 rows where its final rows say 12")
def a_killed_life_whose_last_rows_are_missing_is_known_by_its_final_row(story: Story) -> None:
    write(story, 5)
    final = dict(story.say(1, "final", None), sequence=12)
    cut_short(story)
    story.timeline = [row for row in story.timeline if row["kind"] != "final" or row["topic"] is not None]
    story.timeline.append(final)


@case(Outcome.INVALID, reason="Node 2 has no timeline of its incarnation 1")
def a_restart_that_left_no_timeline_makes_the_run_invalid(story: Story) -> None:
    told(story)
    story.fault(kind="kill", nodes=["2"])


def of_a_quorum(story: Story, incarnation: int) -> None:
    """The node ``controller-2`` was started."""
    story.sequences[102], story.incarnations[102] = 0, incarnation
    story.say(102, "started", None)


@case(Outcome.PASS)
def a_controller_of_a_quorum_that_was_restarted_has_two_lives(story: Story) -> None:
    told(story)
    story.fault(kind="kill", nodes=["controller-2"])
    for incarnation in range(2):
        of_a_quorum(story, incarnation)


@case(Outcome.INVALID, reason="Node 102 has no timeline of its incarnation 1")
def a_controller_of_a_quorum_whose_restart_left_no_timeline_makes_the_run_invalid(story: Story) -> None:
    told(story)
    story.fault(kind="kill", nodes=["controller-2"])
    of_a_quorum(story, 0)


@case(Outcome.INVALID, reason=r"node 2 \(incarnation 0\) has 7 rows where its last one says 8")
def a_row_that_is_twice_in_a_timeline_makes_up_for_no_other(story: Story) -> None:
    told(story)
    rows = [r for r in story.timeline if (r["node"], r["kind"]) == (2, "state")]
    rows[1]["sequence"] = rows[2]["sequence"]


# --------------------------------------------------------------------------------------------------------- replicas


@case(Outcome.INCONCLUSIVE, reason="How ledger-0 ended on node 2 is not known")
def a_replica_without_a_final_row_leaves_the_run_inconclusive(story: Story) -> None:
    told(story)
    drop(story.timeline, lambda r: (r["kind"], r["node"]) == ("final", 2))


@case(Outcome.INCONCLUSIVE, reason="How ledger-0 ended on node 1 is not known")
def a_replica_without_a_final_watermark_leaves_the_run_inconclusive(story: Story) -> None:
    told(story)
    next(r for r in story.timeline if (r["kind"], r["node"]) == ("final", 1))["high_watermark"] = None


@case(Outcome.INVALID, reason=r"log of ledger-0 on node 0 has 0 records .* from 0 to 3")
def logs_that_are_empty_make_the_run_invalid(story: Story) -> None:
    told(story)
    story.logs.clear()


@case(Outcome.INVALID, reason="log of ledger-0 on node 2 has 2 records at 2 offsets, 0 to 1")
def a_tail_that_no_log_holds_makes_the_run_invalid(story: Story) -> None:
    told(story)
    drop(story.logs, lambda r: r["offset"] == 2)


@case(Outcome.INVALID, reason="log of ledger-0 on node 2 has 4 records at 3 offsets")
def an_offset_that_is_twice_in_a_log_makes_the_run_invalid(story: Story) -> None:
    told(story)
    story.logs.append(dict(story.logs[-1]))


@case(Outcome.INCONCLUSIVE, reason="ledger-1 is configured, and the history does not name it")
def a_configured_partition_that_the_history_does_not_name_leaves_the_run_inconclusive(story: Story) -> None:
    told(story)
    topic = {"name": "ledger", "partitions": 2, "replication_factor": 3}
    story.scenario["topics"] = [topic]


@case(Outcome.INVALID, reason="does not name the nodes", configuration={})
def a_run_that_does_not_say_what_there_was_is_invalid(story: Story) -> None:
    told(story)


@case(Outcome.INCONCLUSIVE, unseen(2), reason="1 acknowledgements with acks=all are above every high watermark")
def an_acknowledgement_that_nothing_bears_out_leaves_the_run_inconclusive(story: Story) -> None:
    write(story, 2)
    story.send(commit=False)
    story.finish()


# ----------------------------------------------------------------------------------------------------------- faults


@case(Outcome.INVALID, reason="Fault 'cut' is not among the 1 faults")
def a_fault_of_the_schedule_that_is_not_there_makes_the_run_invalid(story: Story) -> None:
    told(story)
    story.fault("freeze")
    story.scenario["schedule"] = [{"inject": {"fault": "pause", "node": 1, "as": name}} for name in ("cut", "freeze")]


@case(Outcome.PASS)
def a_schedule_whose_faults_are_there_passes(story: Story) -> None:
    told(story)
    story.fault("cut")
    story.scenario["schedule"] = [{"send": {"per_partition": 1}}, {"inject": {"fault": "partition", "as": "cut"}}]


@case(Outcome.INVALID, reason="Faults 'f001', 'f002', 'f003' and 2 more are not among the 0 faults")
def chaos_without_faults_makes_the_run_invalid(story: Story) -> None:
    told(story)
    story.scenario["chaos"] = {"faults": [{"fault": "kill", "weight": 4}, {"fault": "pause"}]}


@case(Outcome.INVALID, reason="has its proven_ns after its healed_ns")
def a_fault_that_was_healed_before_it_was_proven_makes_the_run_invalid(story: Story) -> None:
    told(story)
    story.fault(proven_ns=story.now + 9)


@case(Outcome.INVALID, reason=r"Fault 'cut' \(partition of no node\) was aimed at nothing")
def a_fault_without_nodes_makes_the_run_invalid(story: Story) -> None:
    told(story)
    story.fault(nodes=[])


# --------------------------------------------------------------------------------------------- incomplete histories


@case(Outcome.INVALID, reason=r"Fault 'cut' \(partition of 1\) was never injected")
def a_fault_that_was_never_injected_makes_the_run_invalid(story: Story) -> None:
    write(story, 3)
    story.fault(injected_ns=None, proven_ns=None, healed_ns=None, heal_proven_ns=None)
    story.finish()


@case(Outcome.INVALID, reason="was never healed")
def a_fault_that_was_never_healed_makes_the_run_invalid(story: Story) -> None:
    write(story, 3)
    story.fault(healed_ns=None, heal_proven_ns=None)
    story.finish()


@case(Outcome.INVALID, reason="healing of fault 'cut' .* was never proven")
def a_healing_that_was_never_proven_makes_the_run_invalid(story: Story) -> None:
    write(story, 3)
    story.fault(heal_proven_ns=None)
    story.finish()


@case(Outcome.INVALID, reason="state is 'interrupted'", state="interrupted")
def an_interrupted_run_is_invalid(story: Story) -> None:
    write(story, 3)
    story.finish()


@case(Outcome.INVALID, reason="no close row: it breaks off after 10 rows")
def a_history_without_a_close_row_makes_the_run_invalid(story: Story) -> None:
    write(story, 3)
    story.finish()
    story.history.pop()


@case(Outcome.INVALID, reason="1 close rows and 2 rows after the last")
def rows_after_the_close_row_make_the_run_invalid(story: Story) -> None:
    write(story, 3)
    story.finish()
    story.poll(5, [0])


@case(Outcome.INVALID, lost(0, "INDETERMINATE"), reason="rows 6 to 7 are missing")
def a_record_that_may_be_in_a_gap_of_the_history_is_not_called_lost(story: Story) -> None:
    write(story, 3)
    story.finish()
    story.history = [r for r in story.history if r["index"] not in (6, 7)]
    story.logs = [r for r in story.logs if r["offset"] != 0]


@case(Outcome.INVALID, reason="rows 0 to 0 are missing")
def a_history_that_does_not_begin_at_0_makes_the_run_invalid(story: Story) -> None:
    write(story, 3)
    story.poll(5, [])
    story.finish()
    del story.history[0]


@case(
    Outcome.INVALID,
    ("unjustified-advance", "INDETERMINATE", 0),
    reason=r"timeline of node 1 \(incarnation 0\) has \d+ rows where its last one says \d+",
)
def a_gap_in_a_timeline_makes_the_run_invalid(story: Story) -> None:
    write(story, 3)
    story.finish()
    story.timeline.remove(next(r for r in story.timeline if r["node"] == 1 and r["sequence"] == 2))


@case(Outcome.VIOLATION, lost(2), regression(2), reason="no close row")
def a_loss_that_an_incomplete_history_shows_is_still_a_loss(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 2)
    story.finish()
    story.history.pop()


@case(Outcome.INCONCLUSIVE, reason="Nothing was acknowledged")
def a_run_in_which_nothing_was_acknowledged_proves_nothing(story: Story) -> None:
    write(story, 3, result="info")
    story.finish()


@case(Outcome.INCONCLUSIVE, unseen(0), unseen(1), unseen(2), reason="There is no final read")
def a_run_in_which_nothing_was_read_proves_nothing(story: Story) -> None:
    write(story, 3)
    story.finish(read=False)


# ---------------------------------------------------------------------------------------------- histories that are none


@case(Outcome.INVALID, reason="of 1 rows each has an index that another row has")
def an_index_that_two_rows_have_makes_the_run_invalid(story: Story) -> None:
    told(story)
    story.history.append(dict(story.history[0]))


@case(Outcome.INVALID, reason="of 3 rows each completes an operation that was not invoked before")
def completions_before_their_invocations_make_the_run_invalid(story: Story) -> None:
    told(story)
    sends = [r for r in story.history if r["f"] == "send"]
    for row in sends:
        row["acks"] = 1
    for invoke, ok in zip(sends[::2], sends[1::2], strict=True):
        invoke["index"], ok["index"] = ok["index"], invoke["index"]
        invoke["time_ns"], ok["time_ns"] = ok["time_ns"], invoke["time_ns"]


@case(Outcome.INVALID, reason="of 1 rows each is older than the row before it")
def a_row_that_is_older_than_the_one_before_makes_the_run_invalid(story: Story) -> None:
    told(story)
    story.history[3]["time_ns"] = 0


@case(Outcome.INVALID, reason="has no offset, and is about a record that a poll delivered")
def a_delivered_record_without_an_offset_makes_the_run_invalid(story: Story) -> None:
    told(story)
    story.final_rows()[2]["offset"] = None


@case(Outcome.INVALID, reason=f"These are the first {GAPS_KEPT} of {GAPS_KEPT + 5} gaps in the history")
def of_many_gaps_the_first_are_listed_and_all_are_counted(story: Story) -> None:
    story.poll(5)
    for _ in range(GAPS_KEPT + 5):
        story.poll(5)
        story.poll(5)
    write(story, 1)
    story.finish()
    gone = range(2, 2 + 4 * (GAPS_KEPT + 5), 4)
    drop(story.history, lambda r: r["index"] in (*gone, *(index + 1 for index in gone)))


# -------------------------------------------------------------------------------------------------- told more than once

TWICE = r"of 1 rows each begins or ends a send, or begins a poll, for the second time; mend"


def completed_again(story: Story, at: int = 1, **columns: Any) -> Row:
    """The send that the history's row ``at`` completes is completed once more."""
    return story.row(**{**story.history[at], "index": len(story.history), "time_ns": story.now, **columns})


@case(Outcome.INVALID, reason=TWICE)
def an_acknowledged_send_that_also_ended_with_info_makes_the_run_invalid(story: Story) -> None:
    write(story, 3)
    completed_again(story, type="info", offset=None)
    story.finish()


@case(Outcome.VIOLATION, lost(2), regression(2), reason=TWICE)
def an_acknowledged_record_is_lost_also_if_its_send_ended_with_info_after_that(story: Story) -> None:
    write(story, 3)
    completed_again(story, 5, type="info", offset=None)
    lose_tail(story, 2)
    story.finish()


@case(Outcome.VIOLATION, lost(2), regression(2), reason=TWICE)
def an_acknowledged_record_is_lost_also_if_its_send_failed_after_that(story: Story) -> None:
    write(story, 3)
    completed_again(story, 5, type="fail", offset=None)
    lose_tail(story, 2)
    story.finish()


@case(Outcome.VIOLATION, lost(9), ("duplicate", "VIOLATION", 0), reason=TWICE)
def a_send_that_was_acknowledged_at_two_offsets_is_at_neither_alone(story: Story) -> None:
    write(story, 3)
    completed_again(story, offset=9)
    story.finish()


@case(Outcome.INVALID, unseen(0), unseen(9), reason=TWICE)
def a_second_acknowledgement_that_names_another_value_makes_the_run_invalid(story: Story) -> None:
    write(story, 1)
    completed_again(story, value=77, offset=9)
    story.finish(read=False)


@case(Outcome.INVALID, reason=TWICE)
def a_failed_send_that_was_acknowledged_is_not_wrongly_read(story: Story) -> None:
    write(story, 1, result="fail")
    completed_again(story, type="ok", offset=0)
    story.finish()


@case(Outcome.INVALID, reason=TWICE)
def a_send_that_is_invoked_twice_makes_the_run_invalid(story: Story) -> None:
    write(story, 3)
    completed_again(story, 0)
    story.finish()


@case(Outcome.INVALID, reason=TWICE)
def a_poll_that_is_invoked_twice_makes_the_run_invalid(story: Story) -> None:
    write(story, 3)
    rows = story.poll(5, [0])
    story.row(**{**rows[0], "index": len(story.history), "time_ns": story.now, **_NOTHING, "type": "invoke"})
    story.finish()


@case(Outcome.INVALID, reason=TWICE)
def a_step_of_a_transaction_that_ends_twice_makes_the_run_invalid(story: Story) -> None:
    transact(story, Sent(0), Polled(), Sent(0))
    completed_again(story, 3)
    story.finish()


@case(Outcome.PASS)
def the_steps_of_a_transaction_and_the_records_of_a_poll_are_no_repetitions(story: Story) -> None:
    transact(story, Sent(0), Sent(0), Polled())
    story.poll(5, [0, 1])
    story.finish()


@case(Outcome.PASS)
def a_transaction_of_more_steps_than_a_word_has_bits_repeats_none(story: Story) -> None:
    transact(story, *(Sent(0) for _ in range(70)))
    story.finish()


@case(Outcome.PASS)
def a_send_that_ended_with_info_once_is_no_repetition(story: Story) -> None:
    write(story, 3)
    write(story, 1, result="info")
    story.finish()


@case(Outcome.PASS)
def a_send_without_an_end_is_no_repetition(story: Story) -> None:
    write(story, 3)
    write(story, 1, result="invoke")
    story.finish()


@case(Outcome.PASS)
def a_record_that_an_idempotent_producer_sent_again_was_sent_once(story: Story) -> None:
    """The retry is the client's own: the history has one invocation, and the late acknowledgement."""
    write(story, 1)
    about = {**story.history[0], "op": next(story.ops), "value": next(story.values)}
    story.row(**{**about, "index": len(story.history), "time_ns": story.now})
    story.append(0, about["value"], [1, 2])
    write(story, 1)
    story.row(**{**about, "index": len(story.history), "time_ns": story.now, "type": "ok", "offset": 1})
    story.finish()


_NOTHING: Row = dict.fromkeys(("topic", "partition", "offset", "value", "leader_epoch", "intact"))


# ---------------------------------------------------------------------------------------------------- not configured


@case(Outcome.INCONCLUSIVE, reason="ledger-1 was used and is not configured")
def a_partition_that_was_not_configured_may_lack_replicas(story: Story) -> None:
    story.__init__(story.run, 2)  # type: ignore[misc]
    story.send()
    story.send(1)
    story.finish()
    story.scenario["topics"] = [{"name": "ledger", "partitions": 1, "replication_factor": len(NODES)}]
