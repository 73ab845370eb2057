"""Runs on a cluster that goes on running, whose brokers' logs are copied in the end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from checkers import check
from harness.checker import EvidenceTier, Outcome, RunVerdict
from harness.errors import EnvironmentFault
from harness.history.run_directory import RunDirectory
from harness.runner import plan, run
from harness.scenario import load, parse
from harness.targets.cluster.cluster_file import read
from harness.targets.cluster.kind import nodes_of
from harness.targets.cluster.presets import PRESETS
from harness.targets.cluster.tried import tried
from tests.harness.targets.bootstrap.running_builtin import topics
from tests.harness.targets.cluster.plain_cluster import PlainCluster, plain_cluster

FAULTS = {
    "killed": [{"fault": "kill", "node": "leader"}],
    "a follower paused": [{"fault": "pause", "node": "follower", "for_s": [0.2, 0.4]}],
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlainCluster]:
    with plain_cluster(tmp_path_factory.mktemp("cluster")) as there:
        yield there


def judged(target: str, out: Path, workload: str, faults: str) -> tuple[RunDirectory, RunVerdict]:
    """A run of two seconds."""
    document = yaml.safe_load(load("random-chaos").text)
    document["chaos"]["faults"] = FAULTS[faults]
    scenario = parse(yaml.safe_dump(document))
    directory = run(plan(scenario, target, seed=7, duration_s=2, overrides={"workload.name": workload}), out)
    [verdict] = check([directory.path], engine="reference")
    return directory, verdict


def test_the_logs_of_a_sound_cluster_agree(cluster: PlainCluster, tmp_path: Path) -> None:
    directory, verdict = judged(cluster.written(), tmp_path, "unique_sends", "killed")
    assert (verdict.outcome, verdict.evidence) == (Outcome.PASS, EvidenceTier.LOGS), verdict
    assert "replica-divergence" not in verdict.not_asked
    rows = list(directory.read_table("replica_logs"))
    names = {(row["topic"], row["partition"], row["node"]) for row in rows}
    assert len(names) == 5 * 3  # whose records there are, and of no other topic of the cluster
    read = {(row["topic"], row["partition"], row["offset"]) for row in directory.read_table("history") if row["final"]}
    held = {(row["topic"], row["partition"], row["offset"]) for row in rows}
    assert held == {one for one in read if one[2] is not None}
    assert not topics(cluster.bootstrap)


def test_replicas_that_hold_something_else_than_their_leader_are_found_by_their_logs(tmp_path: Path) -> None:
    with plain_cluster(tmp_path / "cluster", bugs="follower_drops_headers") as broken:
        _, verdict = judged(broken.written(), tmp_path / "runs", "pipelined_sends", "a follower paused")
    assert verdict.outcome is Outcome.VIOLATION, verdict
    assert {"damaged-record", "replica-divergence"} <= {one.kind for one in verdict.anomalies}


def test_logs_that_cannot_be_read_end_the_run_before_anything_happens(cluster: PlainCluster, tmp_path: Path) -> None:
    sound = cluster.file["nodes"]
    (tmp_path / ".lock").touch()
    elsewhere = [{**node, "variables": {**node["variables"], "LOG_DIR": str(tmp_path)}} for node in sound]
    for changes, nodes, why in (
        ({"logs": "echo no such disk >&2; exit 1"}, sound, "command 'logs' failed, exit status 1: no such disk"),
        ({"logs": "echo text"}, sound, "no archive that 'logs' prints"),
        ({}, elsewhere, "the node has no file open in LOG_DIR"),
    ):
        bad = cluster.written("bad.yml", nodes=nodes, commands={**cluster.file["commands"], **changes})
        file = read(Path(bad.partition(":")[2]))
        [seen] = [one for one in tried(file, nodes_of(file)) if one.what == "node 0: replica logs"]
        assert not seen.works
        assert why in seen.seen
        with pytest.raises(EnvironmentFault, match=re.escape(why)):
            judged(bad, tmp_path / "runs", "unique_sends", "killed")
        assert not topics(cluster.bootstrap)


def test_a_cluster_whose_logs_no_command_reads_is_known_by_metadata(cluster: PlainCluster) -> None:
    nodes = [{**node, "variables": {**node["variables"], "LOG_DIR": ""}} for node in cluster.file["nodes"]]
    made = plan(load("random-chaos"), cluster.written("unread.yml", nodes=nodes), duration_s=1)
    assert made.system.evidence() == {"timeline": "metadata"}


@pytest.mark.parametrize(
    ("ending", "why"),
    [
        ("echo gone >&2; exit 1", r"node 0: command 'logs' failed, exit status 1: gone"),
        ("tar -cf - --files-from /dev/null", r"node 0: what 'logs' prints is without the file replication-offset-ch"),
    ],
)
def test_logs_that_cannot_be_read_in_the_end_end_the_run(
    ending: str, why: str, cluster: PlainCluster, tmp_path: Path
) -> None:
    late = f'[ -z "$TOPICS" ] || {{ {ending}; exit; }}\n{PRESETS["processes"].commands["logs"]}'
    bad = cluster.written("late.yml", commands={**cluster.file["commands"], "logs": late})
    with pytest.raises(EnvironmentFault, match=why):
        judged(bad, tmp_path, "unique_sends", "killed")
    assert not topics(cluster.bootstrap)
