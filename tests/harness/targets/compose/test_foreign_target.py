"""Brokers of another make as a target: who is who, how one comes back, and whole runs on stand-ins in containers.

The stand-ins are franz-go's kfake, linked statically into an image with nothing else, and Kafka behind flags, with no
jar that names its release: Redpanda's image cannot be had here.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import yaml

from checkers import check
from harness.checker import Outcome, RunVerdict
from harness.client_properties import PLAINTEXT
from harness.clock import SystemClock
from harness.errors import EnvironmentFault
from harness.history.run_directory import RunDirectory
from harness.runner import plan, run
from harness.runner.journal import NothingToUndo, heal_leftovers
from harness.scenario import load, parse
from harness.target import Receipt, TopicSpec
from harness.targets.addresses import Address
from harness.targets.compose import composed_nodes, foreign_target
from harness.targets.compose.beside import Ports
from harness.targets.compose.foreign_file import DISK_LABEL
from harness.targets.compose.foreign_stack import ForeignStack, find
from harness.targets.compose.foreign_target import ForeignTarget
from harness.targets.compose.network import Network
from harness.targets.compose.node import ComposeNode
from harness.targets.compose.volumes import Volumes
from harness.targets.compose.written_stack import read as read_stack
from tests.harness.targets.compose.conftest import ANOTHER_PROJECT, Engine
from tests.harness.targets.compose.foreign_files import REDPANDA_THREE, parsed, read
from tests.harness.targets.compose.test_target import left_of
from tests.harness.targets.contract import LEDGER, Trial, send_once

STANDINS = Path(__file__).parent / "standins"
HARNESS = Path(__file__).parent / "foreign_to_be_killed.py"
HOUR_MS = 3_600_000
ALONE = {"topic.replication_factor": "1", "settings.min.insync.replicas": "1"}
LATE = pytest.mark.nightly("whole runs on brokers in containers, whose images are built first")
KILL = {"fault": "kill", "node": "any"}
PAUSE = {"fault": "pause", "node": "any"}

LOOKS = """\
import sys
from harness.targets.compose import foreign_image
from harness.targets.compose.foreign_stack import find
from harness.targets.compose.written_stack import read
foreign_image._WATCHED_S = 600.0
find(read(sys.argv[1]))
"""
"""A harness that looks at a service alone until it is killed."""

Known = Mapping[int, Address]


class Scripted(ForeignTarget):
    """Three brokers whose answers are given; each life of a container ends after so many looks."""

    def __init__(self, directory: Path, known: Sequence[Known], lives: Sequence[bool] = ()) -> None:
        stack = parsed(REDPANDA_THREE)
        super().__init__(
            directory, ForeignStack(read(REDPANDA_THREE), stack, (), "", PLAINTEXT), {}, {}, NothingToUndo()
        )
        ports = {node: 21000 + int(node) for node in self.brokers()}
        self._ports = Ports(ports, ports, {node: port + 1000 for node, port in ports.items()}, 0, 0, 0)
        self._known = known
        self._lives = list(lives)
        self.away: set[str] = set()
        self._nodes = {node: cast("ComposeNode", SimpleNamespace(name=node, exists=False)) for node in self.brokers()}

    def _known_to(self, broker: str) -> Known:
        return self._known[int(broker)]

    def _start(self, one: ComposeNode) -> None:
        cast("Any", one).exists = self._lives.pop(0)

    def _came_up(self, node: str) -> bool:
        return True

    def _goes_on(self, node: str) -> bool:
        return node not in self.away

    @cached_property
    def network(self) -> Network:
        return cast("Network", SimpleNamespace(attach=lambda _: None))

    @cached_property
    def volumes(self) -> Volumes:
        unused = Receipt(True, "its volume has nothing in it")
        return cast("Volumes", SimpleNamespace(is_unused=lambda _: unused))


def at(*ports: int) -> Known:
    """Brokers 0, 1 ... that are found at these ports."""
    return {broker: ("127.0.0.1", port) for broker, port in enumerate(ports)}


def test_a_broker_is_known_by_where_its_clients_connect_whatever_its_id_is(tmp_path: Path) -> None:
    target = Scripted(tmp_path, [at(21001, 21002, 21000)] * 3)
    assert target._all_know_each_other()
    assert target._kafka_ids == [2, 0, 1]


def test_brokers_that_have_not_all_heard_of_each_other_are_waited_for(tmp_path: Path) -> None:
    assert not Scripted(tmp_path, [at(21000, 21001, 21002), at(21000, 21001), {}])._all_know_each_other()


def test_a_broker_that_has_clients_connect_elsewhere_is_refused_with_both_addresses(tmp_path: Path) -> None:
    elsewhere = {**at(21000, 21001), 2: ("redpanda-2", 39092)}
    with pytest.raises(EnvironmentFault, match=r"broker 2 has clients connect to redpanda-2:39092, .* localhost:39092"):
        Scripted(tmp_path, [elsewhere] * 3)._all_know_each_other()


@pytest.mark.parametrize(("lives", "left"), [([True, True], 1), ([False, True], 0), ([False] * 4, 1)])
def test_a_broker_that_ends_as_it_starts_is_started_again_but_not_for_ever(
    lives: list[bool], left: int, tmp_path: Path
) -> None:
    target = Scripted(tmp_path, [], lives)
    target.restart("1")
    assert len(target._lives) == left


@pytest.mark.parametrize(("away", "counts"), [(set(), False), ({"1"}, False), ({"1", "2"}, True)])
def test_a_broker_is_not_asked_for_an_answer_while_most_of_them_are_away(
    away: set[str], *, counts: bool, tmp_path: Path
) -> None:
    target = Scripted(tmp_path, [])
    target.away = away
    assert target._speaks("0", ("127.0.0.1", 1)) is counts


def test_of_two_brokers_the_survivor_has_to_answer_as_it_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = Scripted(tmp_path, [])
    target.away = {"1", "2"}
    answers = [None, 0, 0]
    monkeypatch.setattr(composed_nodes, "ping_as_client", lambda *_: answers.pop(0))
    assert target._speaks("0", ("127.0.0.1", 1))
    assert not target._speaks("0", ("127.0.0.1", 1))
    target._started("0", 0)
    assert target._speaks("0", ("127.0.0.1", 1))


def test_a_listener_that_wants_more_than_plain_text_is_refused_at_once_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(foreign_target, "wants", lambda address: "TLS" if address[1] == 22001 else "")
    says = r"service 'redpanda-1' at port 29092 wants TLS.* label seawall\.listener"
    with pytest.raises(EnvironmentFault, match=says):
        Scripted(tmp_path, [{}] * 3)._all_know_each_other()


def test_a_full_disk_that_a_broker_keeps_nothing_on_proves_nothing(tmp_path: Path) -> None:
    receipt = Scripted(tmp_path, []).is_disk_full("1")
    assert not receipt.holds
    says = "'redpanda-1' keeps nothing in /var/lib/redpanda/data: name its data directory by seawall.disk"
    assert says in receipt.seen


# ---------------------------------------------------------------------------------------------------------- stand-ins


@pytest.fixture(scope="session")
def kfake(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An image of kfake, and of nothing else."""
    engine.need_compose()
    engine.need("tools", "toxiproxy")
    if shutil.which("go") is None:
        pytest.skip("go, which compiles kfake, is not on this machine")
    context = tmp_path_factory.mktemp("kfake")
    shutil.copytree(STANDINS / "kfake", context, dirs_exist_ok=True)
    built = subprocess.run(("env", "CGO_ENABLED=0", "go", "build", "-o", "broker", "."), cwd=context, check=False)
    if built.returncode != 0:
        pytest.skip("kfake cannot be compiled: its Go module cannot be had")
    with _built(engine, "kfake", context) as image:
        yield image


