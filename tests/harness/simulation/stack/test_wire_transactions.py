"""The producer that speaks the protocol of transactions itself, in both versions of it, in virtual time."""

from __future__ import annotations

import pytest

from harness.client_ports import ABORTED, Transacted
from harness.model import CONTROLLER_ID, Link
from harness.replication.producers import KnownProducer
from tests.harness.broker.virtual_cluster import T, VirtualCluster
from tests.harness.simulation.stack.test_transactions import Load


class WireLoad(Load):
    """One producer with five seconds of patience, on brokers that know both versions."""

    def __init__(self, version: int, **knobs: str) -> None:
        super().__init__(VirtualCluster("4.1", knobs))
        self.cluster.create_topic()
        self.one = self.clients.wire_producer("x", 5, version)

    def transact(self, *, commits: bool) -> Transacted | None:
        outcome = self.run(self.one, commits=commits)
        self.sleep(12)
        return outcome[0]

    def log_end(self) -> int:
        return self.cluster.brokers[0].partitions[T].replica.log_end_offset

    def lead_elsewhere(self) -> None:
        """Have the partition led by another broker than the one that coordinates."""
        assert self.coordinator() == 0
        request = {"topic": T.topic, "partition": T.partition, "leader": 1, "unclean": False}
        assert not self.cluster.node(CONTROLLER_ID).operate("elect", request)["error_code"]
        self.sleep(1)

    def producer_in_the_log(self) -> KnownProducer:
        (found,) = self.cluster.brokers[0].partitions[T].replica.log.producers
        return found


@pytest.mark.parametrize(("version", "epoch"), [(0, 0), (2, 3)])
def test_what_is_committed_is_read_and_in_version_2_each_transaction_raises_the_epoch(version: int, epoch: int) -> None:
    load = WireLoad(version)
    assert load.transact(commits=True) == Transacted("ok", [0, 1])
    assert load.transact(commits=False) == Transacted("fail", [3, 4], ABORTED)
    assert load.transact(commits=True) == Transacted("ok", [6, 7])
    assert load.read("read_committed")[0] == [0, 1, 4, 5]
    assert load.producer_in_the_log().epoch == epoch


@pytest.mark.parametrize(("transactions", "appended"), [("unverified", 2), ("verified", 0), ("numbered", 0)])
def test_a_batch_without_an_answer_is_sent_once_its_transaction_aborted_and_it_may_arrive_after_that(
    transactions: str, appended: int
) -> None:
    """KIP-890: a leader that does not ask the coordinator opens a transaction that no coordinator ends."""
    load = WireLoad(0, transactions=transactions)
    load.transact(commits=True)
    load.lead_elsewhere()
    load.transact(commits=True)
    network, link = load.cluster.node(1).network, Link("clients", "1")
    network.stall([link], stalled=True)
    ended = load.transact(commits=True)
    before = load.log_end()
    network.stall([link], stalled=False)
    load.sleep(1)
    assert ended == Transacted("fail", [None, None], "_TIMED_OUT")
    assert load.log_end() - before == appended
