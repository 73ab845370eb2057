"""Histories on which Jepsen's own checker throws, passes what is wrong or blames what is right, and short relatives."""

from __future__ import annotations

from harness.checker import Outcome, RunVerdict
from tests.harness.jepsen.conftest import Verdicts, assigned, nothing_more, polled, sent

READ_ALL = ["9 invoke crash nil", "9 info crash nil", *assigned(10, "4", seek=True)]


def found(verdict: RunVerdict) -> list[tuple[str, str, int | None]]:
    return [(anomaly.kind, anomaly.verdict.value, anomaly.offset) for anomaly in verdict.anomalies]


def test_a_clean_history_passes(judged: Verdicts) -> None:
    verdict = judged(*sent(1, 4, 17, 0), *READ_ALL, *polled(10, "4 [[0 17]]"))
    assert verdict.outcome is Outcome.PASS, verdict.reasons


def test_a_loss_after_the_first_read_is_found(judged: Verdicts) -> None:
    first = [*sent(1, 4, 17, 0), *sent(1, 4, 18, 1), *polled(2, "4 [[0 17] [1 18]]")]
    verdict = judged(*first, *READ_ALL, *polled(10, "4 [[0 17]]"), *nothing_more(10))
    assert found(verdict) == [("lost-write", "VIOLATION", 1), ("vanished-read", "VIOLATION", 1)]


def test_a_loss_between_two_final_reads_is_found(judged: Verdicts) -> None:
    sends = [*sent(1, 4, 17, 0), *sent(1, 4, 18, 1)]
    first = [*assigned(9, "4", seek=True), *polled(9, "4 [[0 17] [1 18]]")]
    verdict = judged(*sends, *first, *assigned(10, "4", seek=True), *polled(10, "4 [[0 17]]"), *nothing_more(10))
    assert found(verdict) == [("lost-write", "VIOLATION", 1), ("vanished-read", "VIOLATION", 1)]


def test_a_final_read_that_may_have_stopped_early_proves_no_loss(judged: Verdicts) -> None:
    first = [*sent(1, 4, 17, 0), *sent(1, 4, 18, 1), *polled(2, "4 [[0 17] [1 18]]")]
    verdict = judged(*first, *READ_ALL, *polled(10, "4 [[0 17]]"))
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert found(verdict) == []
    assert "jepsen-4 ended at 1, and an earlier poll was given offset 1" in verdict.reasons[0]


def test_a_final_reader_that_was_given_nothing_for_a_moment_proves_no_loss(judged: Verdicts) -> None:
    """Its broker may just have been slow."""
    sends = [*sent(1, 4, 17, 0), *sent(1, 4, 18, 1), *sent(1, 5, 1, 0), *sent(1, 5, 2, 1)]
    read = polled(2, "4 [[0 17] [1 18]], 5 [[0 1] [1 2]]")
    last = [*assigned(10, "4 5", seek=True), *polled(10, "4 [[0 17] [1 18]], 5 [[0 1]]"), *polled(10, "")]
    verdict = judged(*sends, *read, *last)
    assert (verdict.outcome, found(verdict)) == (Outcome.INCONCLUSIVE, [])
    assert "jepsen-5 ended at 1, and an earlier poll was given offset 1" in verdict.reasons[0]


def test_a_final_reader_that_was_given_nothing_proves_no_loss(judged: Verdicts) -> None:
    first = [*sent(1, 4, 17, 0), *polled(2, "4 [[0 17]]")]
    verdict = judged(*first, *READ_ALL, *nothing_more(10))
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert found(verdict) == []


def test_a_record_that_another_one_replaced_is_found(judged: Verdicts) -> None:
    first = [*sent(1, 4, 17, 0), *polled(2, "4 [[0 17]]"), *sent(3, 4, 18, 0)]
    verdict = judged(*first, *READ_ALL, *polled(10, "4 [[0 18]]"))
    kinds = {kind for kind, _, _ in found(verdict)}
    assert kinds == {"lost-write", "vanished-read", "inconsistent-offsets"}


