"""What frames say of single reports of clients: of commits, of what a group is given, of sends and of deletions."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest

from checkers.unseen import attribute
from checkers.views.frames import Frames
from checkers.views.row import Row
from checkers.wire_tap.attribution import Ground
from checkers.wire_tap.commit_grounds import committed, returned, row_of
from checkers.wire_tap.deletion_grounds import not_asked, not_obeyed, obeyed
from checkers.wire_tap.poll_grounds import sent_as_asked, withheld_in_the_end
from checkers.wire_tap.send_grounds import acknowledged, ended_as_reported, ended_at_all, refused
from harness.checker import Side
from harness.findings import Finding
from harness.history.schema import HISTORY, REPLICA_LOGS, WIRE
from harness.model import CLIENTS

OUT_OF_RANGE, NOT_LEADER = 1, 6
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


BEGAN = finding(offset=3, value=1, process=7, since_ns=100, time_ns=300, other_offset=5)
POLLED = [row(0, 300, "poll", "ok", offset=3, value=1)]
FETCHED = {"client_id": "seawall-7", "offset": 3, "base_offset": 3, "end_offset": 4, "batch_crc": 11, "batch": 0}


@pytest.mark.parametrize(
    ("answer", "holds"),
    [
        ({"offset": 3}, True),
        ({"offset": 2}, True),
        ({"offset": 5}, False),
        ({"offset": 3, "client_id": "seawall-8"}, False),
        ({"offset": 3, "error": NOT_LEADER}, False),
        ({"offset": 3, "request_ns": 90}, False),
    ],
    ids=["where it began", "before an aborted batch", "where it did not", "to another one", "with an error", "before"],
)
def test_a_client_that_begins_where_the_coordinator_says_is_not_to_blame(
    answer: Mapping[str, Any], holds: bool
) -> None:
    told = {**frame("OFFSET_FETCH", 110, 120), "client_id": "seawall-7", **answer}
    frames = [told, frame("FETCH", 130, 140, **FETCHED)]
    assert sent_as_asked(Frames(frames, (), POLLED, ()), BEGAN).holds is holds
    assert sent_as_asked(Frames(frames, {"OFFSET_FETCH"}, POLLED, ()), BEGAN).holds is (holds or None)


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


# ----------------------------------------------------------------------------------------------- ends of transactions

PRODUCER: Mapping[str, Any] = {"producer_id": 9, "producer_epoch": 1}
IN_A_TRANSACTION = [{**LOGGED[0], "transactional": True, **PRODUCER}]
FAILED = [SENT[0], row(1, 200, "send", "fail", value=1, txn=True)]
COMMITTED_SEND = [SENT[0], {**SENT[1], "offset": 4, "txn": True}]


def ending(at: int, *, commits: bool, error: int | None = 0) -> Row:
    return frame("END_TXN", at, at + 5, topic=None, partition=None, commits=commits, error=error, **PRODUCER)


@pytest.mark.parametrize(
    ("commits", "ends", "holds"),
    [
        (True, [ending(150, commits=True)], True),
        (True, [ending(150, commits=False)], False),
        (True, [ending(250, commits=False)], None),
        (True, [], None),
        (False, [ending(150, commits=False)], True),
        (False, [ending(150, commits=True)], False),
        (False, [ending(50, commits=True)], None),
        (False, [], None),
    ],
)
def test_a_wrong_marker_is_put_down_to_another_than_who_asked_for_it(
    commits: bool, ends: Sequence[Row], holds: bool | None
) -> None:
    history, wire = COMMITTED_SEND if commits else FAILED, [produced(110, 0, **PRODUCER), *ends]
    frames = Frames(wire, (), history, IN_A_TRANSACTION)
    assert ended_as_reported(frames, finding(value=1), commits=commits).holds is holds


def test_a_commit_that_no_client_reports_is_decided() -> None:
    frames = Frames([produced(110, 0, **PRODUCER), ending(150, commits=True)], (), FAILED, IN_A_TRANSACTION)
    assert ended_as_reported(frames, finding(value=1), commits=True).holds is None


@pytest.mark.parametrize(
    ("ends", "holds"),
    [
        ([ending(150, commits=True)], True),
        ([ending(150, commits=False)], True),
        ([ending(150, commits=True, error=NOT_LEADER)], None),
        ([], None),
    ],
)
def test_a_transaction_that_its_client_left_open_is_put_down_to_the_brokers(
    ends: Sequence[Row], holds: bool | None
) -> None:
    frames = Frames([produced(110, 0, **PRODUCER), *ends], (), COMMITTED_SEND, IN_A_TRANSACTION)
    assert ended_at_all(frames, finding(value=1)).holds is holds


@pytest.mark.parametrize(("frames", "side"), [([], Side.CLIENT), ([produced(110, 0, **ACK)], Side.UNDECIDED)])
def test_an_unseen_record_is_put_down_to_a_client_that_was_answered(frames: Sequence[Row], side: Side) -> None:
    about = finding(value=1)._replace(kind="unseen", offset=9)
    assert attribute(about, Frames(frames, (), SENT, ())).side is side


# ------------------------------------------------------------------------------------------------------ deletions

WRONG = finding(offset=0, until=5, node=1, time_ns=150)
"""The log of node 1 began at offset 5, at that time, for a deletion that no order had asked for."""
ANSWERED = WRONG._replace(since_ns=100, by_ns=200)
"""A client was answered between these times that everything before offset 5 is deleted, and it is not."""
REFUSED = finding(offset=5, until=NOT_LEADER, node=1, since_ns=100, time_ns=200)
UNANSWERED = REFUSED._replace(until=None)


def deleting(*times: int | None, before: int | None = 5, **said: Any) -> Row:
    request_ns, response_ns = times
    return frame("DELETE_RECORDS", request_ns or 0, response_ns, **{"node": 1, "offset": before, **said})


@pytest.mark.parametrize(
    ("frames", "holds"),
    [
        ([], True),
        ([deleting(110, 120, before=4)], True),
        ([deleting(110, 160)], False),
        ([deleting(110, None, error=None)], False),
        ([deleting(110, 160, node=2)], True),
        ([deleting(160, 170)], True),
        ([deleting(110, 160, error=OUT_OF_RANGE)], True),
        ([deleting(110, None, error=None), deleting(130, 160, error=OUT_OF_RANGE)], None),
        ([deleting(110, 160, before=None)], None),
        ([deleting(110, None, before=None, error=None)], None),
        ([deleting(110, 120, before=None)], True),
    ],
)
def test_a_deletion_is_put_down_to_a_client_that_did_not_ask_for_it_or_to_a_broker_that_was_asked(
    frames: Sequence[Row], holds: bool | None
) -> None:
    assert not_asked(Frames(frames, (), (), ()), WRONG).holds is holds


@pytest.mark.parametrize(
    ("frames", "holds"),
    [
        ([deleting(110, 190)], True),
        ([deleting(110, 190, before=None, log_start_offset=5)], True),
        ([deleting(110, 190, before=None, log_start_offset=4)], False),
        ([deleting(110, 190, before=4, log_start_offset=5)], False),
        ([deleting(110, 190, error=OUT_OF_RANGE)], False),
        ([deleting(110, 210)], False),
        ([deleting(90, 190)], False),
        ([], False),
    ],
)
def test_another_answer_is_taken_for_the_one_that_records_are_deleted(
    frames: Sequence[Row], holds: bool | None
) -> None:
    assert obeyed(Frames(frames, (), (), ()), ANSWERED).holds is holds


@pytest.mark.parametrize(
    ("what", "frames", "holds"),
    [
        (REFUSED, [deleting(110, 190, error=NOT_LEADER)], True),
        (REFUSED, [deleting(110, 190)], False),
        (REFUSED, [deleting(110, 210, error=NOT_LEADER)], False),
        (REFUSED, [], False),
        (UNANSWERED, [deleting(110, None, error=None)], True),
        (UNANSWERED, [deleting(110, 210)], True),
        (UNANSWERED, [deleting(110, 190)], None),
        (UNANSWERED, [deleting(110, None, before=4, error=None)], False),
        (UNANSWERED, [deleting(110, None, node=2, error=None)], False),
    ],
)
def test_an_order_that_was_not_obeyed_is_put_down_to_another(
    what: Finding, frames: Sequence[Row], holds: bool | None
) -> None:
    assert not_obeyed(Frames(frames, (), (), ()), what).holds is holds


@pytest.mark.parametrize("api", ["DELETE_RECORDS", ""])
def test_a_deletion_that_was_not_understood_decides(api: str) -> None:
    blind = Frames([], {api}, (), ())
    assert [
        ground.holds for ground in (not_asked(blind, WRONG), obeyed(blind, ANSWERED), not_obeyed(blind, REFUSED))
    ] == [None, None, None]


@pytest.mark.parametrize(
    ("frames", "holds"),
    [
        ([], True),
        ([deleting(110, 190)], None),
        ([deleting(110, 190, before=4)], True),
        ([deleting(110, 190, before=None, log_start_offset=5)], None),
        ([deleting(110, 190, before=None, log_start_offset=4)], True),
        ([deleting(110, None, before=None, error=None)], None),
        ([deleting(110, 190, error=OUT_OF_RANGE)], True),
    ],
)
def test_what_a_client_asked_to_delete_is_put_down_to_the_brokers(frames: Sequence[Row], holds: bool | None) -> None:
    assert withheld_in_the_end(Frames(frames, (), (), ()), finding(offset=4, value=1)).holds is holds