@pytest.fixture(scope="session")
def shelled(engine: Engine, kfake: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An image of kfake behind a shell that waits for it."""
    context = tmp_path_factory.mktemp("shelled")
    starts = json.dumps(["bash", "-c", '/broker "$@" & wait', "broker"])
    lines = (
        f"FROM {kfake} AS kfake",
        "FROM seawall/tools",
        "COPY --from=kfake /broker /broker",
        f"ENTRYPOINT {starts}",
    )
    (context / "Dockerfile").write_text("\n".join(lines))
    with _built(engine, "shelled", context) as image:
        yield image


@pytest.fixture(scope="session")
def disguised(engine: Engine) -> Iterator[str]:
    """An image of Kafka that does not look like one."""
    engine.need_compose()
    engine.need("tools", "toxiproxy", "kafka:4.1.0")
    with _built(engine, "disguised", STANDINS / "disguised") as image:
        yield image


@contextmanager
def _built(engine: Engine, name: str, context: Path) -> Iterator[str]:
    """An image, which stays only on an engine of the tests' own."""
    image = f"seawall-test/{name}"
    words = ("docker", "build", "--quiet", "--network", "host", "--tag", image, str(context))
    subprocess.run(words, check=True, capture_output=True)
    yield image
    if not engine.own:
        engine.client.images.remove(image)


def alone(directory: Path, image: str, *flags: str, **more: Any) -> Path:
    """A file with a single broker, and a console that only uses it."""
    told = ["--kafka-addr=0.0.0.0:19092", "--advertise-kafka-addr=localhost:19092", *flags]
    console = {"image": "example/console", "environment": {"KAFKA_BROKERS": "broker:9092"}, "depends_on": ["broker"]}
    services = {"broker": {"image": image, "command": told, "ports": ["19092:19092"], **more}, "console": console}
    file = directory / "stack.yml"
    file.write_text(yaml.safe_dump({"services": services, "volumes": {"data": None, "unused": None}}))
    return file


def three(directory: Path, image: str) -> Path:
    """A file with the structure of Redpanda's for three brokers, whose ids are not in its order."""
    seeds = ",".join(f"{5 - number}@broker-{number}:33145" for number in range(3))
    services = {f"broker-{number}": _one_of_three(number, image, seeds) for number in range(3)}
    file = directory / "stack.yml"
    volumes: Mapping[str, None] = dict.fromkeys(services)
    file.write_text(yaml.safe_dump({"networks": {"backbone": None}, "volumes": volumes, "services": services}))
    return file


def _one_of_three(number: int, image: str, seeds: str) -> dict[str, Any]:
    name, port = f"broker-{number}", 19092 + 10_000 * number
    told = [
        *("--node-id", str(5 - number)),
        f"--kafka-addr internal://0.0.0.0:9092,external://0.0.0.0:{port}",
        f"--advertise-kafka-addr internal://{name}:9092,external://localhost:{port}",
        *("--rpc-addr 0.0.0.0:33145", f"--seeds {seeds}", "--data /var/lib/broker"),
    ]
    of_all = {"networks": ["backbone"], "restart": "always", "volumes": [f"{name}:/var/lib/broker"]}
    health = {"test": ["CMD", "env", "-i", "sleep", "4"], "interval": "5s"}  # it has not the shim
    own = {"container_name": name, "command": told, "ports": [f"{port}:{port}"]}
    return {"image": image, **own, **of_all, "healthcheck": health}


def judged(file: Path, out: Path, *faults: Mapping[str, Any], **overrides: str) -> tuple[RunDirectory, RunVerdict]:
    """A run with these faults, one at a time."""
    return _run(file, out, {"faults": list(faults), "at_once": 1, "budget": "any"}, overrides)


def judged_in_confusion(file: Path, out: Path, *faults: Mapping[str, Any]) -> tuple[RunDirectory, RunVerdict]:
    """A run with three of these faults at once, as far as Kafka promises to survive them."""
    return _run(file, out, {"faults": list(faults), "at_once": 3, "budget": "promised"}, {})


def _run(
    file: Path, out: Path, chaos: Mapping[str, Any], overrides: Mapping[str, str]
) -> tuple[RunDirectory, RunVerdict]:
    document = yaml.safe_load(load("random-chaos").text)
    document["chaos"] |= chaos
    made = plan(parse(yaml.safe_dump(document)), f"compose:{file}", seed=7, duration_s=3, overrides=overrides)
    directory = run(made, out)
    [verdict] = check([directory.path], engine="reference")
    return directory, verdict


@LATE
def test_a_broker_that_keeps_its_data_passes_though_it_is_killed_and_paused(kfake: str, tmp_path: Path) -> None:
    file = alone(tmp_path, kfake, "--data=/data", volumes=["data:/data"])
    directory, verdict = judged(file, tmp_path / "runs", KILL, PAUSE, **ALONE)
    assert verdict.outcome is Outcome.PASS, verdict
    rows = directory.read_table("faults")
    assert {row["kind"] for row in rows} == {"kill", "pause"}
    assert all(row["proven_ns"] and row["heal_proven_ns"] for row in rows)
    assert {row["kind"] for row in directory.read_table("timeline")} == {"metadata"}
    assert (directory.cluster / "broker" / "output.log").exists()


@LATE
def test_a_broker_that_keeps_nothing_has_lost_its_topics_when_it_is_killed(
    engine: Engine, kfake: str, tmp_path: Path
) -> None:
    _, verdict = judged(alone(tmp_path, kfake), tmp_path / "runs", KILL, **ALONE)
    assert verdict.outcome is Outcome.VIOLATION, verdict
    assert "lost-topic" in {one.kind for one in verdict.anomalies}
    assert not engine.client.containers.list(all=True, filters={"label": "seawall.run"})


@LATE
def test_a_broker_that_acknowledges_what_it_does_not_keep_is_never_read_to_its_end(kfake: str, tmp_path: Path) -> None:
    _, verdict = judged(alone(tmp_path, kfake, "--forgetful"), tmp_path / "runs", PAUSE, **ALONE)
    assert verdict.outcome is Outcome.VIOLATION, verdict
    assert "stuck" in {one.kind for one in verdict.anomalies}


@LATE
def test_a_kill_that_did_not_happen_proves_no_run(kfake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ForeignTarget, "kill", lambda *_: None)
    _, verdict = judged(alone(tmp_path, kfake), tmp_path / "runs", KILL, **ALONE)
    assert verdict.outcome is Outcome.INVALID, verdict


@LATE
def test_a_full_disk_proves_a_run_only_where_the_broker_keeps_its_data_there(kfake: str, tmp_path: Path) -> None:
    full, volumes = {"fault": "disk_full", "node": "any"}, ["data:/data", "unused:/unused"]
    for place, outcome in (("/data", Outcome.PASS), ("/unused", Outcome.INVALID)):
        labels = {DISK_LABEL: place}
        file = alone(tmp_path, kfake, "--data=/data", volumes=volumes, labels=labels)
        directory, verdict = judged(file, tmp_path / place[1:], full, **ALONE)
        assert verdict.outcome is outcome, verdict
        proofs = [row["proof"] for row in directory.read_table("faults")]
        assert all(("keeps nothing in /unused" in proof) is (place == "/unused") for proof in proofs)


@LATE
def test_a_program_that_is_linked_statically_has_no_clock_to_move(kfake: str, tmp_path: Path) -> None:
    stack = find(read_stack(str(alone(tmp_path, kfake))))
    assert "The clock shim, built here, has no effect in image seawall-test/kfake" in stack.no_clock


@LATE
def test_a_static_program_behind_a_script_that_has_the_shim_is_found_and_named(shelled: str, tmp_path: Path) -> None:
    why = find(read_stack(str(alone(tmp_path, shelled)))).no_clock
    assert re.match(r"The clock shim moves nothing in process \d+ \(broker\) of service 'broker': it is linked", why)


@LATE
def test_heal_removes_what_a_harness_that_was_killed_has_left(
    engine: Engine, kfake: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "journals"))
    (tmp_path / "run").mkdir()
    words = [sys.executable, str(HARNESS), str(alone(tmp_path, kfake)), str(tmp_path / "run")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[4]) as harness:
        assert harness.stdout is not None
        project = harness.stdout.readline().strip()
        harness.send_signal(signal.SIGKILL)
    assert left_of(engine, project)
    assert any(project in said for said in heal_leftovers(["compose"]))
    assert not left_of(engine, project)


