"""Transactions in virtual time: what becomes of them when coordinators and leaders die, and what leaders ask first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from harness import payload
from harness.broker import marker_sender
from harness.broker.coordinator_log import CoordinatorLog
from harness.broker.marker_sender import MarkerSender
from harness.client_ports import BEGINNING, Isolation, Transacted
from harness.coordination.internal_topics import TRANSACTIONS_TOPIC
from harness.error_codes import ErrorCode
from harness.model import Offset, TopicPartition
from harness.simulation.stack.simulated_clients import SimulatedClients
from harness.wire import batches
from harness.wire.keys import ApiKey
from harness.wire.messages.coordination import FindCoordinatorRequest, InitProducerIdRequest
from harness.wire.messages.described_transactions import (
    DescribedTransaction,
    DescribeProducersRequest,
    DescribeProducersTopicRequest,
    DescribeTransactionsRequest,
    ListTransactionsRequest,
    ProducerState,
)
from harness.wire.messages.topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from harness.wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from tests.harness.broker.raw_client import produce_request
from tests.harness.broker.virtual_cluster import T, VirtualCluster

BOOTSTRAP = "10.0.0.10:9092,10.0.0.11:9092,10.0.0.12:9092"


class Load:
    """Transactional producers on a cluster, of whose transactions ``ended`` are over."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self.cluster = cluster
        self.clients = SimulatedClients(cluster.simulated, BOOTSTRAP)
        self._value = 0

    def producer(self, name: str = "x", timeout_s: float = 10, *, numbered: bool = False) -> Any:
        return self.clients.transactional_producer(name, timeout_s, numbered=numbered)

    def run(
        self, producer: Any, *, commits: bool | None, records: int = 2, partitions: Sequence[TopicPartition] = (T,)
    ) -> list[Transacted | None]:
        """Begin a transaction, and end it unless ``commits`` is None; its outcome is there once time has passed."""
        outcome: list[Transacted | None] = []

        async def transact() -> None:
            ended = None
            for partition in partitions:
                values = range(self._value, self._value + records)
                self._value += records
                batch = [payload.encode(value, *partition, timestamp_ms=self.clients.wall_ms()) for value in values]
                ended = ended or await producer.send(partition, batch)
            if ended is None and commits is not None:
                ended = await producer.end(commits=commits)
            outcome.append(ended)

        self.clients.begin(transact())
        return outcome

    def end(self, producer: Any, *, commits: bool) -> list[Transacted]:
        outcome: list[Transacted] = []

        async def finish() -> None:
            outcome.append(await producer.end(commits=commits))

        self.clients.begin(finish())
        return outcome

    def sleep(self, seconds: float = 3) -> None:
        self.cluster.world.sleep(seconds)

    def state(self, transactional_id: str) -> str:
        """That of a transaction, by the word of its coordinator."""
        return str(self.described(transactional_id).transaction_state)

    def described(self, transactional_id: str) -> DescribedTransaction:
        """A transaction by the word of its coordinator."""
        request = DescribeTransactionsRequest([transactional_id])
        answers = [
            one
            for broker in self.cluster.brokers
            for answer in self.cluster.call(broker, ApiKey.DESCRIBE_TRANSACTIONS, 0, request)
            if answer is not None
            for one in answer.transaction_states
        ]
        found: DescribedTransaction
        (found,) = [one for one in answers if not one.error_code]
        return found

    def read(self, isolation: Isolation, partition: TopicPartition = T) -> tuple[list[int | None], Offset]:
        """The values in the partition, and the consumer's position behind them."""
        consumer = self.clients.consumer("reader", {partition: BEGINNING}, isolation=isolation)
        values: list[int | None] = []

        async def poll() -> None:
            for _ in range(4):
                records, error, _ = await consumer.poll(100, 0.3)
                assert error is None
                values.extend(one.value for one in records)

        self.clients.begin(poll())
        self.sleep(2)
        consumer.close()
        return values, consumer.positions[partition]

    def coordinator(self) -> int:
        return leader(self.cluster, TopicPartition(TRANSACTIONS_TOPIC, 0))


def leader(cluster: VirtualCluster, name: TopicPartition) -> int:
    """The broker that leads a partition, by the word of a broker that lives."""
    state = next(iter(cluster.brokers.values())).metadata.partition(*name)
    assert state is not None
    return state.leader


@pytest.fixture
def cluster() -> VirtualCluster:
    cluster = VirtualCluster()
    cluster.create_topic()
    return cluster


@pytest.fixture
def load(cluster: VirtualCluster) -> Load:
    return Load(cluster)


