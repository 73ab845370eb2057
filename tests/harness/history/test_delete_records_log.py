from __future__ import annotations

from dataclasses import asdict
from itertools import count

from harness.errors import InvalidRun
from harness.history.delete_records_log import GAVE_UP, DeleteRecordsLog
from harness.history.run_directory import Manifest, manifest_of
from harness.model import NodeId, TopicPartition

LEDGER = TopicPartition("ledger", 1)


def test_an_order_has_what_was_asked_when_and_what_came_of_it() -> None:
    orders = DeleteRecordsLog(count(5).__next__)
    assert orders.sent(LEDGER, 2, 100, NodeId(1)) == 0
    assert orders.is_waiting
    orders.ended(0, None, 2)
    assert not orders.is_waiting
    assert orders.rows() == [
        {
            "topic": "ledger", "partition": 1, "before": 2, "timeout_ms": 100, "node": 1, "invoked_ns": 5,
            "completed_ns": 6, "error": None, "low_watermark": 2,
        }
    ]  # fmt: skip


def test_only_the_first_end_of_an_order_counts() -> None:
    orders = DeleteRecordsLog(count().__next__)
    orders.ended(orders.sent(LEDGER, None, 100), "OFFSET_OUT_OF_RANGE", -1)
    orders.ended(0, GAVE_UP)
    [order] = orders.rows()
    assert (order["error"], order["low_watermark"], order["completed_ns"]) == ("OFFSET_OUT_OF_RANGE", None, 1)


def test_an_order_without_an_end_is_open() -> None:
    orders = DeleteRecordsLog(count().__next__)
    orders.sent(LEDGER, None, 100)
    assert orders.is_waiting
    assert orders.rows()[0]["completed_ns"] is None


def test_an_order_in_run_json_is_whole_and_of_the_right_types() -> None:
    orders = DeleteRecordsLog(count().__next__)
    orders.sent(LEDGER, None, 100)
    [order] = orders.rows()
    assert refusal([order]) is None
    assert refusal(None) is None
    assert refusal([order | {"before": -1}]) == (
        "run.json: orders[0].before: -1 is refused: input should be greater than or equal to 0."
    )
    lacking = {key: value for key, value in order.items() if key != "error"}
    assert refusal([lacking]) == "run.json: orders[0]: 'error' is missing."


def refusal(orders: object) -> str | None:
    try:
        manifest_of({**asdict(Manifest("r", "s", 1, "")), "orders": orders}, "run.json")
    except InvalidRun as refused:
        return refused.sentence
    return None
