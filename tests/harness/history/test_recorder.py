from __future__ import annotations

import threading
from pathlib import Path

import pytest

from harness.clock import Clock, SystemClock
from harness.history.kept_recorder import KeptRecorder
from harness.history.polls import OutOfRange, record_out_of_range
from harness.history.recorder import Output, PolledRecord, Polling, Recorder, Sending
from harness.history.run_directory import Manifest, RunDirectory
from harness.history.sends import Answer, Sends
from harness.model import ProcessId, TopicPartition


class SteppingClock:
    def __init__(self, step_ns: int = 1) -> None:
        self.now = 0
        self.step_ns = step_ns

    def monotonic_ns(self) -> int:
        self.now += self.step_ns
        return self.now

    def wall_ms(self) -> int:
        raise AssertionError("the history has no wall time")


P0 = ProcessId(0)


@pytest.fixture
def directory(tmp_path: Path) -> RunDirectory:
    return RunDirectory.create(tmp_path / "run", Manifest("r1", "quiet", 7, "2025-01-01T00:00:00+00:00"))


def recorder(directory: RunDirectory, clock: Clock | None = None, part_rows: int = 20_000) -> Recorder:
    return Recorder("r1", directory.path / "history", clock or SteppingClock(), part_rows=part_rows)


def test_every_completion_repeats_what_was_invoked(directory: RunDirectory) -> None:
    history = recorder(directory)
    op = history.invoke_send(P0, Sending("ledger", 2, 41, timestamp_ms=5))
    history.complete_send(op, "ok", offset=9)
    history.close()
    invoke, ok, close = directory.read_table("history")
    assert (invoke["type"], invoke["offset"]) == ("invoke", None)
    assert (ok["type"], ok["offset"]) == ("ok", 9)
    for column in ("run", "process", "op", "f", "topic", "partition", "value", "acks", "timestamp_ms"):
        assert invoke[column] == ok[column]
    assert (ok["acks"], ok["timestamp_ms"]) == (-1, 5)
    assert (close["f"], close["index"]) == ("close", 2)


def test_a_poll_leaves_one_row_per_record_and_a_bare_row_when_empty(directory: RunDirectory) -> None:
    history = recorder(directory)
    first = history.invoke_poll(P0, final=False)
    history.complete_poll(first, [PolledRecord("t", 0, 3, 7, 1, True), PolledRecord("t", 1, 0, None, None, False)])
    second = history.invoke_poll(P0, final=True)
    history.complete_poll(second, [])
    history.close()
    rows = directory.read_table("history")
    polled = [r for r in rows if r["type"] == "ok" and r["f"] == "poll"]
    assert [(r["op"], r["partition"], r["offset"], r["value"]) for r in polled] == [
        (first, 0, 3, 7),
        (first, 1, 0, None),
        (second, None, None, None),
    ]
    assert [r["final"] for r in rows] == [False, False, False, True, True, False]


