"""What is done to the disks and clocks of real brokers, one old and one new release, and what is found on their disks.

Without the jars of a release, and without a way to fetch them, its tests are skipped. Clocks come last: a broker whose
clock is set back may hear nothing of its controller until the clock is as far again (docs/faults.md).
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from harness.broker.codecs import inflate
from harness.client_properties import Access
from harness.clients.sender import Sender, produce
from harness.errors import EnvironmentFault, SeawallError
from harness.history.sends import Answer
from harness.model import NodeId, TopicPartition
from harness.payload import Carried
from harness.target import TopicSpec
from harness.targets.kafka import fetching, shim
from harness.targets.kafka.clocks import clock_offset_ms
from harness.targets.kafka.local import LocalKafka
from harness.targets.kafka.process import ProcessTarget
from harness.targets.kafka.server_properties import understood
from harness.targets.replica_logs import final_rows
from harness.wire.batches import BatchHeader, stored
from tests.harness.targets.contract import EVERY_RELEASE
from tests.records import record
from tests.replica_rows import on_disk

LEDGER, STAMPED, TRANSACTIONS = (TopicPartition(topic, 0) for topic in ("ledger", "stamped", "transactions"))
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
OLD, NEW = "0.10.2.2", "4.1.0"
SETTINGS = {
    "log.dirs.count": 2,
    "log.segment.bytes": 1_048_576,
    "replica.high.watermark.checkpoint.interval.ms": 600_000,  # nothing is to be written that no test asks for
    "log.flush.offset.checkpoint.interval.ms": 600_000,
}


@dataclass(frozen=True)
class Format:
    """What a release can be told to write: ``message.format.version`` if it knows that, the codec, and the magic."""

    version: str
    codec: str
    magic: int

    def __str__(self) -> str:
        return f"{self.codec}-{self.magic}"

    @property
    def carried(self) -> Carried:
        """What it stores of a record as it was sent."""
        return Carried(headers=self.magic >= 2, timestamp=self.magic >= 1)

    @property
    def configs(self) -> dict[str, str]:
        """Of a topic."""
        return {"compression.type": self.codec} | ({"message.format.version": self.version} if self.version else {})


def formats(version: str) -> list[Format]:
    if version == OLD:
        return [Format(of, codec, magic) for of, magic in (("0.9.0", 0), ("0.10.2", 1)) for codec in CODECS[1:4]]
    return [Format("", codec, 2) for codec in CODECS[1:]]


class Broker:
    """One real broker, with two log directories and a topic of one partition.

    Attributes:
        version: its release.
        target: its cluster, of which the other node is the controller.
    """

    def __init__(self, version: str, path: Path) -> None:
        distribution = fetching.fetch(version)
        newer = {} if version == OLD else {"log.flush.start.offset.checkpoint.interval.ms": 600_000}
        settings = understood(SETTINGS | newer, distribution.release, 1)
        self.version = version
        self.target = ProcessTarget(path, 1, LocalKafka(distribution), settings)
        self._values = 0

    @property
    def data_dir(self) -> Path:
        """Its disk."""
        return self.target._node("0").data_dir

    @property
    def log_dir(self) -> int:
        """The number of the log directory that the topic lies in."""
        [number] = [number for number in (0, 1) if (self.data_dir / f"log-{number}" / str(LEDGER)).is_dir()]
        return number

    @property
    def elsewhere(self) -> TopicPartition:
        """A partition that lies in the other log directory."""
        other = self.data_dir / f"log-{1 - self.log_dir}"
        return next(one for one in (STAMPED, TRANSACTIONS) if (other / str(one)).is_dir())

    def start(self) -> None:
        """Start the cluster, and create its topics."""
        self.target.start()
        stamped = {STAMPED.topic: {"message.timestamp.type": "LogAppendTime"}}
        others = {str(name): name.configs for name in formats(self.version)}
        for topic, configs in {LEDGER.topic: {}, TRANSACTIONS.topic: {}, **stamped, **others}.items():
            self.target._create_topic(TopicSpec(topic, 1, 1, ((NodeId(0),),), configs))
            assert eventually(lambda name=f"{topic}-0": self._leads(name))  # type: ignore[misc]

    def _leads(self, replica: str) -> bool:
        """Whether it has written what it writes when it becomes the leader of a new replica."""
        written = "*.log" if self.version == OLD else "leader-epoch-checkpoint"
        return any(self.data_dir.glob(f"log-*/{replica}/{written}"))

    def send(self, count: int = 1, size: int = 0, to: TopicPartition = LEDGER) -> list[Answer]:
        """Send the next records, one at a time."""
        sender = Sender(Access(self.target.bootstrap()), "test", -1, 10, logging.getLogger("seawall.tests"))
        first, self._values = self._values, self._values + count
        try:
            kept = Carried(headers=self.version != OLD, timestamp=to != STAMPED)
            return [sender.send(to, record(value, to, size, carried=kept)) for value in range(first, first + count)]
        finally:
            sender.close()

    def rows(self, partition: TopicPartition = LEDGER) -> list[dict[str, Any]]:
        """What is on its disk of a partition."""
        rows = on_disk(NodeId(0), self.data_dir)
        return [row for row in rows if TopicPartition(row["topic"], row["partition"]) == partition]

    def offsets(self) -> list[int]:
        """Of the records on its disk, all of which are sound."""
        rows = self.rows()
        assert all(row["intact"] for row in rows)
        return [row["offset"] for row in rows]

    def headers(self, partition: TopicPartition = LEDGER) -> list[BatchHeader]:
        """Of the batches in the first segment of a partition."""
        [log, *_] = sorted(self.data_dir.glob(f"log-*/{partition}/*.log"))
        return [stored.header(piece, inflate) for piece in stored.pieces(memoryview(log.read_bytes()))]

    def detail(self) -> dict[str, Any]:
        """What its disk says of the topic's partition beside its end."""
        [final] = [row for row in final_rows(self.data_dir) if row["topic"] == LEDGER.topic]
        return dict(json.loads(final["detail"]))


