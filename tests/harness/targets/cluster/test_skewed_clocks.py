"""Wall clocks of a running cluster's nodes, moved by the commands of a file and a library in the broker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import faults
from harness.checker import Outcome
from harness.errors import EnvironmentFault, ExitCode
from harness.runner import plan
from harness.runner.journal import heal_leftovers
from harness.targets.awaiting import await_that
from harness.targets.cluster.cluster_file import ClusterFile
from harness.targets.cluster.commanded_node import CommandedNode
from harness.targets.cluster.kind import CommandedCluster
from harness.targets.kafka.shim import Shim, is_available
from tests.harness.cli.calling import Seawall
from tests.harness.cli.conftest import seawall as seawall  # noqa: PLC0414 - a fixture
from tests.harness.targets.cluster.plain_cluster import ROOT, PlainCluster, plain_cluster
from tests.harness.targets.cluster.preloaded_clocks import preloaded
from tests.harness.targets.cluster.test_commanded_cluster import CHAOS, judged, run_of, target_of, with_faults
from tests.harness.targets.killed_seawall import killed_seawall

HOUR_MS = 3_600_000
AHEAD = {"fault": "clock", "node": "leader", "offset_ms": HOUR_MS}
BACK = {"fault": "clock", "node": "any", "offset_ms": -HOUR_MS}
pytestmark = pytest.mark.skipif(
    not is_available(), reason="a clock of one process takes a library, and there is no C compiler: apt-get install gcc"
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlainCluster]:
    with plain_cluster(tmp_path_factory.mktemp("cluster"), movable_clocks=True) as one:
        yield one


def offsets_ms(cluster: PlainCluster) -> Mapping[str, int]:
    return {name: Shim(cluster.directory / name).clock_offset_ms for name in ("0", "1", "2", "controller")}


def broker_times_ms(cluster: PlainCluster, node: str) -> list[int]:
    """What a broker's own clock showed whenever something changed at it, by its timeline."""
    lines = (cluster.directory / node / "timeline.jsonl").read_text().splitlines()
    return [row["wall_ms"] for row in map(json.loads, lines)]


def with_commands(cluster: PlainCluster, node: str, **commands: str) -> list[Mapping[str, Any]]:
    return [
        {**one, "commands": {**one["commands"], **(commands if str(one["id"]) == node else {})}}
        for one in cluster.file["nodes"]
    ]


def test_a_skewed_clock_is_proven_and_undone_and_costs_nothing(cluster: PlainCluster, tmp_path: Path) -> None:
    directory, verdict = judged(cluster.written(), tmp_path, with_faults(AHEAD, BACK), 5)
    assert verdict.outcome is Outcome.PASS, verdict
    rows = directory.read_table("faults")
    assert {row["kind"] for row in rows} == {"clock"}
    assert all(row["proven_ns"] and row["heal_proven_ns"] for row in rows), rows
    assert not any(offsets_ms(cluster).values())


def test_the_broker_itself_has_the_wrong_time_also_after_a_start(cluster: PlainCluster) -> None:
    target = target_of(cluster.written())
    target.start()
    target.offset_clock("1", HOUR_MS)
    try:
        assert abs(target.clock_offset_ms("1") - HOUR_MS) <= 250
        assert abs(target.clock_offset_ms("0")) <= 250
        target.kill("1")
        await_that(lambda: target.is_dead("1").holds, "node 1 has not ended", (), 10, 0.05)
        target.restart("1")
        assert abs(target.clock_offset_ms("1") - HOUR_MS) <= 250
        assert max(broker_times_ms(cluster, "1")) > time.time() * 1000 + HOUR_MS / 2
        assert target.remains()
    finally:
        target.offset_clock("1", 0)
    assert abs(target.clock_offset_ms("1")) <= 250
    assert not target.remains()


def test_a_skew_that_moves_nothing_proves_no_run(cluster: PlainCluster, tmp_path: Path) -> None:
    idle = cluster.written("idle.yml", nodes=with_commands(cluster, "1", skew=":"))
    directory, verdict = judged(idle, tmp_path, with_faults({**AHEAD, "node": 1}, at_once=1), 1)
    assert verdict.outcome is Outcome.INVALID, verdict
    [row, *_] = directory.read_table("faults")
    assert row["proven_ns"] is None
    assert row["proof"].startswith("the clock of node 1 reads ")


def test_a_skew_that_is_not_taken_back_is_not_healed(cluster: PlainCluster) -> None:
    lasting = target_of(cluster.written("lasting.yml", nodes=with_commands(cluster, "1", unskew=":")))
    lasting.offset_clock("1", HOUR_MS)
    try:
        with pytest.raises(EnvironmentFault, match=r"skewed clock of node 1 is not undone: .* is \+\d+ ms off this"):
            lasting.offset_clock("1", 0)
        assert "skewed clock of node 1" in lasting.remains()
    finally:
        target_of(cluster.written()).offset_clock("1", 0)


def test_a_skew_that_moves_another_node_too_is_refused_and_undone(cluster: PlainCluster) -> None:
    one, other = (with_commands(cluster, name)[int(name)]["commands"] for name in ("0", "1"))
    both = {name: f"{{ {one[name]}; }} && {{ {other[name]}; }}" for name in ("skew", "unskew")}
    target = target_of(cluster.written("both.yml", nodes=with_commands(cluster, "0", **both)))
    with pytest.raises(EnvironmentFault, match="'skew' of node 0 has moved another clock besides, that of node 1 by"):
        target.offset_clock("0", HOUR_MS)
    assert not any(offsets_ms(cluster).values())