def test_index_and_time_rise_together_under_many_threads(directory: RunDirectory) -> None:
    history = recorder(directory, SystemClock(), part_rows=64)

    def work(process: int) -> None:
        for n in range(50):
            op = history.invoke_send(ProcessId(process), Sending("t", 0, process * 1000 + n))
            history.complete_send(op, "info", error="timeout")

    threads = [threading.Thread(target=work, args=(p,)) for p in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    history.close()
    rows = directory.read_table("history")
    assert [r["index"] for r in rows] == list(range(401))
    assert [r["time_ns"] for r in rows] == sorted(r["time_ns"] for r in rows)
    assert len(directory.table_files("history")) > 3


def test_a_killed_run_leaves_whole_parts_and_no_close_row(directory: RunDirectory) -> None:
    history = recorder(directory, part_rows=3)
    for value in range(4):
        history.complete_send(history.invoke_send(P0, Sending("t", 0, value)), "ok", offset=value)
    rows = directory.read_table("history")
    assert [r["index"] for r in rows] == list(range(len(rows)))
    assert len(rows) in (6, 7, 8)
    assert all(r["f"] == "send" for r in rows)


def test_a_part_does_not_wait_longer_than_its_time(directory: RunDirectory) -> None:
    history = recorder(directory, SteppingClock(step_ns=3_000_000_000))
    history.invoke_poll(P0, final=False)
    history.invoke_poll(P0, final=False)
    assert not list((directory.path / "history").iterdir())
    history.invoke_poll(P0, final=False)
    assert len(directory.read_table("history")) == 3


def test_closing_twice_writes_one_close_row(directory: RunDirectory) -> None:
    history = recorder(directory)
    history.close()
    history.close()
    assert [r["f"] for r in directory.read_table("history")] == ["close"]


def test_an_operation_completes_once(directory: RunDirectory) -> None:
    history = recorder(directory)
    op = history.invoke_send(P0, Sending("t", 0, 1))
    history.complete_send(op, "ok", offset=0)
    with pytest.raises(AssertionError, match="already completed"):
        history.complete_send(op, "ok", offset=0)


def test_a_send_does_not_complete_as_a_poll(directory: RunDirectory) -> None:
    history = recorder(directory)
    op = history.invoke_send(P0, Sending("t", 0, 1))
    with pytest.raises(AssertionError, match="is a send"):
        history.complete_poll(op, [])


def test_nothing_is_recorded_after_close(directory: RunDirectory) -> None:
    history = recorder(directory)
    op = history.invoke_send(P0, Sending("t", 0, 1))
    history.close()
    with pytest.raises(AssertionError, match="closed"):
        history.complete_send(op, "ok", offset=0)


def test_a_rebalance_has_the_group_of_its_poll_and_the_generation_of_its_client(directory: RunDirectory) -> None:
    history = recorder(directory)
    op = history.invoke_poll(P0, False, "g")
    history.rebalance(op, "assigned", [TopicPartition("t", 0)], 3)
    history.rebalance(op, "lost", [TopicPartition("t", 0)])
    history.close()
    known = [(r["f"], r["group"], r["generation"]) for r in directory.read_table("history")]
    assert known[1:3] == [("assigned", "g", 3), ("lost", "g", None)]


def test_the_invocation_of_a_members_poll_alone_has_the_generation_in_which_it_begins(directory: RunDirectory) -> None:
    history = recorder(directory)
    op = history.invoke_poll(P0, False, "g", generation=3, protocol="consumer")
    history.complete_poll(op, [])
    history.poll_failed(history.invoke_poll(P0, False, "g", generation=-1, protocol="consumer"), "_FATAL")
    history.close()
    known = [(r["type"], r["generation"], r["group_protocol"]) for r in directory.read_table("history")][:4]
    assert known == [("invoke", 3, "consumer"), ("ok", None, None), ("invoke", -1, "consumer"), ("fail", None, None)]


def test_a_position_out_of_range_has_the_operation_of_its_poll(directory: RunDirectory) -> None:
    history = recorder(directory)
    op = history.invoke_poll(P0, False, "g")
    record_out_of_range(history, op, "OFFSET_OUT_OF_RANGE", OutOfRange(TopicPartition("t", 1), 7))
    record_out_of_range(history, op, "_LOG_TRUNCATION", None)
    history.poll_failed(op, "OFFSET_OUT_OF_RANGE")
    history.close()
    first, second = (row for row in directory.read_table("history") if row["f"] == "out_of_range")
    assert (first["op"], first["type"], first["group"], first["error"]) == (op, "info", "g", "OFFSET_OUT_OF_RANGE")
    assert (first["topic"], first["partition"], first["offset"]) == ("t", 1, 7)
    assert (second["topic"], second["partition"], second["offset"]) == (None, None, None)


def test_a_transaction_ends_with_a_row_for_everything_that_it_did(directory: RunDirectory) -> None:
    history = recorder(directory)
    op = history.invoke_txn(P0, [Sending("t", 0, 5), Polling("g", "read_uncommitted"), Polling(), Sending("t", 1, 6)])
    history.rebalance(op, "revoked", [TopicPartition("t", 0), TopicPartition("t", 1)])
    polled = [PolledRecord("t", 0, 1, 7, 0, True), PolledRecord("t", 0, 2, 8, 0, True)]
    history.complete_txn(op, "info", [3, polled, None, None], "timeout")
    history.close()
    rows = directory.read_table("history")
    assert [(r["type"], r["f"], r["mop"], r["partition"], r["offset"], r["value"]) for r in rows[:-1]] == [
        ("invoke", "send", 0, 0, None, 5),
        ("invoke", "poll", 1, None, None, None),
        ("invoke", "poll", 2, None, None, None),
        ("invoke", "send", 3, 1, None, 6),
        ("info", "revoked", 0, 0, None, None),
        ("info", "revoked", 0, 1, None, None),
        ("info", "send", 0, 0, 3, 5),
        ("info", "poll", 1, 0, 1, 7),
        ("info", "poll", 1, 0, 2, 8),
        ("info", "poll", 2, None, None, None),
        ("info", "send", 3, 1, None, 6),
    ]
    assert all(r["txn"] and r["op"] == op for r in rows[:-1])
    assert {(r["group"], r["isolation"]) for r in rows if r["mop"] == 1} == {("g", "read_uncommitted")}


def test_a_transaction_may_go_on_after_others_have_done_something(directory: RunDirectory) -> None:
    history = recorder(directory)
    op = history.invoke_txn(P0, [Sending("t", 0, 5)])
    history.invoke_send(ProcessId(1), Sending("t", 0, 9))
    history.extend_txn(op, [Sending("t", 1, 6), Sending("t", 1, 7)])
    history.complete_txn(op, "ok", [3, 4, None])
    with pytest.raises(AssertionError, match="already completed"):
        history.extend_txn(op, [Sending("t", 1, 8)])
    history.close()
    ours = [r for r in directory.read_table("history") if r["op"] == op and r["f"] == "send"]
    assert [(r["type"], r["mop"], r["partition"], r["offset"], r["value"]) for r in ours] == [
        ("invoke", 0, 0, None, 5),
        ("invoke", 1, 1, None, 6),
        ("invoke", 2, 1, None, 7),
        ("ok", 0, 0, 3, 5),
        ("ok", 1, 1, 4, 6),
        ("ok", 2, 1, None, 7),
    ]
    assert all(r["txn"] and r["process"] == P0 for r in ours)


def test_a_consumer_says_what_it_is_assigned_and_what_it_commits(directory: RunDirectory) -> None:
    history, p, q = recorder(directory), TopicPartition("t", 0), TopicPartition("t", 1)
    history.complete(history.invoke(P0, "assign", [p, q], final=True), "ok")
    history.complete(history.invoke(P0, "subscribe", [], "g"), "info", "timeout")
    history.complete(history.invoke_commit(P0, "g", {p: 4, q: 9}), "ok")
    history.complete_committed(history.invoke_committed(P0, "g", [p, q]), "ok", [4, None])
    history.crash(P0)
    history.close()
    ended = [r for r in directory.read_table("history") if r["type"] != "invoke"][:-1]
    assert [(r["type"], r["f"], r["partition"], r["offset"], r["group"], r["final"]) for r in ended] == [
        ("ok", "assign", 0, None, None, True),
        ("ok", "assign", 1, None, None, True),
        ("info", "subscribe", None, None, "g", False),
        ("ok", "commit", 0, 4, "g", False),
        ("ok", "commit", 1, 9, "g", False),
        ("ok", "committed", 0, 4, "g", False),
        ("ok", "committed", 1, None, "g", False),
        ("info", "crash", None, None, None, False),
    ]


def test_what_a_program_has_put_out_and_how_far_it_has_come(directory: RunDirectory) -> None:
    history, p, q = recorder(directory), TopicPartition("t", 0), TopicPartition("t", 1)
    history.outputs(P0, [], final=True)
    history.outputs(P0, [Output("done", 1, 4, 7), Output(None, None, 0, None)], final=True)
    history.complete_reached(history.invoke_reached(P0, "g", [p, q]), {q: 3})
    history.complete_reached(history.invoke_reached(P0, None, [p]), {}, "_TIMED_OUT")
    history.close()
    ended = [r for r in directory.read_table("history") if r["type"] != "invoke"][:-1]
    assert [(r["type"], r["f"], r["topic"], r["partition"], r["offset"], r["value"], r["final"]) for r in ended] == [
        ("ok", "output", "done", 1, 4, 7, True),
        ("ok", "output", None, None, 0, None, True),
        ("ok", "reached", "t", 0, 0, None, False),
        ("ok", "reached", "t", 1, 3, None, False),
        ("info", "reached", "t", 0, None, None, False),
    ]


def test_rows_that_could_not_be_written_come_with_the_next_and_none_comes_before_them(
    directory: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    history = recorder(directory, part_rows=2)
    with monkeypatch.context() as patched:
        patched.setattr("harness.history.recorder.write_file", full)
        history.invoke_send(P0, Sending("ledger", 0, 1))
        for value in (2, 3):
            with pytest.raises(OSError, match="No space left"):
                history.invoke_send(P0, Sending("ledger", 0, value))
    history.flush()
    assert [row["index"] for row in directory.read_table("history")] == [0, 1, 2]


LEDGER = TopicPartition("ledger", 1)


def test_sends_that_are_handed_over_together_have_the_rows_that_single_ones_have(directory: RunDirectory) -> None:
    history, single = recorder(directory), KeptRecorder("r1", SteppingClock())
    sends = Sends(LEDGER, values=[7, 8, 9], processes=[3, 4, 5], acks=1, timestamps_ms=[30, 29, 28])
    answers = {2: Answer("ok", 11), 0: Answer("info", error="_TIMED_OUT"), 1: Answer("ok", 10)}
    history.invoke_sends(sends)
    history.complete_sends(sends, [2, 0], [answers[2], answers[0]])
    history.complete_sends(sends, [1], [answers[1]])
    ops = [
        single.invoke_send(ProcessId(process), Sending(*LEDGER, value, 1, at))
        for process, value, at in zip(sends.processes, sends.values, sends.timestamps_ms, strict=True)
    ]
    for place, (kind, offset, error) in answers.items():
        single.complete_send(ops[place], kind, offset, error)
    for one in (history, single):
        one.close()
    untimed = [[{**row, "time_ns": 0} for row in rows] for rows in (directory.read_table("history"), single.rows)]
    assert untimed[0] == untimed[1]
    assert (history.operations, history.acknowledged, history.errors) == (3, 2, 1)


def test_sends_of_one_process_are_one_operation_with_a_step_for_each(directory: RunDirectory) -> None:
    history = recorder(directory)
    sends = Sends(LEDGER, values=range(7, 10), processes=[3], acks=-1, timestamps_ms=[30, 29, 28])
    history.invoke_sends(sends)
    after = history.invoke_poll(P0, final=False)
    history.complete_sends(sends, [1, 2], [Answer("ok", 5), Answer("ok", 6)])
    history.close()
    rows = [row for row in directory.read_table("history") if row["f"] == "send"]
    assert [(row["op"], row["mop"], row["process"], row["value"], row["type"], row["offset"]) for row in rows] == [
        (0, 0, 3, 7, "invoke", None),
        (0, 1, 3, 8, "invoke", None),
        (0, 2, 3, 9, "invoke", None),
        (0, 1, 3, 8, "ok", 5),
        (0, 2, 3, 9, "ok", 6),
    ]
    assert not any(row["txn"] for row in rows)
    assert after == 3, "every send counts as an operation"


def test_a_send_of_several_completes_once(directory: RunDirectory) -> None:
    history = recorder(directory)
    sends = Sends(LEDGER, values=[7, 8], processes=[3, 4], acks=-1, timestamps_ms=[30, 29])
    history.invoke_sends(sends)
    history.complete_sends(sends, [1], [Answer("ok", 5)])
    with pytest.raises(AssertionError, match="send 1 of operation 0 has already completed"):
        history.complete_sends(sends, [0, 1], [Answer("ok", 4), Answer("ok", 5)])


def test_sends_among_other_rows_are_written_in_the_order_of_the_index(directory: RunDirectory) -> None:
    history = recorder(directory, part_rows=4)
    for first in range(0, 12, 3):
        sends = Sends(LEDGER, values=range(first, first + 3), processes=range(3), acks=0, timestamps_ms=[1, 1, 1])
        poll = history.invoke_poll(P0, final=False)
        history.invoke_sends(sends)
        history.complete_poll(poll, [PolledRecord(*LEDGER, first, first, 0, True)])
        history.complete_sends(sends, range(3), [Answer("ok")] * 3)
    history.close()
    rows = directory.read_table("history")
    assert [row["index"] for row in rows] == list(range(len(rows)))
    assert [row["f"] for row in rows[:8]] == ["poll", "send", "send", "send", "poll", "send", "send", "send"]
    assert len(directory.table_files("history")) > 3
