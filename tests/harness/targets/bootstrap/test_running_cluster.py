"""Runs against a cluster of which addresses are known: what clients prove, and what is left on it."""

from __future__ import annotations

import json
import shutil
import socket
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

import reports
from checkers import check
from checkers.completeness.guarantees_are_configured import misstated
from harness.checker import EvidenceTier, Outcome, RunVerdict, Verdict
from harness.client_properties import Access
from harness.client_tasks.final_reader import FinalReader
from harness.errors import EnvironmentFault, UsageError
from harness.history.run_directory import RunDirectory
from harness.model import NO_NODE
from harness.runner import LeftBehind, plan
from harness.runner.journal import heal_leftovers
from harness.runner.manifest import manifest, now
from harness.scenario import load, parse
from harness.targets.bootstrap import administration
from harness.targets.bootstrap.administration import Administration
from harness.targets.bootstrap.target import LEFTOVERS
from harness.targets.builtin import BuiltinTarget
from tests.harness.targets.bootstrap.running_builtin import (
    CALM,
    before_the_load_stops,
    depose_the_first_leader,
    judged,
    lose_topics,
    running,
    topics,
)
from tests.harness.targets.killed_seawall import killed_seawall

HURRIED = CALM.model_copy(update={"settle_s": 2.0})
ONE_PARTITION = parse(
    yaml.safe_dump(
        yaml.safe_load(CALM.text)
        | {
            "topics": [{"name": "ledger", "partitions": 1, "replication_factor": 3}],
            "workload": {"name": "unique_sends", "producers": 2, "rate": 20, "delivery_timeout_s": 1.5},
        }
    )
)
"""Its records are few and of acks=all."""

LATE = pytest.mark.nightly("another broken cluster; by day one is found by clients alone")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BuiltinTarget]:
    with running(tmp_path_factory.mktemp("cluster")) as target:
        yield target


@pytest.fixture(scope="module")
def sound(cluster: BuiltinTarget, tmp_path_factory: pytest.TempPathFactory) -> tuple[RunDirectory, RunVerdict]:
    """A run of two seconds."""
    return judged(cluster, tmp_path_factory.mktemp("sound"))


def answer(of: Any) -> Future[Any]:
    """One that is there, an error, or with None one that never comes."""
    future: Future[Any] = Future()
    if isinstance(of, Exception):
        future.set_exception(of)
    elif of is not None:
        future.set_result(of)
    return future


@pytest.mark.parametrize(
    ("of", "sentence"),
    [
        ({}, "it names none of its brokers' settings"),
        (KafkaException(KafkaError(KafkaError.UNSUPPORTED_VERSION)), "it refuses to tell the settings of the cluster"),
        (None, "it does not tell the settings of the cluster within 0.1 s"),
    ],
    ids=["none", "refused", "late"],
)
def test_a_cluster_that_does_not_tell_its_settings_is_told_what_is_judged(
    of: Any, sentence: str, cluster: BuiltinTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AdminClient, "describe_configs", lambda _, names, **__: {name: answer(of) for name in names})
    monkeypatch.setattr(administration, "_TIMEOUT_S", 0.1)
    monkeypatch.setattr(Administration, "brokers", lambda _: [0, 1, 2])
    made = plan(CALM, f"bootstrap:{cluster.bootstrap()}", seed=7)
    assert sentence in made.system.begins(3)
    assert "so that this is taken as promised: min.insync.replicas=2" in made.system.begins(3)
    assert made.system.properties()["log.retention.ms"] == "-1"


def test_a_sound_cluster_passes_and_keeps_nothing_of_the_run(
    cluster: BuiltinTarget, sound: tuple[RunDirectory, RunVerdict]
) -> None:
    directory, verdict = sound
    assert verdict.outcome is Outcome.PASS, verdict
    assert verdict.counts["acked_all"] > 0
    manifest = directory.manifest()
    assert manifest.guarantees["timeline"] == "metadata"
    assert manifest.guarantees["min_insync_replicas"] == 2
    assert len(manifest.configuration["left_out"]) == len(CALM.chaos.faults if CALM.chaos else ())
    assert {(row["node"], row["kind"]) for row in directory.read_table("timeline")} == {(NO_NODE, "metadata")}
    assert (verdict.evidence, verdict.counts["acked_below_high_watermark"]) == (
        EvidenceTier.METADATA,
        verdict.counts["acked_all"],
    )
    assert not directory.read_table("faults")
    assert not topics(cluster.bootstrap())
    reports.write(directory.path)
    page = directory.report_path.read_text()
    assert "Evidence: clients and the cluster&#39;s metadata." in page
    assert "leaders and high watermarks as clients were told" in page
    assert "truncations</text>" not in page
    assert "high watermark</text>" in page
    assert "all of them at offsets below a high watermark that the cluster told" in page


def test_topics_stay_where_they_are_to_and_are_not_used_again(cluster: BuiltinTarget, tmp_path: Path) -> None:
    for number in (1, 2):  # each with groups and topics of its own
        _, verdict = judged(cluster, tmp_path, 1, "#keep-topics#prefix=kept-", workload_name="consumer_groups")
        assert verdict.outcome is Outcome.PASS, verdict
        kept = topics(cluster.bootstrap())
        assert len(kept) == 2 * number
    assert all(name.startswith("kept-") for name in kept)
    Administration(Access(cluster.bootstrap())).delete(list(kept))


