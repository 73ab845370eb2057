from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, TypeVar

import pytest

import workloads
from harness.broker.settings import Settings
from harness.client_ports import ClientContext
from harness.client_properties import Access
from harness.client_tasks.final_reader import FinalReader
from harness.client_tasks.scheduled_client import OrderedClient
from harness.clients.sender import produce
from harness.clients.threaded_clients import ThreadedClients
from harness.clock import SystemClock
from harness.errors import UsageError
from harness.history.run_directory import Manifest, RunDirectory
from harness.model import Link, NodeId, TopicPartition
from harness.orders import CommitOrder, ConsumeOrder, DeleteOrder, Pending, SendOrder, Sent, SpoofedFetchOrder
from harness.replication.knobs import CURRENT_GENERATION, generation
from harness.runner.run_clients import RunClients
from harness.target import ReplicaView, TopicSpec
from harness.targets.builtin import BuiltinTarget
from harness.wire import batches
from tests.replica_rows import held
from workloads.unique_sends import UniqueSends, UniqueSendsParameters

T = TypeVar("T")

NOTHING = ReplicaView("offline", NodeId(-1), -1, -1, -1, -1, (), {})

LATE = pytest.mark.nightly("librdkafka once more; by day it does the opposite, and simulated clients do both")

_numbers = count()


@contextmanager
def running(directory: Path) -> Iterator[BuiltinTarget]:
    target = BuiltinTarget(directory, 2, generation(CURRENT_GENERATION), Settings())
    try:
        target.start()
        yield target
    finally:
        target.stop()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BuiltinTarget]:
    """Each test has a topic of its own on it."""
    with running(tmp_path_factory.mktemp("cluster")) as target:
        yield target


@pytest.fixture
def harmed(tmp_path: Path) -> Iterator[BuiltinTarget]:
    """A cluster of which a test may pause a broker, or cut links."""
    with running(tmp_path / "cluster") as target:
        yield target


class Recorded:
    """A workload on a topic of its own, and what it recorded; ``group`` is one that no other test has."""

    def __init__(self, cluster: BuiltinTarget, path: Path, partitions: int = 3, **parameters: Any) -> None:
        self.cluster = cluster
        topic = self.group = f"ledger{next(_numbers)}"
        cluster.create_topic(TopicSpec(topic, partitions, 2, ((NodeId(0), NodeId(1)),) * partitions))
        self.partitions = [TopicPartition(topic, number) for number in range(partitions)]
        self.ledger = self.partitions[0]
        self.directory = RunDirectory.create(path / "run", Manifest("r", "small", 1, "2020-01-01T00:00:00+00:00"))
        self.recorder = self.directory.recorder(SystemClock())
        log = logging.getLogger("seawall.tests.workloads")
        log.propagate = False
        log.addHandler(logging.NullHandler())
        bootstrap, ours = cluster.bootstrap(), UniqueSendsParameters(**parameters)
        self.context = ClientContext(lambda: ThreadedClients(Access(bootstrap), log), self.partitions, self.recorder, 1)
        self.scheduled = OrderedClient(self.context, ours.size)
        reader = FinalReader(self.context, ours.isolation)
        self.clients = RunClients(UniqueSends(ours, self.context), self.scheduled, reader)

    def history(self) -> list[dict[str, Any]]:
        self.recorder.close()
        return self.directory.read_table("history")

    def replica_logs(self) -> list[dict[str, Any]]:
        """What is on the disks of both brokers."""
        return [row for row in held(self.cluster) if row["topic"] == self.ledger.topic]

    def headers(self) -> list[batches.BatchHeader]:
        """Those of the batches on broker 0's disk of the first partition."""
        paths = (self.cluster._node("0").data_dir / str(self.ledger)).glob("*.log")
        return list(batches.headers(memoryview(b"".join(path.read_bytes() for path in paths))))