def _ignored(*_: object) -> None:
    """What becomes of a record is seen on the disk."""


def eventually(look: Callable[[], bool], within_s: float = 30.0) -> bool:
    deadline = time.monotonic() + within_s
    while not (held := look()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return held


@pytest.fixture(scope="module", params=[pytest.param(one, marks=EVERY_RELEASE) for one in (OLD, NEW)])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A running broker; each test leaves it running."""
    try:
        shim.library()
        one = Broker(request.param, tmp_path_factory.mktemp("kafka"))
    except SeawallError as refusal:
        pytest.skip(f"real Kafka cannot be run here: {refusal}")
    try:
        one.start()
        yield one
    finally:
        one.target.stop()


def test_a_broker_whose_disk_is_full_halts_and_goes_on_when_there_is_space_again(broker: Broker) -> None:
    target = broker.target
    before = [answer.offset for answer in broker.send(2)]
    target.limit_disk("0", 100)
    assert target.is_disk_full("0").holds
    assert not target.takes_writes("0").holds
    assert not target.has_refused_write("0").holds
    [answer] = broker.send(size=1000)
    assert answer.kind != "ok"
    if broker.version == NEW:  # it halts when none of its directories takes a write, and writes to the other one, too
        broker.send(size=1000, to=broker.elsewhere)
    assert eventually(lambda: target.has_exited("0").holds)
    refused = target.has_refused_write("0")
    assert refused.holds
    assert "(append ledger-0) was refused with errno 28" in refused.seen
    assert [row["intact"] for row in broker.rows()][-1:] == [False]  # what did fit was written: a torn batch
    target.limit_disk("0", None)
    target.restart("0")
    assert target.takes_writes("0").holds
    assert not target.has_refused_write("0").holds
    after = [answer.offset for answer in broker.send(2)]
    assert after[0] == before[-1] + 1  # type: ignore[operator]
    assert broker.offsets()[-4:] == [*before, *after]


def test_a_full_log_directory_is_given_up_by_a_new_release_and_the_others_are_not(broker: Broker) -> None:
    target, log_dir = broker.target, broker.log_dir
    target.limit_disk("0", 0, log_dir)
    assert target.is_disk_full("0", log_dir).holds
    assert not target.is_disk_full("0", 1 - log_dir).holds
    if broker.version == NEW:
        broker.send()
        assert eventually(lambda: target.offline_log_dirs("0") == [log_dir])
        assert target.is_running("0").holds
        assert target.has_refused_write("0", log_dir).holds
        assert not target.has_refused_write("0", 1 - log_dir).holds
        target.kill("0")
        target.limit_disk("0", None, log_dir)
        target.restart("0")
    target.limit_disk("0", None, log_dir)
    assert target.offline_log_dirs("0") == []
    assert broker.send()[0].kind == "ok"


def test_a_power_loss_takes_exactly_what_was_not_flushed(broker: Broker) -> None:
    target = broker.target
    broker.send(2)
    target.sync_disk("0")
    kept = broker.offsets()
    lost = [answer.offset for answer in broker.send(3)]
    assert broker.offsets() == [*kept, *lost]
    target.lose_power("0")
    receipt = target.has_lost_power("0")
    assert receipt.holds
    assert f"dropped from the page cache: log-{broker.log_dir}/ledger-0/" in receipt.seen
    assert broker.offsets() == kept
    assert not broker.detail()["clean_shutdown"]
    target.restart("0")
    assert not target.has_lost_power("0").holds
    assert [answer.offset for answer in broker.send()] == lost[:1]


def test_a_new_segment_s_name_survives_a_power_loss_only_since_kafka_flushes_directories(broker: Broker) -> None:
    """KAFKA-3968: until 3.0 nobody flushed the directory that a new segment was in."""
    target = broker.target
    broker.send(12, size=100_000)
    first, second = sorted((broker.data_dir / f"log-{broker.log_dir}" / str(LEDGER)).glob("*.log"))[-2:]
    ledger = target._shims["0"].ledger
    flushed = f"flushed {first.stat().st_ino} {first.stat().st_size}\n"
    listed = f"listed {first.parent.stat().st_ino}\n"
    assert eventually(lambda: flushed in ledger.read_text())
    if broker.version == NEW:
        assert eventually(lambda: listed in ledger.read_text().partition(flushed)[2])
    target.lose_power("0")
    assert second.exists() == (broker.version == NEW)
    assert not second.exists() or second.stat().st_size == 0
    assert broker.offsets()[-1] == int(second.stem) - 1
    target.restart("0")
    assert [answer.offset for answer in broker.send()] == [int(second.stem)]


def test_a_clean_shutdown_is_seen_on_the_disk(broker: Broker) -> None:
    target = broker.target
    target.shut_down("0")
    assert broker.detail()["clean_shutdown"]
    assert broker.detail()["recovery_point"] == broker.offsets()[-1] + 1
    assert ("epochs" in broker.detail()) == (broker.version == NEW)
    target.restart("0")


def test_what_a_broker_has_compressed_is_read_from_its_disk(broker: Broker) -> None:
    for written in formats(broker.version):
        topic = TopicPartition(str(written), 0)
        # Batches are sent when they are full; flush() is not used, for it also sends those that are not.
        settings = {"batch.num.messages": 20, "linger.ms": 60_000}
        producer = Producer({"bootstrap.servers": broker.target.bootstrap(), **settings})
        for value in range(20):
            produce(producer, topic, record(value, topic, carried=written.carried), _ignored)
        assert eventually(lambda producer=producer: producer.poll(0.05) >= 0 and len(producer) == 0)  # type: ignore[misc]
        found = broker.rows(topic)
        assert [(row["offset"], row["value"], row["intact"]) for row in found] == [(n, n, True) for n in range(20)]
        headers = broker.headers(topic)
        assert {(header.magic, CODECS[header.attributes & 7]) for header in headers} == {(written.magic, written.codec)}
        assert [header.record_count for header in headers] == [20]


def test_a_transaction_s_markers_are_read_from_the_disk(broker: Broker) -> None:
    if broker.version == OLD:
        return  # transactions came with 0.11
    producer = Producer({"bootstrap.servers": broker.target.bootstrap(), "transactional.id": "t"})
    producer.init_transactions(30)
    for value, end in enumerate((producer.commit_transaction, producer.abort_transaction)):
        producer.begin_transaction()
        produce(producer, TRANSACTIONS, record(value, TRANSACTIONS), _ignored)
        producer.flush(20)
        end(20)
    assert eventually(lambda: len(broker.rows(TRANSACTIONS)) == 4)
    found = [(row["value"], row["control"], row["transactional"], row["sequence"]) for row in broker.rows(TRANSACTIONS)]
    assert found == [(0, None, True, 0), (None, "commit", True, None), (1, None, True, 1), (None, "abort", True, None)]


@pytest.mark.parametrize("offset_ms", [3_600_000, -60_000])
def test_a_broker_s_wall_clock_is_off_for_the_broker_itself(broker: Broker, offset_ms: int) -> None:
    target = broker.target
    for node in target.nodes():
        target.offset_clock(node, offset_ms)
        assert abs(target.clock_offset_ms(node) - offset_ms) < 10_000
    before_ms = time.time_ns() // 1_000_000
    assert broker.send(to=STAMPED)[0].kind == "ok"
    after_ms = time.time_ns() // 1_000_000
    assert before_ms <= broker.headers(STAMPED)[-1].max_timestamp - offset_ms <= after_ms
    for node in target.nodes():
        target.offset_clock(node, 0)
        assert abs(target.clock_offset_ms(node)) < 10_000
    assert target.is_running("0").holds


def test_the_clock_of_a_process_that_is_stopped_or_no_jvm_is_not_known(broker: Broker) -> None:
    broker.target.pause("0")
    with pytest.raises(EnvironmentFault, match="node 0 does not tell the time"):
        broker.target.clock_offset_ms("0")
    broker.target.resume("0")
    with pytest.raises(EnvironmentFault, match="process 99999999 does not tell the time: No such file"):
        clock_offset_ms(99_999_999)
