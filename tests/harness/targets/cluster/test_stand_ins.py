"""Presets for tools that are not on this machine, end to end: stand-ins for them drive built-in brokers.

The stand-in for ``systemctl`` has units with ``Restart=always``, and that for ``kubectl`` pods whose containers a
kubelet starts again. What they do is what those tools are documented to do. Where systemd is, ``test_systemd`` tries
that instead, and the stand-in only refuses what root is not refused there.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.checker import Outcome
from harness.errors import EnvironmentFault, ExitCode, UsageError
from harness.model import is_broker
from harness.runner import plan
from harness.runner.journal import heal_leftovers
from harness.scenario import parse
from harness.targets.cluster import shell
from harness.targets.cluster.cluster_file import read
from harness.targets.cluster.kind import nodes_of
from harness.targets.cluster.target import ClusterTarget
from tests.harness.cli.calling import Seawall
from tests.harness.cli.conftest import seawall as seawall  # noqa: PLC0414 - a fixture
from tests.harness.targets.cluster import own_systemd
from tests.harness.targets.cluster.plain_cluster import PlainCluster, plain_cluster
from tests.harness.targets.cluster.pods import in_pods
from tests.harness.targets.cluster.test_commanded_cluster import (
    FILTERED,
    KILL,
    KILLED_AGAIN,
    LATE,
    MISCHIEF,
    judged,
    run_of,
    target_of,
    with_faults,
)
from tests.harness.targets.killed_seawall import killed_seawall

PAUSE = MISCHIEF[1]
STOP = {"fault": "stop", "node": "any"}
LOSES_BATCHES = "follower_leaves_a_gap"
STOOD_IN_FOR = pytest.mark.skipif(not own_systemd.lacking(), reason="test_systemd has systemd itself")
OF_UNITS = pytest.mark.parametrize("cluster", ["systemd"], indirect=True)
UNITS = pytest.param("systemd", marks=STOOD_IN_FOR)
OF_PODS = pytest.mark.parametrize("cluster", ["strimzi"], indirect=True)
pytestmark = [
    FILTERED,
    pytest.mark.skipif(
        not all(map(shutil.which, ("unshare", "nsenter", "setpriv"))), reason="a pod takes unshare, of util-linux"
    ),
]


def stand_in(directory: Path, tool: str) -> None:
    """Put a stand-in for a tool on the PATH; ``directory`` is where it looks."""
    words = (sys.executable, "-I", "-S", str(Path(__file__).with_name(f"stand_in_{tool}.py")), str(directory))
    put(directory.with_name("bin") / tool, f'exec {shlex.join(words)} "$@"')


def put(program: Path, script: str) -> None:
    program.parent.mkdir(exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@contextmanager
def found_first(programs: Path) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PATH", f"{programs}:{os.environ['PATH']}")
        yield


BELOW = """\
for word; do
    shift
    case $word in /run/systemd/system/*) word={directory}/run/${{word#/run/systemd/system/}};; esac
    set -- "$@" "$word"
done
exec "$@"
"""
"""Runs a command on files in a directory instead of those in systemd's."""


@contextmanager
def of_units(directory: Path, preset: str, bugs: str = "") -> Iterator[PlainCluster]:
    """A cluster whose nodes are units."""
    units = directory / "units"
    units.mkdir(parents=True)
    stand_in(units, "systemctl")
    put(directory / "bin" / "as-root", BELOW.format(directory=units))
    with plain_cluster(directory / "cluster", bugs) as cluster:
        nodes = []
        for node in cluster.file["nodes"]:
            unit = f"{preset}-{node['id']}"
            about = {"start": node["commands"]["start"], "pid_file": node["variables"]["PID_FILE"]}
            (units / f"{unit}.json").write_text(json.dumps(about))
            nodes.append({key: node[key] for key in ("id", "address", "port")} | {"variables": {"UNIT": unit}})
        file = {**cluster.file, "preset": preset, "variables": {"SUDO": "as-root"}, "nodes": nodes}
        yield replace(cluster, file=file)


@contextmanager
def of_pods(directory: Path, preset: str, bugs: str = "") -> Iterator[PlainCluster]:
    """A cluster whose nodes are pods."""
    assert preset == "strimzi"
    pods = directory / "pods"
    pods.mkdir(parents=True)
    stand_in(pods, "kubectl")
    with found_first(directory / "bin"), in_pods(directory / "cluster", pods, bugs) as cluster:
        yield cluster


@contextmanager
def of_preset(directory: Path, preset: str, bugs: str = "") -> Iterator[PlainCluster]:
    """A cluster that is run as a preset has it."""
    of = of_pods if preset == "strimzi" else of_units
    with found_first(directory / "bin"), of(directory, preset, bugs) as cluster:
        yield cluster


@pytest.fixture(scope="module", params=[UNITS, "strimzi"])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlainCluster]:
    with of_preset(tmp_path_factory.mktemp(request.param), request.param) as one:
        yield one


def preset_of(cluster: PlainCluster) -> str:
    return str(cluster.file["preset"])


def faults_of(preset: str) -> list[Mapping[str, Any]]:
    """Those that it has commands for."""
    return [KILL, PAUSE] if preset == "strimzi" else [*MISCHIEF, STOP]


def test_doctor_tries_what_a_preset_has_and_says_that_no_cluster_has_seen_it(
    cluster: PlainCluster, seawall: Seawall
) -> None:
    said = seawall("doctor", "--target", cluster.written())
    assert said.code == ExitCode.PASS, said.out
    for node in ("0", "1", "2", "controller"):
        assert f"node {node}: kill: process" in said.out
    has_been = preset_of(cluster) == "systemd"
    assert has_been is not (f"preset {preset_of(cluster)} has not been tried on a cluster" in said.out)


def test_every_fault_that_a_preset_has_commands_for_is_proven_and_healed(cluster: PlainCluster, tmp_path: Path) -> None:
    given = faults_of(preset_of(cluster))
    directory, verdict = judged(cluster.written(), tmp_path, with_faults(*given, at_once=1), 3 * len(given))
    rows = directory.read_table("faults")
    assert verdict.outcome is Outcome.PASS, (verdict, rows)
    assert {row["kind"] for row in rows} == {fault["fault"] for fault in given}
    assert all(row["proven_ns"] and row["heal_proven_ns"] for row in rows), rows
    assert not drop_ins(cluster)


@pytest.mark.parametrize("preset", [pytest.param("systemd", marks=[LATE, STOOD_IN_FOR]), "strimzi"])
def test_a_broker_that_loses_what_it_has_fetched_is_found_guilty_through_a_preset(preset: str, tmp_path: Path) -> None:
    with of_preset(tmp_path / preset, preset, LOSES_BATCHES) as broken:
        _, verdict = judged(broken.written(), tmp_path / "runs", with_faults(KILL, at_once=1), 6)
    assert verdict.outcome is Outcome.VIOLATION, verdict
    assert "lost-write" in {one.kind for one in verdict.anomalies}


FULL = {"fault": "disk_full", "node": "any", "free_bytes": 4096}
STEPPED = {"fault": "clock", "node": "any", "offset_ms": 1000}


@OF_PODS
@pytest.mark.parametrize(
    ("fault", "lacks"),
    [
        (MISCHIEF[2], "command 'cut'"),
        (STOP, "command 'stop'"),
        (FULL, "command 'stop'"),
        (STEPPED, "command 'skew'"),
        ({"fault": "power_loss", "node": "any"}, "takes a library that is preloaded into a node"),
    ],
)
def test_what_a_pod_cannot_be_done_is_refused_beforehand(
    fault: Mapping[str, Any], lacks: str, cluster: PlainCluster
) -> None:
    with pytest.raises(UsageError, match=f"'{fault['fault']}'.*{lacks}"):
        plan(parse(with_faults(fault)), cluster.written())


@OF_UNITS
@pytest.mark.parametrize(("fault", "lacks"), [(FULL, "variable 'DATA'"), (STEPPED, "variable 'CLOCK_FILE'")])
def test_what_a_unit_cannot_be_done_without_a_variable_is_refused_beforehand(
    fault: Mapping[str, Any], lacks: str, cluster: PlainCluster
) -> None:
    with pytest.raises(UsageError, match=f"'{fault['fault']}' needs the {lacks} of node 0, which its file lacks"):
        plan(parse(with_faults(fault)), cluster.written())


@LATE
def test_a_pod_that_is_deleted_is_shut_down_and_comes_again(tmp_path: Path) -> None:
    with of_preset(tmp_path / "strimzi", "strimzi") as cluster:
        deleted = {"stop": 'kubectl delete pod -n kafka "kafka-$ID"'}
        directory, verdict = judged(cluster.written(local_commands=deleted), tmp_path, with_faults(STOP, at_once=1))
    rows = directory.read_table("faults")
    assert verdict.outcome is Outcome.PASS, (verdict, rows)
    assert {row["kind"] for row in rows} == {"stop"}
    assert all(row["proven_ns"] and row["heal_proven_ns"] for row in rows), rows


# ---------------------------------------------------------------------------------------------- when the tool fails


def answers(target: ClusterTarget) -> bool:
    """Whether every node is seen to run."""
    return all(target.is_running(node).holds for node in target.nodes())


def is_harmed(cluster: PlainCluster) -> bool:
    """Whether a broker is gone or stopped, or its pod has no container."""
    nodes = [node for node in nodes_of(read(cluster.directory / "cluster.yml")) if is_broker(node.name)]
    try:
        processes = [node.state() for node in nodes]
    except EnvironmentFault:
        return True
    return any(process is None or process.is_paused for process in processes)


def directory_of(cluster: PlainCluster) -> Path:
    """Where the stand-in of its tool looks."""
    return cluster.directory.with_name("pods" if preset_of(cluster) == "strimzi" else "units")


def drop_ins(cluster: PlainCluster) -> list[Path]:
    """What keeps its units from being started again."""
    return list((cluster.directory.with_name("units") / "run").glob("*"))


@contextmanager
def failing(cluster: PlainCluster, verb: str, how: str = "refuses") -> Iterator[None]:
    """The tool fails with this verb."""
    file = directory_of(cluster) / how
    file.write_text(verb)
    try:
        yield
    finally:
        file.unlink()


@pytest.mark.parametrize(
    ("cluster", "unknown", "sentence"),
    [
        (
            "strimzi",
            {"transport": {"kubectl": "kafka-9", "options": ["-n", "kafka"]}},
            'its process cannot be looked at, exit status 1: Error from server (NotFound): pods "kafka-9" not found.',
        ),
        ("systemd", {"variables": {"UNIT": "kafka-9"}}, "has no process, before anything was done to it."),
    ],
    indirect=["cluster"],
)
def test_a_node_that_the_tool_does_not_know_is_named_before_anything_is_done(
    cluster: PlainCluster, unknown: Mapping[str, Any], sentence: str, tmp_path: Path, seawall: Seawall
) -> None:
    [first, *others] = cluster.file["nodes"]
    target = cluster.written("unknown.yml", nodes=[{**first, **unknown}, *others])
    assert seawall("doctor", "--target", target).code == ExitCode.ENVIRONMENT
    with pytest.raises(EnvironmentFault) as told:
        judged(target, tmp_path, with_faults(KILL))
    assert told.value.sentence.startswith("node 0")
    assert told.value.sentence.endswith(sentence)
    cluster.written()
    assert not is_harmed(cluster)


@pytest.mark.parametrize(
    ("cluster", "verb", "sentence"),
    [
        ("strimzi", "exec", "its process cannot be looked at, exit status 1: Error from server (Forbidden)"),
        ("systemd", "kill", "command 'kill' failed, exit status 1: Failed to kill systemd-0.service: Access denied."),
        ("systemd", "daemon-reload", "command 'kill' failed, exit status 1: Failed to reload daemon: Access denied."),
    ],
    indirect=["cluster"],
)
def test_a_tool_that_refuses_the_kill_has_killed_nothing_and_leaves_nothing(
    cluster: PlainCluster, verb: str, sentence: str
) -> None:
    target = target_of(cluster.written())
    target.start()
    with failing(cluster, verb), pytest.raises(EnvironmentFault) as told:
        target.kill("0")
    assert sentence in told.value.sentence
    assert not target.is_dead("0").holds
    assert not drop_ins(cluster)
    target.restart("0")
    assert not target.remains()
    assert answers(target)


@OF_PODS
def test_a_tool_that_hangs_is_given_up_and_what_was_done_is_undone_when_it_works_again(
    cluster: PlainCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shell, "TIMEOUT_S", 3.0)
    target = target_of(cluster.written())
    target.start()
    target.pause("0")
    assert target.is_paused("0").holds
    with failing(cluster, "exec", "hangs"), pytest.raises(EnvironmentFault, match="kubectl has not ended within 3 s"):
        target.resume("0")
    assert target.remains() == ["pause of node 0"]
    target.stop()
    assert not target.remains()
    assert not target.is_paused("0").holds


@pytest.mark.parametrize(
    ("cluster", "fault", "verb"),
    [
        pytest.param("systemd", KILL, "start", id="kill of a unit"),
        pytest.param("strimzi", KILL, "exec", id="kill in a pod", marks=KILLED_AGAIN),
        pytest.param("strimzi", PAUSE, "exec", id="pause in a pod"),
    ],
    indirect=["cluster"],
)
def test_what_a_killed_seawall_has_done_is_undone_when_the_tool_no_longer_refuses_it(
    cluster: PlainCluster, fault: Mapping[str, Any], verb: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "runtime"))
    with killed_seawall(run_of(fault, cluster, tmp_path), lambda: is_harmed(cluster)):
        pass
    with failing(cluster, verb):
        assert "may last" in " ".join(heal_leftovers())
    assert "was abandoned by process" in " ".join(heal_leftovers())
    assert not is_harmed(cluster)
    assert answers(target_of(cluster.written()))
    assert not drop_ins(cluster)
    assert heal_leftovers() == []
