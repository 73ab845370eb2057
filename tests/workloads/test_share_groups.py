"""What the workload share_groups does that others do not; its brokers and its clients are those of real Kafka alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from checkers import check
from harness import runner, scenario
from harness.checker import Outcome, RunVerdict, Side, Verdict
from harness.client_properties import PLAINTEXT
from harness.clients.threaded_clients import ThreadedClients
from harness.errors import UsageError
from harness.history.run_directory import RunDirectory
from harness.history.sends import Answer
from harness.history.shares import Acknowledging
from harness.payload import EVERYTHING
from harness.runner import run_environment
from harness.runner.client_libraries import require_client
from harness.share_ports import Acquired, ShareConsumer, ShareMembership
from harness.workload import Circumstances, Features
from tests.attribution.trial import sides
from tests.harness.targets.contract import fetched_or_skip
from workloads import parse

NEWEST = "4.3.0"
MOST = 25
REAL_KAFKA = pytest.mark.nightly("starts real Kafka and its clients; by day the rules are asked about stories")

Row = dict[str, Any]

SCENARIO: dict[str, Any] = {
    "id": "shared",
    "title": "Share groups under load",
    "source": "a test",
    "cluster": {"settings": {"min.insync.replicas": 2}},
    "topics": [{"name": "ledger", "partitions": 2, "replication_factor": 3}],
    "workload": {
        "name": "share_groups", "client": f"java:{NEWEST}", "rate": 40, "producers": 2, "idempotent": True,
        "groups": 1, "members": 2, "lock_s": 2, "stays_s": 2, "deliveries": MOST,
        "released": 0.2, "held": 0.1, "left": 0.1,
    },
    "settle_s": 30,
    "schedule": [{"wait_s": 15}],
}  # fmt: skip


def loaded(out: Path) -> tuple[Sequence[Row], RunVerdict]:
    """A run on real Kafka: its history, and what the checkers make of it."""
    fetched_or_skip(NEWEST)
    plan = runner.plan(scenario.parse(yaml.safe_dump(SCENARIO)), f"process:{NEWEST}", seed=1, tap=True)
    path = runner.run(plan, out).path
    (verdict,) = check([path], "reference")
    return RunDirectory(path).read_table("history"), verdict


class LyingConsumer:
    """Now and then releases what it reports as accepted, hides what it accepts, or tells another delivery count."""

    def __init__(self, true: ShareConsumer, most: int) -> None:
        self._true = true
        self._most = most
        self._given = 0

    async def acquire(self, timeout_s: float) -> Acquired:
        given, error = await self._true.acquire(timeout_s)
        hidden = [one for one in given if one.record.offset % 7 == 3]
        if hidden:
            said = [Acknowledging(*one.record[:4], "accept") for one in hidden]
            rest = [Acknowledging(*one.record[:4], "release") for one in given if one not in hidden]
            await self._true.acknowledge([*said, *rest], 3.0)
            return Acquired([], error)
        told = [one._replace(delivery_count=self._most + 1) if one.record.offset % 7 == 5 else one for one in given]
        return Acquired(told, error)

    async def acknowledge(self, said: Sequence[Acknowledging], timeout_s: float) -> list[Answer]:
        sent = [
            one._replace(acknowledgement="release") if one.offset % 7 == 1 and one.acknowledgement == "accept" else one
            for one in said
        ]
        return await self._true.acknowledge(sent, timeout_s)

    async def close(self) -> None:
        await self._true.close()


class LyingClients(ThreadedClients):
    """Clients whose share consumers lie, but for those that are made once the first ones are to stop."""

    is_over = False

    def share_consumer(self, name: str, membership: ShareMembership) -> Any:
        true = super().share_consumer(name, membership)
        return true if LyingClients.is_over else LyingConsumer(true, MOST)

    def stop(self) -> None:
        LyingClients.is_over = True
        super().stop()


@REAL_KAFKA
def test_a_sound_cluster_loses_an_acknowledgement(tmp_path: Path) -> None:
    history, verdict = loaded(tmp_path)
    assert (verdict.outcome, verdict.anomalies) == (Outcome.PASS, [])
    said = Counter(row["acknowledgement"] for row in history if (row["f"], row["type"]) == ("acknowledge", "ok"))
    assert set(said) == {"accept", "release", "reject"}
    given = {row["delivery_count"] for row in history if (row["f"], row["type"]) == ("acquire", "ok") and row["topic"]}
    assert max(given) > 1
    assert {row["type"] for row in history if row["f"] == "drain"} == {"invoke", "ok"}


@REAL_KAFKA
def test_a_consumer_that_does_otherwise_than_it_reports_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_environment, "ThreadedClients", LyingClients)
    monkeypatch.setattr(LyingClients, "is_over", False)
    _, verdict = loaded(tmp_path)
    broken = {one.kind for one in verdict.anomalies if one.verdict is Verdict.VIOLATION}
    assert broken == {"lost-acknowledgement", "excess-delivery", "withheld-record"}
    assert sides(verdict) == {kind: {Side.CLIENT} for kind in broken}


@REAL_KAFKA
def test_what_a_late_write_makes_of_share_groups_is_not_found(tmp_path: Path) -> None:
    fetched_or_skip(NEWEST)
    path = runner.run(
        runner.plan(scenario.load("late-share-write"), f"process:{NEWEST}", seed=1, tap=True), tmp_path
    ).path
    (verdict,) = check([path], "reference")
    assert verdict.outcome is Outcome.AS_PREDICTED, verdict.reasons
    assert {(one.kind, one.verdict) for one in verdict.anomalies} == {("lost-acknowledgement", Verdict.EXPECTED)}
    assert {one.offset for one in verdict.anomalies} <= set(range(20, 45))
    assert sides(verdict) == {"lost-acknowledgement": {Side.BROKER}}


def test_it_runs_where_brokers_have_no_share_groups() -> None:
    with pytest.raises(UsageError, match=r"target 'process:4\.1\.0' has none"):
        parse("share_groups", {}).refuse(
            Circumstances("process:4.1.0", False, Features(EVERYTHING, True, None), (), False)
        )


@pytest.mark.parametrize("target", ["builtin", "simulated"])
def test_it_runs_on_the_built_in_brokers(target: str) -> None:
    with pytest.raises(UsageError, match="has none"):
        runner.plan(scenario.parse(yaml.safe_dump(SCENARIO)), target)


def test_librdkafka_is_taken_to_have_share_consumers() -> None:
    with pytest.raises(UsageError, match=r"librdkafka has no share consumers\."):
        require_client(parse("share_groups", {}), "process:4.3.0", PLAINTEXT, in_virtual_time=False)


def test_a_client_of_before_is_taken_to_have_share_consumers() -> None:
    fetched_or_skip("4.1.0")
    with pytest.raises(UsageError, match=r"java:4\.1\.0 has no share consumers, which came with 4\.2\."):
        require_client(
            parse("share_groups", {"client": "java:4.1.0"}), "process:4.3.0", PLAINTEXT, in_virtual_time=False
        )


def test_it_is_a_part_of_several_workloads() -> None:
    with pytest.raises(UsageError, match="cannot be a part"):
        parse("several_workloads", {"parts": [{"name": "share_groups"}]})
