"""The clients of a run stop together, whatever becomes of one of them."""

from __future__ import annotations

import pytest

from harness.runner.run_clients import RunClients
from harness.testing.scripted_clients import ScriptedClient, ScriptedLoad


class Load(ScriptedLoad):
    """Its stop raises ``failure``, if there is one."""

    def __init__(self, failure: BaseException | None = None) -> None:
        super().__init__()
        self.failure = failure

    def stop(self) -> None:
        if self.failure is not None:
            raise self.failure


class Client(ScriptedClient):
    """Its stop raises ``failure``, if there is one."""

    failure: BaseException | None = None
    stopped = 0

    def stop(self) -> None:
        self.stopped += 1
        if self.failure is not None:
            raise self.failure


def test_all_are_stopped_and_the_first_failure_is_raised_with_the_others_as_notes() -> None:
    client, last = Client(), Client()
    client.failure = ValueError("second")
    with pytest.raises(ZeroDivisionError) as raised:
        RunClients(Load(ZeroDivisionError()), client, last).stop()
    assert raised.value.__notes__ == ["Besides, while the clients stopped: ValueError('second')"]
    assert (client.stopped, last.stopped) == (1, 1)


def test_an_interrupt_is_raised_before_any_failure() -> None:
    client = Client()
    client.failure = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        RunClients(Load(ZeroDivisionError()), client, Client()).stop()
