"""A signal in the midst of simulated time ends the run between two acts, so that what is left can still be healed."""

from __future__ import annotations

import os
import signal

import pytest

from harness.runner.interruption import Interruption
from harness.simulation.stack.scheduler import VirtualScheduler


def test_a_signal_ends_the_act_of_the_moment_and_no_other_one() -> None:
    time, done = VirtualScheduler(1), list[str]()

    def store() -> None:
        done.append("first half")
        os.kill(os.getpid(), signal.SIGTERM)
        done.append("second half")

    time.at(time.now_ns + 1, store)
    time.at(time.now_ns + 2, lambda: done.append("next"))
    with Interruption(done.append) as interruption:
        with pytest.raises(KeyboardInterrupt):
            time.sleep(1)
        assert (interruption.caught, done) == ("SIGTERM", ["first half", "second half"])
        time.sleep(1)
    assert done[2:] == ["next"]


def test_what_ends_a_run_from_another_thread_waits_for_the_act_too() -> None:
    time, done = VirtualScheduler(1), list[str]()

    def store() -> None:
        interruption.give_up(ValueError("the load has ended"))
        done.append("stored")

    time.at(time.now_ns + 1, store)
    with Interruption(done.append) as interruption, pytest.raises(KeyboardInterrupt):
        time.sleep(1)
    assert done == ["stored"]
