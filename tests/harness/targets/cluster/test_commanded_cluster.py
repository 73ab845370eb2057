"""Runs against nodes that the tests start as plain processes, and seawall harms by the commands of a file."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

import faults
from checkers import check
from harness.checker import Outcome, RunVerdict
from harness.client_properties import Access
from harness.errors import EnvironmentFault, ExitCode, InvalidRun, UsageError
from harness.history.run_directory import RunDirectory
from harness.model import Link
from harness.runner import plan, run
from harness.runner.journal import NothingToUndo, heal_leftovers
from harness.scenario import load, parse
from harness.targets.awaiting import await_that
from harness.targets.bootstrap.administration import Administration
from harness.targets.bootstrap.spelling import Named
from harness.targets.bootstrap.target import accepts
from harness.targets.cluster.cluster_file import read
from harness.targets.cluster.kind import CommandedCluster, nodes_of
from harness.targets.cluster.target import ClusterTarget
from harness.targets.cluster.undo import remove
from harness.targets.leftovers import StartJournal
from tests.harness.cli.calling import Seawall
from tests.harness.cli.conftest import seawall as seawall  # noqa: PLC0414 - a fixture
from tests.harness.targets.bootstrap.running_builtin import before_the_load_stops, lose_topics, topics
from tests.harness.targets.cluster.plain_cluster import ROOT, PlainCluster, plain_cluster
from tests.harness.targets.killed_seawall import killed_seawall

CHAOS = load("random-chaos")
SEED = 7
KILL = {"fault": "kill", "node": "leader"}
FILTERED = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("iptables") is None,
    reason="packet filters are root's to set, by iptables: apt-get install iptables",
)
LATE = pytest.mark.nightly("a run more on plain processes; by day one with all faults, and a broken cluster")
KILLED_AGAIN = pytest.mark.nightly("kills one more run; by day one, and test_commanded_node undoes every harm")
MISCHIEF = [KILL, {"fault": "pause", "node": "leader"}, {"fault": "partition", "isolate": "leader"}]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlainCluster]:
    with plain_cluster(tmp_path_factory.mktemp("cluster")) as one:
        yield one


def with_faults(*faults: Mapping[str, Any], **chaos: Any) -> str:
    document = yaml.safe_load(CHAOS.text)
    document["chaos"] |= {"faults": list(faults), **chaos}
    return yaml.safe_dump(document)


def run_of(fault: Mapping[str, Any], cluster: PlainCluster, tmp_path: Path) -> tuple[str, ...]:
    """The words of a run in which the fault lasts for as long as the run."""
    scenario = tmp_path / "one-fault.yaml"
    scenario.write_text(with_faults(fault, for_s=[60, 60]))
    return ("run", str(scenario), "--target", cluster.written(), "--duration-s", "60", "--out", str(tmp_path / "runs"))


def judged(
    target: str, out: Path, text: str, duration_s: float = 3, **overrides: str
) -> tuple[RunDirectory, RunVerdict]:
    keys = {key.replace("_", ".", 1): value for key, value in overrides.items()}
    directory = run(plan(parse(text), target, seed=SEED, duration_s=duration_s, overrides=keys), out)
    [verdict] = check([directory.path], engine="reference")
    return directory, verdict


def target_of(spelling: str, journal: StartJournal | None = None) -> ClusterTarget:
    file = read(Path(spelling.partition(":")[2]))
    return ClusterTarget(Named(",".join(file.bootstrap)), nodes_of(file), {}, journal or NothingToUndo())


@FILTERED
def test_every_fault_of_random_chaos_that_has_commands_is_proven_on_a_sound_cluster(
    cluster: PlainCluster, tmp_path: Path
) -> None:
    directory, verdict = judged(cluster.written(), tmp_path, CHAOS.text, 8)
    assert verdict.outcome is Outcome.PASS, verdict
    rows = directory.read_table("faults")
    assert {row["kind"] for row in rows} == {"kill", "pause", "partition"}
    assert all(row["proven_ns"] and row["heal_proven_ns"] for row in rows), rows
    left_out = directory.manifest().configuration["left_out"]
    named = ("'power_loss'", "must_refuse", "'clock'")
    assert all(name in why for name, why in zip(named, left_out, strict=True)), left_out
    assert not topics(cluster.bootstrap)


@LATE
def test_a_node_that_is_asked_to_shut_down_and_started_again_costs_nothing(
    cluster: PlainCluster, tmp_path: Path
) -> None:
    directory, verdict = judged(cluster.written(), tmp_path, with_faults({"fault": "stop", "node": "leader"}))
    assert verdict.outcome is Outcome.PASS, verdict
    assert [row["kind"] for row in directory.read_table("faults")][:1] == ["stop"]


@pytest.mark.parametrize("kind", [pytest.param(KILL, id="kill"), pytest.param(MISCHIEF[1], id="pause", marks=LATE)])
def test_a_command_that_does_nothing_and_says_it_did_proves_no_run(
    kind: Mapping[str, Any], cluster: PlainCluster, tmp_path: Path
) -> None:
    target = cluster.written("idle.yml", commands={**cluster.file["commands"], str(kind["fault"]): ":"})
    directory, verdict = judged(target, tmp_path, with_faults(kind, at_once=1), 1)
    assert verdict.outcome is Outcome.INVALID, verdict
    assert all(row["proven_ns"] is None for row in directory.read_table("faults"))


@FILTERED
def test_a_cut_that_drops_nothing_is_no_cut(cluster: PlainCluster) -> None:
    target = target_of(cluster.written("idle.yml", commands={**cluster.file["commands"], "cut": ":"}))
    target.cut([Link("0", "1")])
    assert not target.is_cut(Link("0", "1")).holds
    sound = target_of(cluster.written())
    sound.cut([Link("0", "1")])
    try:
        assert sound.is_cut(Link("0", "1")).holds
        assert not sound.is_cut(Link("1", "0")).holds
        assert not sound.carries(Link("0", "1")).holds
    finally:
        sound.mend([Link("0", "1")])
    assert sound.carries(Link("0", "1")).holds
    assert not sound.remains()


def test_a_cluster_that_loses_what_it_acknowledged_when_a_node_is_killed_is_found_guilty(tmp_path: Path) -> None:
    with plain_cluster(tmp_path / "cluster") as broken:
        forgetful = [
            {
                **node,
                "commands": {"start": f"rm -rf {broken.directory}/{node['id']}/data/*; {node['commands']['start']}"},
            }
            for node in broken.file["nodes"]
        ]
        unsafe = {"topic_replication_factor": "1", "settings_min.insync.replicas": "1"}
        text = with_faults(KILL, budget="any", at_once=1)
        _, verdict = judged(broken.written(nodes=forgetful), tmp_path / "runs", text, 4, **unsafe)
    assert verdict.outcome is Outcome.VIOLATION, verdict
    assert "lost-write" in {one.kind for one in verdict.anomalies}


@pytest.mark.parametrize(
    ("fault", "given", "lacks"),
    [
        (KILL, ("pid", "pause", "resume"), "kill"),
        (MISCHIEF[1], ("pid", "kill", "start"), "pause"),
        (MISCHIEF[2], ("pid", "kill", "start"), "cut"),
    ],
)
def test_a_fault_without_its_commands_is_refused_and_the_node_named(
    fault: Mapping[str, Any], given: Sequence[str], lacks: str, cluster: PlainCluster
) -> None:
    bare = [{**node, "commands": {}} for node in cluster.file["nodes"]]
    target = cluster.written("bare.yml", nodes=bare, commands=dict.fromkeys(given, ":"), preset=None)
    sentence = f"'{fault['fault']}' needs the command '{lacks}' of node 0, which its file lacks"
    with pytest.raises(UsageError, match=sentence):
        plan(parse(with_faults(fault)), target)


def test_a_single_node_has_no_links_to_cut(cluster: PlainCluster) -> None:
    system = plan(CHAOS, cluster.written()).system
    assert isinstance(system, CommandedCluster)
    alone, cut = replace(system, nodes=system.nodes[:1]), faults.parse({"fault": "partition", "isolate": "any"}, "it")
    assert system.unsupported(cut) is None
    assert "the file has one" in str(alone.unsupported(cut))
    assert alone.unsupported(faults.parse(KILL, "it")) is None


@LATE
def test_a_cluster_that_has_lost_its_topics_is_not_only_stuck(cluster: PlainCluster, tmp_path: Path) -> None:
    hurried = yaml.safe_dump(yaml.safe_load(with_faults(KILL)) | {"settle_s": 2})
    with before_the_load_stops(lambda: lose_topics(cluster.bootstrap)):
        _, verdict = judged(cluster.written(), tmp_path, hurried)
    assert verdict.outcome is Outcome.VIOLATION, verdict
    assert "lost-topic" in {one.kind for one in verdict.anomalies}


def test_a_file_by_which_nothing_can_be_done_is_refused(cluster: PlainCluster) -> None:
    bare = [{**node, "commands": {}} for node in cluster.file["nodes"]]
    with pytest.raises(UsageError, match="node 0 lacks the command 'pid', for one"):
        plan(CHAOS, cluster.written("bare.yml", nodes=bare, commands={}, preset=None))


@LATE
def test_a_node_that_others_have_ended_makes_the_run_invalid(tmp_path: Path) -> None:
    with plain_cluster(tmp_path / "cluster") as ended:
        made = plan(parse(with_faults({"fault": "pause", "node": 0})), ended.written(), seed=SEED, duration_s=3)
        later = threading.Timer(2, lambda: os.kill(ended.pid("2"), signal.SIGKILL))
        later.start()
        with pytest.raises(InvalidRun, match="node 2: why it does not answer is not seen"):
            run(made, tmp_path / "runs")
        later.join()


def test_clocks_schedules_and_clients_are_refused_with_the_reason(cluster: PlainCluster) -> None:
    target = cluster.written()
    with pytest.raises(UsageError, match="'clock' needs the command 'skew' of node 0, which its file lacks"):
        plan(parse(with_faults({"fault": "clock", "node": "any", "offset_ms": 1000})), target)
    with pytest.raises(UsageError, match="'partition' at clients needs commands on their machine"):
        plan(parse(with_faults({"fault": "partition", "links": [["clients", "any"]]})), target)
    with pytest.raises(UsageError, match="is a schedule"):
        plan(load("kip-101-double-failover"), target)


def test_a_file_that_does_not_have_the_brokers_of_the_cluster_is_refused(cluster: PlainCluster) -> None:
    nodes = cluster.file["nodes"]
    with pytest.raises(UsageError, match="has no node 0, which is a broker of the cluster"):
        plan(CHAOS, cluster.written("few.yml", nodes=nodes[1:]))
    with pytest.raises(UsageError, match="has a node 9, which is no broker of the cluster now"):
        plan(CHAOS, cluster.written("many.yml", nodes=[*nodes, {"id": 9}]))


def test_a_node_that_does_not_run_is_not_taken_for_one(cluster: PlainCluster, tmp_path: Path) -> None:
    pid_file = tmp_path / "none.pid"
    nodes = [{**node, "variables": {"PID_FILE": str(pid_file)}} for node in cluster.file["nodes"]]
    with pytest.raises(EnvironmentFault, match="node 0 has no process, before anything was done to it"):
        target_of(cluster.written("gone.yml", nodes=nodes)).start()


@FILTERED
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(MISCHIEF[2], id="partition"),
        *(pytest.param(one, marks=KILLED_AGAIN, id=str(one["fault"])) for one in MISCHIEF[:2]),
    ],
)
def test_what_a_killed_seawall_has_done_is_undone_by_the_next(
    fault: Mapping[str, Any], cluster: PlainCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "runtime"))
    with killed_seawall(run_of(fault, cluster, tmp_path), lambda: harmed(cluster)):
        pass
    said = " ".join(heal_leftovers())
    assert any(word in said for word in ("end of node", "pause of node", "cut "))
    assert "topic" in said
    assert not harmed(cluster)


CUT = """\
import sys
from pathlib import Path
from harness.model import Link
from harness.runner.journal import Journal
from tests.harness.targets.cluster.test_commanded_cluster import target_of
with Journal(Path(sys.argv[2])) as journal:
    target_of(sys.argv[1], journal).cut([Link("0", "1")])
