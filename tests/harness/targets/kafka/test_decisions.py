"""What controllers have decided, read from logs that are written here as theirs are."""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import EnvironmentFault
from harness.model import TopicPartition
from harness.targets.kafka.decisions import ControllerLog, Decision, Withdrawal, decision_row
from harness.targets.kafka.metadata_log import MetadataLog
from harness.targets.kafka.metadata_records import (
    RECORDS,
    BrokerRegistrationChangeRecord,
    LeaderChangeMessage,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    RemoveTopicRecord,
    TopicRecord,
    Voter,
)
from harness.targets.kafka.zookeeper_log import ZooKeeperLog
from harness.wire import batches
from harness.wire.batches import CONTROL, Record
from harness.wire.declaration import Message
from harness.wire.encoding import encoder

LEDGER = TopicPartition("ledger", 0)
TOPIC_ID = bytes(range(16))
STATE = "/brokers/topics/ledger/partitions/0/state"


# --------------------------------------------------------------------------------------------------------- KRaft


def frame(record: Message) -> bytes:
    """The value of a record of the metadata log, in its newest version."""
    (kind,) = [key for key, cls in RECORDS.items() if cls is type(record)]
    version, out = type(record).versions[1], bytearray([1, kind, type(record).versions[1]])
    encoder(type(record), version)(record, out, [])
    return bytes(out)


def batch(base_offset: int, *records: Message, leader_epoch: int = 1) -> bytes:
    values = [frame(record) for record in records]
    return bytes(
        batches.build(values, base_offset=base_offset, leader_epoch=leader_epoch, timestamp_ms=1000 + base_offset)
    )


def elected(base_offset: int, controller: int, *, leader_epoch: int, version: int = 0) -> bytes:
    """What a controller writes that the others have elected."""
    message = LeaderChangeMessage(controller, [Voter(101), Voter(controller)], [Voter(controller)])
    value = bytearray(struct.pack(">h", version))
    encoder(LeaderChangeMessage, min(version, 1))(message, value, [])
    record = Record(base_offset, 1000 + base_offset, struct.pack(">hh", 0, 2), bytes(value))
    return bytes(batches.build([record], base_offset=base_offset, leader_epoch=leader_epoch, attributes=CONTROL))


CREATED = (
    TopicRecord("ledger", TOPIC_ID),
    PartitionRecord(
        0, TOPIC_ID, replicas=[0, 1, 2], isr=[0, 1, 2], leader=0, leader_epoch=0, partition_epoch=0, directories=[]
    ),
)


def kraft(tmp_path: Path) -> tuple[MetadataLog, Callable[[bytes], None]]:
    def write(data: bytes) -> None:
        with (tmp_path / "00000000000000000000.log").open("ab") as file:
            file.write(data)

    return MetadataLog(tmp_path), write


def decided(log: ControllerLog) -> list[Decision]:
    """What has been decided since the last time."""
    return [decision for decision in log.read_on() if not isinstance(decision, Withdrawal)]


def rows(log: ControllerLog) -> list[dict[str, Any]]:
    """What has been decided since the last time; of ``detail`` what it says beside its source."""
    told = [decision_row(decision) for decision in decided(log)]
    for row in told:
        row["detail"] = {k: v for k, v in json.loads(row["detail"]).items() if k not in ("cause", "source")}
    return told


def test_kraft_s_elections_isr_changes_and_epochs_are_those_that_its_records_mean(tmp_path: Path) -> None:
    log, write = kraft(tmp_path)
    assert not log.read_on()
    write(batch(0, *CREATED))
    write(batch(2, PartitionChangeRecord(0, TOPIC_ID, isr=[1, 2], leader=1), leader_epoch=2))
    write(batch(3, PartitionChangeRecord(0, TOPIC_ID, isr=[1]), PartitionChangeRecord(0, TOPIC_ID, leader=1)))
    told = rows(log)
    place = {"topic": "ledger", "partition": 0}
    common = {"leader": 1, **place}
    assert told == [
        {
            "kind": "election", "wall_ms": 1000, **place, "leader": 0, "leader_epoch": 0, "partition_epoch": 0,
            "isr": [0, 1, 2],
            "detail": {"controller_epoch": 1, "clean": True, "elected_from_isr": True, "previous_leader": -1},
        },
        {
            "kind": "election", "wall_ms": 1002, **common, "leader_epoch": 1, "partition_epoch": 1, "isr": [1, 2],
            "detail": {"controller_epoch": 2, "clean": True, "elected_from_isr": True, "previous_leader": 0},
        },
        {
            "kind": "isr", "wall_ms": 1003, **common, "leader_epoch": 1, "partition_epoch": 2, "isr": [1],
            "detail": {"controller_epoch": 1, "previous_isr": [1, 2]},
        },
        {
            "kind": "isr", "wall_ms": 1003, **common, "leader_epoch": 2, "partition_epoch": 3, "isr": [1],
            "detail": {"controller_epoch": 1, "previous_isr": [1]},
        },
    ]  # fmt: skip
    assert not log.read_on()
    assert log.partitions[LEDGER].isr == (1,)


