"""What frames say of single reports of clients: of commits, of what a group is given, and of sends."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pytest

from checkers.views.frames import Frames
from checkers.views.row import Row
from checkers.wire_tap.attribution import Ground
from checkers.wire_tap.commit_grounds import committed, returned, row_of
from checkers.wire_tap.send_grounds import acknowledged, refused
from harness.findings import Finding
from harness.history.schema import HISTORY, REPLICA_LOGS, WIRE
from harness.model import CLIENTS

NOT_LEADER = 6
_BLANK_ROW, _BLANK_FRAME, _BLANK_RECORD = (
    {column.name: None for column in table.columns} for table in (HISTORY, WIRE, REPLICA_LOGS)
)


def row(index: int, time_ns: int, f: str, kind: str, **said: Any) -> Row:
    known = {"run": "r", "process": 7, "op": 0, "topic": "t", "partition": 0, "group": "g", "txn": False}
    return {**_BLANK_ROW, **known, "index": index, "time_ns": time_ns, "f": f, "type": kind, **said}


def frame(api: str, request_ns: int, response_ns: int | None, **said: Any) -> Row:
    known = {"peer": CLIENTS, "topic": "t", "partition": 0, "node": "1", "connection": "c", "error": 0, "group": "g"}
    times = {"request_ns": request_ns, "response_ns": response_ns, "correlation_id": request_ns}
    return {**_BLANK_FRAME, **known, **times, "api": api, **said}


def finding(**said: Any) -> Finding:
    return Finding("r", "some-kind", "t", 0, **said)


# -------------------------------------------------------------------------------------------------------- commits

ASKED = [row(0, 100, "committed", "invoke"), row(1, 200, "committed", "ok", offset=5)]
COMMITTED = [row(0, 100, "commit", "invoke", offset=5), row(1, 200, "commit", "ok", offset=5)]


def given(*fetches: tuple[int, int], blind: Collection[str] = ()) -> Ground:
    frames = [frame("OFFSET_FETCH", *times, offset=5) for times in fetches]
    return returned(Frames(frames, blind, ASKED, ()), finding(row=1))


@pytest.mark.parametrize(
    ("times", "holds"),
    [((110, 190), True), ((90, 110), True), ((10, 20), False), ((110, 210), False)],
    ids=["meanwhile", "answered meanwhile", "before", "after"],
)
def test_an_answer_of_another_time_is_taken_for_the_one_that_a_client_reports(
    times: tuple[int, int], holds: bool
) -> None:
    assert given(times).holds is holds


def test_an_older_answer_hides_or_decides_although_a_frame_was_not_understood() -> None:
    assert given((10, 20), (110, 190)).holds is True
    assert given((10, 20)).says == "the coordinator last returned offset 5 to group 'g' before the client asked"
    assert given((10, 20), blind={"OFFSET_FETCH"}).holds is None


def stored(api: str, *times: tuple[int, int], blind: Collection[str] = ()) -> Ground:
    frames = Frames([frame(api, *one, offset=5) for one in times], blind, COMMITTED, ())
    return committed(frames, finding(row=1), row_of(frames, finding(row=1)))


@pytest.mark.parametrize("api", ["OFFSET_COMMIT", "TXN_OFFSET_COMMIT"])
def test_an_earlier_commit_of_the_same_offset_is_taken_for_the_reported_one(api: str) -> None:
    assert stored(api, (110, 190)).holds is True
    assert stored(api, (10, 20)).holds is False
    assert stored(api, (10, 20), (110, 190)).holds is True


@pytest.mark.parametrize("api", ["OFFSET_COMMIT", "TXN_OFFSET_COMMIT", ""])
def test_a_commit_that_was_not_understood_is_put_down_to_a_client(api: str) -> None:
    assert stored("OFFSET_COMMIT").holds is False
    assert stored("OFFSET_COMMIT", blind={api}).holds is None
    assert stored("OFFSET_COMMIT", blind={"FETCH"}).holds is False


# ---------------------------------------------------------------------------------------------------------- sends

OWN, OTHER = 11, 12
LOGGED = [
    {**_BLANK_RECORD, "topic": "t", "partition": 0, "offset": 4, "batch_base_offset": 4, "batch_crc": OWN, "value": 1}
]
SENT = [row(0, 100, "send", "invoke", value=1), row(1, 200, "send", "ok", value=1, offset=9, acks=-1)]
ACK = {"base_offset": 9, "end_offset": 10}


def produced(at: int, error: int | None, crc: int = OWN, **said: Any) -> Row:
    return frame("PRODUCE", at, None if error is None else at + 5, error=error, batch_crc=crc, **said)


@pytest.mark.parametrize(
    ("errors", "holds"),
    [
        ([0], False),
        ([NOT_LEADER, 0], False),
        ([None, 0], False),
        ([0, NOT_LEADER], None),
        ([0, None], None),
        ([0, NOT_LEADER, 0], None),
        ([NOT_LEADER, NOT_LEADER], True),
        ([None], None),
    ],
    ids=str,
)
def test_a_failure_is_put_down_to_a_client_whose_acknowledgement_need_not_have_arrived(
    errors: Sequence[int | None], holds: bool | None
) -> None:
    frames = [produced(110 + 10 * number, error) for number, error in enumerate(errors)]
    assert refused(Frames(frames, (), SENT[:1], LOGGED), finding(value=1)).holds is holds


def test_an_acknowledgement_decides_although_the_next_request_was_not_understood() -> None:
    assert refused(Frames([produced(110, 0)], {"PRODUCE"}, SENT[:1], LOGGED), finding(value=1)).holds is None


@pytest.mark.parametrize(
    ("frames", "holds"),
    [
        ([produced(110, 0, OTHER, **ACK)], True),
        ([produced(110, 0, OTHER, **ACK), produced(120, NOT_LEADER)], None),
        ([produced(110, 0, OWN, base_offset=4, end_offset=5)], False),
        ([], False),
    ],
    ids=["whose batch no log has", "another batch has the value", "with another offset", "not at all"],
)
def test_a_batch_that_no_log_has_is_taken_for_the_acknowledged_one_although_that_one_is_known(
    frames: Sequence[Row], holds: bool | None
) -> None:
    assert acknowledged(Frames(frames, (), SENT, LOGGED), finding(value=1), 9, 1).holds is holds
