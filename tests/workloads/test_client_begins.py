"""Members whose clients find by themselves where to begin, on built-in brokers: sound clients, and one that is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import OFFSET_BEGINNING, OFFSET_INVALID
from confluent_kafka import TopicPartition as Assigned

from checkers import check
from harness.checker import Outcome, RunVerdict, Verdict
from harness.client_ports import Begins
from harness.client_tasks.group_life import GroupLife
from harness.clients import member
from harness.model import TopicPartition
from harness.runner import plan, run
from harness.scenario import load, parse

JAVA = pytest.param(
    "java:4.3.0", marks=pytest.mark.nightly("takes Kafka's own client; by day librdkafka and kafka-python")
)


def played(out: Path, begin: str, client: str = "librdkafka", **parameters: object) -> RunVerdict:
    """Members come and go, and nothing happens that would excuse them."""
    document = yaml.safe_load(load("random-chaos").text)
    groups = {"session_timeout_s": 6 if client.startswith("java") else 1, "poll_timeout_s": 6, "stays_s": 1}
    document["workload"] = {
        "name": "consumer_groups", "rate": 60, "producers": 2, "begin": [begin], "commit_every_s": 0.2, "away_s": 0.2,
        "client": client, **groups, **parameters,
    }  # fmt: skip
    document["chaos"] |= {
        "faults": [{"fault": "clock", "node": "follower", "offset_ms": 1000, "for_s": [0.5, 0.5]}],
        "at_once": 1,
    }
    planned = plan(parse(yaml.safe_dump(document)), "builtin", seed=3, duration_s=6)
    [verdict] = check([run(planned, out).path], engine="reference")
    return verdict


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> list[TopicPartition]:
    """The partitions of which members were not told where to begin."""
    found: list[TopicPartition] = []
    asked: Callable[..., Any] = GroupLife._begins

    async def begins(self: GroupLife, names: Sequence[TopicPartition]) -> Begins | None:
        told: Begins | None = await asked(self, names)
        found.extend(name for name in names if told is not None and name not in told)
        return told

    monkeypatch.setattr(GroupLife, "_begins", begins)
    return found


@pytest.mark.parametrize("client", ["librdkafka", "kafka-python", JAVA])
def test_sound_clients_begin_where_their_group_has_committed(
    client: str, tmp_path: Path, alone: list[TopicPartition]
) -> None:
    verdict = played(tmp_path, "client", client)
    assert verdict.outcome is Outcome.PASS, verdict
    assert len(alone) > 3


@pytest.mark.parametrize(("begin", "outcome"), [("client", Outcome.VIOLATION), ("harness", Outcome.PASS)])
def test_a_client_that_begins_elsewhere_is_found_where_it_is_left_to_itself(
    begin: str, outcome: Outcome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sound = member._from

    def at_the_beginning(*about: Any) -> Assigned:
        where = sound(*about)
        return Assigned(where.topic, where.partition, OFFSET_BEGINNING) if where.offset == OFFSET_INVALID else where

    monkeypatch.setattr(member, "_from", at_the_beginning)
    verdict = played(tmp_path, begin, members=1)
    assert verdict.outcome is outcome, verdict
    violations = {one.kind for one in verdict.anomalies if one.verdict is Verdict.VIOLATION}
    assert violations == ({"group-repeat"} if outcome is Outcome.VIOLATION else set())