def test_a_decision_about_where_replicas_lie_says_that_it_is_one_and_a_reassignment_is_none(tmp_path: Path) -> None:
    log, write = kraft(tmp_path)
    write(batch(0, *CREATED))
    here = [TOPIC_ID] * 3
    write(batch(2, PartitionChangeRecord(0, TOPIC_ID, directories=here, eligible_leader_replicas=[])))
    write(batch(3, PartitionChangeRecord(0, TOPIC_ID, directories=here, replicas=[2, 1, 0])))
    write(batch(4, PartitionChangeRecord(0, TOPIC_ID, isr=[0])))
    assert [row["detail"].get("places") for row in rows(log)] == [None, True, None, None]


@pytest.mark.parametrize(
    ("elr", "clean", "from_isr"), [([], False, False), ([2], True, False), ([0], False, False)], ids=str
)
def test_who_was_neither_in_sync_nor_eligible_is_elected_uncleanly(
    tmp_path: Path, elr: list[int], clean: bool, from_isr: bool
) -> None:
    log, write = kraft(tmp_path)
    write(batch(0, *CREATED))
    write(batch(2, PartitionChangeRecord(0, TOPIC_ID, isr=[], leader=-1, eligible_leader_replicas=elr)))
    write(batch(3, PartitionChangeRecord(0, TOPIC_ID, isr=[2], leader=2, eligible_leader_replicas=[])))
    _, nobody, elected = rows(log)
    assert nobody["detail"]["clean"]
    assert (elected["detail"]["clean"], elected["detail"]["elected_from_isr"]) == (clean, from_isr)
    assert nobody["detail"].get("elr", []) == elr


def test_kraft_s_sessions_begin_unfenced_and_end_fenced(tmp_path: Path) -> None:
    log, write = kraft(tmp_path)
    fenced, unfenced = (BrokerRegistrationChangeRecord(3, 7, fenced=change) for change in (1, -1))
    write(batch(0, RegisterBrokerRecord(3, fenced=True), unfenced, fenced, fenced, unfenced))
    write(batch(5, RegisterBrokerRecord(3, fenced=True)))
    assert [row["detail"]["change"] for row in rows(log)] == ["registered", "expired", "returned", "expired"]
    assert not log.live
    write(batch(6, unfenced))
    assert [row["detail"] for row in rows(log)] == [{"broker": 3, "change": "registered"}]
    assert log.live == [3]


def test_who_controls_is_whom_the_controllers_have_elected(tmp_path: Path) -> None:
    log, write = kraft(tmp_path)
    for version, controller in enumerate((101, 103)):
        write(elected(version, controller, leader_epoch=4 + version, version=version))
    marker = Record(2, 1002, struct.pack(">hh", 0, 3), b"a snapshot's")
    write(bytes(batches.build([marker], base_offset=2, attributes=CONTROL)))
    told = rows(log)
    assert [row["kind"] for row in told] == ["controller"] * 2
    assert told[1]["detail"] == {"controller": 103, "controller_epoch": 5, "voters": [101, 103]}
    assert log.controller == 103
    write(elected(3, 101, leader_epoch=6, version=2))
    with pytest.raises(EnvironmentFault, match="has a LeaderChangeMessage of version 2"):
        log.read_on()


def test_a_deleted_topic_is_forgotten(tmp_path: Path) -> None:
    log, write = kraft(tmp_path)
    write(batch(0, *CREATED, RemoveTopicRecord(TOPIC_ID)))
    rows(log)
    assert not log.partitions


def test_a_batch_that_is_being_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    log, write = kraft(tmp_path)
    whole = batch(0, *CREATED)
    for byte in (whole[:40], whole[40:-1]):
        write(byte)
        assert not log.read_on()
    write(whole[-1:])
    assert len(log.read_on()) == 1


