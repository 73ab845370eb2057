from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from harness.runner.interruption import Interruption


def interrupt(number: signal.Signals = signal.SIGINT) -> None:
    os.kill(os.getpid(), number)


@pytest.mark.usefixtures("without_nohup")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_first_signal_interrupts_and_the_following_ones_only_get_a_line(number: signal.Signals) -> None:
    said: list[str] = []
    with Interruption(said.append) as interruption:
        with pytest.raises(KeyboardInterrupt):
            interrupt(number)
        interrupt(number)
        interrupt()
    assert interruption.caught == number.name
    assert len(said) == 2


@pytest.mark.usefixtures("without_nohup")
def test_a_signal_that_is_put_off_interrupts_when_it_is_let_in() -> None:
    with Interruption(lambda line: None) as interruption:
        interruption.put_off()
        interrupt(signal.SIGTERM)
        interrupt()
        with pytest.raises(KeyboardInterrupt):
            interruption.let_in()
    assert interruption.caught == "SIGTERM"


@pytest.mark.usefixtures("without_nohup")
def test_where_no_signal_was_put_off_the_next_one_interrupts() -> None:
    with Interruption(lambda line: None) as interruption:
        interruption.put_off()
        interruption.let_in()
        with pytest.raises(KeyboardInterrupt):
            interrupt()


def test_a_shielded_ending_is_not_interrupted() -> None:
    said: list[str] = []
    with Interruption(said.append) as interruption:
        interruption.shield()
        interrupt()
    assert interruption.caught is None
    assert said == ["SIGINT: already healing and stopping; this takes a few seconds."]


def test_what_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with Interruption(lambda line: None) as interruption:
            interrupt(signal.SIGHUP)
        assert interruption.caught is None
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_thread_that_cannot_go_on_ends_what_the_main_thread_waits_for() -> None:
    first, second = OSError("first"), OSError("second")
    with Interruption(lambda line: None) as interruption:
        thread = threading.Thread(target=interruption.give_up, args=(first,))

        def wait() -> None:
            thread.start()
            time.sleep(86400)

        with pytest.raises(KeyboardInterrupt):
            wait()
        interruption.give_up(second)
        interrupt()
        thread.join()
    interruption.give_up(second)
    assert (interruption.failure, interruption.caught) == (first, None)


def test_what_fails_while_everything_is_being_stopped_ends_nothing() -> None:
    with Interruption(lambda line: None) as interruption:
        interruption.shield()
        interruption.give_up(OSError())
    assert interruption.failure is None


def test_handlers_are_put_back() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Interruption(lambda line: None):
        assert signal.getsignal(signal.SIGTERM) != before
    assert signal.getsignal(signal.SIGTERM) == before
