"""What the engine says of a node's containers, and what that means."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.errors import EnvironmentFault
from harness.targets.compose.node import ComposeNode
from harness.targets.compose.project import Project
from harness.targets.endings import JVM_STATUSES, OUT_OF_MEMORY, SHIM_FAILED


def node(statuses: Mapping[int, str] = JVM_STATUSES, **state: Any) -> ComposeNode:
    """A node of one container in this state, beside what the engine says of any that has ended."""
    ended: Mapping[str, Any] = {"Running": False, "Paused": False, "OOMKilled": False, "ExitCode": 0, **state}
    container = SimpleNamespace(name="kafka-1", attrs={"State": ended}, reload=lambda: None)
    return ComposeNode(cast("Project", SimpleNamespace(containers=lambda name: [container])), "0", statuses)


def test_who_was_killed_for_want_of_memory_was_not_killed_by_a_fault() -> None:
    assert node(ExitCode=137).was_killed
    with pytest.raises(EnvironmentFault, match="node 0 has run out of memory"):
        _ = node(ExitCode=137, OOMKilled=True).was_killed


def test_who_ended_with_an_error_has_exited_and_was_neither_killed_nor_shut_down() -> None:
    one = node(ExitCode=1)
    assert one.has_exited
    assert not one.was_killed
    assert not one.was_shut_down


@pytest.mark.parametrize(("status", "name"), [(134, "SIGABRT"), (139, "SIGSEGV")])
def test_a_java_that_has_crashed_has_not_exited_by_kafkas_will(status: int, name: str) -> None:
    with pytest.raises(EnvironmentFault, match=f"node 0 was ended by {name}, which seawall has not sent"):
        _ = node(ExitCode=status).has_exited


def test_who_was_asked_to_end_has_not_exited() -> None:
    for status in (0, 143):
        assert node(ExitCode=status).was_shut_down
        assert not node(ExitCode=status).has_exited


def test_who_was_ended_by_the_shim_has_not_exited_by_itself() -> None:
    with pytest.raises(EnvironmentFault, match="node 0 was ended by its disk shim"):
        _ = node(ExitCode=70).has_exited


@pytest.mark.parametrize("status", [OUT_OF_MEMORY, SHIM_FAILED])
def test_what_a_jvm_means_by_a_status_another_program_does_not(status: int) -> None:
    one = over(statuses={}, ExitCode=status)
    assert one.has_exited
    [ending] = one.endings()
    assert (ending.status, ending.blames) == (status, "")


def test_an_end_is_blamed_on_the_error_of_the_last_life_and_not_on_the_farewell_after_it() -> None:
    one = node(ExitCode=1, StartedAt="2026-11-24T20:00:01.123456789Z")
    (container,) = one._containers()
    asked: dict[str, Any] = {}

    def logs(**more: Any) -> bytes:
        asked.update(more)
        return b"[t] ERROR no room (kafka)\n" + b"[t] INFO shutting down (kafka)\n" * 300

    container.logs = logs
    assert one.log_tail() == "[t] ERROR no room (kafka)"
    assert asked["since"] == datetime(2026, 11, 24, 20, 0, 1)  # noqa: DTZ001 - as the docker library wants it


@pytest.mark.parametrize(
    ("state", "status", "blames"),
    [
        ({"ExitCode": 1}, 1, ""),
        ({"ExitCode": 0}, 0, ""),
        ({"ExitCode": 137}, -9, "SIGKILL came from elsewhere"),
        ({"ExitCode": 143}, -15, "SIGTERM came from elsewhere"),
        ({"ExitCode": 134}, -6, "SIGABRT came from elsewhere"),
        ({"ExitCode": 137, "OOMKilled": True}, -9, "its container was out of memory"),
        ({"ExitCode": 3}, 3, "its heap, which seawall keeps small, was full"),
    ],
)
def test_an_end_that_was_not_ordered_is_told_with_when_it_was_and_what_is_to_blame(
    state: dict[str, Any], status: int, blames: str
) -> None:
    [ending] = over(**state).endings()
    assert (ending.node, ending.status, ending.said, ending.blames) == (0, status, "[t] FATAL over (kafka)", blames)
    assert abs(time.monotonic_ns() - time.time_ns() + 1_764_000_001_500_000_000 - ending.time_ns) < 1_000_000_000


def over(statuses: Mapping[int, str] = JVM_STATUSES, **state: Any) -> ComposeNode:
    one = node(statuses, StartedAt="2025-11-24T16:00:00Z", FinishedAt="2025-11-24T16:00:01.500000000Z", **state)
    for container in one._containers():
        container.logs = lambda **_: b"[t] FATAL over (kafka)\n"
    return one


def test_an_end_that_was_ordered_is_not_told() -> None:
    one = over(ExitCode=137, Running=True)
    [container] = one._containers()
    container.kill = lambda _: container.attrs["State"].update(Running=False)
    assert not one.endings()
    one.kill()
    assert not one.endings()
    container.start = lambda: container.attrs["State"].update(Running=False, ExitCode=1)
    one.start()
    assert [ending.status for ending in one.endings()] == [1]