@pytest.mark.parametrize(
    ("bug", "workload", "kind"),
    [
        ("fetch_loses_a_batch", "unique_sends", "lost-write"),
        pytest.param("commits_swapped", "consumer_groups", "lost-commit", marks=LATE),
        pytest.param("aborted_marked_committed", "transactions", "aborted-read", marks=LATE),
    ],
)
def test_clients_alone_prove_what_brokers_do_wrong(bug: str, workload: str, kind: str, tmp_path: Path) -> None:
    with running(tmp_path / "cluster", bugs=bug) as broken:
        _, verdict = judged(broken, tmp_path / "runs", 4, workload_name=workload)
    assert verdict.outcome is Outcome.VIOLATION, verdict
    assert kind in {one.kind for one in verdict.anomalies}


def test_a_loss_is_seen_in_the_watermarks_that_the_cluster_tells(tmp_path: Path) -> None:
    """A replica is elected that had long been out of the ISR, which no configuration permits."""
    runs = tmp_path / "runs"
    with (
        running(tmp_path / "cluster", bugs="anybody_elected") as broken,
        before_the_load_stops(lambda: depose_the_first_leader(broken, runs)),
    ):
        _, verdict = judged(broken, runs, 1, scenario=ONE_PARTITION)
    assert verdict.outcome is Outcome.VIOLATION, verdict
    [fall] = [one for one in verdict.anomalies if one.kind == "hw-regression"]
    assert fall.verdict is Verdict.INDETERMINATE
    lost = [one.why for one in verdict.anomalies if one.kind == "lost-write"]
    assert any("it vanished when that one was elected" in why for why in lost), lost


def test_a_sound_cluster_whose_leader_is_deposed_tells_no_watermark_that_falls(
    cluster: BuiltinTarget, tmp_path: Path
) -> None:
    with before_the_load_stops(lambda: depose_the_first_leader(cluster, tmp_path)):
        directory, verdict = judged(cluster, tmp_path, 1, scenario=ONE_PARTITION)
    assert verdict.outcome is Outcome.PASS, verdict
    epochs = {row["leader_epoch"] for row in directory.read_table("timeline")}
    assert {0, 1} <= epochs


def test_a_topic_that_is_gone_is_a_loss_though_no_final_read_can_show_it(
    cluster: BuiltinTarget, tmp_path: Path
) -> None:
    with before_the_load_stops(lambda: lose_topics(cluster.bootstrap())):
        directory, verdict = judged(cluster, tmp_path, 1, scenario=HURRIED)
    assert verdict.outcome is Outcome.VIOLATION, verdict
    assert [one.topic for one in verdict.anomalies if one.kind == "lost-topic"] == [
        one["topic"] for one in directory.manifest().unknown_topics
    ]


def test_a_final_read_that_takes_its_time_is_waited_for(
    cluster: BuiltinTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FinalReader, "_has_read_all_it_can", lambda _: True)  # the first time is up at once
    _, verdict = judged(cluster, tmp_path, 1)
    assert verdict.outcome is Outcome.PASS, verdict


def test_a_run_that_was_killed_leaves_topics_that_are_deleted_as_soon_as_the_cluster_answers(
    cluster: BuiltinTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "runtime"))
    words = ("run", "random-chaos", "--target", f"bootstrap:{cluster.bootstrap()}", "--duration-s", "60")
    with killed_seawall((*words, "--out", str(tmp_path)), lambda: len(topics(cluster.bootstrap())) == 2):
        pass
    left = topics(cluster.bootstrap())
    assert len(left) == 2
    [said] = heal_leftovers()
    assert all(name in said for name in left)
    assert not topics(cluster.bootstrap())


def test_what_the_cluster_does_not_have_is_refused_before_anything_is_created(cluster: BuiltinTarget) -> None:
    target = f"bootstrap:{cluster.bootstrap()}"
    with pytest.raises(UsageError, match=r"topic 'ledger' has 4 replicas, and .* has 3 broker"):
        plan(parse(CALM.text.replace("brokers: 3", "brokers: 4").replace("factor: 3", "factor: 4")), target)
    with pytest.raises(UsageError, match=r"is a schedule, whose steps need brokers that seawall looks into"):
        plan(load("kip-101-double-failover"), target)
    with pytest.raises(UsageError, match=r"replica.lag.time.max.ms is 77 in the scenario, and 2000 on the brokers"):
        plan(CALM, target, overrides={"settings.replica.lag.time.max.ms": "77"})
    with pytest.raises(UsageError, match=r"it deletes records, and target .* does not say which ones were"):
        plan(CALM, target, overrides={"workload.name": "deleted_records"})
    with pytest.raises(UsageError, match=r"a running cluster has no such switch"):
        plan(CALM, target, overrides={"replication.truncation": "hw"})
    assert not topics(cluster.bootstrap())