def eventually(look: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def eventually_equal(look: Callable[[], object], expected: object) -> bool:
    eventually(lambda: look() == expected)
    return True


def finished(pending: Pending[T]) -> T:
    deadline = time.monotonic() + 60
    while (result := pending.result()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return result


@pytest.mark.parametrize("idempotent", [True, pytest.param(False, marks=LATE)])
def test_background_producers_number_their_records_exactly_when_they_are_to(
    cluster: BuiltinTarget, tmp_path: Path, idempotent: bool
) -> None:
    recorded = Recorded(cluster, tmp_path, rate=200, idempotent=idempotent)
    recorded.clients.workload.start()
    eventually(lambda: all(offset > 5 for offset in recorded.clients.workload.polled().values()))
    recorded.clients.stop()
    assert {row["producer_id"] is not None for row in recorded.replica_logs()} == {idempotent}


@pytest.mark.parametrize("isolation", [pytest.param("read_uncommitted", marks=LATE), "read_committed"])
def test_a_poll_is_recorded_with_what_its_reader_was_to_be_given(
    cluster: BuiltinTarget, tmp_path: Path, isolation: str
) -> None:
    recorded = Recorded(cluster, tmp_path, rate=200, isolation=isolation)
    recorded.clients.workload.start()
    eventually(lambda: any(recorded.clients.workload.polled().values()))
    recorded.clients.stop()
    assert recorded.clients.final_read.read(10)
    assert {row["isolation"] for row in recorded.history() if row["f"] == "poll"} == {isolation}


def test_every_acknowledged_record_is_found_again_once_and_intact(cluster: BuiltinTarget, tmp_path: Path) -> None:
    recorded = Recorded(cluster, tmp_path, rate=200, consumers=2)
    recorded.clients.workload.start()
    eventually(lambda: all(offset > 5 for offset in recorded.clients.workload.polled().values()))
    sent = finished(recorded.scheduled.send(SendOrder(tuple(recorded.partitions), 2, timeout_s=5)))
    assert [answer.partition for answer in sent] == [name for name in recorded.partitions for _ in range(2)]
    assert {answer.kind for answer in sent} == {"ok"}
    recorded.clients.stop()
    assert recorded.clients.final_read.read(10)
    rows = recorded.history()
    acknowledged = sorted(
        (r["partition"], r["offset"], r["value"]) for r in rows if r["f"] == "send" and r["type"] == "ok"
    )
    read = sorted((r["partition"], r["offset"], r["value"]) for r in rows if r["final"] and r["value"] is not None)
    assert acknowledged == read
    assert len({value for _, _, value in read}) == len(read)
    assert all(row["intact"] for row in rows if row["value"] is not None and row["f"] == "poll")
    sent_at = {row["value"]: row["timestamp_ms"] for row in rows if row["f"] == "send"}
    assert all(row["timestamp_ms"] == sent_at[row["value"]] for row in rows if row["value"] is not None)


def test_a_process_has_one_operation_at_a_time_and_none_after_an_info(harmed: BuiltinTarget, tmp_path: Path) -> None:
    recorded = Recorded(harmed, tmp_path, rate=200, delivery_timeout_s=0.3)
    recorded.clients.workload.start()
    eventually(lambda: all(offset > 0 for offset in recorded.clients.workload.polled().values()))
    harmed.pause("0")
    time.sleep(2.5)  # librdkafka looks for records that took too long once a second
    harmed.resume("0")
    before = recorded.clients.workload.polled()
    eventually(lambda: all(offset > before[name] for name, offset in recorded.clients.workload.polled().items()))
    recorded.clients.stop()
    open_ops: dict[int, int] = {}
    ended: set[int] = set()
    for row in (row for row in recorded.history() if row["f"] == "send"):
        process = row["process"]
        assert process not in ended
        if row["type"] == "invoke":
            assert process not in open_ops
            open_ops[process] = row["op"]
        else:
            assert open_ops.pop(process) == row["op"]
            ended |= {process} if row["type"] == "info" else set()
    assert ended
    assert not open_ops


def test_what_is_ordered_after_a_stop_is_sent(cluster: BuiltinTarget, tmp_path: Path) -> None:
    recorded = Recorded(cluster, tmp_path)
    recorded.clients.stop()
    sent = finished(recorded.scheduled.send(SendOrder(tuple(recorded.partitions), 2)))
    assert [answer.kind for answer in sent] == ["ok"] * 2 * len(recorded.partitions)
    recorded.clients.stop()


def test_an_empty_partition_is_read_to_its_end_and_the_history_says_so(cluster: BuiltinTarget, tmp_path: Path) -> None:
    recorded = Recorded(cluster, tmp_path, 1)
    assert recorded.clients.final_read.read(5)
    assert [(row["type"], row["offset"]) for row in recorded.history() if row["final"]] == [
        ("invoke", None),
        ("ok", None),
    ]


def test_a_final_read_that_cannot_reach_the_end_says_so(harmed: BuiltinTarget, tmp_path: Path) -> None:
    recorded = Recorded(harmed, tmp_path)
    harmed.pause("0")
    assert not recorded.clients.final_read.read(0.5)
    assert {one.end for one in recorded.clients.final_read.unread().values()} == {None}
    harmed.resume("0")
    recorded.clients.stop()


def test_a_final_read_goes_on_when_its_time_is_over(harmed: BuiltinTarget, tmp_path: Path) -> None:
    recorded = Recorded(harmed, tmp_path)
    harmed.pause("0")
    assert not recorded.clients.final_read.read(0.5)
    harmed.resume("0")
    eventually(lambda: not recorded.clients.final_read.unread())
    assert recorded.clients.final_read.read(5)


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"producer": 3}, "workload: unknown key 'producer'; did you mean 'producers'?"),
        ({"producers": 0}, "workload.producers: 0 is refused"),
        ({"rate": "fast"}, "workload.rate: 'fast' is refused"),
    ],
)
def test_parameters_that_make_no_sense_are_refused(parameters: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as refused:
        workloads.parse("unique_sends", parameters)
    assert sentence in str(refused.value)


def send(recorded: Recorded, count: int, **how: Any) -> list[Sent]:
    return list(finished(recorded.scheduled.send(SendOrder((recorded.ledger,), count, timeout_s=5, **how))))


def test_a_batch_is_one_batch_on_the_disk_and_each_of_its_records_a_process_of_its_own(
    cluster: BuiltinTarget, tmp_path: Path
) -> None:
    recorded = Recorded(cluster, tmp_path)
    sent = send(recorded, 7, batch=3)
    recorded.clients.stop()
    assert [answer.offset for answer in sent] == list(range(7))
    invoked = [row for row in recorded.history() if row["f"] == "send" and row["type"] == "invoke"]
    assert [row["process"] for row in invoked] == [row["process"] for row in invoked[:3]] * 2 + [invoked[0]["process"]]
    bases = [row["batch_base_offset"] for row in recorded.replica_logs() if row["node"] == 0]
    assert bases == [0, 0, 0, 3, 3, 3, 6]


def test_a_batch_is_not_split_because_it_is_handed_over_slowly(
    cluster: BuiltinTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def slowly(*arguments: Any) -> None:
        time.sleep(0.2)
        produce(*arguments)

    monkeypatch.setattr("harness.clients.sender.produce", slowly)
    recorded = Recorded(cluster, tmp_path)
    assert [answer.offset for answer in send(recorded, 5, batch=3)] == list(range(5))
    recorded.clients.stop()
    bases = [row["batch_base_offset"] for row in recorded.replica_logs() if row["node"] == 0]
    assert bases == [0, 0, 0, 3, 3]


def test_records_may_say_that_they_are_old(cluster: BuiltinTarget, tmp_path: Path) -> None:
    recorded = Recorded(cluster, tmp_path)
    before_ms = time.time_ns() // 1_000_000
    assert send(recorded, 1, age_ms=3_600_000)[0].kind == "ok"
    recorded.clients.stop()
    [header] = recorded.headers()
    assert 0 <= header.max_timestamp - (before_ms - 3_600_000) < 60_000


def test_orders_of_one_idempotent_producer_go_on_numbering(cluster: BuiltinTarget, tmp_path: Path) -> None:
    recorded = Recorded(cluster, tmp_path)
    for _ in range(2):
        send(recorded, 2, producer="p", idempotent=True)
    recorded.clients.stop()
    headers = recorded.headers()
    assert [header.base_sequence for header in headers] == [0, 1, 2, 3]
    assert len({header.producer_id for header in headers}) == 1
    assert headers[0].producer_id >= 0


def test_a_group_goes_on_where_it_committed(cluster: BuiltinTarget, tmp_path: Path) -> None:
    recorded = Recorded(cluster, tmp_path)
    first, second = send(recorded, 2), send(recorded, 1)
    consumed = finished(
        recorded.scheduled.consume(ConsumeOrder(recorded.group, (recorded.ledger,), "beginning", commit=True))
    )
    assert consumed.incident is None
    assert consumed.values == {recorded.ledger: [answer.value for answer in first + second]}
    assert consumed.positions == {recorded.ledger: 3}
    assert eventually_equal(lambda: cluster.committed(recorded.group), {recorded.ledger: 3})
    third = send(recorded, 1)
    again = finished(recorded.scheduled.consume(ConsumeOrder(recorded.group, (recorded.ledger,))))
    assert again.values == {recorded.ledger: [third[0].value]}
    assert finished(recorded.scheduled.commit(CommitOrder(recorded.group, {recorded.ledger: 1}))).error is None
    assert cluster.committed(recorded.group) == {recorded.ledger: 1}
    recorded.clients.stop()
    ours = [row for row in recorded.history() if row["group"] == recorded.group and row["f"] != "poll"]
    late = {row["op"] for row in ours if row["type"] in ("fail", "info")}  # who is not answered in time asks again
    assert [(row["f"], row["type"], row["offset"]) for row in ours if row["op"] not in late] == [
        ("assign", "invoke", None), ("assign", "ok", None), ("commit", "invoke", 3), ("commit", "ok", 3),
        ("committed", "invoke", None), ("committed", "ok", 3), ("assign", "invoke", None), ("assign", "ok", None),
        ("commit", "invoke", 1), ("commit", "ok", 1),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("reset", "expected"),
    [
        ("none", ("out_of_range", [], None)),
        pytest.param("earliest", ("reset", [0, 1], 2), marks=LATE),
        ("latest", ("reset", [], 2)),
    ],
)
def test_a_group_that_is_out_of_range_does_as_its_policy_says(
    cluster: BuiltinTarget, tmp_path: Path, reset: Any, expected: tuple[str, list[int], int | None]
) -> None:
    incident, given, position = expected
    recorded = Recorded(cluster, tmp_path)
    sent = send(recorded, 2)
    finished(recorded.scheduled.commit(CommitOrder(recorded.group, {recorded.ledger: 7})))
    consumed = finished(recorded.scheduled.consume(ConsumeOrder(recorded.group, (recorded.ledger,), reset=reset)))
    assert consumed.incident == incident
    assert consumed.values == {recorded.ledger: [sent[number].value for number in given]}
    assert consumed.positions.get(recorded.ledger) == position
    recorded.clients.stop()


def test_a_group_that_never_committed_has_no_position(cluster: BuiltinTarget, tmp_path: Path) -> None:
    recorded = Recorded(cluster, tmp_path)
    send(recorded, 1)
    assert finished(recorded.scheduled.consume(ConsumeOrder("new", (recorded.ledger,)))).incident == "out_of_range"
    recorded.clients.stop()


def test_a_client_that_checks_epochs_finds_a_truncation_and_one_that_does_not_reads_on(
    cluster: BuiltinTarget, tmp_path: Path
) -> None:
    recorded = Recorded(cluster, tmp_path)
    send(recorded, 3)
    of_a_leader_that_never_was = CommitOrder(recorded.group, {recorded.ledger: 2}, leader_epoch=7)
    finished(recorded.scheduled.commit(of_a_leader_that_never_was))
    old = finished(recorded.scheduled.consume(ConsumeOrder(recorded.group, (recorded.ledger,))))
    assert old.incident is None
    new = finished(recorded.scheduled.consume(ConsumeOrder(recorded.group, (recorded.ledger,), checks_epochs=True)))
    assert new.incident == "truncated"
    recorded.clients.stop()


def test_deleted_records_are_gone_and_the_rest_is_not(cluster: BuiltinTarget, tmp_path: Path) -> None:
    recorded = Recorded(cluster, tmp_path)
    send(recorded, 4)
    assert finished(recorded.scheduled.delete_records(DeleteOrder((recorded.ledger,), 3))).error is None
    consumed = finished(recorded.scheduled.consume(ConsumeOrder(recorded.group, (recorded.ledger,), "beginning")))
    assert len(consumed.values[recorded.ledger]) == 1
    assert finished(recorded.scheduled.delete_records(DeleteOrder((recorded.ledger,), None))).error is None
    assert finished(recorded.scheduled.delete_records(DeleteOrder((recorded.ledger,), 99))).error is not None
    recorded.clients.stop()
    ends = [(one["before"], one["error"], one["low_watermark"]) for one in recorded.recorder.orders.rows()]
    assert ends == [(3, None, 3), (None, None, 4), (99, "OFFSET_OUT_OF_RANGE", None)]
    assert all(one["invoked_ns"] < one["completed_ns"] for one in recorded.recorder.orders.rows())


def test_a_spoofed_fetch_is_believed(harmed: BuiltinTarget, tmp_path: Path) -> None:
    recorded = Recorded(harmed, tmp_path)
    send(recorded, 1)
    links = [Link("1", "0"), Link("0", "1")]
    harmed.cut(links)
    pending = recorded.scheduled.send(SendOrder((recorded.ledger,), 1, timeout_s=10))
    eventually(lambda: (harmed.replica("0", recorded.ledger) or NOTHING).log_end_offset == 2)
    spoofed = SpoofedFetchOrder(NodeId(0), NodeId(1), (recorded.ledger,), 2)
    assert finished(recorded.scheduled.spoof_fetch(spoofed)).error is None
    assert finished(pending)[0].kind == "ok"
    assert (harmed.replica("1", recorded.ledger) or NOTHING).log_end_offset == 1
    harmed.mend(links)
    recorded.clients.stop()
