"""Links between containers, cut in sidecars."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.errors import EnvironmentFault
from harness.model import Link
from harness.targets.compose import network as network_module
from harness.targets.compose.network import Network
from harness.targets.compose.project import Project
from tests.harness.targets.compose.conftest import ANOTHER_PROJECT, Engine

THERE, BACK = Link("0", "1"), Link("1", "0")
SLEEPER = {"image": "seawall/tools", "init": True, "command": ["sleep", "infinity"], "cap_drop": ["ALL"]}


@pytest.fixture(scope="module")
def project(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """Two containers without any rights."""
    engine.need("tools")
    with engine.project(tmp_path_factory.mktemp("network"), {"node-0": SLEEPER, "node-1": SLEEPER}) as project:
        yield project


@pytest.fixture
def network(project: Project) -> Iterator[Network]:
    """Their network, whole."""
    network = Network(project)
    try:
        for node in project.nodes:
            network.attach(node)
        yield network
    finally:
        network.close()


def test_each_direction_is_cut_by_itself_and_mended_again(network: Network) -> None:
    assert network.carries(THERE).holds
    assert network.carries(BACK).holds
    assert not network.is_cut(THERE).holds
    network.cut([THERE])
    network.cut([THERE])
    assert network.is_cut(THERE).holds, network.is_cut(THERE)
    assert not network.carries(THERE).holds
    assert network.carries(BACK).holds
    assert not network.is_cut(BACK).holds
    network.cut([BACK])
    assert network.is_cut(BACK).holds
    network.mend([THERE, BACK])
    assert network.carries(THERE).holds
    assert not network.is_cut(BACK).holds


@ANOTHER_PROJECT
@pytest.mark.parametrize("killed", ["0", "1"])
def test_a_link_stays_cut_when_an_end_of_it_dies_and_starts_again(
    network: Network, project: Project, killed: str
) -> None:
    network.cut([THERE])
    [container] = project.containers(killed)
    container.kill()
    container.wait()
    assert network.is_cut(THERE).holds
    assert not network.carries(THERE).holds
    container.start()
    network.attach(killed)
    assert network.is_cut(THERE).holds
    assert network.carries(BACK).holds
    assert project.containers(killed)[0].status == "running"
    network.mend([THERE])
    assert network.carries(THERE).holds


@ANOTHER_PROJECT
def test_a_node_that_has_ended_again_at_once_is_no_trouble_and_is_attached_when_it_starts(
    network: Network, project: Project
) -> None:
    network.cut([THERE])
    [container] = project.containers("1")
    container.kill()
    container.wait()
    network.attach("1")
    assert network.is_cut(THERE).holds
    container.start()
    network.attach("1")
    assert network.is_cut(THERE).holds
    network.mend([THERE])
    assert network.carries(THERE).holds


def test_nothing_is_cut_of_what_only_does_not_answer(
    network: Network, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_module, "_ARRIVAL_TIMEOUT_S", 0.5)  # all of it is waited for what cannot arrive
    [container] = project.containers("1")
    container.kill()
    container.wait()
    try:
        assert not network.is_cut(BACK).holds
        assert not network.is_cut(THERE).holds
        assert network.carries(THERE).seen == "0->1: node 1 is down"
    finally:
        container.start()


@ANOTHER_PROJECT
def test_a_paused_container_is_still_reached(network: Network, project: Project) -> None:
    [container] = project.containers("1")
    container.pause()
    try:
        assert network.carries(THERE).holds
        network.cut([BACK])
        assert network.is_cut(BACK).holds
    finally:
        container.unpause()


def test_a_node_that_does_not_exist_is_refused_by_name(network: Network) -> None:
    with pytest.raises(EnvironmentFault, match=r"there is no node '7'; the nodes are 0, 1\."):
        network.cut([Link("0", "7")])


def test_no_sidecar_is_left(project: Project) -> None:
    network = Network(project)
    network.attach("0")
    beside = {"label": [f"{name}={value}" for name, value in project.labels.items()]}
    assert len(project.client.containers.list(filters=beside)) == 3
    network.close()
    network.close()
    assert len(project.client.containers.list(filters=beside)) == 2
