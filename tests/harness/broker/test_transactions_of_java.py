"""Transactions of Kafka's own client, unchanged: it takes part in transaction version 2 where brokers offer it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.wire.keys import ApiKey
from harness.wire.messages.described_transactions import DescribeTransactionsRequest
from tests.harness.broker.cluster import Cluster
from tests.harness.broker.raw_client import RawClient
from tests.harness.short_java import short_java
from tests.harness.targets.contract import fetched_or_skip

PROGRAM = Path(__file__).with_name("TransactionsOfJava.java")
NEWEST = "4.3.0"
TRANSACTIONS = 9
PATIENCE_S = 120.0
OLDER = pytest.mark.nightly("one more cluster, and Kafka's client compiled again; by day the newest generation")


@pytest.mark.parametrize(("generation", "epoch"), [("4.1", TRANSACTIONS), pytest.param("3.7", 0, marks=OLDER)])
def test_each_transaction_of_kafkas_own_client_has_an_epoch_where_brokers_number_them(
    tmp_path: Path, generation: str, epoch: int
) -> None:
    distribution = fetched_or_skip(NEWEST)
    if shutil.which("javac") is None:
        pytest.skip("no Java compiler")
    cluster = Cluster(tmp_path, knobs=generation)
    try:
        cluster.start()
        cluster.create_topic("t", [[0, 1, 2], [1, 2, 0], [2, 0, 1]])
        command = [*short_java(distribution), str(PROGRAM), cluster.bootstrap, "t", str(TRANSACTIONS)]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        assert ran.returncode == 0, ran.stderr
        assert described(cluster).producer_epoch == epoch
        committed = [cluster.replica(0, "t", number)["log_end_offset"] for number in range(3)]
        assert committed == [6, 6, 6]  # three transactions, each a record and a marker
    finally:
        cluster.stop()


def described(cluster: Cluster) -> Any:
    for broker in cluster.ids:
        with RawClient(cluster.ips[broker]) as client:
            answer = client.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, DescribeTransactionsRequest(["java"]))
        (state,) = answer.transaction_states
        if not state.error_code:
            return state
    raise AssertionError("no broker coordinates the transactions")