def test_a_lost_tail_that_nobody_read_leaves_the_run_inconclusive(judged: Verdicts) -> None:
    verdict = judged(*sent(1, 4, 17, 0), *sent(1, 4, 18, 1), *READ_ALL, *polled(10, "4 [[0 17]]"), *nothing_more(10))
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert found(verdict) == [("unseen", "INDETERMINATE", 1)]


def test_a_record_that_everybody_was_taken_past_is_lost(judged: Verdicts) -> None:
    history = [*sent(1, 4, 17, 0), *sent(1, 4, 18, 1), *sent(1, 4, 19, 2), *polled(2, "4 [[0 17]]")]
    verdict = judged(*history, *polled(2, "4 [[2 19]]"))
    assert found(verdict) == [("lost-write", "VIOLATION", 1), ("poll-skip", "VIOLATION", 1)]


def test_an_empty_poll_of_a_key_is_no_error(judged: Verdicts) -> None:
    verdict = judged(*sent(1, 4, 17, 0), *polled(2, "3 []"), *READ_ALL, *polled(10, "3 [], 4 [[0 17]]"))
    assert verdict.outcome is Outcome.PASS, verdict.reasons


def test_an_indeterminate_send_that_only_the_last_operation_sees_is_not_unseen(judged: Verdicts) -> None:
    send = ["1 invoke send [[:send 4 17]]", "1 info send [[:send 4 17]], :error :timeout"]
    verdict = judged(*send, *sent(2, 5, 1, 0), *assigned(10, "4 5", seek=True), *polled(10, "5 [[0 1]], 4 [[0 17]]"))
    assert verdict.outcome is Outcome.PASS, verdict.reasons


def test_a_history_may_end_with_anything_and_operations_may_stay_open(judged: Verdicts) -> None:
    read = [*READ_ALL, *polled(10, "4 [[0 17]]")]
    verdict = judged(*sent(1, 4, 17, 0), *read, ":nemesis info stop nil", "3 invoke poll [[:poll]]")
    assert verdict.outcome is Outcome.PASS, verdict.reasons
    assert verdict.counts["polls"] == 2


def test_what_a_failed_transaction_polled_is_read_all_the_same(judged: Verdicts) -> None:
    txn = ["2 invoke txn [[:poll] [:send 5 1]]", "2 fail txn [[:poll {4 [[0 17]]}] [:send 5 1]], :error :aborted"]
    verdict = judged(*sent(1, 4, 17, 0), *txn)
    assert found(verdict) == []


def test_an_acknowledgement_without_an_offset_that_was_never_read_is_unseen(judged: Verdicts) -> None:
    verdict = judged(*sent(1, 4, 17, None), *sent(1, 4, 18, 1), *READ_ALL, *polled(10, "4 [[1 18]]"), *nothing_more(10))
    assert found(verdict) == [("unseen", "INDETERMINATE", None)]


def test_a_value_that_nobody_sent_is_found(judged: Verdicts) -> None:
    verdict = judged(*sent(1, 4, 17, 0), *READ_ALL, *polled(10, "4 [[0 17] [1 99]]"))
    assert found(verdict) == [("unwritten-read", "VIOLATION", 1)]


def test_a_record_that_overtakes_an_acknowledged_one_is_found(judged: Verdicts) -> None:
    sends = [*sent(0, 4, 17, 1), *sent(1, 4, 18, 0)]
    verdict = judged(*sends, *READ_ALL, *polled(10, "4 [[0 18] [1 17]]"))
    assert found(verdict) == [("G0-realtime", "VIOLATION", 0)]


def test_a_record_that_overtakes_one_that_was_polled_is_found(judged: Verdicts) -> None:
    unended = ["0 invoke send [[:send 4 17]]", "0 info send [[:send 4 17]], :error :timeout"]
    overtaken = [*unended, *polled(2, "4 [[1 17]]"), *sent(1, 4, 18, 0)]
    verdict = judged(*overtaken, *READ_ALL, *polled(10, "4 [[0 18] [1 17]]"))
    assert found(verdict) == [("G1c-realtime", "VIOLATION", 0)]


