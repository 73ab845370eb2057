"""The preset ``systemd``, end to end: systemd itself runs built-in brokers, as units that it starts again at once.

The brokers' units are in ``/etc/systemd/system``, but for one in ``/run``; each has a disk of its own.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.checker import EvidenceTier, Outcome
from harness.errors import EnvironmentFault, ExitCode
from harness.model import CONTROLLER
from harness.runner.journal import heal_leftovers
from harness.targets.awaiting import await_that
from tests.harness.cli.calling import Seawall
from tests.harness.cli.conftest import seawall as seawall  # noqa: PLC0414 - a fixture
from tests.harness.targets.bootstrap.running_builtin import topics
from tests.harness.targets.cluster.own_systemd import ETC, RUN, lacking, own_systemd
from tests.harness.targets.cluster.plain_cluster import PlainCluster, described, disks
from tests.harness.targets.cluster.test_commanded_cluster import (
    FILTERED,
    KILL,
    MISCHIEF,
    judged,
    run_of,
    target_of,
    with_faults,
)
from tests.harness.targets.cluster.test_stand_ins import LOSES_BATCHES, STOP, answers, is_harmed
from tests.harness.targets.killed_seawall import killed_seawall

FULL = {"fault": "disk_full", "node": "any", "free_bytes": 4096}
PLACES = {"0": ETC, "1": ETC, "2": RUN, CONTROLLER: ETC}
LATE = pytest.mark.nightly("a run more on built-in brokers; by day systemd has one kill")
pytestmark = [FILTERED, pytest.mark.skipif(bool(lacking()), reason=lacking() or "nothing is lacking")]
UNIT = """\
[Unit]
DefaultDependencies=no
[Service]
Type=forking
PIDFile={pid_file}
ExecStart=/bin/sh {start}
Restart=always
RestartSec=0
"""
LATER = f"""\
mkdir {ETC}/kafka-0.service.d
printf "[Service]\\nRestart=always\\n" >{ETC}/kafka-0.service.d/zzz.conf
"""
"""Makes a drop-in that overrules seawall's, for its name comes later."""


@contextmanager
def in_units(directory: Path, bugs: str = "") -> Iterator[PlainCluster]:
    """A cluster whose nodes systemd runs."""
    with disks(directory), described(directory, bugs) as cluster:
        units, nodes = {}, []
        for node in cluster.file["nodes"]:
            name, variables = str(node["id"]), node["variables"]
            start = directory / f"{name}.start"
            start.write_text(node["commands"]["start"])
            units[f"{PLACES[name]}/kafka-{name}.service"] = UNIT.format(pid_file=variables["PID_FILE"], start=start)
            own = {"UNIT": f"kafka-{name}", "DATA": variables["DATA"], "LOG_DIR": variables["LOG_DIR"]}
            nodes.append({**{key: node[key] for key in ("id", "address", "port")}, "variables": own})
        with own_systemd(units) as inside:
            subprocess.run((*inside, "systemctl", "start", *(Path(one).name for one in units)), check=True)
            cluster.await_brokers()
            transported = [{**node, "transport": {"argv": list(inside)}} for node in nodes]
            yield replace(cluster, file={**cluster.file, "preset": "systemd", "nodes": transported})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlainCluster]:
    with in_units(tmp_path_factory.mktemp("units")) as one:
        yield one


def told(cluster: PlainCluster, *command: str) -> str:
    """What a command prints where systemd runs."""
    inside: Sequence[str] = cluster.file["nodes"][0]["transport"]["argv"]
    return subprocess.run((*inside, *command), check=True, capture_output=True, text=True).stdout.strip()


def shown(cluster: PlainCluster, node: str, name: str) -> str:
    """A property of a node's unit."""
    return told(cluster, "systemctl", "show", "--property", name, "--value", f"kafka-{node}")


def drop_ins(cluster: PlainCluster) -> str:
    return told(cluster, "find", RUN, "-name", "*.d")


