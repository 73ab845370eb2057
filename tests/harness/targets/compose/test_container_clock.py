"""The wall clock of Java in a container."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from harness.errors import EnvironmentFault
from harness.targets.compose.container_clock import Clocks, takes_shim
from harness.targets.compose.containers import told_by
from harness.targets.compose.project import Project
from harness.targets.compose.shimmed import JAVA
from harness.targets.kafka import shim
from tests.harness.targets.compose.conftest import ANOTHER_PROJECT, Engine

TOLERANCE_MS = 250
HOUR_MS = 3_600_000
TIMEOUT_S = 60.0
FOREVER = ["java", "-m", "jdk.jcmd/sun.tools.jstat.Jstat", "-gc", "1", "1000"]


@pytest.fixture(scope="module")
def project_and_clocks(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Project, Clocks]]:
    """A Java with the shim, 0, and one without it, 1."""
    engine.need("kafka:4.1.0")
    if not shim.is_available():
        pytest.skip("the clock shim cannot be built here")
    directory = tmp_path_factory.mktemp("clock")
    variables, volumes = Clocks.additions(directory / "shim")
    java = {"image": "seawall/kafka:4.1.0", "entrypoint": FOREVER}
    bent = {**java, "environment": variables, "volumes": volumes}
    with engine.project(directory, {"java-0": bent, "java-1": java}) as project:
        clocks = Clocks(project, {"0": directory / "shim", "1": directory / "shim"}, lambda _: JAVA)
        _await_java(clocks)
        yield project, clocks


def _await_java(clocks: Clocks) -> None:
    """Until its launcher has become Java."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            clocks.offset_ms("0")
        except EnvironmentFault:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        else:
            return


@ANOTHER_PROJECT
@pytest.mark.parametrize("offset_ms", [HOUR_MS, -HOUR_MS, 0])
def test_java_and_whoever_asks_in_its_container_read_the_same_wrong_time(
    project_and_clocks: tuple[Project, Clocks], offset_ms: int
) -> None:
    project, clocks = project_and_clocks
    clocks.offset("0", offset_ms)
    assert clocks.wanted_ms("0") == offset_ms
    assert abs(clocks.offset_ms("0") - offset_ms) <= TOLERANCE_MS
    before = time.time()
    [container] = project.containers("0")
    said = told_by(container, "jcmd", "1", "VM.uptime", "-date").splitlines()[1]
    java = datetime.fromisoformat(said.split(": ")[0]).timestamp() - offset_ms / 1000
    assert before - 1 <= java <= time.time() + 1


@ANOTHER_PROJECT
def test_a_java_without_the_shim_is_told_from_one_with_it(project_and_clocks: tuple[Project, Clocks]) -> None:
    with pytest.raises(EnvironmentFault, match=r"cannot be bent: its Java, process 1 \(java\), has no shim\."):
        project_and_clocks[1].offset_ms("1")


@ANOTHER_PROJECT
def test_a_container_that_stands_still_does_not_tell_the_time(project_and_clocks: tuple[Project, Clocks]) -> None:
    project, clocks = project_and_clocks
    [container] = project.containers("0")
    container.pause()
    try:
        with pytest.raises(EnvironmentFault, match=r"is paused"):
            clocks.offset_ms("0")
    finally:
        container.unpause()


def test_an_image_is_asked_whether_its_clock_can_be_bent(engine: Engine) -> None:
    engine.need("kafka:4.1.0", "toxiproxy")
    if not shim.is_available():
        pytest.skip("the clock shim cannot be built here")
    assert takes_shim(engine.client, "seawall/kafka:4.1.0")
    assert not takes_shim(engine.client, "seawall/toxiproxy")