OWN = """\
import sys
from harness.errors import EnvironmentFault
from tests.harness.targets.cluster.test_commanded_cluster import target_of
try:
    target_of(sys.argv[1]).offset_clock("2", 3_600_000)
except EnvironmentFault as refused:
    print(refused.sentence)
"""


def test_a_skew_that_moves_the_clock_of_seawall_itself_is_refused_and_undone(
    cluster: PlainCluster, tmp_path: Path
) -> None:
    environment = {**os.environ, **preloaded(cluster.directory / "2"), "PYTHONPATH": str(ROOT)}
    words = [sys.executable, "-c", OWN, cluster.written()]
    said = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert "'skew' of node 2 has moved another clock besides, that of this machine, by which the run" in said.stdout
    assert not any(offsets_ms(cluster).values())


@pytest.mark.parametrize(
    ("now", "sentence"),
    [
        ("date", "command 'now' printed '.*', no milliseconds since the epoch"),
        ("date +%s", "its clock is -[0-9]+ ms off this machine's, before it was moved"),
        ("false", "command 'now' failed, exit status 1"),
        ("sleep 0.3; date +%s%3N", "command 'now' ran for [0-9]+ ms or longer, 5 times"),
    ],
)
def test_a_clock_that_tells_no_time_is_not_moved(now: str, sentence: str, cluster: PlainCluster) -> None:
    target = target_of(cluster.written("mute.yml", nodes=with_commands(cluster, "2", now=now)))
    with pytest.raises(EnvironmentFault, match=f"node 2: {sentence}"):
        target.offset_clock("2", HOUR_MS)
    assert not any(offsets_ms(cluster).values())


def test_a_clock_is_read_no_less_exactly_over_a_slow_way(cluster: PlainCluster) -> None:
    slow = [{**one, "transport": {"argv": ["sh", "-c", 'sleep 0.7; exec "$@"', "sh"]}} for one in cluster.file["nodes"]]
    target = target_of(cluster.written("slow.yml", nodes=slow))
    assert abs(target.clock_offset_ms("0")) <= 250
    Shim(cluster.directory / "0").clock_offset_ms = 500
    try:
        assert abs(target.clock_offset_ms("0") - 500) <= 250
    finally:
        Shim(cluster.directory / "0").clock_offset_ms = 0


def test_a_clock_that_a_killed_seawall_has_skewed_is_right_after_the_next(
    cluster: PlainCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "runtime"))
    with killed_seawall(run_of(AHEAD, cluster, tmp_path), lambda: any(offsets_ms(cluster).values())):
        skewed = [name for name, offset in offsets_ms(cluster).items() if offset]
        before = {name: target_of(cluster.written())._nodes[name].state() for name in skewed}
    assert skewed
    assert f"skewed clock of node {skewed[0]}" in " ".join(heal_leftovers())
    assert not any(offsets_ms(cluster).values())
    healed = target_of(cluster.written())
    assert all(healed.is_running(node).holds for node in ("0", "1", "2"))
    assert {name: healed._nodes[name].state() for name in skewed} != before  # it may have put off what it has to do


def test_doctor_reads_clocks(cluster: PlainCluster, seawall: Seawall) -> None:
    said = seawall("doctor", "--target", cluster.written())
    assert "node 0: clock: 'now' and 'unskew' work, " in said.out
    assert "not tried: 'skew'" in said.out
    said = seawall("doctor", "--target", cluster.written("mute.yml", nodes=with_commands(cluster, "0", now="date")))
    assert said.code == ExitCode.ENVIRONMENT
    assert "no milliseconds since the epoch" in said.out


def test_the_clock_of_a_machine_is_not_stepped_under_seawall_or_under_two_nodes(
    cluster: PlainCluster, tmp_path: Path
) -> None:
    system = plan(CHAOS, cluster.written()).system
    assert isinstance(system, CommandedCluster)
    clock = faults.parse(AHEAD, "it")
    assert system.unsupported(clock) is None

    written = {"bootstrap": ["a:9092"], "preset": "systemd", "variables": {"CLOCK_FILE": "/run/seawall-clock"}}

    def on(*machines: str | None) -> str:
        """Why the clocks of systemd's units on these machines cannot be moved; None is this one."""
        nodes = [
            {"id": number, "transport": {} if machine is None else {"argv": [str(machine_of(machine))]}}
            for number, machine in enumerate(machines)
        ]
        file = ClusterFile.model_validate({**written, "nodes": nodes})
        described = replace(system, nodes=[CommandedNode(file, node) for node in file.nodes])
        return str(described.unsupported(clock))

    def machine_of(name: str) -> Path:
        """A shell that is on a machine with another id of its boot."""
        program = tmp_path / name
        program.write_text(f'#!/bin/sh\ncase "$3" in *boot_id) echo {name};; *) exec "$@";; esac\n')
        program.chmod(0o755)
        return program

    assert "the clock of node 1 is that of the machine on which seawall runs" in on("far", None)
    assert "nodes 0 and 2 are on one machine, and have one clock" in on("far", "away", "far")
    assert on("far", "away") == "None"
    unreachable = ClusterFile.model_validate({**written, "nodes": [{"id": 0, "transport": {"argv": ["false"]}}]})
    with pytest.raises(EnvironmentFault, match="node 0: on which machine it runs is not known, exit status 1"):
        replace(system, nodes=[CommandedNode(unreachable, unreachable.nodes[0])]).unsupported(clock)
