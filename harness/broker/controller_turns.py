"""How the controller serves a request with many changes without keeping others waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from harness.broker.controller_driver import ControllerDriver

STEPS_PER_TURN = 8
"""How many changes of one request the controller makes and writes before it serves other requests."""


def in_turns(driver: ControllerDriver, steps: Iterable[Callable[[], None]], done: Callable[[], None]) -> None:
    """Take all ``steps``, then call ``done``; after every few steps, the controller serves other requests."""
    rest = iter(steps)

    def go_on() -> None:
        taken = 0
        for step in islice(rest, STEPS_PER_TURN):
            step()
            taken += 1
        if taken < STEPS_PER_TURN:
            done()
        else:
            driver.later(go_on)

    go_on()
