"""Stories of a user's program between an input and an output. Importing this module adds them to ``CASES``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harness.checker import Outcome
from harness.identity import KEYS
from tests.checkers.cases import case, lose_tail, lost, regression, write
from tests.checkers.client_cases import two_partitions
from tests.checkers.group_cases import lose_power
from tests.checkers.programs import LIFE, of_one_key, put, reach
from tests.checkers.story import NODES, Story

LEAST = {"min_insync_replicas": 2, "unclean_election": False}
EVERYTHING = {"program_may_skip": False, "program_may_repeat": False, "program_may_reorder": False}


def promised(*permitted: str, **more: Any) -> dict[str, Any]:
    """What ``run.json`` guarantees of a program that may do only what is ``permitted``."""
    return {"guarantees": LEAST | EVERYTHING | {f"program_may_{name}": True for name in permitted} | more}


def processed(story: Story, count: int, values: Sequence[int | None], **how: Any) -> None:
    """A program was given ``count`` records, is done with all, and has put out ``values``."""
    write(story, count)
    put(story, values, **how)
    reach(story, count)
    story.finish()


@case(Outcome.PASS, **promised())
def a_program_that_processes_every_record_once_passes(story: Story) -> None:
    processed(story, 3, [0, 1, 2])


@case(Outcome.PASS, **promised())
def a_program_may_put_out_records_of_different_keys_in_any_order(story: Story) -> None:
    processed(story, 3, [2, 0, 1])


@case(Outcome.VIOLATION, ("unprocessed", "VIOLATION", 1), **promised())
def a_record_with_which_the_program_is_done_and_that_it_never_put_out_is_found(story: Story) -> None:
    processed(story, 3, [0, 2])


@case(Outcome.PASS, ("unprocessed", "DOCUMENTED", 1), **promised("skip"))
def a_program_that_promises_at_most_once_may_leave_a_record_out(story: Story) -> None:
    processed(story, 3, [0, 2])


@case(Outcome.INCONCLUSIVE, ("unprocessed", "INDETERMINATE", 2), **promised())
def a_record_with_which_the_program_is_not_done_is_not_called_left_out(story: Story) -> None:
    write(story, 3)
    put(story, [0, 1])
    reach(story, 2)
    story.finish()


@case(Outcome.PASS, ("unprocessed", "DOCUMENTED", 2), **promised("skip"))
def a_program_that_may_leave_records_out_need_not_finish(story: Story) -> None:
    write(story, 3)
    put(story, [0, 1])
    reach(story, 2)
    story.finish()


@case(Outcome.INCONCLUSIVE, ("unprocessed", "INDETERMINATE", 1), **promised())
def without_a_word_of_the_program_nothing_is_called_left_out(story: Story) -> None:
    write(story, 2)
    put(story, [0])
    reach(story, None)
    story.finish()


@case(Outcome.PASS, **promised())
def a_record_that_was_put_out_and_is_gone_from_the_output_was_processed(story: Story) -> None:
    write(story, 2)
    put(story, [0, 1], p=0, final=False)
    put(story, [0], p=0)
    reach(story, 2)
    story.finish()


@case(Outcome.VIOLATION, lost(2), regression(2), **promised())
def what_the_cluster_has_lost_is_not_the_program_s_to_process(story: Story) -> None:
    write(story, 3)
    lose_tail(story, 2)
    put(story, [0, 1])
    reach(story, 3)
    story.finish()


@case(Outcome.PASS, **promised())
def a_send_of_unknown_outcome_that_is_not_in_the_input_need_not_be_processed(story: Story) -> None:
    write(story, 2)
    story.send(result="info", append=False)
    put(story, [0, 1])
    reach(story, 2)
    story.finish()


@case(Outcome.VIOLATION, ("unprocessed", "VIOLATION", 2), **promised())
def a_send_of_unknown_outcome_that_is_in_the_input_must_be_processed(story: Story) -> None:
    write(story, 2)
    story.send(result="info")
    put(story, [0, 1])
    reach(story, 3)
    story.finish()


@case(Outcome.PASS, **promised())
def what_was_sent_after_the_program_s_end_need_not_be_processed(story: Story) -> None:
    write(story, 2)
    put(story, [0, 1])
    reach(story, 9)
    write(story, 1)
    story.finish()


@case(Outcome.VIOLATION, ("processed-twice", "VIOLATION", 1), **promised())
def a_record_that_the_output_holds_twice_is_found(story: Story) -> None:
    processed(story, 2, [0, 1, 1])


@case(Outcome.VIOLATION, ("processed-twice", "VIOLATION", 1), ("made-up-output", "VIOLATION", 3), **promised())
def an_output_that_the_final_read_reads_again_is_judged_all_the_same(story: Story) -> None:
    two_partitions(story)
    for _ in range(2):
        story.send(0)
    story.send(1)
    for kind in ("invoke", "info"):
        story.row(process=LIFE + 9, op=900, f="crash", type=kind)
    put(story, [0, 1, 1, 999], p=1, topic="ledger")
    reach(story, 2)
    story.finish()


@case(Outcome.PASS, ("processed-twice", "DOCUMENTED", 1), **promised("repeat"))
def a_program_that_promises_at_least_once_may_repeat_a_record(story: Story) -> None:
    processed(story, 2, [0, 1, 1])


@case(Outcome.VIOLATION, ("processed-twice", "VIOLATION", 0), **promised())
def two_lives_of_a_program_that_put_out_the_same_record_are_found(story: Story) -> None:
    put_by_two(story)


def put_by_two(story: Story) -> None:
    write(story, 2)
    put(story, [0])
    put(story, [0, 1], LIFE + 1)
    reach(story, 2)
    story.finish()


@case(Outcome.PASS, **promised())
def a_record_of_the_output_that_was_read_twice_is_one(story: Story) -> None:
    write(story, 2)
    put(story, [0, 1], p=0, final=False)
    put(story, [0, 1], p=0)
    reach(story, 2)
    story.finish()


@case(Outcome.VIOLATION, ("duplicate", "VIOLATION", 0), **promised())
def a_program_may_process_twice_what_its_input_has_twice(story: Story) -> None:
    story.send()
    story.append(0, 0, {1, 2})
    put(story, [0, 0])
    reach(story, 2)
    story.finish()


@case(Outcome.VIOLATION, ("processed-out-of-order", "VIOLATION", 0), **promised())
def a_record_behind_a_later_one_of_its_key_is_found(story: Story) -> None:
    of_one_key(story)
    processed(story, 3, [KEYS, 0, 2 * KEYS])


@case(Outcome.PASS, ("processed-out-of-order", "DOCUMENTED", 0), **promised("reorder"))
def a_program_that_promises_no_order_may_change_it(story: Story) -> None:
    of_one_key(story)
    processed(story, 3, [KEYS, 0, 2 * KEYS])


@case(Outcome.PASS, ("processed-twice", "DOCUMENTED", 0), ("processed-twice", "DOCUMENTED", 1), **promised("repeat"))
def a_program_that_starts_over_from_its_commit_is_in_order(story: Story) -> None:
    of_one_key(story)
    processed(story, 3, [0, KEYS, 0, KEYS, 2 * KEYS])


@case(Outcome.PASS, ("processed-twice", "DOCUMENTED", 0), **promised("repeat"))
def a_record_that_another_life_has_put_out_before_may_come_late(story: Story) -> None:
    of_one_key(story)
    write(story, 2)
    put(story, [0])
    put(story, [KEYS, 0], LIFE + 1)
    reach(story, 2)
    story.finish()


@case(Outcome.PASS, **promised())
def records_in_two_partitions_of_the_output_have_no_order(story: Story) -> None:
    of_one_key(story)
    write(story, 2)
    put(story, [KEYS], p=0)
    put(story, [0], p=1)
    reach(story, 2)
    story.finish()


@case(Outcome.VIOLATION, ("made-up-output", "VIOLATION", None), **promised("skip", "repeat", "reorder"))
def a_record_of_the_output_that_holds_none_of_the_input_is_found(story: Story) -> None:
    processed(story, 2, [0, None, 1])


@case(Outcome.VIOLATION, ("made-up-output", "VIOLATION", 2), **promised())
def a_record_of_the_output_that_holds_what_was_never_sent_is_found(story: Story) -> None:
    processed(story, 2, [0, 1, 77], p=0)


@case(Outcome.INCONCLUSIVE, ("unprocessed", "DOCUMENTED", 0), ("unprocessed", "DOCUMENTED", 1),
      reason="put out nothing", **promised("skip"))  # fmt: skip
def a_program_that_has_put_out_nothing_is_not_known(story: Story) -> None:
    write(story, 2)
    reach(story, 2)
    story.finish()


@case(Outcome.INCONCLUSIVE, ("unprocessed", "INDETERMINATE", 0), program={"said": "ImportError: no module"},
      reason="said: ImportError: no module", **promised())  # fmt: skip
def a_program_that_never_began_is_quoted(story: Story) -> None:
    write(story, 1)
    reach(story, 0)
    story.finish()


@case(Outcome.PASS, ("unprocessed", "DOCUMENTED", 1), ("processed-twice", "DOCUMENTED", 0),
      **promised(unclean_election=True))  # fmt: skip
def an_unclean_election_may_have_given_up_a_record_of_the_output(story: Story) -> None:
    write(story, 2)
    story.elect(1, clean=False)
    put(story, [0, 0])
    reach(story, 2)
    story.finish()


@case(Outcome.PASS, ("unprocessed", "DOCUMENTED", 1), **promised())
def a_power_loss_of_every_broker_may_have_taken_a_record_of_the_output(story: Story) -> None:
    write(story, 2)
    lose_power(story, *NODES)
    put(story, [0])
    reach(story, 2)
    story.finish()


def keep_of_another_topic(story: Story, *, lose: Sequence[int], followers: Sequence[int] = (1, 2)) -> None:
    """A topic that the configuration does not name loses its last record when brokers lose their power."""
    story.send()
    story.partitions[1].isr = {0, *followers}
    for _ in range(3):
        story.append(1, None, followers)
    lose_power(story, *lose)
    story.cut(1, 2, 1)
    story.elect(1, 1)
    story.finish()
    story.forget(*story.final_rows(1))
    for row in (*story.timeline, *story.logs):
        row["topic"] = "output" if row["partition"] == 1 else row["topic"]
    del story.partitions[1]


@case(Outcome.PASS, regression(2, "DOCUMENTED"), *[("committed-cut", "DOCUMENTED", 2)] * 3, guarantees=LEAST)
def a_power_loss_of_every_broker_excuses_what_a_topic_of_the_workload_s_own_lost(story: Story) -> None:
    two_partitions(story)
    keep_of_another_topic(story, lose=NODES)


@case(Outcome.VIOLATION, regression(2), *[("committed-cut", "VIOLATION", 2)] * 3, guarantees=LEAST)
def a_power_loss_of_some_brokers_excuses_no_loss_of_a_topic_of_the_workload_s_own(story: Story) -> None:
    two_partitions(story)
    keep_of_another_topic(story, lose=NODES[:2])


@case(Outcome.PASS, regression(2, "DOCUMENTED"), *[("committed-cut", "DOCUMENTED", 2)] * 2, guarantees=LEAST)
def a_power_loss_of_the_whole_isr_excuses_what_a_topic_of_the_workload_s_own_lost(story: Story) -> None:
    two_partitions(story)
    keep_of_another_topic(story, lose=(0, 1), followers=(1,))
