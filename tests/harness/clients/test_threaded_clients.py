"""Tasks in real time: threads that end together, and whose failures are not lost."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.client_ports import ClientContext, RealTime
from harness.client_properties import Access
from harness.clients import threaded_clients
from harness.clients.threaded_clients import ThreadedClients
from harness.clock import SystemClock
from harness.errors import EnvironmentFault
from harness.history.kept_recorder import KeptRecorder
from harness.workload import Workload


@pytest.fixture
def clients() -> ThreadedClients:
    return ThreadedClients(Access("localhost:1"), logging.getLogger("seawall.tests.clients"))


async def breaks() -> None:
    raise ZeroDivisionError


def test_tasks_end_when_the_clients_stop(clients: ThreadedClients) -> None:
    ended = []

    async def sleep() -> None:
        await clients.sleep(3600)
        ended.append(clients.stopping)

    for _ in range(3):
        clients.begin(sleep())
    clients.stop()
    clients.join()
    clients.join()
    assert ended == [True] * 3


def test_a_result_is_there_once_the_task_has_ended(clients: ThreadedClients) -> None:
    async def sleep() -> int:
        await clients.sleep(3600)
        return 7

    task = clients.begin(sleep())
    assert task.result() is None
    clients.stop()
    assert clients.wait_until(lambda: task.result() == 7, 60)


def test_waiting_ends_in_time(clients: ThreadedClients) -> None:
    assert not clients.wait_until(lambda: False, 0.05)


def test_a_task_that_hangs_holds_up_no_join_with_a_limit(clients: ThreadedClients) -> None:
    clients.begin(clients.sleep(3600))
    clients.join(0.05)
    clients.stop()


def test_a_call_that_never_returns_does_not_hold_up_the_end_for_ever(
    clients: ThreadedClients, monkeypatch: pytest.MonkeyPatch
) -> None:
    over = threading.Event()

    async def called() -> None:
        over.wait()

    monkeypatch.setattr(threaded_clients, "_ENDS_WITHIN_S", 0.05)
    clients.begin(called())
    clients.stop()
    with pytest.raises(EnvironmentFault, match=r"1 clients did not end .* first is in .*called") as caught:
        clients.join()
    assert Path(__file__).name in caught.value.sentence
    over.set()


def test_the_failure_of_a_task_is_raised(clients: ThreadedClients) -> None:
    task = clients.begin(breaks())
    with pytest.raises(ZeroDivisionError):
        clients.join()
    with pytest.raises(ZeroDivisionError):
        task.result()


def test_a_task_that_awaits_what_is_no_client_is_a_bug(clients: ThreadedClients) -> None:
    clients.begin(asyncio.sleep(0))
    with pytest.raises(AssertionError, match="it awaits what is not in the port of clients"):
        clients.join()


@pytest.mark.parametrize("stop", [Workload.stop, lambda load: load.clients.join()])
def test_the_run_learns_at_once_that_a_task_of_the_load_has_failed(
    clients: ThreadedClients, stop: Callable[[Workload], None]
) -> None:
    heard: list[BaseException] = []

    class Breaking(Workload):
        def start(self) -> None:
            self.begin(breaks())

    real_time = RealTime(Access(""), Path(), logging.getLogger(__name__), heard.append)
    context = ClientContext(lambda: clients, [], KeptRecorder("r", SystemClock()), 1, real_time=real_time)
    load = Breaking(context)
    load.start()
    with pytest.raises(ZeroDivisionError) as broken:
        stop(load)
    assert heard == [broken.value]
