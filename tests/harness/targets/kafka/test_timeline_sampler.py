"""Looking at, watching and steering real Kafka.

All of it is for the night; by day :mod:`tests.harness.targets.kafka.test_process` watches a run of the newest release.
"""

from __future__ import annotations

import json
import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Position

from harness.client_properties import Access
from harness.clients.sender import Sender
from harness.clients.topics import create_topic
from harness.errors import EnvironmentFault
from harness.model import CONTROLLER, NO_LEADER, Link, NodeId, TopicPartition, node_id, node_name
from harness.target import ClusterView, PartitionView, ReplicaView, TopicSpec
from harness.targets.kafka.local import LocalKafka
from harness.targets.kafka.observation import ClusterObservation
from harness.targets.kafka.process import ProcessTarget
from harness.targets.kafka.server_properties import understood
from tests.harness.broker.cluster import wait_until
from tests.harness.targets.contract import all_but, fetched_or_skip
from tests.records import bare

LEDGER = TopicPartition("ledger", 0)
BROKERS = ("0", "1", "2")
TIMEOUT_S = 60.0

Row = dict[str, Any]


@dataclass
class Trial:
    """Three brokers that hold ``ledger-0``, preferably led by broker 0."""

    cluster: ProcessTarget

    @property
    def observation(self) -> ClusterObservation:
        return self.cluster.observation

    def send(self, acks: int = -1) -> int:
        """Send one record, and again until it is taken; its offset."""
        sender = Sender(Access(self.cluster.bootstrap()), "test", acks, 5.0, logging.getLogger("seawall.tests"))
        try:
            deadline = time.monotonic() + TIMEOUT_S
            while (answer := sender.send(LEDGER, bare(b"a record"))).kind != "ok" and time.monotonic() < deadline:
                pass
        finally:
            sender.close()
        assert answer.offset is not None, answer
        return answer.offset

    def view(self) -> ClusterView:
        """As soon as the controller tells of the partition."""
        look = self.observation.view
        seen: ClusterView = wait_until(lambda: LEDGER in (now := look()).partitions and now, "the controller's answer")
        return seen

    def partition(self) -> PartitionView:
        return self.view().partitions[LEDGER]

    def replica(self, node: str) -> ReplicaView:
        """As soon as the broker tells of it."""
        seen: ReplicaView = wait_until(lambda: self.observation.replica(node, LEDGER), f"broker {node}'s answer")
        return seen

    def settle(self) -> None:
        """Wait until everybody is in sync, and agrees."""
        if not eventually(self.is_whole):
            seen = {node: self.observation.replica(node, LEDGER) for node in BROKERS}
            pytest.fail(f"{self.observation.view()}\n{seen}")

    def is_whole(self) -> bool:
        seen = self.observation.view().partitions.get(LEDGER)
        if seen is None or len(seen.isr) < len(BROKERS) or seen.leader == NO_LEADER:
            return False
        replicas = [self.observation.replica(node, LEDGER) for node in BROKERS]
        ends = {(one.leader, one.high_watermark, one.log_end_offset) if one else None for one in replicas}
        return len(ends) == 1 and None not in ends


def eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + TIMEOUT_S
    while not (held := holds()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return held


@pytest.fixture(scope="module", params=all_but())
def trial(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    """A running cluster that is watched; each test leaves it whole."""
    distribution = fetched_or_skip(request.param)
    directory: Path = tmp_path_factory.mktemp("cluster")
    settings = understood(
        {"replica.lag.time.max.ms": 4000, "broker.session.timeout.ms": 4000}, distribution.release, len(BROKERS)
    )
    cluster = ProcessTarget(directory, len(BROKERS), LocalKafka(distribution), settings)
    try:
        cluster.start()
        trial = Trial(cluster)
        create_topic(
            Access(cluster.bootstrap()), TopicSpec(LEDGER.topic, 1, 3, (tuple(map(node_id, BROKERS)),)), TIMEOUT_S
        )
        trial.settle()
        yield trial
    finally:
        cluster.stop()


def test_the_controller_s_view_and_the_brokers_words_agree(trial: Trial) -> None:
    end = trial.send() + 1
    trial.settle()
    view = trial.view()
    assert view.live == (0, 1, 2)
    assert view.partitions[LEDGER].replicas == (0, 1, 2)
    leader = view.partitions[LEDGER].leader
    for node in BROKERS:
        seen = trial.replica(node)
        assert seen.role == ("leader" if node == node_name(leader) else "follower")
        assert (seen.leader, seen.leader_epoch) == (leader, view.partitions[LEDGER].leader_epoch)
        assert (seen.log_start_offset, seen.high_watermark, seen.log_end_offset) == (0, end, end)
    assert trial.observation.replica("0", TopicPartition("nothing", 0)) is None


def test_a_follower_that_gets_no_bytes_is_seen_to_lag_and_the_watermark_to_wait_for_it(trial: Trial) -> None:
    trial.cluster.elect(LEDGER, NodeId(0), unclean=False)
    before = trial.send() + 1
    trial.settle()
    links = [Link("0", "2"), Link("2", "0")]
    trial.cluster.proxies.cut(links)
    try:
        assert eventually(lambda: all(trial.cluster.proxies.is_cut(link).holds for link in links))
        trial.send(acks=1)
        assert eventually(lambda: trial.replica("1").log_end_offset == before + 1)
        assert trial.replica("0").log_end_offset == before + 1
        assert trial.replica("2").log_end_offset == before
        assert trial.replica("2").role == "follower"
        assert eventually(lambda: set(trial.partition().isr) == {0, 1})
        # From 2.7 to 2.8.1 only a record that comes after the change moves the watermark on (KAFKA-13091).
        assert eventually(lambda: trial.send(acks=1) > 0 and trial.replica("0").high_watermark > before)
        assert trial.replica("2").high_watermark == before
    finally:
        trial.cluster.proxies.mend(links)
    assert not any(trial.cluster.proxies.is_cut(link).holds for link in links)
    trial.settle()


def test_an_operator_elects_whom_he_names_and_the_preferred_leader_stays_who_it_was(trial: Trial) -> None:
    elect = trial.cluster.elect
    for wanted, leads in ((1, 1), (None, 0), (2, 2), (0, 0), (0, 0)):
        elect(LEDGER, None if wanted is None else NodeId(wanted), unclean=False)
        assert (trial.partition().leader, trial.partition().replicas) == (leads, (0, 1, 2))
    with pytest.raises(EnvironmentFault, match=r"refuses to elect a leader of ledger-0: broker 7 has no replica"):
        elect(LEDGER, NodeId(7), unclean=False)
    with pytest.raises(EnvironmentFault, match=r"refuses to elect a leader of nothing-0: it knows no such partition"):
        elect(TopicPartition("nothing", 0), None, unclean=False)
    trial.settle()


def test_what_a_group_has_committed_is_read_back(trial: Trial) -> None:
    trial.send()
    assert not trial.observation.committed("nobody")
    consumer = Consumer({"bootstrap.servers": trial.cluster.bootstrap(), "group.id": "readers"})
    try:
        consumer.commit(offsets=[Position(*LEDGER, 1)], asynchronous=False)
    finally:
        consumer.close()
    assert trial.observation.committed("readers") == {LEDGER: 1}


def test_a_controller_that_is_paused_says_nothing_and_brokers_go_on_telling_of_their_replicas(trial: Trial) -> None:
    trial.cluster.pause(CONTROLLER)
    try:
        assert not trial.observation.view().partitions
        assert trial.replica("0").role == "leader"
    finally:
        trial.cluster.resume(CONTROLLER)
    assert eventually(lambda: bool(trial.observation.view().partitions))
    trial.settle()


def test_the_timeline_tells_every_election_and_nothing_that_cannot_be(trial: Trial) -> None:
    """The last of the tests: it ends the watching."""
    trial.send()
    trial.cluster.kill("0")
    assert eventually(lambda: trial.partition().leader not in (NO_LEADER, 0))
    trial.send()
    trial.cluster.restart("0")
    trial.settle()
    leader = trial.partition().leader
    others = set(map(int, BROKERS)) - {leader}
    trial.cluster.pause(str(leader))
    paused_ns = time.monotonic_ns()
    others_end = trial.replica(str(min(others))).log_end_offset
    assert eventually(lambda: trial.partition().leader not in (NO_LEADER, leader))
    resumed_ns = time.monotonic_ns()
    trial.cluster.resume(str(leader))
    trial.settle()
    final = trial.partition()
    trial.cluster.kill("2")
    trial.cluster.stop()
    rows = list(trial.cluster.timeline("r"))
    controller = [row for row in rows if row["node"] == 100]

    assert {row["run"] for row in rows} == {"r"}
    are_numbered(rows)
    assert incarnations(rows) == {0: {0, 1}, 1: {0}, 2: {0}, 100: {0}}
    decided = [row for row in controller if row["topic"] == LEDGER.topic and row["kind"] != "final"]
    assert [row["partition_epoch"] for row in decided] == list(range(len(decided)))
    assert (decided[-1]["leader"], decided[-1]["leader_epoch"]) >= (final.leader, final.leader_epoch)
    assert all(json.loads(row["detail"])["clean"] for row in decided if row["kind"] == "election")
    assert {"registered", "expired"} <= {
        json.loads(row["detail"])["change"] for row in controller if row["kind"] == "session"
    }
    roles_are_those_elected(rows, decided)
    terms_only_grow(rows)
    during_pause = [row for row in rows if row["kind"] == "state" and paused_ns < row["time_ns"] < resumed_ns]
    assert others <= {row["node"] for row in during_pause}
    assert any(row["log_end_offset"] >= others_end for row in during_pause)
    finals = {row["node"]: row for row in rows if row["kind"] == "final"}
    assert {node: json.loads(row["detail"])["source"] for node, row in finals.items()} == {
        0: "live", 1: "live", 2: "disk", 100: "live",
    }  # fmt: skip
    assert {finals[node]["log_end_offset"] for node in (0, 1, 2)} == {finals[0]["high_watermark"]}


def are_numbered(rows: list[Row]) -> None:
    """Each incarnation of each node from 0 without a gap, ``started`` first."""
    lives: dict[tuple[int, int], list[Row]] = defaultdict(list)
    for row in rows:
        lives[row["node"], row["incarnation"]].append(row)
    for life in lives.values():
        assert [row["sequence"] for row in life] == list(range(len(life)))
        assert life[0]["kind"] == "started"
        times = [row["time_ns"] for row in life if row["kind"] != "final"]
        assert times == sorted(times)


def incarnations(rows: list[Row]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = defaultdict(set)
    for row in rows:
        found[row["node"]].add(row["incarnation"])
    return found


def roles_are_those_elected(rows: list[Row], decided: list[Row]) -> None:
    """Who is seen to lead in an epoch was made its leader, and before that; nobody else leads in it."""
    leaders = {row["leader_epoch"]: row for row in reversed(decided)}
    for row in rows:
        if row["kind"] == "state":
            elected = leaders[row["leader_epoch"]]
            assert (row["role"] == "leader") == (row["node"] == elected["leader"]) == (row["node"] == row["leader"])
            assert row["time_ns"] > elected["time_ns"]


def terms_only_grow(rows: list[Row]) -> None:
    """Within an epoch a leader's log and watermark only grow."""
    terms: dict[tuple[int, ...], list[Row]] = defaultdict(list)
    for row in rows:
        if row["kind"] == "state" and row["role"] == "leader":
            terms[row["node"], row["incarnation"], row["leader_epoch"]].append(row)
    assert len(terms) >= 2
    for term in terms.values():
        for before, after in pairwise(term):
            assert before["high_watermark"] <= after["high_watermark"]
            assert before["log_end_offset"] <= after["log_end_offset"]
