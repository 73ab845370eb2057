"""What becomes of a cluster's answers: a row for each that is news, numbered, with the numbers of brokers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from harness.errors import EnvironmentFault
from harness.model import NO_NODE, NodeId, TopicPartition
from harness.target import Leadership, TopicSpec
from harness.targets.bootstrap.metadata_sampler import Latest, MetadataClient, MetadataSampler

PLACE = TopicPartition("t", 0)


class Told(MetadataClient):
    """Tells one thing after the other; the last one again and again."""

    def __init__(self, *answers: Latest | str) -> None:
        self.answers = list(answers)

    def leaders(self, topics: Sequence[str]) -> Mapping[TopicPartition, Leadership]:
        return {PLACE: Leadership(NodeId(1007), (NodeId(1007), NodeId(1001)))}

    def latest(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, Latest | str]:
        return {PLACE: self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]}


def sampled(client: Told, path: Path) -> list[dict[str, Any]]:
    sampler = MetadataSampler(lambda: client, path / "metadata.jsonl")
    sampler.follow(TopicSpec("t", 1, 1))
    while len(client.answers) > 1:
        sampler._over.wait(0.05)
    sampler.stop()
    return list(sampler.rows("r", lambda broker: NodeId(broker - 1000)))


def test_an_answer_is_a_row_when_it_is_news_and_one_that_did_not_come_says_why(tmp_path: Path) -> None:
    rows = sampled(Told(Latest(0, 5, 2), "no answer", Latest(1, 5, "LEADER_NOT_AVAILABLE")), tmp_path)
    kept = [rows[0], *(after for before, after in pairwise(rows) if _said(before) != _said(after))]
    assert list(map(_said, kept)) == [
        (0, 5, 2, {}),
        (None, None, None, {"refused": "no answer"}),
        (1, 5, None, {"start_refused": "LEADER_NOT_AVAILABLE"}),
    ]
    assert [row["sequence"] for row in rows] == list(range(len(rows)))
    assert {(row["node"], row["kind"], row["leader"], tuple(row["isr"])) for row in rows} == {
        (NO_NODE, "metadata", 7, (7, 1))
    }


def _said(row: dict[str, Any]) -> tuple[int | None, int | None, int | None, dict[str, Any]]:
    detail = json.loads(row["detail"])
    assert detail.pop("asked_ns") <= row["time_ns"]
    return row["leader_epoch"], row["high_watermark"], row["log_start_offset"], detail


def test_a_sampler_that_breaks_off_is_no_evidence(tmp_path: Path) -> None:
    def refuse() -> MetadataClient:
        raise EnvironmentFault("no threads.")

    sampler = MetadataSampler(refuse, tmp_path / "metadata.jsonl")
    sampler.follow(TopicSpec("t", 1, 1))
    sampler.stop()
    with pytest.raises(EnvironmentFault, match=r"was not asked for its metadata to the end: .*no threads"):
        list(sampler.rows("r", NodeId))


def test_a_broker_that_does_not_answer_about_topics_is_not_the_only_one_that_is_asked() -> None:
    silent: Future[Any] = Future()
    silent.set_exception(KafkaException(KafkaError(KafkaError._TIMED_OUT)))
    partition = SimpleNamespace(leader=2, isrs=[2, 1])
    client = MetadataClient.__new__(MetadataClient)
    client._client = cast(
        "Any",
        SimpleNamespace(
            describe_topics=lambda topics, request_timeout: {"t": silent},
            list_topics=lambda timeout: SimpleNamespace(topics={"t": SimpleNamespace(partitions={0: partition})}),
        ),
    )
    assert client.leaders(["t"]) == {PLACE: Leadership(NodeId(2), (NodeId(2), NodeId(1)))}