"""


def test_a_cut_that_a_killed_seawall_has_begun_is_undone_when_it_is_done(
    cluster: PlainCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "runtime"))
    begun, goes_on, made = tmp_path / "begun", tmp_path / "goes on", tmp_path / "made"
    slow = f"touch {begun}; until [ -e '{goes_on}' ]; do sleep 0.1; done; touch {made}"
    commands = {**cluster.file["commands"], "cut": slow, "mend": f"rm -f {made}"}
    target = cluster.written("slow-cut.yml", commands=commands)
    with subprocess.Popen([sys.executable, "-c", CUT, target, str(tmp_path)], cwd=ROOT) as harness:
        await_that(begun.exists, "the cut has not begun", (), 120, 0.01)
        harness.kill()
    later = threading.Timer(0.5, goes_on.touch)
    later.start()
    assert "cut 0->1" in " ".join(heal_leftovers())
    later.join()
    time.sleep(0.5)
    assert not made.exists()


def test_a_node_that_the_next_has_started_is_a_broker_again_when_that_ends(cluster: PlainCluster) -> None:
    journal = Journal()
    slow = [
        {**node, "commands": {"start": f"SERVES_AFTER_S=2 {node['commands']['start']}"}}
        for node in cluster.file["nodes"]
    ]
    target = target_of(cluster.written("slow.yml", nodes=slow), journal)
    target.start()
    target.kill("0")
    await_that(lambda: target.is_dead("0").holds, "node 0 has not ended", (), 10, 0.05)
    [what] = journal.coming
    assert remove(json.loads(json.dumps(what))) == ["end of node 0"]
    [address, *_] = cluster.bootstrap.split(",")
    assert accepts(address)
    assert 0 in Administration(Access(address)).brokers()
    assert not remove(what)


def test_a_proxy_that_accepts_connections_for_a_dead_broker_does_not_hide_its_death(cluster: PlainCluster) -> None:
    target = target_of(cluster.written())
    target.start()
    target.kill("0")
    await_that(lambda: target.is_dead("0").holds, "node 0 has not ended", (), 10, 0.05)
    host, _, port = cluster.bootstrap.split(",")[0].rpartition(":")
    with socket.create_server((host, int(port))):
        assert target.is_dead("0").holds
    target.restart("0")


def test_a_broker_that_answers_is_not_dead_whatever_process_its_file_names(cluster: PlainCluster) -> None:
    with subprocess.Popen(["sleep", "60"]) as another:
        lies = {**cluster.file["commands"], "pid": f"kill -0 {another.pid} && echo {another.pid}"}
        target = target_of(cluster.written("lies.yml", commands=lies))
        target.start()
        target.kill("0")
        another.wait()
        assert target.is_dead("0").seen.endswith("is gone, and a broker answers at its address")
        assert not target.is_dead("0").holds


def test_a_pause_of_a_process_beside_the_broker_is_no_pause(cluster: PlainCluster) -> None:
    with subprocess.Popen(["sleep", "60"]) as another:
        wrapped = {**cluster.file["commands"], "pid": f"echo {another.pid}"}
        target = target_of(cluster.written("wrapped.yml", commands=wrapped))
        target.start()
        target.pause("0")
        beside = "is in state T, and a broker answers at its address"
        await_that(lambda: target.is_paused("0").seen.endswith(beside), "the shell is not stopped", (), 30, 0.05)
        said = target.is_paused("0")
        another.kill()
    assert not said.holds


@pytest.mark.parametrize("says", ["echo unknown", "echo 1; echo 2", "echo 12a"])
def test_a_pause_is_not_undone_where_the_process_is_not_known(says: str, cluster: PlainCluster, tmp_path: Path) -> None:
    journal, unknown = Journal(), tmp_path / "unknown"
    pid = f'if [ -e "{unknown}" ]; then {says}; else cat "$PID_FILE"; fi'
    target = target_of(cluster.written("silent.yml", commands={**cluster.file["commands"], "pid": pid}), journal)
    target.start()
    target.pause("0")
    try:
        assert target.is_paused("0").holds
        unknown.touch()
        with pytest.raises(EnvironmentFault, match="node 0: command 'pid' does not print the id of one process"):
            target.resume("0")
        assert target.remains() == journal.left() == ["pause of node 0"]
        with pytest.raises(EnvironmentFault, match="the pause of node 0 may last"):
            remove(journal.coming[0])
        unknown.unlink()
        target.resume("0")
        assert target.remains() == journal.left() == []
    finally:
        os.kill(cluster.pid("0"), signal.SIGCONT)


@FILTERED
def test_each_link_is_mended_whatever_becomes_of_the_others(cluster: PlainCluster) -> None:
    refuses = {**cluster.file["nodes"][1], "commands": {**cluster.file["nodes"][1]["commands"], "mend": "false"}}
    nodes = [refuses if node["id"] == refuses["id"] else node for node in cluster.file["nodes"]]
    journal, links = Journal(), [Link("0", "1"), Link("1", "0")]
    target = target_of(cluster.written("stays.yml", nodes=nodes), journal)
    target.cut(links)
    try:
        with pytest.raises(EnvironmentFault, match="the cut 0->1 is not undone"):
            target.mend(links)
        assert journal.left() == ["cut 0->1"]
        assert target.is_cut(Link("1", "0")).seen.endswith("dropped no packet")
    finally:
        target_of(cluster.written()).mend(links)


ELSEWHERE = 'case "$3" in *boot_id*) echo another;; *) exec "$@";; esac'
"""Runs a script on a machine that seems to have been booted by itself."""


def test_no_cut_takes_seawalls_own_way_to_mend_it(cluster: PlainCluster, seawall: Seawall) -> None:
    transport = {"argv": ["sh", "-c", ELSEWHERE, "sh"]}
    one = [{**node, **({"transport": transport} if node["id"] == 0 else {})} for node in cluster.file["nodes"]]
    target = cluster.written("on-a-node.yml", nodes=one)
    with pytest.raises(UsageError, match="seawall runs on the machine of node 1, so that what mends node 0"):
        plan(parse(with_faults(MISCHIEF[2])), target)
    assert "no links are cut, for seawall runs on the machine of node 1" in seawall("doctor", "--target", target).out
    all_of_them = [{**node, "transport": transport} for node in cluster.file["nodes"]]
    plan(parse(with_faults(MISCHIEF[2])), cluster.written("elsewhere.yml", nodes=all_of_them))


class Journal(NothingToUndo):
    """Keeps what is recorded: all that was coming, and what has not gone."""

    def __init__(self) -> None:
        self.coming: list[Mapping[str, Any]] = []
        self._left: list[Mapping[str, Any]] = []

    def leftover_coming(self, kind: str, what: Mapping[str, Any]) -> None:
        assert kind == "cluster"
        self.coming.append(what)
        self._left.append(what)

    def leftover_gone(self, kind: str, what: Mapping[str, Any]) -> None:
        assert kind == "cluster"
        self._left.remove(what)

    def left(self) -> Sequence[str]:
        """The names of what has not gone."""
        return [what["what"] for what in self._left]


def harmed(cluster: PlainCluster) -> bool:
    """Whether a node is gone or stopped, or packets to one are dropped."""
    for node in ("0", "1", "2"):
        try:
            if psutil.Process(cluster.pid(node)).status() in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):
                return True
        except psutil.NoSuchProcess:
            return True
    filters = subprocess.run(["iptables", "-w", "-S", "INPUT"], capture_output=True, text=True, check=True).stdout
    return any(f"{node['address']}/32" in filters for node in cluster.file["nodes"])


@FILTERED
def test_doctor_tries_each_node_and_says_what_it_has_not_tried(cluster: PlainCluster, seawall: Seawall) -> None:
    said = seawall("doctor", "--target", cluster.written())
    assert said.code == ExitCode.PASS
    assert "node 0: kill: process" in said.out
    assert "not tried: 'cut'" in said.out
    idle = [{**node, "transport": {"argv": ["false"]}} for node in cluster.file["nodes"]]
    said = seawall("doctor", "--target", cluster.written("idle.yml", nodes=idle))
    assert said.code == ExitCode.ENVIRONMENT
    assert "node 0: transport: node" not in said.out
    assert "it does not run a shell" in said.out
    assert seawall("doctor", "--target", "builtin").code == ExitCode.USAGE


def test_doctor_says_that_packets_cannot_be_filtered(cluster: PlainCluster, seawall: Seawall) -> None:
    said = seawall("doctor", "--target", cluster.written("unprivileged.yml", variables={"SUDO": "false"}))
    assert said.code == ExitCode.ENVIRONMENT
    assert "command 'dropped' failed, exit status 1" in said.out