def test_what_a_power_loss_took_is_withdrawn_and_what_took_its_place_is_read(tmp_path: Path) -> None:
    log, write = kraft(tmp_path)
    first = batch(0, *CREATED)
    write(first + batch(2, PartitionChangeRecord(0, TOPIC_ID, isr=[1, 2], leader=1)))
    told = decided(log)
    assert len(told) == 2
    (tmp_path / "00000000000000000000.log").write_bytes(first)
    assert log.read_on() == [Withdrawal(told[1:])]
    assert log.partitions[LEDGER].leader == 0
    assert not log.read_on()
    write(batch(2, PartitionChangeRecord(0, TOPIC_ID, isr=[0], leader=0)))
    assert [row["isr"] for row in rows(log)] == [[0]]


def test_a_log_that_has_regrown_before_it_is_looked_at_again_is_read_as_it_is_now(tmp_path: Path) -> None:
    log, write = kraft(tmp_path)
    first = batch(0, *CREATED)
    write(first + batch(2, PartitionChangeRecord(0, TOPIC_ID, isr=[1, 2], leader=1)))
    told = decided(log)
    (tmp_path / "00000000000000000000.log").write_bytes(first)
    write(batch(2, PartitionChangeRecord(0, TOPIC_ID, isr=[2, 0], leader=2), leader_epoch=2))
    write(batch(3, PartitionChangeRecord(0, TOPIC_ID, isr=[2])))
    withdrawn, *new = log.read_on()
    assert withdrawn == Withdrawal(told[1:])
    assert [decision_row(decision)["isr"] for decision in new if not isinstance(decision, Withdrawal)] == [[2, 0], [2]]
    assert (log.partitions[LEDGER].leader, log.partitions[LEDGER].leader_epoch) == (2, 1)


def test_a_controller_s_log_that_was_wiped_does_not_take_back_what_had_been_decided(tmp_path: Path) -> None:
    log, write = kraft(tmp_path)
    write(batch(0, *CREATED))
    assert log.read_on()
    (tmp_path / "00000000000000000000.log").unlink()
    assert not log.read_on()
    write(batch(0, TopicRecord("other", TOPIC_ID)))
    with pytest.raises(EnvironmentFault, match="does not begin as it did when it was read"):
        log.read_on()


def test_a_record_of_a_version_that_is_not_known_is_refused_and_one_about_something_else_is_not(tmp_path: Path) -> None:
    log, write = kraft(tmp_path)
    write(bytes(batches.build([b"\x01\x0c\x09..."])))
    assert not log.read_on()
    write(bytes(batches.build([b"\x01\x05\x09..."], base_offset=1)))
    with pytest.raises(EnvironmentFault, match="has a PartitionChangeRecord of version 9"):
        log.read_on()


# ------------------------------------------------------------------------------------------------------ ZooKeeper