def test_a_record_that_overtakes_is_found_where_only_polls_say_where_it_is(judged: Verdicts) -> None:
    first = sent(1, 4, 17, None)
    unended = ["1 invoke send [[:send 4 18]]", "1 info send [[:send 4 18]], :error :timeout"]
    verdict = judged(*first, *unended, *READ_ALL, *polled(10, "4 [[0 18] [1 17]]"))
    assert found(verdict) == [("nonmonotonic-send", "VIOLATION", 0)]


def test_a_record_that_is_elsewhere_than_an_unfinished_transaction_was_told_is_found(judged: Verdicts) -> None:
    txn = ["2 invoke txn [[:send 4 17]]", "2 info txn [[:send 4 [0 17]]], :error :timeout"]
    verdict = judged(*txn, *sent(1, 4, 18, 0), *READ_ALL, *polled(10, "4 [[0 18] [1 17]]"))
    assert found(verdict) == [("inconsistent-offsets", "VIOLATION", 0), ("duplicate", "VIOLATION", 0)]


def test_a_half_of_an_unfinished_transaction_that_everybody_was_taken_past_is_found(judged: Verdicts) -> None:
    sends = "[:send 4 [0 17]] [:send 5 [0 18]]"
    txn = ["2 invoke txn [[:send 4 17] [:send 5 18]]", f"2 info txn [{sends}], :error :timeout"]
    read = [*assigned(10, "4 5", seek=True), *polled(10, "4 [[0 17]], 5 [[1 19]]")]
    verdict = judged(*txn, *sent(1, 5, 19, 1), *read)
    assert found(verdict) == [("torn-transaction", "VIOLATION", 0)]


def test_a_consumer_that_starts_over_is_not_taken_back(judged: Verdicts) -> None:
    first = [*sent(1, 4, 17, 0), *assigned(2, "4"), *polled(2, "4 [[0 17]]"), *assigned(2, "4", seek=True)]
    verdict = judged(*first, *polled(2, "4 [[0 17]]"))
    assert verdict.outcome is Outcome.PASS, verdict.reasons


def test_sparse_offsets_are_no_gaps(judged: Verdicts) -> None:
    far = 10**15
    verdict = judged(*sent(1, 4, 17, 5), *sent(1, 4, 18, far), *READ_ALL, *polled(10, f"4 [[5 17] [{far} 18]]"))
    assert verdict.outcome is Outcome.PASS, verdict.reasons


def test_keys_of_a_rebalance_may_be_read_anew(judged: Verdicts) -> None:
    log = ", :rebalance-log [{:type :revoked, :keys [4]} {:type :assigned, :keys [4]}]"
    again = ["2 invoke poll [[:poll]]", f"2 ok poll [[:poll {{4 [[0 17]]}}]]{log}"]
    verdict = judged(*sent(1, 4, 17, 0), *polled(2, "4 [[0 17]]"), *again)
    assert found(verdict) == []


def test_a_duplicate_names_both_offsets_and_a_skipped_record_is_still_blamed_once(judged: Verdicts) -> None:
    verdict = judged(*sent(1, 4, 17, 0), *sent(1, 4, 18, 2), *READ_ALL, *polled(10, "4 [[0 17] [1 17] [2 18]]"))
    assert found(verdict) == [("duplicate", "VIOLATION", 0)]


def test_two_transactions_that_read_each_other_are_found(judged: Verdicts) -> None:
    invoked = [f"{process} invoke txn [[:send {key} 1] [:poll]]" for process, key in ((1, 4), (2, 5))]
    one = "1 ok txn [[:send 4 [0 1]] [:poll {5 [[0 1]]}]]"
    other = "2 ok txn [[:send 5 [0 1]] [:poll {4 [[0 1]]}]]"
    verdict = judged(*invoked, one, other, *assigned(10, "4 5", seek=True), *polled(10, "4 [[0 1]], 5 [[0 1]]"))
    assert [(kind, said) for kind, said, _ in found(verdict)] == [("G1c", "VIOLATION")]