@pytest.mark.parametrize("node", [pytest.param("0", id="in etc"), pytest.param("2", id="in run", marks=LATE)])
def test_a_killed_unit_is_away_until_it_is_started_though_systemd_starts_it_again_otherwise(
    node: str, cluster: PlainCluster
) -> None:
    before = shown(cluster, node, "MainPID")
    told(cluster, "systemctl", "kill", "--signal", "KILL", f"kafka-{node}")
    await_that(lambda: shown(cluster, node, "MainPID") not in (before, "0"), "it was not started again", (), 30, 0.1)
    target = target_of(cluster.written())
    await_that(lambda: answers(target), "it does not answer", (), 30, 0.1)
    target.start()
    target.kill(node)
    assert shown(cluster, node, "ActiveState") == "failed"
    assert (shown(cluster, node, "Restart"), drop_ins(cluster)) == ("always", "")
    time.sleep(1.0)
    assert target.is_dead(node).seen.endswith("is gone, and none is in its place")
    target.restart(node)
    assert not target.remains()
    assert answers(target)


def test_a_unit_that_somebody_else_starts_has_its_own_policy(cluster: PlainCluster) -> None:
    target = target_of(cluster.written())
    target.start()
    target.kill("1")
    told(cluster, "systemctl", "start", "kafka-1")
    target.restart("1")
    assert not target.remains()
    assert answers(target)
    assert (shown(cluster, "1", "Restart"), drop_ins(cluster)) == ("always", "")


def test_doctor_tries_what_it_can_by_systemctl(cluster: PlainCluster, seawall: Seawall) -> None:
    said = seawall("doctor", "--target", cluster.written())
    assert said.code == ExitCode.PASS, said.out
    for node in ("0", "1", "2", CONTROLLER):
        assert f"node {node}: kill: process" in said.out
    assert "node 0: full disk: 'write' and 'free' work" in said.out
    assert "node 0: replica logs: 'logs' works" in said.out
    assert "has not been tried on a cluster" not in said.out


def test_a_unit_that_systemd_would_start_again_all_the_same_is_not_killed(cluster: PlainCluster) -> None:
    target = target_of(cluster.written())
    target.start()
    told(cluster, "sh", "-c", LATER)
    try:
        with pytest.raises(EnvironmentFault, match=f"kafka-0 has Restart=always in spite of {RUN}/kafka-0"):
            target.kill("0")
        assert not target.is_dead("0").holds
        assert not drop_ins(cluster)
    finally:
        told(cluster, "rm", "-r", f"{ETC}/kafka-0.service.d")
        target.restart("0")
    assert not target.remains()
    assert answers(target)


@pytest.mark.nightly("six kills, each with the start of a broker")
def test_a_unit_that_was_killed_often_is_started_in_spite_of_its_limit(cluster: PlainCluster) -> None:
    target = target_of(cluster.written())
    target.start()
    for _ in range(6):  # the limit is five within ten seconds
        target.kill("0")
        await_that(lambda: target.is_dead("0").holds, "node 0 has not ended", (), 30, 0.05)
        target.restart("0")
    assert answers(target)


@LATE
@pytest.mark.parametrize("fault", [*MISCHIEF, STOP, FULL], ids=lambda fault: str(fault["fault"]))
def test_every_fault_that_the_preset_has_commands_for_is_proven_and_healed(
    fault: dict[str, Any], cluster: PlainCluster, tmp_path: Path
) -> None:
    directory, verdict = judged(cluster.written(), tmp_path, with_faults(fault, at_once=1), 5)
    rows = directory.read_table("faults")
    assert (verdict.outcome, verdict.evidence) == (Outcome.PASS, EvidenceTier.LOGS), (verdict, rows)
    assert {row["kind"] for row in rows} == {fault["fault"]}
    assert all(row["proven_ns"] and row["heal_proven_ns"] for row in rows), rows
    assert not drop_ins(cluster)
    assert not topics(cluster.bootstrap)


@LATE
def test_a_broker_that_loses_what_it_has_fetched_is_found_guilty_when_units_are_killed(tmp_path: Path) -> None:
    with in_units(tmp_path / "cluster", LOSES_BATCHES) as broken:
        _, verdict = judged(broken.written(), tmp_path / "runs", with_faults(KILL, at_once=1), 6)
    assert verdict.outcome is Outcome.VIOLATION, verdict
    assert "lost-write" in {one.kind for one in verdict.anomalies}


@LATE
def test_a_unit_that_a_killed_seawall_has_killed_is_started_by_the_next(
    cluster: PlainCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "runtime"))
    with killed_seawall(run_of(KILL, cluster, tmp_path), lambda: is_harmed(cluster)):
        pass
    assert "end of node" in " ".join(heal_leftovers())
    assert not is_harmed(cluster)
    assert not drop_ins(cluster)
    assert answers(target_of(cluster.written()))
    assert heal_leftovers() == []