@LATE
def test_heal_removes_the_broker_that_a_killed_harness_had_started_alone(
    engine: Engine, disguised: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "journals"))
    words = [sys.executable, "-c", LOOKS, str(three(tmp_path, disguised))]
    with subprocess.Popen(words, cwd=Path(__file__).parents[4]) as harness:
        while not (left := alone_on(engine)):
            assert harness.poll() is None
            time.sleep(0.1)
        harness.send_signal(signal.SIGKILL)
    assert alone_on(engine) == left
    assert any(f"Removed {', '.join(left)}, by which" in said for said in heal_leftovers(["compose"]))
    assert not alone_on(engine)


def alone_on(engine: Engine) -> list[str]:
    """The containers in which a service runs alone, which have its name for their host's."""
    found = engine.client.containers.list(all=True, filters={"label": "seawall.asked-by"}, ignore_removed=True)
    return [str(one.name) for one in found if one.attrs["Config"]["Hostname"] == "broker-0"]


@LATE
def test_three_brokers_that_keep_their_data_pass_whatever_of_a_mix_befalls_them_at_once(
    disguised: str, tmp_path: Path
) -> None:
    clock = {"fault": "clock", "node": "any", "offset_ms": HOUR_MS}
    cuts = ({"fault": "partition", "isolate": "leader"}, {"fault": "disk_full", "node": "leader"})
    file = three(tmp_path, disguised)
    directory, verdict = judged_in_confusion(file, tmp_path / "runs", KILL, PAUSE, *cuts, clock)
    assert verdict.outcome is Outcome.PASS, verdict
    rows = directory.read_table("faults")
    assert {row["kind"] for row in rows} == {"kill", "pause", "partition", "disk_full", "clock"}
    assert all(row["proven_ns"] and row["heal_proven_ns"] for row in rows)


