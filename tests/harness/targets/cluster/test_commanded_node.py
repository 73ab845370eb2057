"""What nodes are asked, and how they are reached: by stand-ins for the tools of their presets, and by a sshd."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.controls import DiskSpace, Kills, Links, Pauses, Shutdowns, WallClocks
from harness.errors import EnvironmentFault, UsageError
from harness.targets.cluster.cluster_file import ClusterFile, Transport, read
from harness.targets.cluster.commanded_node import CommandedNode
from harness.targets.cluster.presets import PRESETS
from harness.targets.cluster.shell import run, words
from harness.targets.cluster.target import controls_of
from harness.targets.cluster.tried import tried
from harness.targets.cluster.undo import of_cut, of_end, of_pause, remove, undo

SSHD = "/usr/sbin/sshd"


def of(**written: Any) -> Sequence[CommandedNode]:
    file = ClusterFile.model_validate({"bootstrap": ["a:9092"], **written})
    return [CommandedNode(file, node) for node in file.nodes]


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program under several names that writes down what it was asked, and prints what ``answer`` holds."""
    programs = tmp_path / "bin"
    programs.mkdir()
    script = f'#!/bin/sh\necho "${{0##*/}} $*" >>{tmp_path}/asked\ncat {tmp_path}/answer 2>/dev/null\nexit 0\n'
    for name in ("ssh", "docker", "kubectl", "systemctl", "iptables", "sudo"):
        (programs / name).write_text(script)
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return tmp_path / "asked"


@pytest.mark.parametrize(
    ("transport", "line"),
    [
        ({"ssh": "me@broker-1", "options": ["-p", "22"]}, "ssh -o BatchMode=yes -p 22 me@broker-1 sh -c 'echo $HOME'"),
        ({"docker": "broker-1"}, "docker exec broker-1 sh -c echo $HOME"),
        ({"kubectl": "kafka-0", "options": ["-n", "kafka"]}, "kubectl exec -n kafka kafka-0 -- sh -c echo $HOME"),
        ({"argv": ["docker", "at", "broker-1"]}, "docker at broker-1 sh -c echo $HOME"),
    ],
)
def test_a_script_gets_to_a_node_in_one_piece(transport: Mapping[str, Any], line: str, stand_in: Path) -> None:
    assert run(words(Transport.model_validate(transport), "echo $HOME")).status == 0
    assert stand_in.read_text().strip() == line


def test_a_script_runs_here_without_a_transport_and_may_leave_a_process_behind() -> None:
    assert run(words(Transport(), "sleep 60 & echo $!; echo oops >&2; exit 3")).status == 3


@pytest.mark.parametrize(
    ("preset", "command", "asked"),
    [
        ("systemd", "stop", ["sudo systemctl stop --no-block kafka"]),
        ("redpanda", "stop", ["sudo systemctl stop --no-block redpanda"]),
        ("systemd", "pid", ["systemctl show --property MainPID --value kafka"]),
        ("systemd", "cut", ["sudo iptables -w -C INPUT -s 10.0.0.2 -d 10.0.0.1 -m comment --comment seawall -j DROP"]),
    ],
)
def test_a_preset_asks_the_tools_of_its_nodes(preset: str, command: str, asked: Sequence[str], stand_in: Path) -> None:
    nodes = [{"id": 1, "address": "10.0.0.1"}, {"id": 2, "address": "10.0.0.2"}]
    one, other = of(preset=preset, variables={"SUDO": "sudo"}, nodes=nodes)
    one.perform(command, other)
    assert stand_in.read_text().splitlines() == asked


