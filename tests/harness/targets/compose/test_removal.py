"""What is removed of a project, and how it is known that nothing is left; the engine is scripted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import docker
import pytest

from harness.errors import EnvironmentFault
from harness.targets.compose import removal
from harness.targets.compose.project import connected
from harness.targets.compose.removal import left_of, removed
from tests.harness.targets.compose.scripted_engine import ScriptedEngine, scripted_engine

PROJECT, OTHER = "seawall-00000001", "seawall-00000002"


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedEngine]:
    with scripted_engine(tmp_path / "docker.sock") as engine:
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path / 'docker.sock'}")
        yield engine


@pytest.fixture
def client(engine: ScriptedEngine) -> Iterator[docker.DockerClient]:
    del engine
    with closing(connected()) as client:
        yield client


def test_a_container_that_the_engine_is_still_making_is_awaited_and_removed_with_its_volume(
    engine: ScriptedEngine, client: docker.DockerClient
) -> None:
    engine.making = {f"{PROJECT}-kafka": 3}
    assert removed(client, PROJECT) == []
    assert removed(client, PROJECT, [f"{PROJECT}-kafka", f"{PROJECT}-zk"]) == [f"{PROJECT}-kafka", f"{PROJECT}_data"]
    assert not engine.left


def test_a_container_that_is_never_finished_is_named(
    engine: ScriptedEngine, client: docker.DockerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "_TIMEOUT_S", 0.0)
    engine.making = {f"{PROJECT}-kafka": 1_000_000}
    with pytest.raises(EnvironmentFault, match=f"has been making container {PROJECT}-kafka"):
        removed(client, PROJECT, [f"{PROJECT}-kafka"])
    assert not engine.left


def test_a_volume_without_labels_is_known_by_its_name(engine: ScriptedEngine, client: docker.DockerClient) -> None:
    engine.things["volumes"] = {f"{PROJECT}_data": {}, f"{OTHER}_data": {}, f"of-{PROJECT}": {}, f"{PROJECT}0_data": {}}
    assert left_of(client, PROJECT) == [f"{PROJECT}_data"]
    assert removed(client, PROJECT) == [f"{PROJECT}_data"]
    assert engine.left == [f"{OTHER}_data", f"of-{PROJECT}", f"{PROJECT}0_data"]


def test_a_volume_that_is_still_used_is_removed_a_moment_later(
    engine: ScriptedEngine, client: docker.DockerClient
) -> None:
    engine.add(PROJECT, "me")
    engine.used = 3
    assert len(removed(client, PROJECT)) == 3
    assert not engine.left


def test_what_cannot_be_removed_is_still_there_and_is_named(
    engine: ScriptedEngine, client: docker.DockerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal, "_TIMEOUT_S", 0.0)
    engine.add(PROJECT, "me")
    engine.used = 1_000
    with pytest.raises(EnvironmentFault, match=f"of project {PROJECT} there is still {PROJECT}_disk"):
        removed(client, PROJECT)
    assert left_of(client, PROJECT) == [f"{PROJECT}_disk"]
