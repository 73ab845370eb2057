"""What each compose tool of this machine makes of a file; it needs no engine."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import psutil
import pytest

from harness.errors import EnvironmentFault, UsageError
from harness.targets.compose import compose_tool
from harness.targets.compose.compose_file import understood
from harness.targets.compose.project import connected

TOOL_WITH_PLUGIN = """\
import os, signal, sys, time
from pathlib import Path
told, harness = Path(sys.argv[0]).with_name("told"), os.getppid()
ready, done = os.pipe()
if os.fork() == 0:
    os.setpgid(0, 0)
    os.write(done, b".")
    time.sleep(600)
os.read(ready, 1)
children = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text().split()
told.write_text("\\n".join([str(os.getpid()), *children, " ".join(sys.argv[1:]), sys.stdin.read()]))
os.kill(harness, signal.SIGINT)
time.sleep(600)
"""
MORE_FILES = pytest.mark.nightly("starts every compose tool for a file like another; by day one of each kind is read")
SHIPPED = Path(__file__).parents[4] / "compose"


@pytest.mark.usefixtures("tool")
@pytest.mark.parametrize(
    "written",
    [
        "version: '2.1' # as it was",
        pytest.param("version: '2.1'", marks=MORE_FILES),
        pytest.param('version: "2.1"', marks=MORE_FILES),
    ],
)
def test_the_version_is_the_one_that_is_written(written: str, tmp_path: Path) -> None:
    file = tmp_path / "compose.yml"
    file.write_text(f"{written}\nservices: {{kafka: {{image: kafka}}}}\n")
    assert compose_tool.resolved(file)["version"] == "2.1"


@pytest.mark.usefixtures("tool")
def test_where_no_version_is_written_there_is_none_and_a_dollar_comes_through_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "compose.yml"
    file.write_text("services: {kafka: {image: kafka, labels: {version: '3'}, environment: {PASSWORD: 'a$$b'}}}\n")
    found = compose_tool.resolved(file)
    assert found["version"] is None
    assert found["services"]["kafka"]["environment"]["PASSWORD"] == "a$b"


@pytest.mark.usefixtures("tool")
def test_a_file_that_the_tool_refuses_is_refused_in_its_words(tmp_path: Path) -> None:
    file = tmp_path / "compose.yml"
    file.write_text("services: {kafka: {image: kafka, volumes: ['nowhere:/a']}}\n")
    with pytest.raises(UsageError, match="nowhere"):
        compose_tool.resolved(file)


@pytest.mark.usefixtures("tool")
def test_a_file_that_is_no_yaml_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "compose.yml"
    file.write_text("services:\n  kafka: [a\n  image: b\n")
    with pytest.raises(UsageError, match=rf"{file}, line 3: this is not valid YAML: did not find expected ',' or '\]'"):
        compose_tool.resolved(file)


def test_a_file_that_does_not_exist_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no compose file .*/none\.yml\. Name one by its path"):
        compose_tool.resolved(tmp_path / "none.yml")


@pytest.mark.usefixtures("tool")
@pytest.mark.parametrize(
    ("name", "ids", "controllers"),
    [
        ("kafka-kraft.yml", [1, 2, 3], 1),
        pytest.param("kafka-toxiproxy.yml", [1, 2, 3], 0, marks=MORE_FILES),
        pytest.param("kafka-zookeeper.yml", [1, 2, 3], 0, marks=MORE_FILES),
    ],
)
def test_the_shipped_files_are_understood_as_every_tool_resolves_them(
    name: str, ids: list[int], controllers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_IMAGE", "a/kafka:of-mine")
    file = understood(compose_tool.resolved(SHIPPED / name), SHIPPED / name)
    assert [broker.kafka_id for broker in file.brokers] == ids
    assert len(file.controllers) == controllers
    assert len(file.zookeepers) == (name == "kafka-zookeeper.yml")
    assert {broker.image for broker in file.brokers} == {"a/kafka:of-mine"}


@pytest.mark.parametrize(
    ("installed", "taken"),
    [
        ({"docker", "docker-compose"}, ("docker", "compose")),
        ({"docker"}, ("docker", "compose")),
        ({"docker-compose"}, ("docker-compose",)),
    ],
)
def test_the_plugin_is_taken_where_it_is_there_and_else_the_command_of_its_own(
    installed: set[str], taken: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in installed:
        (tmp_path / name).symlink_to("/bin/true")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert compose_tool.command.__wrapped__() == taken


def test_a_machine_without_either_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docker").symlink_to("/bin/false")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentFault, match="neither `docker compose` nor `docker-compose` answers"):
        compose_tool.command.__wrapped__()


@pytest.mark.parametrize(
    ("host", "given"), [(None, "unix:///var/run/docker.sock"), ("unix:///run/other.sock", "unix:///run/other.sock")]
)
def test_compose_is_for_the_engine_that_the_harness_talks_to_whatever_context_docker_has(
    host: str | None, given: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool, file = tmp_path / "tool", tmp_path / "compose.yml"
    tool.write_text('#!/bin/sh\nprintf "services: {host: \'%s\', context: \'%s\'}" "$DOCKER_HOST" "$DOCKER_CONTEXT"\n')
    tool.chmod(0o755)
    file.touch()
    monkeypatch.setattr(compose_tool, "command", lambda: (str(tool),))
    monkeypatch.setenv("DOCKER_CONTEXT", "rootless")
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    if host is not None:
        monkeypatch.setenv("DOCKER_HOST", host)
    assert compose_tool.resolved(file)["services"] == {"host": given, "context": ""}


def test_an_engine_that_does_not_answer_is_named_by_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(EnvironmentFault, match=rf"no Docker engine answers at unix://{tmp_path}/none\.sock: "):
        connected()


def test_ctrl_c_while_the_tool_creates_containers_ends_the_tool_with_its_plugin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "tool"
    tool.write_text(f"#!{sys.executable}\n{TOOL_WITH_PLUGIN}")
    tool.chmod(0o755)
    monkeypatch.setattr(compose_tool, "command", lambda: (str(tool),))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            compose_tool.up("seawall-1", tmp_path, {"services": {"kafka": {"image": "a$b"}}})
    finally:
        signal.signal(signal.SIGINT, before)
    *pids, words, given = (tmp_path / "told").read_text().splitlines()
    assert not any(psutil.pid_exists(int(pid)) for pid in pids)
    assert words == f"--project-directory {tmp_path} -f - -p seawall-1 up --detach kafka"
    assert given == '{"services": {"kafka": {"image": "a$$b"}}}'