def test_a_consumer_of_committed_records_passes_what_is_aborted_and_the_markers(load: Load) -> None:
    producer = load.producer()
    for commits in (True, False, True):
        (outcome,) = [load.run(producer, commits=commits)]
        load.sleep()
        assert outcome[0] is not None
        assert outcome[0].kind == ("ok" if commits else "fail")
    assert load.read("read_committed") == ([0, 1, 4, 5], 9)
    assert load.read("read_uncommitted") == ([0, 1, 2, 3, 4, 5], 9)


def test_an_open_transaction_holds_consumers_of_committed_records_back(load: Load) -> None:
    open_one, other = load.producer("open"), load.producer("other")
    load.run(open_one, commits=None)
    load.sleep()
    load.run(other, commits=True)
    load.sleep(1)
    assert load.read("read_committed")[0] == []
    load.end(open_one, commits=True)
    load.sleep(1)
    assert load.read("read_committed") == ([0, 1, 2, 3], 6)


class Held:
    """Keeps a step of coordinators or leaders from being taken, until it lets go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, where: Any, name: str, keeps: Callable[..., bool]) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self._monkeypatch = monkeypatch
        act = getattr(where, name)

        def held(*arguments: Any, **fields: Any) -> None:
            if keeps(*arguments):
                self.calls.append(arguments)
            else:
                act(*arguments, **fields)

        monkeypatch.setattr(where, name, held)

    def let_go(self) -> None:
        self._monkeypatch.undo()


WIDE = [TopicPartition("u", number) for number in range(2)]
STEPS = {
    "before the decision is stored": (
        CoordinatorLog, "store", "Ongoing", lambda log, *_: log.name.topic == TRANSACTIONS_TOPIC
    ),
    "before a marker is asked for": (MarkerSender, "start", "Prepare", lambda *_: True),
    "when one of two partitions has its marker": (
        marker_sender, "write_marker", "Prepare", lambda _, name, *__: name == WIDE[1]
    ),
}  # fmt: skip


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("commits", [True, False])
def test_a_transaction_ends_one_way_in_all_partitions_although_its_coordinator_dies(
    commits: bool, step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = VirtualCluster()
    # Both leaders are the coordinator, so that the markers take no request, and each can be held.
    topic = CreatableTopic("u", -1, -1, [CreatableReplicaAssignment(number, [0, 1, 2]) for number in range(2)])
    cluster.call(1, ApiKey.CREATE_TOPICS, 5, CreateTopicsRequest([topic]))
    load = Load(cluster)
    producer = load.producer(timeout_s=20)
    load.run(producer, commits=None, partitions=WIDE)
    load.sleep()
    where, name, state, keeps = STEPS[step]
    held = Held(monkeypatch, where, name, keeps)
    outcome = load.end(producer, commits=commits)
    load.sleep(0.5)
    assert load.coordinator() == 0
    assert held.calls
    assert load.state("seawall-x").startswith(state)
    cluster.kill(0)
    held.let_go()
    load.sleep(30)
    assert load.state("seawall-x") == ("CompleteCommit" if commits else "CompleteAbort")
    assert [one.kind for one in outcome] == ["ok" if commits else "fail"]
    for number, partition in enumerate(WIDE):
        values, position = load.read("read_committed", partition)
        assert values == ([2 * number, 2 * number + 1] if commits else [])
        assert position >= 3


def test_a_leader_of_a_later_epoch_does_not_act_for_its_earlier_one() -> None:
    cluster = VirtualCluster("2.8")  # each change of an ISR is an epoch
    cluster.create_topic()
    load = Load(cluster)
    producer = load.producer(timeout_s=6)
    load.run(producer, commits=True)
    load.sleep()
    follower = next(node for node in cluster.brokers if node != load.coordinator())
    cluster.kill(follower)  # the next partition waits for it, until the ISR shrinks
    outcome = load.run(producer, commits=True)
    load.sleep(30)
    assert [one.kind for one in outcome if one] == ["ok"]
    cluster.start(follower)
    load.sleep(10)
    cluster.kill(load.coordinator())  # the next one goes by the log
    load.sleep(10)
    assert load.state("seawall-x") == "CompleteCommit"
    assert load.read("read_committed")[0] == [0, 1, 2, 3]


def test_a_process_that_was_replaced_commits_nothing(load: Load) -> None:
    old, new = load.producer(), load.producer()
    load.run(old, commits=None)
    load.sleep()
    later = load.run(new, commits=True)
    load.sleep()
    outcome = load.end(old, commits=True)
    load.sleep()
    assert [one.error for one in outcome] == ["PRODUCER_FENCED"]
    assert [one.kind for one in later if one] == ["ok"]
    assert load.read("read_committed")[0] == [2, 3]


# ------------------------------------------------------------------------------------------------ KIP-890


@pytest.mark.parametrize(("generation", "epochs"), [("4.1", [1, 2, 3]), ("2.8", [0, 0, 0])])
def test_a_transaction_of_version_2_has_an_epoch_of_its_own_where_brokers_offer_that(
    generation: str, epochs: Sequence[int]
) -> None:
    cluster = VirtualCluster(generation)
    cluster.create_topic()
    load = Load(cluster)
    producer, seen = load.producer(numbered=True), []
    for commits in (True, False, True):
        outcome = load.run(producer, commits=commits)
        load.sleep()
        assert [one.kind for one in outcome if one] == ["ok" if commits else "fail"]
        seen.append(load.described("seawall-x").producer_epoch)
    assert seen == epochs
    assert load.read("read_committed")[0] == [0, 1, 4, 5]


def test_either_version_fences_the_other_off(load: Load) -> None:
    for first in (False, True):
        old, new = load.producer(numbered=first), load.producer(numbered=not first)
        load.run(old, commits=None)
        load.sleep()
        later = load.run(new, commits=True)
        load.sleep()
        outcome = load.end(old, commits=True)
        load.sleep()
        assert [one.error for one in outcome] == ["PRODUCER_FENCED"]
        assert [one.kind for one in later if one] == ["ok"]
    assert load.read("read_committed")[0] == [2, 3, 6, 7]


def stray(load: Load) -> int:
    """Append a batch of a transaction that is over, as a request does that was long under way; the error code."""
    cluster, producer = load.cluster, load.producer("late")
    load.run(producer, commits=True)
    load.sleep()
    (state,) = [
        one
        for broker in cluster.brokers
        for answer in cluster.call(broker, ApiKey.LIST_TRANSACTIONS, 0, ListTransactionsRequest())
        for one in answer.transaction_states
    ]
    batch = batches.build(
        [b"late"],
        attributes=batches.TRANSACTIONAL,
        producer_id=state.producer_id,
        producer_epoch=0,
        base_sequence=2,
        timestamp_ms=1,
    )
    request = produce_request("t", bytes(batch), transactional_id=state.transactional_id)
    answers = cluster.call(leader(cluster, T), ApiKey.PRODUCE, 9, request)
    load.sleep(1)
    return int(answers[0].responses[0].partition_responses[0].error_code)


def test_a_batch_of_a_transaction_that_is_over_is_refused(load: Load) -> None:
    assert stray(load) == ErrorCode.INVALID_TXN_STATE
    assert load.read("read_committed")[1] == 3


def test_before_kip_890_it_is_appended_and_nothing_behind_it_is_ever_committed() -> None:
    cluster = VirtualCluster("2.8")
    cluster.create_topic()
    load = Load(cluster)
    assert stray(load) == ErrorCode.NONE
    load.run(load.producer("other"), commits=True)
    load.sleep(60)
    assert load.read("read_committed") == ([0, 1], 3)
    # An operator who finds it out writes the marker himself, as kafka-transactions.sh does.
    described = cluster.call(leader(cluster, T), ApiKey.DESCRIBE_PRODUCERS, 0, DescribeProducersRequest([PRODUCERS]))
    (hanging,) = [
        one for one in described[0].topics[0].partitions[0].active_producers if one.current_txn_start_offset >= 0
    ]
    marker = WritableTxnMarker(
        hanging.producer_id,
        hanging.producer_epoch,
        False,
        [WritableTxnMarkerTopic("t", [0])],
        hanging.coordinator_epoch,
    )
    answers = cluster.call(leader(cluster, T), ApiKey.WRITE_TXN_MARKERS, 1, WriteTxnMarkersRequest([marker]))
    load.sleep(1)
    assert answers[0].markers[0].topics[0].partitions[0].error_code == ErrorCode.NONE
    assert load.read("read_committed")[0] == [0, 1, 2, 3]


def hanging_producer(one: ProducerState) -> tuple[int, int]:
    return one.producer_id, one.producer_epoch


def test_every_replica_names_the_producers_of_its_log(load: Load) -> None:
    producer = load.producer("one")
    load.run(producer, commits=True)
    load.sleep(1)
    described = []
    for broker in load.cluster.brokers:
        [answer] = load.cluster.call(broker, ApiKey.DESCRIBE_PRODUCERS, 0, DescribeProducersRequest([PRODUCERS]))
        described.append(answer.topics[0].partitions[0])
    assert [one.error_code for one in described] == [ErrorCode.NONE] * 3
    first, *others = [one.active_producers for one in described]
    assert len(first) == 1
    assert others == [first, first]
    assert 0 < first[0].last_timestamp <= load.clients.wall_ms()


PRODUCERS = DescribeProducersTopicRequest("t", [0])


# ------------------------------------------------------------------------------------------------ requests


def test_a_partition_that_does_not_exist_spoils_the_request(cluster: VirtualCluster) -> None:
    for _ in range(2):
        (answer,) = cluster.call(0, ApiKey.FIND_COORDINATOR, 2, FindCoordinatorRequest("x", 1))
        cluster.world.sleep(2)
    initialised = cluster.call(answer.node_id, ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest("x", 1000))
    cluster.world.sleep(1)
    (who,) = initialised
    request = AddPartitionsToTxnRequest(
        [], "x", who.producer_id, who.producer_epoch, [AddPartitionsToTxnTopic("t", [0, 7])]
    )
    added = cluster.call(answer.node_id, ApiKey.ADD_PARTITIONS_TO_TXN, 3, request)
    cluster.world.sleep(1)
    (topic,) = added[0].results_by_topic_v3_and_below
    assert [one.partition_error_code for one in topic.results_by_partition] == [55, 3]


@pytest.mark.parametrize("version", [3, 4])
def test_an_old_client_learns_that_it_is_fenced_by_the_error_that_it_knows(
    cluster: VirtualCluster, version: int
) -> None:
    for _ in range(2):
        (answer,) = cluster.call(0, ApiKey.FIND_COORDINATOR, 2, FindCoordinatorRequest("x", 1))
        cluster.world.sleep(2)
    for asked in (InitProducerIdRequest("x", 1000), InitProducerIdRequest("x", 1000)):
        cluster.call(answer.node_id, ApiKey.INIT_PRODUCER_ID, 4, asked)
        cluster.world.sleep(1)
    refused = cluster.call(answer.node_id, ApiKey.INIT_PRODUCER_ID, version, InitProducerIdRequest("x", 1000, 0, 0))
    cluster.world.sleep(1)
    assert [one.error_code for one in refused] == [90 if version == 4 else 47]


def test_who_does_not_coordinate_says_so(load: Load) -> None:
    load.run(load.producer(), commits=True)
    load.sleep()
    others = [node for node in load.cluster.brokers if node != load.coordinator()]
    for node in others:
        (answer,) = load.cluster.call(node, ApiKey.DESCRIBE_TRANSACTIONS, 0, DescribeTransactionsRequest(["seawall-x"]))
        assert answer.transaction_states[0].error_code == 16
    (answer,) = load.cluster.call(
        load.coordinator(), ApiKey.DESCRIBE_TRANSACTIONS, 0, DescribeTransactionsRequest(["seawall-x", "y"])
    )
    known, unknown = answer.transaction_states
    assert (known.error_code, known.transaction_state, unknown.error_code) == (0, "CompleteCommit", 105)
    (listed,) = load.cluster.call(
        load.coordinator(), ApiKey.LIST_TRANSACTIONS, 1, ListTransactionsRequest(["Ongoing", "Odd"])
    )
    assert (listed.unknown_state_filters, listed.transaction_states) == (["Odd"], [])


def test_a_consumer_behind_the_marker_of_a_later_epoch_goes_on_when_the_leader_changes_again(load: Load) -> None:
    cluster, producer = load.cluster, load.producer(timeout_s=60)
    consumer = load.clients.consumer("tail", {T: BEGINNING}, {T: 0})
    seen: list[tuple[list[int | None], str | None]] = []

    async def tail() -> None:
        while not load.clients.stopping:
            records, error, _ = await consumer.poll(100, 0.3)
            seen.append(([one.value for one in records], error))

    load.clients.begin(tail())
    load.run(producer, commits=None)
    load.sleep()
    first = leader(cluster, T)
    cluster.kill(first)
    load.sleep(10)
    load.end(producer, commits=True)
    load.sleep()
    assert consumer.positions[T] == 3
    cluster.start(first)
    load.sleep(10)
    cluster.kill(leader(cluster, T))
    load.sleep(10)
    load.run(load.producer("other"), commits=True)
    load.sleep(10)
    assert {error for _, error in seen} == {None}
    assert [value for values, _ in seen for value in values] == [0, 1, 2, 3]
