"""The live status: in a terminal that can show it, below what is said, and gone at the end; elsewhere never."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from types import MappingProxyType

import pytest

SHOWS = """
import sys, time
from harness.cli import terminal
from rich.text import Text
terminal.be_quiet("quiet" in sys.argv)
terminal._LINES_EVERY_S = 0.1
try:
    with terminal.shown(lambda: Text("one\\ntwo, live", "red"), lambda: "still there"):
        terminal.tell("said " + "x" * 100)
        time.sleep(0.5)
        if "interrupted" in sys.argv:
            time.sleep(600)
        if "fails" in sys.argv:
            raise OSError("it fails")
except KeyboardInterrupt:
    pass
terminal.tell("after")
"""
HIDES_CURSOR, SHOWS_CURSOR = "\x1b[?25l", "\x1b[?25h"


def in_a_terminal(*words: str, interrupt: bool = False, variables: Mapping[str, str] = MappingProxyType({})) -> str:
    """What the program above writes to a terminal of 80 columns."""
    ours, its = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24", **variables}
    with subprocess.Popen((sys.executable, "-c", SHOWS, *words), stderr=its, env=environment) as child:
        os.close(its)
        written = b""
        try:
            while more := os.read(ours, 4096):
                written += more
                if interrupt and b"live" in written:
                    interrupt = False
                    child.send_signal(signal.SIGINT)
        except OSError:  # the terminal's other end is closed
            pass
        finally:
            os.close(ours)
    return written.decode()


def test_a_line_stays_whole_above_the_status_which_is_gone_at_the_end() -> None:
    written = in_a_terminal()
    assert "said " + "x" * 100 in written
    assert "two, live" in written
    assert written.replace("\r", "").endswith("after\n")
    assert "still there" not in written
    erased = written[written.rindex("live") : written.index("after")]
    assert erased.count("\x1b[2K") >= 2


@pytest.mark.parametrize("word", ["interrupted", "fails"])
def test_the_cursor_is_visible_however_it_ends(word: str) -> None:
    written = in_a_terminal(word, interrupt=word == "interrupted")
    assert written.rindex(SHOWS_CURSOR) > written.rfind(HIDES_CURSOR)
    assert written.index(SHOWS_CURSOR) < written.index("said ")


def test_colours_are_left_out_when_nobody_wants_them() -> None:
    assert "\x1b[31m" in in_a_terminal()
    assert not re.search(r"\x1b\[[0-9;]*m", in_a_terminal(variables={"NO_COLOR": "1"}).replace("\x1b[0m", ""))


@pytest.mark.parametrize(("words", "variables"), [((), {"TERM": "dumb"}), (("quiet",), {})])
def test_a_dumb_terminal_and_a_quiet_command_get_no_status(words: tuple[str, ...], variables: dict[str, str]) -> None:
    written = in_a_terminal(*words, variables=variables)
    assert "live" not in written
    assert "\x1b" not in written


def test_a_pipe_gets_lines_alone_even_where_colours_are_forced() -> None:
    environment = {**os.environ, "FORCE_COLOR": "1", "TTY_COMPATIBLE": "1"}
    said = subprocess.run((sys.executable, "-c", SHOWS), stderr=subprocess.PIPE, env=environment, text=True, check=True)
    assert "\x1b" not in said.stderr
    assert {"still there", "after"} < set(said.stderr.splitlines())