@ANOTHER_PROJECT
def test_each_fault_of_three_brokers_is_seen_from_outside_while_it_lasts(
    engine: Engine, disguised: str, tmp_path: Path
) -> None:
    foreign = find(read_stack(str(three(tmp_path, disguised))))
    assert foreign.no_clock == ""
    target = ForeignTarget(tmp_path / "cluster", foreign, {}, {}, NothingToUndo())
    target.tap()
    try:
        target.start()
        assert target._kafka_ids == [5, 4, 3]
        trial = Trial(target, SystemClock(), partial(send_once, target), patience_s=120.0)
        target.create_topic(TopicSpec(LEDGER.topic, 1, 3))
        assert trial.send().offset == 0
        leader = target.view().partitions[LEDGER].leader
        follower = next(node for node in target.view().live if node != leader)
        for written in (
            {"fault": "partition", "links": [[leader, follower]]},
            {"fault": "partition", "links": [["clients", leader]]},
            {"fault": "disk_full", "node": follower},
            {"fault": "clock", "node": follower, "offset_ms": HOUR_MS},
            {"fault": "pause", "node": follower},
            {"fault": "stop", "node": follower},
            {"fault": "kill", "node": leader},
        ):
            with trial.in_effect(**written) as fault:
                assert trial.holds(fault.probe), written
            assert trial.holds(fault.probe_healed), written
            assert not trial.asked(fault.probe).holds, written
        assert trial.eventually(lambda: len(target.view().partitions[LEDGER].isr) == 3)
        assert trial.send().kind == "ok"
        project = target.project.name
        target.stop()
        assert {row["topic"] for row in target.wire() if row["api"] == "PRODUCE"} == {LEDGER.topic}
    finally:
        target.stop()
    assert not left_of(engine, project)
