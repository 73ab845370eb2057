"""Topics that a run is given: it neither creates nor deletes them, and judges what it sends there itself."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.checker import Outcome
from harness.client_properties import Access
from harness.clients.topics import delete_records
from harness.errors import EnvironmentFault, SeawallError
from harness.history.delete_records_log import DeleteRecordsLog
from harness.model import TopicPartition
from harness.target import TopicSpec
from harness.targets.bootstrap.administration import Administration
from harness.targets.builtin import BuiltinTarget
from tests.harness.targets.bootstrap.running_builtin import CALM, judged, running, topics

ORDERS = TopicSpec("orders", 2, 3, configs={"min.insync.replicas": "2"})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BuiltinTarget]:
    with running(tmp_path_factory.mktemp("cluster")) as target:
        yield target


@pytest.fixture
def orders(cluster: BuiltinTarget) -> Iterator[BuiltinTarget]:
    """The cluster, with the topic, which is empty."""
    access = Access(cluster.bootstrap())
    Administration(access).create(ORDERS, 30, ("Read",))
    yield cluster
    Administration(access).delete([ORDERS.name])


@pytest.fixture
def others(cluster: BuiltinTarget) -> Iterator[None]:
    """Two topics more."""
    brief = {"retention.ms": "60000", "cleanup.policy": "compact"}
    access, specs = Access(cluster.bootstrap()), [TopicSpec("wide", 3, 3), TopicSpec("brief", 1, 3, configs=brief)]
    for topic in specs:
        Administration(access).create(topic, 30, ("Read",))
    yield
    Administration(access).delete([topic.name for topic in specs])


def has_only(cluster: BuiltinTarget, *names: str) -> None:
    """Each broker learns a moment after the others which topics there are."""
    deadline_s = time.monotonic() + 30
    while topics(cluster.bootstrap()) != set(names) and time.monotonic() < deadline_s:
        time.sleep(0.1)
    assert topics(cluster.bootstrap()) == set(names)


def empty(cluster: BuiltinTarget) -> None:
    names = [TopicPartition(ORDERS.name, number) for number in range(ORDERS.partitions)]
    assert delete_records(Access(cluster.bootstrap()), names, None, 30, DeleteRecordsLog(lambda: 0)) is None


def test_a_given_topic_is_used_stays_and_is_used_again_once_it_is_empty(orders: BuiltinTarget, tmp_path: Path) -> None:
    for _ in range(2):
        directory, verdict = judged(orders, tmp_path, 2, "#topic=orders", topic_partitions="2")
        assert verdict.outcome is Outcome.PASS, verdict
        assert verdict.counts["acked_all"] > 0
        assert ORDERS.name in {row["topic"] for row in directory.read_table("history")}
        has_only(orders, ORDERS.name)
        with pytest.raises(EnvironmentFault, match="topic 'orders' holds records that are not of this run"):
            judged(orders, tmp_path, 2, "#topic=orders", topic_partitions="2")
        has_only(orders, ORDERS.name)
        empty(orders)


def test_a_workload_has_topics_of_its_own_beside_the_given_one(orders: BuiltinTarget, tmp_path: Path) -> None:
    _, verdict = judged(
        orders, tmp_path, 3, "#topic=orders", topic_partitions="2", workload_name="consume_transform_produce"
    )
    assert verdict.outcome is Outcome.PASS, verdict
    has_only(orders, ORDERS.name)


@pytest.mark.parametrize(
    ("options", "overrides", "complaint"),
    [
        ("#topic=bills", {}, r"topic 'bills' is not at .*, or the client may not describe it"),
        ("#topic=orders", {}, r"topic 'orders' has 2 partition\(s\) with 3 replica\(s\), and the scenario"),
        ("#topic=orders#topic=wide#topic=brief", {}, r"gives 3 topics, and the scenario has 2"),
        (
            "#topic=orders",
            {"topic_partitions": "2", "settings_min.insync.replicas": "1"},
            r"topic 'orders' cannot be judged as it is: min.insync.replicas is 2, not 1\.",
        ),
        (
            "#topic=brief",
            {"topic_partitions": "1"},
            r"topic 'brief' cannot be judged as it is: min.insync.replicas is 1, not 2, cleanup.policy is compact",
        ),
    ],
)
@pytest.mark.usefixtures("others")
def test_a_topic_that_does_not_fit_is_refused(
    options: str, overrides: dict[str, str], complaint: str, orders: BuiltinTarget, tmp_path: Path
) -> None:
    with pytest.raises(SeawallError, match=complaint):
        judged(orders, tmp_path, 1, options, scenario=CALM, **overrides)
    has_only(orders, ORDERS.name, "wide", "brief")


def test_a_topic_whose_leader_does_not_answer_is_not_taken_for_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent:
        def list_offsets(self, asked: Mapping[Any, object], request_timeout: float) -> Mapping[Any, Future[Any]]:
            answers: dict[Any, Future[Any]] = {name: Future() for name in asked}
            for one in answers.values():
                one.set_result(SimpleNamespace(offset=-1))
            return answers

    administration = Administration(Access("127.0.0.1:1"))
    monkeypatch.setattr(administration, "_client", Silent())
    with pytest.raises(EnvironmentFault, match="the offsets of topic 'orders' are not answered in time"):
        administration.is_empty(ORDERS)


def test_a_loss_in_a_given_topic_is_found(tmp_path: Path) -> None:
    with running(tmp_path / "cluster", bugs="fetch_loses_a_batch") as broken:
        Administration(Access(broken.bootstrap())).create(ORDERS, 30, ("Read",))
        _, verdict = judged(broken, tmp_path / "runs", 4, "#topic=orders", topic_partitions="2")
    assert verdict.outcome is Outcome.VIOLATION, verdict
    assert "lost-write" in {one.kind for one in verdict.anomalies}
