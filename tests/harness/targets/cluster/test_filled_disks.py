"""Disks that a running cluster's nodes keep their data on, filled by the commands of a file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from faults.back import bring_back
from harness.checker import Outcome
from harness.client_properties import Access
from harness.clients.topics import create_topic
from harness.errors import EnvironmentFault, ExitCode, UsageError
from harness.runner import plan
from harness.runner.journal import heal_leftovers
from harness.scenario import parse
from harness.target import TopicSpec
from harness.targets.awaiting import await_that
from tests.harness.cli.calling import Seawall
from tests.harness.cli.conftest import seawall as seawall  # noqa: PLC0414 - a fixture
from tests.harness.targets.cluster.plain_cluster import PlainCluster, disks, plain_cluster
from tests.harness.targets.cluster.test_commanded_cluster import Journal, judged, run_of, target_of, with_faults
from tests.harness.targets.killed_seawall import killed_seawall

FULL = {"fault": "disk_full", "node": "leader", "free_bytes": 4096}
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="disks of their own are root's to mount")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlainCluster]:
    directory = tmp_path_factory.mktemp("cluster")
    with disks(directory), plain_cluster(directory) as one:
        create_topic(Access(one.bootstrap), TopicSpec("kept", 1, 3), 30)  # or no broker has a file open on its disk
        yield one


def ballast(cluster: PlainCluster) -> list[Path]:
    return list(cluster.directory.glob("*/data/.seawall-ballast"))


def test_a_full_disk_is_proven_and_undone_and_costs_nothing(cluster: PlainCluster, tmp_path: Path) -> None:
    directory, verdict = judged(cluster.written(), tmp_path, with_faults(FULL), 5)
    assert verdict.outcome is Outcome.PASS, verdict
    rows = directory.read_table("faults")
    assert "disk_full" in {row["kind"] for row in rows}
    assert all(row["proven_ns"] and row["heal_proven_ns"] for row in rows), rows
    assert not ballast(cluster)


def test_a_disk_that_nodes_share_is_no_disk_of_one_node(cluster: PlainCluster) -> None:
    one, other = (node["variables"]["DATA"] for node in cluster.file["nodes"][:2])
    assert one != other
    nodes = [{**node, "variables": {**node["variables"], "DATA": one}} for node in cluster.file["nodes"]]
    for sharing, target in ((True, cluster.written("shared.yml", nodes=nodes)), (False, cluster.written())):
        filled = target_of(target)
        filled.start()
        filled.limit_disk("0", 4096)
        try:
            assert filled.is_disk_full("0").holds is not sharing
            assert filled.takes_writes("1").holds is not sharing
        finally:
            filled.limit_disk("0", None)
        assert filled.takes_writes("0").holds
        assert list(filled.offline_log_dirs("0")) == [0]
        assert not list(filled.offline_log_dirs("1"))
        bring_back(filled, "0")  # it may have ended of that
        assert not list(filled.offline_log_dirs("0"))


def test_a_disk_that_a_killed_seawall_has_filled_is_freed_by_the_next(
    cluster: PlainCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "runtime"))
    with killed_seawall(run_of(FULL, cluster, tmp_path), lambda: ballast(cluster)):
        before = {node: target_of(cluster.written())._nodes[node].state() for node in ("0", "1", "2")}
    assert "full disk of node" in " ".join(heal_leftovers())
    assert not ballast(cluster)
    healed = target_of(cluster.written())
    assert all(healed.is_running(node).holds for node in ("0", "1", "2"))
    assert {node: healed._nodes[node].state() for node in before} != before  # it may do without the disk until then


def test_the_journal_has_a_filled_disk_until_its_node_is_started_again(cluster: PlainCluster) -> None:
    target = target_of(cluster.written(), journal := Journal())
    target.start()
    target.limit_disk("0", 4096)
    target.limit_disk("0", None)
    assert journal.left() == ["end of node 0", "full disk of node 0"]
    bring_back(target, "0")
    assert not journal.left()
    target.kill("0")
    await_that(lambda: target.is_dead("0").holds, "node 0 has not ended", (), 10, 0.05)
    assert journal.left() == ["end of node 0"]
    target.restart("0")
    assert not journal.left()


def test_doctor_looks_at_disks_and_a_plan_refuses_those_that_are_not_known(
    cluster: PlainCluster, seawall: Seawall
) -> None:
    said = seawall("doctor", "--target", cluster.written())
    assert "node 0: full disk: 'write' and 'free' work; not tried: 'fill'" in said.out
    assert said.code in (ExitCode.PASS, ExitCode.ENVIRONMENT)  # packets may not be filtered here
    nodes = [{**node, "variables": {"PID_FILE": node["variables"]["PID_FILE"]}} for node in cluster.file["nodes"]]
    with pytest.raises(UsageError, match="'disk_full' needs the variable 'DATA' of node 0, which its file lacks"):
        plan(parse(with_faults(FULL)), cluster.written("unknown.yml", nodes=nodes))
    with pytest.raises(UsageError, match="names one of them: log_dir"):
        plan(parse(with_faults({**FULL, "log_dir": 0})), cluster.written())
    with pytest.raises(UsageError, match="with must_refuse is proven by the broker's own log"):
        plan(parse(with_faults({**FULL, "must_refuse": True})), cluster.written())


def test_a_disk_that_others_need_or_the_node_does_not_use_is_not_filled(cluster: PlainCluster) -> None:
    for data, sentence in (("/", "DATA is on the root file system"), ("/dev/shm", "no file open in DATA")):
        nodes = [{**node, "variables": {**node["variables"], "DATA": data}} for node in cluster.file["nodes"]]
        target = target_of(cluster.written("elsewhere.yml", nodes=nodes))
        with pytest.raises(EnvironmentFault, match=sentence):
            target.limit_disk("0", 4096)
        assert not Path(data, ".seawall-ballast").exists()
