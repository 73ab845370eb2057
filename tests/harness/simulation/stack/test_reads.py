"""The simulated consumers: they deliver what the log holds, and never skip in silence."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.final_read import Unread
from harness.model import Link, NodeId
from harness.orders import CommitOrder, ConsumeOrder, DeleteOrder, SpoofedFetchOrder
from tests.harness.simulation.stack.chaos_story import Parameters
from tests.harness.simulation.stack.loaded_target import LEDGER, LoadedTarget

TAILING = Parameters(rate=0, consumers=1)


def delivered(loaded: LoadedTarget, *, final: bool) -> list[tuple[int, bool]]:
    """Offset of each record that was polled, and whether it was what was written."""
    rows = [row for row in loaded.rows("poll", type="ok", final=final) if row["offset"] is not None]
    return [(row["offset"], row["intact"]) for row in rows]


def consume(loaded: LoadedTarget, **order: object) -> tuple[str | None, list[int | None], int | None]:
    consumed = loaded.done(loaded.scheduled.consume(ConsumeOrder("group", (LEDGER,), **order)))  # type: ignore[arg-type]
    return consumed.incident, list(consumed.values[LEDGER]), consumed.positions.get(LEDGER)


def test_a_tailing_consumer_delivers_every_record_once_with_its_epoch(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path, parameters=TAILING)
    loaded.clients.workload.start()
    sent = [one.value for one in loaded.send(count=4)]
    loaded.clock.sleep(1)
    assert delivered(loaded, final=False) == [(offset, True) for offset in range(4)]
    records = [row for row in loaded.rows("poll", type="ok") if row["offset"] is not None]
    assert [(row["value"], row["leader_epoch"]) for row in records] == [(value, 0) for value in sent]
    assert loaded.clients.workload.polled() == {LEDGER: 4}
    loaded.clients.stop()
    assert len(loaded.rows("poll", type="invoke")) == len({row["op"] for row in loaded.rows("poll")})


def test_a_poll_that_finds_nothing_is_an_empty_row(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path, parameters=TAILING)
    loaded.clients.workload.start()
    loaded.clock.sleep(1.1)
    rows = loaded.rows("poll", type="ok")
    assert 4 <= len(rows) <= 6
    assert {row["offset"] for row in rows} == {None}


def test_a_consumer_follows_the_leader_and_does_not_tell_of_the_way(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path, parameters=TAILING)
    loaded.clients.workload.start()
    loaded.send(count=2)
    loaded.target.kill("0")
    loaded.send(count=2)
    loaded.clock.sleep(1)
    assert [offset for offset, _ in delivered(loaded, final=False)] == [0, 1, 2, 3]
    assert loaded.rows("poll", type="fail") == []


def test_a_consumer_leaves_a_leader_that_does_not_know_it_is_deposed(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path, parameters=TAILING)
    loaded.clients.workload.start()
    loaded.send()
    loaded.isolate("0", "1", "2", "controller")
    loaded.clock.sleep(3)
    assert loaded.target.view().partitions[LEDGER].leader == 1
    loaded.send()
    loaded.clock.sleep(3)
    assert loaded.clients.workload.polled() == {LEDGER: 2}


@pytest.mark.parametrize(
    ("knobs", "error", "again"), [("4.1", "_LOG_TRUNCATION", [0]), ("0.10", "_AUTO_OFFSET_RESET", [])]
)
def test_a_log_that_was_cut_below_the_consumer_is_told_and_read_again_from_the_start(
    tmp_path: Path, knobs: str, error: str, again: list[int]
) -> None:
    loaded = LoadedTarget(tmp_path, knobs, TAILING, min_insync_replicas=1, unclean_leader_election_enable=True)
    loaded.clients.workload.start()
    loaded.send()
    for node in ("1", "2"):
        loaded.target.kill(node)
    loaded.clock.sleep(5)
    loaded.send(count=3)
    loaded.clock.sleep(1)
    assert loaded.clients.workload.polled() == {LEDGER: 4}
    loaded.target.kill("0")
    loaded.target.restart("1")
    loaded.clock.sleep(10)
    (told,) = loaded.rows("poll", type="fail")
    assert told["error"] == error
    (lost,) = loaded.rows("out_of_range", type="info")
    assert (lost["op"], lost["partition"], lost["offset"], lost["error"]) == (told["op"], 0, 4, error)
    assert [offset for offset, _ in delivered(loaded, final=False)] == [0, 1, 2, 3, *again]


def test_the_final_read_reaches_the_end_and_one_without_a_leader_does_not(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    assert loaded.clients.final_read.read(5.0)
    assert [row["offset"] for row in loaded.rows("poll", type="ok", final=True)] == [None]
    loaded.send(count=3)
    assert loaded.clients.final_read.read(5.0)
    assert delivered(loaded, final=True) == [(0, True), (1, True), (2, True)]
    for node in ("0", "1", "2"):
        loaded.target.kill(node)
    assert not loaded.clients.final_read.read(5.0)


def test_a_damaged_batch_is_no_record(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    loaded.send()
    loaded.target.cluster.nodes["0"].disk.flip_bit(f"{LEDGER}/{0:020d}.log", -1)
    assert not loaded.clients.final_read.read(5.0)
    assert [row["error"] for row in loaded.rows("poll", type="fail")] == ["_BAD_MSG"]
    assert loaded.clients.final_read.unread() == {LEDGER: Unread(begun=True, position=0, end=1, error="_BAD_MSG")}


def test_a_final_read_that_an_error_has_ended_goes_on_from_the_beginning(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    loaded.send()
    for read in (False, True):  # spoilt, and as it was
        loaded.target.cluster.nodes["0"].disk.flip_bit(f"{LEDGER}/{0:020d}.log", -1)
        loaded.clock.sleep(3)
        assert loaded.clients.final_read.read(5.0) == read
    assert delivered(loaded, final=True) == [(0, True)]
    assert not loaded.clients.final_read.unread()


def test_a_group_goes_on_where_it_has_committed(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    first = [one.value for one in loaded.send(count=2)]
    assert consume(loaded, start="beginning", commit=True) == (None, first, 2)
    assert loaded.target.committed("group") == {LEDGER: 2}
    second = [one.value for one in loaded.send(count=2)]
    assert consume(loaded, commit=True) == (None, second, 4)
    assert consume(loaded) == (None, [], 4)
    assert loaded.done(loaded.scheduled.commit(CommitOrder("group", {LEDGER: 1}))).error is None
    assert consume(loaded) == (None, [*first[1:], *second], 4)


def test_what_a_group_commits_and_asks_is_in_the_history(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    loaded.send(count=2)
    consume(loaded, start="beginning", commit=True)
    consume(loaded)
    assert loaded.done(loaded.scheduled.commit(CommitOrder("group", {LEDGER: 1}))).error is None
    told = [(row["type"], row["offset"]) for row in loaded.rows("committed", group="group")]
    assert told == [("invoke", None), ("ok", 2)]
    stored = [(row["type"], row["offset"]) for row in loaded.rows("commit", group="group")]
    assert stored[-4:] == [("invoke", 2), ("ok", 2), ("invoke", 1), ("ok", 1)]
    assert {kind for kind, _ in stored[:-4]} <= {"invoke", "info"}  # before there was a coordinator
    members = {row["process"] for row in loaded.rows("assign", type="ok", group="group", partition=LEDGER.partition)}
    assert {row["process"] for row in loaded.rows("poll", type="invoke", group="group")} < members
    ended = loaded.rows("commit", type="ok") + loaded.rows("committed", type="ok")
    committing = {row["process"] for row in ended}
    assert len(members) == 2
    assert len(committing) == 3
    assert not members & committing


def test_every_attempt_at_a_commit_is_an_operation_and_nobody_knows_what_became_of_one_without_an_answer(
    tmp_path: Path,
) -> None:
    loaded = LoadedTarget(tmp_path)
    loaded.target.cut([Link("clients", node) for node in ("0", "1", "2")])
    loaded.done(loaded.scheduled.commit(CommitOrder("group", {LEDGER: 1}, timeout_s=3.0)))
    ended = loaded.rows("commit", type="info", error="_TIMED_OUT")
    assert len(ended) > 1
    assert len(ended) == len(loaded.rows("commit", type="invoke")) == len({row["process"] for row in ended})


def test_a_member_that_begins_within_a_batch_is_not_given_what_is_before(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    values = [one.value for one in loaded.send(count=3, batch=3)]
    assert loaded.done(loaded.scheduled.commit(CommitOrder("group", {LEDGER: 2}))).error is None
    assert consume(loaded) == (None, values[2:], 3)


def test_a_member_of_an_empty_partition_stands_at_its_start(tmp_path: Path) -> None:
    assert consume(LoadedTarget(tmp_path), start="beginning") == (None, [], 0)


def test_a_group_without_a_position_does_what_its_policy_says(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    values = [one.value for one in loaded.send(count=2)]
    assert consume(loaded) == ("out_of_range", [], None)
    assert consume(loaded, reset="earliest") == ("reset", values, 2)
    assert consume(loaded, reset="latest") == ("reset", [], 2)
    assert consume(loaded, start="end") == (None, [], 2)


def test_a_group_that_checks_epochs_finds_that_what_it_had_read_was_cut(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    loaded.send(count=2)
    order = CommitOrder("group", {LEDGER: 9}, leader_epoch=0)
    assert loaded.done(loaded.scheduled.commit(order)).error is None
    assert consume(loaded, checks_epochs=True) == ("truncated", [], None)
    assert consume(loaded) == ("out_of_range", [], None)


def test_a_group_begins_at_the_first_record_that_is_as_young_as_it_asks_for(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    hour_ms = 3_600_000
    values = [loaded.send(age_ms=age_ms)[0].value for age_ms in (2 * hour_ms, hour_ms, 3 * hour_ms, -hour_ms)]
    loaded.clock.sleep(1)
    begun = {2 * hour_ms + 60_000: 0, hour_ms + 60_000: 1, hour_ms - 60_000: 3, -hour_ms + 60_000: 3, -2 * hour_ms: 4}
    for age_ms, first in begun.items():
        assert consume(loaded, start="time", age_ms=age_ms) == (None, values[first:], 4)
    asked, answered = (loaded.rows("offset_for_time", type=kind) for kind in ("invoke", "ok"))
    assert [row["offset"] for row in answered] == [0, 1, 3, 3, None]
    assert [row["timestamp_ms"] for row in asked] == sorted(row["timestamp_ms"] for row in asked)


def test_a_lookup_by_time_that_nobody_answers_has_no_end(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    loaded.target.cut([Link("clients", node) for node in ("0", "1", "2")])
    assert consume(loaded, start="time", timeout_s=3.0) == ("unreachable", [], None)
    [row] = loaded.rows("offset_for_time", type="info")
    assert row["error"] == "_TIMED_OUT"


def test_a_member_that_nobody_answers_is_unreachable(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    loaded.target.cut([Link("clients", node) for node in ("0", "1", "2")])
    assert consume(loaded, timeout_s=3.0) == ("unreachable", [], None)
    assert loaded.done(loaded.scheduled.commit(CommitOrder("group", {LEDGER: 1}, timeout_s=3.0))).error == "_TIMED_OUT"
    assert loaded.done(loaded.scheduled.delete_records(DeleteOrder((LEDGER,), 1, timeout_s=3.0))).error == "_TIMED_OUT"
    assert loaded.orders() == []


def test_an_order_that_nobody_answers_is_given_up(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path, bugs="deletion_unanswered")
    loaded.send(count=2)
    assert loaded.done(loaded.scheduled.delete_records(DeleteOrder((LEDGER,), 1, timeout_s=3.0))).error == "_TIMED_OUT"
    [order] = loaded.orders()
    assert (order["timeout_ms"], order["error"], order["low_watermark"]) == (1_500, "_TIMED_OUT", None)
    assert order["completed_ns"] - order["invoked_ns"] >= 2 * 1_500_000_000 - 1_000_000


def test_deleted_records_are_not_read_any_more(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    loaded.send(count=4)
    assert loaded.done(loaded.scheduled.delete_records(DeleteOrder((LEDGER,), 3))).error is None
    assert loaded.clients.final_read.read(5.0)
    assert delivered(loaded, final=True) == [(3, True)]
    assert loaded.done(loaded.scheduled.delete_records(DeleteOrder((LEDGER,), None))).error is None
    assert loaded.done(loaded.scheduled.delete_records(DeleteOrder((LEDGER,), 99))).error == "OFFSET_OUT_OF_RANGE"
    ends = [(one["before"], one["error"], one["low_watermark"]) for one in loaded.orders()]
    assert ends == [(3, None, 3), (None, None, 4), (99, "OFFSET_OUT_OF_RANGE", None)]


def test_a_spoofed_fetch_is_believed_as_in_kafka(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path, "0.10")
    loaded.isolate("0", "1", "2")
    loaded.send(acks=1)
    for replica in (1, 2):
        order = SpoofedFetchOrder(NodeId(0), NodeId(replica), (LEDGER,), 1)
        assert loaded.done(loaded.scheduled.spoof_fetch(order)).error is None
    leader = loaded.target.replica("0", LEDGER)
    assert leader is not None
    assert leader.high_watermark == 1