def buffer(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def transaction(zxid: int, kind: int, body: bytes = b"", session: int = 1) -> bytes:
    entry = struct.pack(">qiqqi", session, 0, zxid, 1000 + zxid, kind) + body
    return struct.pack(">qi", 0, len(entry)) + entry + b"B"


def created(path: str, data: bytes) -> bytes:
    return buffer(path.encode()) + buffer(data) + struct.pack(">i?i", -1, False, 0)


def set_data(path: str, data: bytes, version: int) -> bytes:
    return buffer(path.encode()) + buffer(data) + struct.pack(">i", version)


def state(leader: int, leader_epoch: int, isr: Iterable[int]) -> bytes:
    told = {"controller_epoch": 4, "leader": leader, "version": 1, "leader_epoch": leader_epoch, "isr": list(isr)}
    return json.dumps(told).encode()


ASSIGNED = created("/brokers/topics/ledger", json.dumps({"version": 1, "partitions": {"0": [0, 1, 2]}}).encode())
CREATE, DELETE, SET_DATA, MULTI, CLOSE_SESSION = 1, 2, 5, 14, -11


def zookeeper(tmp_path: Path) -> tuple[ZooKeeperLog, Callable[..., None]]:
    written: dict[str, bytes] = defaultdict(lambda: b"ZKLG" + bytes(11) + b"\1")

    def write(*transactions: bytes, name: str = "log.1") -> None:
        written[name] += b"".join(transactions)
        (tmp_path / name).write_bytes(written[name] + bytes(64))

    return ZooKeeperLog(tmp_path), write


def test_zookeeper_s_elections_and_isr_changes_are_those_of_the_state_nodes(tmp_path: Path) -> None:
    log, write = zookeeper(tmp_path)
    assert not log.read_on()
    write(transaction(1, CREATE, ASSIGNED), transaction(2, CREATE, created(STATE, state(0, 0, [0, 1, 2]))))
    write(transaction(3, SET_DATA, set_data(STATE, state(1, 1, [1, 2]), 1)))
    told = rows(log)
    assert [(row["kind"], row["leader"], row["isr"], row["partition_epoch"], row["wall_ms"]) for row in told] == [
        ("election", 0, [0, 1, 2], 0, 1002),
        ("election", 1, [1, 2], 1, 1003),
    ]
    assert told[1]["detail"] == {
        "controller_epoch": 4, "clean": True, "elected_from_isr": True, "previous_leader": 0,
    }  # fmt: skip
    write(transaction(4, SET_DATA, set_data(STATE, state(1, 2, [1]), 2)))
    write(transaction(5, SET_DATA, set_data(STATE, state(0, 3, [0]), 3)))
    told = rows(log)
    assert [row["kind"] for row in told] == ["isr", "election"]
    assert not told[1]["detail"]["clean"]
    assert log.partitions[LEDGER].replicas == (0, 1, 2)


def test_what_a_multi_transaction_holds_counts_part_by_part(tmp_path: Path) -> None:
    log, write = zookeeper(tmp_path)
    write(transaction(1, CREATE, ASSIGNED), transaction(2, CREATE, created(STATE, state(0, 0, [0, 1, 2]))))
    log.read_on()
    check = struct.pack(">i", 13) + buffer(buffer(b"/controller_epoch") + struct.pack(">i", 1))
    change = struct.pack(">i", SET_DATA) + buffer(set_data(STATE, state(1, 1, [1]), 1))
    write(transaction(3, MULTI, struct.pack(">i", 2) + check + change))
    assert [row["leader"] for row in rows(log)] == [1]


def test_a_broker_s_session_ends_with_its_node_or_with_the_session_that_made_it(tmp_path: Path) -> None:
    log, write = zookeeper(tmp_path)
    born = created("/brokers/ids/2", b"{}")
    write(transaction(1, CREATE, born, session=7), transaction(2, CLOSE_SESSION, session=8))
    assert log.read_on()
    assert log.live == [2]
    write(transaction(3, CLOSE_SESSION, session=7), transaction(4, CREATE, born, session=9))
    write(transaction(5, DELETE, buffer(b"/brokers/ids/2"), session=9))
    assert [row["detail"]["change"] for row in rows(log)] == ["expired", "registered", "expired"]
    assert not log.live


def test_a_transaction_that_is_being_written_is_read_when_it_is_whole_and_once(tmp_path: Path) -> None:
    log, write = zookeeper(tmp_path)
    whole = transaction(1, CREATE, created("/brokers/ids/2", b"{}"))
    write(whole[:30])
    assert not log.read_on()
    write(whole[30:])
    assert len(log.read_on()) == 1
    assert not log.read_on()


def test_a_transaction_that_a_power_loss_took_is_withdrawn(tmp_path: Path) -> None:
    log, write = zookeeper(tmp_path)
    first = transaction(1, CREATE, created(STATE, state(0, 0, [0, 1])))
    write(first, transaction(2, SET_DATA, set_data(STATE, state(1, 1, [1]), 1)))
    told = decided(log)
    _, rewrite = zookeeper(tmp_path)
    rewrite(first, transaction(2, SET_DATA, set_data(STATE, state(0, 0, [0]), 1)))
    withdrawn, new = log.read_on()
    assert withdrawn == Withdrawal(told[1:])
    assert not isinstance(new, Withdrawal)
    assert decision_row(new)["isr"] == [0]
    assert log.partitions[LEDGER].leader == 0


def test_zookeeper_goes_on_in_another_file(tmp_path: Path) -> None:
    log, write = zookeeper(tmp_path)
    write(transaction(9, CREATE, created("/brokers/ids/2", b"{}")), name="log.9")
    assert len(log.read_on()) == 1
    write(transaction(16, DELETE, buffer(b"/brokers/ids/2")), name="log.10")
    assert [row["detail"]["change"] for row in rows(log)] == ["expired"]


def test_an_assignment_that_changes_is_the_partition_s_from_then_on(tmp_path: Path) -> None:
    log, write = zookeeper(tmp_path)
    write(transaction(1, CREATE, ASSIGNED), transaction(2, CREATE, created(STATE, state(0, 0, [0, 1, 2]))))
    other = json.dumps({"version": 1, "partitions": {"0": [2, 1, 0]}}).encode()
    write(transaction(3, SET_DATA, set_data("/brokers/topics/ledger", other, 1)))
    assert len(log.read_on()) == 1
    assert log.partitions[LEDGER].replicas == (2, 1, 0)
    write(transaction(4, DELETE, buffer(STATE.encode())))
    log.read_on()
    assert not log.partitions
