from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

import workloads
from harness.broker.settings import Settings
from harness.clock import SystemClock
from harness.errors import UsageError
from harness.history.run_directory import Manifest, RunDirectory
from harness.model import NodeId, TopicPartition
from harness.replication.knobs import CURRENT_GENERATION, generation
from harness.target import TopicSpec
from harness.targets.builtin import BuiltinTarget
from harness.workload import Pending, SendOrder
from workloads.surroundings import Surroundings
from workloads.unique_sends import UniqueSends

T = TypeVar("T")

PARTITIONS = [TopicPartition("ledger", number) for number in range(3)]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[BuiltinTarget]:
    target = BuiltinTarget(tmp_path / "cluster", 2, generation(CURRENT_GENERATION), Settings())
    try:
        target.start()
        target.create_topic(TopicSpec("ledger", 3, 2, ((NodeId(0), NodeId(1)),) * 3))
        yield target
    finally:
        target.stop()


class Recorded:
    """A workload on a cluster, and what it recorded."""

    def __init__(
        self, cluster: BuiltinTarget, path: Path, partitions: Sequence[TopicPartition] = PARTITIONS, **parameters: Any
    ) -> None:
        self.directory = RunDirectory.create(path / "run", Manifest("r", "small", 1, "2020-01-01T00:00:00+00:00"))
        self.recorder = self.directory.recorder(SystemClock())
        log = logging.getLogger("seawall.tests.workloads")
        log.propagate = False
        log.addHandler(logging.NullHandler())
        around = Surroundings(cluster.bootstrap(), partitions, self.recorder, 1, log)
        self.workload = UniqueSends(workloads.parse("unique_sends", parameters), around)

    def history(self) -> list[dict[str, Any]]:
        self.recorder.close()
        return self.directory.read_table("history")


def eventually(look: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not look():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def finished(pending: Pending[T]) -> T:
    deadline = time.monotonic() + 15
    while (result := pending.result()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    return result


def test_every_acknowledged_record_is_found_again_once_and_intact(cluster: BuiltinTarget, tmp_path: Path) -> None:
    recorded = Recorded(cluster, tmp_path, rate=200, consumers=2)
    recorded.workload.start()
    eventually(lambda: all(offset > 5 for offset in recorded.workload.polled().values()))
    sent = finished(recorded.workload.send(SendOrder(tuple(PARTITIONS), 2, timeout_s=5)))
    assert [answer.partition for answer in sent] == [name for name in PARTITIONS for _ in range(2)]
    assert {answer.kind for answer in sent} == {"ok"}
    recorded.workload.stop()
    assert recorded.workload.final_read(10)
    rows = recorded.history()
    acknowledged = sorted(
        (r["partition"], r["offset"], r["value"]) for r in rows if r["f"] == "send" and r["type"] == "ok"
    )
    read = sorted((r["partition"], r["offset"], r["value"]) for r in rows if r["final"] and r["value"] is not None)
    assert acknowledged == read
    assert len({value for _, _, value in read}) == len(read)
    assert all(row["intact"] for row in rows if row["value"] is not None and row["f"] == "poll")


def test_a_process_has_one_operation_at_a_time_and_none_after_an_info(cluster: BuiltinTarget, tmp_path: Path) -> None:
    recorded = Recorded(cluster, tmp_path, rate=200, delivery_timeout_s=0.3)
    recorded.workload.start()
    eventually(lambda: all(offset > 0 for offset in recorded.workload.polled().values()))
    cluster.pause("0")
    time.sleep(2.5)  # librdkafka looks for records that took too long once a second
    cluster.resume("0")
    before = recorded.workload.polled()
    eventually(lambda: all(offset > before[name] for name, offset in recorded.workload.polled().items()))
    recorded.workload.stop()
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


def test_nothing_is_sent_once_it_was_stopped(cluster: BuiltinTarget, tmp_path: Path) -> None:
    recorded = Recorded(cluster, tmp_path)
    recorded.workload.stop()
    assert finished(recorded.workload.send(SendOrder(tuple(PARTITIONS), 2))) == []


def test_an_empty_partition_is_read_to_its_end_and_the_history_says_so(cluster: BuiltinTarget, tmp_path: Path) -> None:
    cluster.create_topic(TopicSpec("untouched", 1, 2))
    recorded = Recorded(cluster, tmp_path, [TopicPartition("untouched", 0)])
    assert recorded.workload.final_read(5)
    assert [(row["type"], row["offset"]) for row in recorded.history() if row["final"]] == [
        ("invoke", None),
        ("ok", None),
    ]


def test_a_final_read_that_cannot_reach_the_end_says_so(cluster: BuiltinTarget, tmp_path: Path) -> None:
    recorded = Recorded(cluster, tmp_path)
    cluster.pause("0")
    assert not recorded.workload.final_read(0.5)
    cluster.resume("0")


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