@pytest.mark.parametrize("unit", ["kafka@1", "kafka@1.service"])
def test_a_unit_is_killed_when_systemd_will_not_start_it_again(unit: str, stand_in: Path) -> None:
    answers = 'case "$*" in *"Restart "*) echo no;; *"ActiveState "*) echo failed;; esac'
    (stand_in.parent / "bin" / "systemctl").write_text(f'#!/bin/sh\necho "systemctl $*" >>{stand_in}\n{answers}\n')
    [node] = of(preset="systemd", variables={"SUDO": "sudo", "UNIT": unit}, nodes=[{"id": 1}])
    node.perform("kill")
    directory = "/run/systemd/system/kafka@1.service.d"
    assert stand_in.read_text().splitlines() == [
        f"sudo mkdir -p {directory}",
        f"sudo tee {directory}/zz-seawall.conf",
        "sudo systemctl daemon-reload",
        f"systemctl show --property Restart --value {unit}",
        f"sudo systemctl kill --signal KILL {unit}",
        f"systemctl show --property ActiveState --value {unit}",
        f"sudo rm -f {directory}/zz-seawall.conf",
        f"sudo rmdir {directory}",
        "sudo systemctl daemon-reload",
    ]
    stand_in.unlink()
    node.perform("start")
    assert stand_in.read_text().splitlines() == [
        f"sudo rm -f {directory}/zz-seawall.conf",
        f"sudo rmdir {directory}",
        "sudo systemctl daemon-reload",
        f"sudo systemctl reset-failed {unit}",
        f"sudo systemctl start --no-block {unit}",
    ]


def test_commands_of_kubectl_run_here_and_others_in_the_pod(stand_in: Path) -> None:
    [node] = of(
        preset="strimzi",
        nodes=[
            {"id": 0, "transport": {"kubectl": "kafka-0"}, "local_commands": {"kill": "kubectl delete pod kafka-0"}}
        ],
    )
    node.perform("kill")
    node.perform("start")
    here, there = stand_in.read_text().split("\n", 1)
    assert here == "kubectl delete pod kafka-0"
    assert there.startswith("kubectl exec kafka-0 -- sh -c ")
    assert controls_of([node]) == {Kills, Pauses}


def test_what_a_preset_can_do_is_what_it_has_commands_for() -> None:
    nodes = [{"id": 0, "address": "10.0.0.1", "port": 9092, "commands": {"start": "x"}}]
    given = {"PID_FILE": "/run/kafka.pid"}
    for preset in ("processes", "systemd", "redpanda"):
        assert controls_of(of(preset=preset, variables=given, nodes=nodes)) == {Kills, Shutdowns, Pauses, Links}
        assert DiskSpace in controls_of(of(preset=preset, variables={**given, "DATA": "/data"}, nodes=nodes))
        steps = WallClocks in controls_of(of(preset=preset, variables={**given, "CLOCK_FILE": "/it"}, nodes=nodes))
        assert steps is (preset != "processes")
    assert controls_of(of(preset="processes", nodes=nodes)) == {Links}
    assert controls_of(of(preset="systemd", nodes=[{"id": 0}])) == {Kills, Shutdowns, Pauses}
    assert not controls_of(of(nodes=[{"id": 0}]))


def test_doctor_marks_a_preset_that_has_not_been_tried(stand_in: Path) -> None:
    (stand_in.parent / "answer").write_text(str(os.getpid()))
    untried = "preset redpanda has not been tried on a cluster"
    for preset, was_tried in (("redpanda", False), ("systemd", True)):
        file = ClusterFile.model_validate({"bootstrap": ["a:9092"], "preset": preset, "nodes": [{"id": 0}]})
        seen = list(tried(file, [CommandedNode(file, file.nodes[0])]))
        assert seen[1].works
        assert seen[1].seen.endswith(untried) is not was_tried
        assert seen[-1].works is None
    assert not PRESETS["strimzi"].was_tried


