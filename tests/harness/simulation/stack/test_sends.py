"""The simulated producers: every answer means what it says, and nothing is sent twice unless that was ordered."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.model import Link, NodeId
from harness.orders import SendOrder
from harness.wire import batches
from tests.harness.simulation.stack.chaos_story import Parameters
from tests.harness.simulation.stack.loaded_target import LEDGER, LoadedTarget


def kinds(loaded: LoadedTarget, **order: object) -> list[tuple[str, int | None, str | None]]:
    return [(sent.kind, sent.offset, sent.error) for sent in loaded.send(**order)]


def test_records_are_acknowledged_one_after_the_other_with_their_offsets(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    assert kinds(loaded, count=3) == [("ok", 0, None), ("ok", 1, None), ("ok", 2, None)]
    rows = loaded.rows("send")
    assert [row["type"] for row in rows] == ["invoke", "ok"] * 3
    assert [row["offset"] for row in rows] == [None, 0, None, 1, None, 2]
    assert len({row["value"] for row in rows}) == 3
    assert len({row["process"] for row in rows}) == 1


def test_a_batch_is_one_request_and_each_of_its_records_a_process_of_its_own(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    assert kinds(loaded, count=5, batch=3) == [("ok", offset, None) for offset in range(5)]
    log = memoryview(bytearray(loaded.target.cluster.nodes["0"].disk.read_bytes(f"{LEDGER}/{0:020d}.log")))
    assert [header.record_count for header in batches.headers(log)] == [3, 2]
    assert len({row["process"] for row in loaded.rows("send")}) == 3


@pytest.mark.parametrize("age_ms", [0, 691_200_000, -3_600_000])
def test_every_record_has_a_timestamp_of_its_own_which_the_history_tells_and_the_cluster_keeps(
    tmp_path: Path, age_ms: int
) -> None:
    loaded = LoadedTarget(tmp_path, log_retention_ms=2**62)
    begun_ms = loaded.clock.wall_ms()
    loaded.send(count=6, batch=3, age_ms=age_ms)
    assert loaded.clients.final_read.read(5.0)
    sent = {row["value"]: row["timestamp_ms"] for row in loaded.rows("send", type="ok")}
    read = {row["value"]: row["timestamp_ms"] for row in loaded.rows("poll", type="ok", final=True)}
    assert sent == read
    assert sent == {row["value"]: row["timestamp_ms"] for row in loaded.rows("send", type="invoke")}
    assert list(sent.values())[:3] == [begun_ms - age_ms - back for back in range(3)]
    assert {row["intact"] for row in loaded.rows("poll", type="ok", final=True)} == {True}


def test_acks_0_is_acknowledged_without_an_offset_and_arrives(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    assert kinds(loaded, acks=0) == [("ok", None, None)]
    loaded.clock.sleep(0.1)
    assert loaded.end_offset() == 1


def test_a_record_that_is_too_large_has_failed_and_is_in_no_log(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path, parameters=Parameters(rate=0, consumers=0, size=5000), message_max_bytes=1000)
    assert kinds(loaded) == [("fail", None, "MSG_SIZE_TOO_LARGE")]
    assert loaded.end_offset() == 0


def test_too_small_an_isr_is_no_proof_that_nothing_was_appended(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    loaded.target.kill("1")
    loaded.target.kill("2")
    loaded.clock.sleep(5)
    assert kinds(loaded) == [("info", None, "NOT_ENOUGH_REPLICAS")]


def test_a_lost_connection_leaves_the_record_in_doubt_and_the_next_one_has_a_new_process(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    loaded.isolate("0", "1", "2")
    sending = loaded.scheduled.send(SendOrder((LEDGER,), 2, timeout_s=60))
    loaded.clock.sleep(0.1)
    loaded.target.kill("0")
    answers = [(sent.kind, sent.error) for sent in loaded.done(sending)]
    assert answers == [("info", "_TRANSPORT"), ("ok", None)]
    assert len({row["process"] for row in loaded.rows("send")}) == 2


def test_what_is_not_answered_in_time_is_in_doubt(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    loaded.isolate("0", "clients")
    begin_ns = loaded.clock.now_ns
    assert kinds(loaded, timeout_s=3.0) == [("info", None, "_MSG_TIMED_OUT")]
    assert 2.9e9 < loaded.clock.now_ns - begin_ns < 3.2e9


def test_a_record_for_a_leader_that_is_gone_waits_for_the_next_one_and_is_sent_once(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    loaded.target.kill("0")
    assert kinds(loaded) == [("ok", 0, None)]
    assert loaded.end_offset("1") == 1


def test_a_stale_leader_costs_a_look_for_the_new_one_and_not_the_record(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    order = SendOrder((LEDGER,), 1, producer="steady")
    assert [sent.kind for sent in loaded.done(loaded.scheduled.send(order))] == ["ok"]
    loaded.target.elect(LEDGER, NodeId(1), unclean=False)
    loaded.clock.sleep(0.1)
    begin_ns = loaded.clock.now_ns
    assert [(sent.kind, sent.offset) for sent in loaded.done(loaded.scheduled.send(order))] == [("ok", 1)]
    assert loaded.clock.now_ns - begin_ns < 0.3e9


def test_a_client_that_knows_a_newer_epoch_does_not_believe_who_is_behind_the_times(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    loaded.isolate("0", "1", "2", "controller")
    loaded.clock.sleep(3)
    order = SendOrder((LEDGER,), 1, acks=1, timeout_s=3.0, producer="steady")
    assert [sent.kind for sent in loaded.done(loaded.scheduled.send(order))] == ["ok"]
    loaded.isolate("clients", "1", "2")
    loaded.clock.sleep(1)
    assert [(sent.kind, sent.error) for sent in loaded.done(loaded.scheduled.send(order))] == [
        ("info", "_MSG_TIMED_OUT")
    ]
    assert loaded.end_offset("0") == 0


def test_where_no_epochs_are_told_a_client_believes_what_most_brokers_say(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path, "0.10")
    loaded.target.elect(LEDGER, NodeId(2), unclean=False)
    loaded.clock.sleep(0.2)
    loaded.isolate("2", "0", "1", "controller")
    loaded.clock.sleep(4)
    assert kinds(loaded, acks=1) == [("ok", 0, None)]
    assert loaded.end_offset("2") == 0


def test_a_request_is_repeated_as_often_as_ordered_and_no_more(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    order = SendOrder((LEDGER,), 1, retries=2, retry_after_s=0.5, producer="p")
    assert [sent.kind for sent in loaded.done(loaded.scheduled.send(order))] == ["ok"]
    loaded.target.cut([Link("0", "clients")])
    begin_ns = loaded.clock.now_ns
    assert [sent.kind for sent in loaded.done(loaded.scheduled.send(order))] == ["info"]
    assert 1.5e9 < loaded.clock.now_ns - begin_ns < 3e9
    assert loaded.end_offset() == 1 + 3


def test_batches_of_an_idempotent_producer_are_numbered_by_their_records(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    answers = kinds(loaded, count=5, batch=2, idempotent=True, producer="p")
    assert answers == [("ok", offset, None) for offset in range(5)]


def test_an_idempotent_producer_that_has_given_a_batch_up_goes_on_in_the_next_epoch_of_its_id(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    told = [kinds(loaded, idempotent=True, producer="p", timeout_s=3.0)]
    loaded.isolate("0", "clients")
    told.append(kinds(loaded, idempotent=True, producer="p", timeout_s=3.0))
    loaded.join("0", "clients")
    told.append(kinds(loaded, idempotent=True, producer="p", timeout_s=3.0))
    assert told == [[("ok", 0, None)], [("info", None, "_MSG_TIMED_OUT")], [("ok", 2, None)]]
    log = memoryview(bytearray(loaded.target.cluster.nodes["0"].disk.read_bytes(f"{LEDGER}/{0:020d}.log")))
    headers = batches.headers(log)
    assert [(header.producer_epoch, header.base_sequence) for header in headers] == [(0, 0), (0, 1), (1, 0)]
    assert len({header.producer_id for header in headers}) == 1


def test_a_producer_whose_oldest_batch_is_out_of_order_fails_and_another_takes_its_place(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path, bugs="sequence_expected_again")
    told = [one for _ in range(3) for one in kinds(loaded, idempotent=True, producer="p", timeout_s=3.0)]
    assert told == [("ok", 0, None), ("info", None, "OUT_OF_ORDER_SEQUENCE_NUMBER"), ("ok", 1, None)]
    log = memoryview(bytearray(loaded.target.cluster.nodes["0"].disk.read_bytes(f"{LEDGER}/{0:020d}.log")))
    headers = batches.headers(log)
    assert [(header.producer_epoch, header.base_sequence) for header in headers] == [(0, 0), (0, 0)]
    assert len({header.producer_id for header in headers}) == 2


def test_a_retried_request_may_be_in_the_log_twice_and_an_idempotent_one_is_not(tmp_path: Path) -> None:
    ends = []
    for idempotent in (False, True):
        loaded = LoadedTarget(tmp_path)
        order = SendOrder((LEDGER,), 1, retries=5, retry_after_s=0.5, idempotent=idempotent, producer="p")
        assert [sent.kind for sent in loaded.done(loaded.scheduled.send(order))] == ["ok"]
        loaded.target.cut([Link("0", "clients")])
        sending = loaded.scheduled.send(order)
        loaded.clock.sleep(0.3)
        loaded.target.mend([Link("0", "clients")])
        loaded.target.cluster.nodes["0"].network.sever("clients")
        assert [sent.kind for sent in loaded.done(sending)] == ["ok"]
        ends.append(loaded.end_offset())
    assert ends == [3, 2]


def test_stopping_gives_up_on_what_is_under_way_and_that_is_in_doubt(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    loaded.isolate("0", "1", "2")
    sending = loaded.scheduled.send(SendOrder((LEDGER,), 3, timeout_s=60))
    loaded.clock.sleep(0.1)
    loaded.clients.stop()
    loaded.clients.stop()
    assert [(sent.kind, sent.error) for sent in loaded.done(sending)] == [("info", "_NO_DELIVERY_REPORT")]


def test_background_producers_keep_their_pace_and_stop(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path, parameters=Parameters(rate=50.0, producers=4, consumers=1))
    loaded.clients.workload.start()
    loaded.clock.sleep(4)
    loaded.clients.stop()
    sent = len(loaded.rows("send", type="ok"))
    assert 180 <= sent <= 205
    assert loaded.clients.workload.polled()[LEDGER] > 150
    loaded.clock.sleep(2)
    assert len(loaded.rows("send", type="ok")) == sent
    assert len({row["process"] for row in loaded.rows("send")}) == 4


def test_the_age_of_a_record_moves_its_timestamp(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    now_ms = loaded.clock.wall_ms()
    loaded.send(age_ms=3_600_000)
    log = memoryview(bytearray(loaded.target.cluster.nodes["0"].disk.read_bytes(f"{LEDGER}/{0:020d}.log")))
    assert batches.headers(log)[0].max_timestamp == pytest.approx(now_ms - 3_600_000, abs=100)


def test_a_producer_gets_its_id_from_another_broker_where_the_first_one_stands_still(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path)
    loaded.target.pause("0")
    loaded.clock.sleep(3.0)
    sent = loaded.send(idempotent=True, producer="p", timeout_s=0.9)
    assert [one.kind for one in sent] == ["ok"]


def test_a_load_that_sends_once_in_a_minute_stops_within_seconds(tmp_path: Path) -> None:
    loaded = LoadedTarget(tmp_path, parameters=Parameters(rate=1 / 60, producers=1, consumers=0))
    loaded.clients.workload.start()
    loaded.clock.sleep(1)
    before_ns = loaded.clock.monotonic_ns()
    loaded.clients.stop()
    assert loaded.clock.monotonic_ns() - before_ns <= 4_000_000_000