def test_an_overtaking_record_is_not_blamed_where_the_sends_overlap(judged: Verdicts) -> None:
    sends = ["0 invoke send [[:send 4 17]]", "1 invoke send [[:send 4 18]]"]
    acks = ["0 ok send [[:send 4 [1 17]]]", "1 ok send [[:send 4 [0 18]]]"]
    verdict = judged(*sends, *acks, *READ_ALL, *polled(10, "4 [[0 18] [1 17]]"))
    assert verdict.outcome is Outcome.PASS, verdict.reasons


def test_a_history_of_nothing_is_no_pass(judged: Verdicts) -> None:
    assert judged("9 invoke crash nil", "9 info crash nil").outcome is Outcome.INCONCLUSIVE


def test_a_consumer_of_a_group_that_goes_back_after_a_rebalance_nobody_logged_is_documented(judged: Verdicts) -> None:
    joined = ["2 invoke subscribe [4]", "2 ok subscribe [4]"]
    read = [*polled(2, "4 [[0 17] [1 18]]"), *polled(2, "4 [[0 17]]")]
    verdict = judged(*sent(1, 4, 17, 0), *sent(1, 4, 18, 1), *joined, *read)
    assert found(verdict) == [("nonmonotonic-poll", "DOCUMENTED", 0)]


def test_a_consumer_of_a_group_that_goes_back_is_found_where_rebalances_are_logged(judged: Verdicts) -> None:
    joined = ["2 invoke subscribe [4]", "2 ok subscribe [4]", "2 invoke poll [[:poll]]"]
    given = "2 ok poll [[:poll {4 [[0 17] [1 18]]}]], :rebalance-log [{:type :assigned, :keys [4]}]"
    read = [*polled(2, "4 [[2 19]]"), *polled(2, "4 [[0 17]]")]
    sends = [*sent(1, 4, 17, 0), *sent(1, 4, 18, 1), *sent(1, 4, 19, 2)]
    verdict = judged(*sends, *joined, given, *read)
    assert found(verdict) == [("nonmonotonic-poll", "VIOLATION", 0)]


def test_a_poll_of_a_group_that_leaves_a_record_out_is_found(judged: Verdicts) -> None:
    sends = [*sent(1, 4, 17, 0), *sent(1, 4, 18, 1), *sent(1, 4, 19, 2)]
    joined = ["2 invoke subscribe [4]", "2 ok subscribe [4]"]
    read = [*READ_ALL, *polled(10, "4 [[0 17] [1 18] [2 19]]")]
    verdict = judged(*sends, *joined, *polled(2, "4 [[0 17] [2 19]]"), *read)
    assert found(verdict) == [("int-poll-skip", "VIOLATION", 1)]


def test_a_value_that_is_polled_before_it_is_sent_is_found(judged: Verdicts) -> None:
    early = polled(2, "4 [[0 17] [1 18]]")
    verdict = judged(*sent(1, 4, 17, 0), *early, *sent(1, 4, 18, 1), *READ_ALL, *polled(10, "4 [[0 17] [1 18]]"))
    assert found(verdict) == [("unwritten-read", "VIOLATION", 1)]


def test_a_timeout_that_was_recorded_as_a_failure_makes_an_aborted_read(judged: Verdicts) -> None:
    """A history that proves too much proves nothing; the finding names the send, so that its error can be looked up."""
    send = ["1 invoke send [[:send 4 17]]", "1 fail send [[:send 4 17]], :error :timeout"]
    verdict = judged(*send, *sent(2, 4, 18, 1), *READ_ALL, *polled(10, "4 [[0 17] [1 18]]"))
    assert found(verdict) == [("aborted-read", "VIOLATION", 0)]
    said = [evidence.says for evidence in verdict.anomalies[0].evidence if evidence.table == "history"]
    assert any("fail" in sentence for sentence in said)