def test_doctor_marks_what_has_not_been_tried_of_a_preset_that_has_been(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text('#!/bin/sh\ncase "$3" in *boot_id) echo another;; *) exec "$@";; esac\n')
    elsewhere.chmod(0o755)
    node = {"id": "controller", "transport": {"argv": [str(elsewhere)]}, "variables": {"CLOCK_FILE": "/run/clock"}}
    file = ClusterFile.model_validate({"bootstrap": ["a:9092"], "preset": "systemd", "nodes": [{"id": 0}, node]})
    told = {one.what: one for one in tried(file, [CommandedNode(file, file.nodes[1])])}
    clock = told["node controller: clock"]
    assert clock.works
    assert clock.seen.endswith("; stepping a machine's clock has not been tried on a cluster")


@pytest.mark.parametrize(
    ("program", "untried"), [("docker", ""), ("kubectl", "; kubectl exec has not been tried on a cluster")]
)
def test_doctor_marks_a_transport_that_has_not_been_tried(program: str, untried: str, stand_in: Path) -> None:
    assert not stand_in.exists()
    node = {"id": 0, "transport": {program: "kafka-0"}}
    file = ClusterFile.model_validate({"bootstrap": ["a:9092"], "nodes": [node]})
    [reached, *_] = tried(file, [CommandedNode(file, file.nodes[0])])
    assert reached.seen == f"it runs a shell{untried}"


def test_a_node_that_cannot_be_asked_is_not_taken_for_dead(tmp_path: Path) -> None:
    [silent] = of(preset="processes", nodes=[{"id": 0, "transport": {"argv": ["false"]}}])
    with pytest.raises(EnvironmentFault, match="node 0: its process cannot be looked at, exit status 1"):
        silent.state()
    [confused] = of(nodes=[{"id": 0, "commands": {"pid": "echo 1 2"}}])
    with pytest.raises(EnvironmentFault, match="node 0: command 'pid' does not print the id of one process"):
        confused.state()
    [gone] = of(nodes=[{"id": 0, "commands": {"pid": "echo 0"}}])
    assert gone.state() is None


def test_harm_is_undone_from_plain_data_and_once(tmp_path: Path) -> None:
    process = subprocess.Popen(["sleep", "60"])
    try:
        [node] = of(preset="processes", nodes=[{"id": 0, "commands": {"pid": f"echo {process.pid}", "start": "false"}}])
        harm = json.loads(json.dumps(vars_of(of_pause(node))))
        node.perform("pause")
        assert await_paused(node)
        assert remove(harm) == ["pause of node 0"]
        assert remove(harm) == []
        assert not undo(of_end(node))
        process.kill()
        process.wait()
        with pytest.raises(EnvironmentFault, match="the end of node 0 is not undone: its command failed"):
            undo(of_end(node))
    finally:
        process.kill()
        process.wait()


def test_the_harm_of_a_cut_is_undone_where_it_was_done() -> None:
    one, other = of(preset="processes", nodes=[{"id": 1, "address": "10.0.0.1"}, {"id": 2, "address": "10.0.0.2"}])
    harm = of_cut(one, other)
    assert (harm.what, harm.node) == ("cut 1->2", "2")
    assert "PEER_ADDRESS=10.0.0.1" in harm.undo[-1]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("bootstrap: [a:1]\nnodes: [{id: 0, adress: x}]", r"nodes\[0\]: unknown key 'adress'; did you mean 'address'"),
        ("bootstrap: [a:1]\nnodes: [{id: 0}, {id: 0}]", "node 0 is there twice"),
        ("bootstrap: [a:1]\nnodes: [{id: controller}]", "nodes has no broker"),
        ("bootstrap: [a:1]\nnodes: [{id: 0, address: broker-0}]", "broker-0"),
        ("bootstrap: [a:1]\nnodes: [{id: 0, transport: {ssh: a, docker: b}}]", "write one of ssh and docker, not both"),
        ("bootstrap: [a:1]\nnodes: [{id: 0, transport: {options: [-v]}}]", "none of them is used"),
        ("bootstrap: [a:1]\nnodes: [{id: 0, variables: {PID: x}}]", "variable PID is one that seawall sets"),
        ("bootstrap: [a:1]\ncommands: {kill: a}\nlocal_commands: {kill: b}\nnodes: [{id: 0}]", "'kill' is in commands"),
        ("bootstrap: [a:1]\nnodes: [{id: 0}]\nclock: x", "the file: unknown key 'clock'"),
        ("nodes: [{id: 0}]", "'bootstrap' is missing"),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_in_a_sentence(text: str, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster.yml"
    path.write_text(text)
    with pytest.raises(UsageError, match=sentence):
        read(path)
    with pytest.raises(UsageError, match="cannot be read"):
        read(tmp_path / "none.yml")


@pytest.fixture
def ssh(tmp_path: Path) -> Iterator[Mapping[str, Any]]:
    """The transport to this machine by a sshd of the test's own."""
    if not Path(SSHD).exists() or shutil.which("ssh-keygen") is None or os.geteuid() != 0:
        pytest.skip(f"there is no {SSHD}, or this user may not start it: apt-get install openssh-server")
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
    shutil.copy(tmp_path / "user.pub", tmp_path / "authorized")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    Path("/run/sshd").mkdir(exist_ok=True)
    settings = [f"HostKey={tmp_path}/host", f"AuthorizedKeysFile={tmp_path}/authorized", "StrictModes=no", "UsePAM=no"]
    words = [SSHD, "-D", "-e", "-f", "/dev/null", "-p", port, "-o", "ListenAddress=127.0.0.1"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen([*words, *(word for one in settings for word in ("-o", one))], stderr=log)
    options = ["-p", port, "-i", str(tmp_path / "user"), "-o", "StrictHostKeyChecking=no", "-F", "none"]
    options += ["-o", f"UserKnownHostsFile={tmp_path}/known", "-o", "LogLevel=ERROR"]
    transport = {"ssh": "root@127.0.0.1", "options": options}
    try:
        deadline = time.monotonic() + 30
        while run(words_of(transport)).status and time.monotonic() < deadline:
            time.sleep(0.1)
        assert run(words_of(transport)).status == 0, (tmp_path / "log").read_text()
        yield transport
    finally:
        process.terminate()
        process.wait()


def test_a_process_is_paused_resumed_and_killed_by_ssh(ssh: Mapping[str, Any], tmp_path: Path) -> None:
    pid_file = tmp_path / "the node's pid"
    start = 'nohup sleep 60 >/dev/null 2>&1 & echo $! >"$PID_FILE"'
    entry = {"id": 0, "transport": ssh, "variables": {"PID_FILE": str(pid_file)}, "commands": {"start": start}}
    [node] = of(preset="processes", nodes=[entry])
    assert node.state() is None
    assert undo(of_end(node))
    before = node.state()
    assert before is not None
    node.perform("pause")
    assert await_paused(node)
    assert undo(of_pause(node))
    node.perform("kill")
    deadline = time.monotonic() + 10
    while node.state() is not None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert node.state() is None


def await_paused(node: CommandedNode) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if (process := node.state()) is not None and process.is_paused:
            return True
        time.sleep(0.05)
    return False


def vars_of(harm: Any) -> Mapping[str, Any]:
    return {name: getattr(harm, name) for name in harm.__slots__}


def words_of(transport: Mapping[str, Any]) -> Sequence[str]:
    return words(Transport.model_validate(transport), ":")


def test_a_command_does_nothing_before_its_process_is_recorded(tmp_path: Path) -> None:
    done, before = tmp_path / "done", []

    def unwritable(_: int) -> None:
        raise OSError

    assert run(("touch", str(done)), lambda pid: before.append((pid, done.exists()))).status == 0
    [(pid, was_done)] = before
    assert pid
    assert not was_done
    assert done.exists()
    done.unlink()
    with pytest.raises(OSError):  # noqa: PT011 - the one above
        run(("touch", str(done)), unwritable)
    assert not done.exists()
    assert run(("missing-program",), lambda _: None).status == 127