@pytest.mark.parametrize("workload", ["consumer_groups", "consume_transform_produce", "several_workloads"])
def test_sessions_that_the_brokers_refuse_are_refused_beforehand(workload: str, cluster: BuiltinTarget) -> None:
    target = f"bootstrap:{cluster.bootstrap()}#promise=group.min.session.timeout.ms=6000"
    asked = {"workload.name": workload}
    if workload == "several_workloads":
        asked["workload.parts"] = "[{name: unique_sends}, {name: consumer_groups}]"
    with pytest.raises(UsageError, match=r"ask for a session of [23] s, and the brokers of .* refuse one below 6 s"):
        plan(CALM, target, overrides=asked)
    if workload != "several_workloads":
        plan(CALM, target, overrides={**asked, "workload.session_timeout_s": "6"})


def test_members_of_the_consumer_protocol_alone_have_the_sessions_of_brokers(cluster: BuiltinTarget) -> None:
    target = f"bootstrap:{cluster.bootstrap()}#promise=group.min.session.timeout.ms=6000"
    plan(CALM, target, overrides={"workload.name": "consumer_groups", "workload.protocol": "[consumer]"})


def test_an_address_where_no_broker_answers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(administration, "_TIMEOUT_S", 1.0)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        with pytest.raises(EnvironmentFault, match=rf"no broker answers at 127.0.0.1:{port} within 1 s"):
            plan(CALM, f"bootstrap:127.0.0.1:{port}")


def test_a_topic_that_the_cluster_makes_otherwise_ends_the_run(cluster: BuiltinTarget, tmp_path: Path) -> None:
    class Stubborn(Administration):
        def topic_configs(self, topic: str) -> Mapping[str, str]:
            return {**super().topic_configs(topic), "min.insync.replicas": "1"}

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("harness.targets.bootstrap.target.Administration", Stubborn)
        with pytest.raises(EnvironmentFault, match=r"did not make topic .* as asked: min.insync.replicas is 1, not 2"):
            judged(cluster, tmp_path)
    assert not topics(cluster.bootstrap())
    assert json.loads(next(tmp_path.rglob("run.json")).read_text())["state"] == "abandoned"


def test_topics_that_are_not_deleted_are_named_and_the_run_is_judged_all_the_same(
    cluster: BuiltinTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Administration, topics: Sequence[str]) -> Sequence[str]:
        raise EnvironmentFault(f"topic {topics[0]!r} was not deleted: TOPIC_DELETION_DISABLED.")

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "runtime"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Administration, "delete", refuse)
        with pytest.raises(LeftBehind, match=r"there is still topic seawall-.*-ledger, topic seawall-.*-audit") as left:
            judged(cluster, tmp_path, 1)
    [verdict] = check([left.value.directory], engine="reference")
    assert verdict.outcome is Outcome.PASS
    assert len(topics(cluster.bootstrap())) == 2
    Administration(Access(cluster.bootstrap())).delete(list(topics(cluster.bootstrap())))


def test_the_topics_of_a_cluster_that_is_gone_keep_others_no_longer_than_a_look() -> None:
    with pytest.raises(EnvironmentFault, match=r"topic 'old' may still be at 127.0.0.1:1, where no broker listens now"):
        LEFTOVERS.remove({"bootstrap": "127.0.0.1:1", "topic": "old"})


def test_what_the_user_promises_is_what_the_run_is_judged_by(cluster: BuiltinTarget) -> None:
    options = "#promise=log.retention.ms=60000#promise=unclean.leader.election.enable=true"
    made = manifest(plan(CALM, f"bootstrap:{cluster.bootstrap()}{options}"), "random-chaos/promised", now())
    assert (made.guarantees["retention"], made.guarantees["unclean_election"]) == (True, True)
    assert not misstated(made)


def test_the_end_of_a_log_that_is_gone_is_lost(sound: tuple[RunDirectory, RunVerdict], tmp_path: Path) -> None:
    directory = RunDirectory.open(Path(shutil.copytree(sound[0].path, tmp_path / "run")))
    history = list(directory.read_table("history"))
    read = [row for row in history if row["final"] and row["offset"] is not None]
    [(place, _)] = Counter((row["topic"], row["partition"]) for row in read).most_common(1)
    there = [row for row in history if (row["topic"], row["partition"]) == place and row["type"] == "ok"]
    acknowledged, delivered = (
        {row["offset"] for row in there if row["f"] == f and not row["final"]} for f in ("send", "poll")
    )
    last = max(acknowledged & delivered)  # on a busy machine there are records of unknown outcome behind it
    gone = [id(row) for row in read if (row["topic"], row["partition"]) == place and row["offset"] > last - 2]
    kept = [{**row, "index": index} for index, row in enumerate(row for row in history if id(row) not in gone)]
    for path in list(directory.table_files("history")):
        path.unlink()
    directory.write_table("history", kept)
    directory.finish("complete", 1.0, "")
    [verdict] = check([directory.path], engine="reference")
    assert verdict.outcome is Outcome.VIOLATION, (verdict.reasons, verdict.limits)
    assert "lost-write" in {one.kind for one in verdict.anomalies}
