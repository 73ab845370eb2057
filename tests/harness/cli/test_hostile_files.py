"""Whatever lies in the place of a file that a command reads, the command says so in a sentence, with 64 or 3."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checkers import check
from harness.errors import ExitCode
from tests.checkers.story import Story
from tests.harness.cli.calling import Seawall

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

Make = Callable[[Path], object]

ALIASES = "a: &a [x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join(8 * [f'*{before}'])}]\n" for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)

HOSTILE: Mapping[str, Make] = {
    "a pipe": os.mkfifo,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a directory": Path.mkdir,
    "a link to itself": lambda path: path.symlink_to(path.name),
    "aliases that stand for millions": lambda path: path.write_text(ALIASES),
    "objects that nobody closes": lambda path: path.write_bytes(b'{"a":' * 100_000),
    "lists that nobody closes": lambda path: path.write_bytes(b"[" * 100_000),
    "a text of megabytes": lambda path: path.write_bytes(b'{"a": "' + bytes(70 << 20) + b'"}'),
    "infinity": lambda path: path.write_text('{"id": "x", "seed": Infinity, "run": Infinity}'),
    "a number of thirty digits": lambda path: path.write_text('{"id": "x", "seed": 1' + 30 * "0" + "}"),
    "values of other types": lambda path: path.write_text(
        '{"id": [1], "run": {}, "topics": 5, "scores": 7, "runs": 3}'
    ),
    "a list": lambda path: path.write_text("[1, null, {}]"),
    "a number": lambda path: path.write_text("7"),
    "other text than UTF-8": lambda path: path.write_bytes(b'{"a": "\xff\xfe"}'),
    "a byte order mark": lambda path: path.write_bytes(b'\xef\xbb\xbf{"a": 1}'),
    "null characters": lambda path: path.write_bytes(bytes(1_000)),
    "nothing": lambda path: path.write_bytes(b""),
}

OF_USERS = (
    ("run", "@", "--out", "out"),
    ("scenario", "run", "@", "--target", "simulated"),
    ("shrink", "@"),
    ("detection", "--bugs", "ack_on_append", "--seeds", "1", "--json", "@"),
    ("museum", "--json", "@"),
)
"""The commands that read what a user wrote; ``@`` is the file."""

OF_RUNS = (
    ("run.json", ("check", "@", "--engine", "reference")),
    ("run.json", ("report", "@")),
    ("run.json", ("export", "jepsen", "@", "--out", "out.edn")),
    ("verdict.json", ("report", "@")),
    ("history/part-00000.parquet", ("export", "jepsen", "@", "--out", "out.edn")),
)
"""The commands that read a run directory; ``@`` is the directory, and first comes what is hostile in it."""


LATE = pytest.mark.nightly(
    "another place for what is hostile; by day each is in one place, and each command reads some"
)


def dealt(commands: Sequence[object]) -> list[ParameterSet]:
    """Every command with everything hostile; by day the commands take turns."""
    return [
        pytest.param(command, hostile, id=f"{at}-{hostile}", marks=[] if number % len(commands) == at else [LATE])
        for at, command in enumerate(commands)
        for number, hostile in enumerate(HOSTILE)
    ]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "runtime"))


def refused(seawall: Seawall, command: tuple[str, ...], named: Path, *codes: ExitCode) -> None:
    """Call a command, and see that it refuses in a sentence."""
    said = seawall(*(str(named) if word == "@" else word for word in command))
    assert said.code in codes, said.err[-2_000:]
    complaints = [line for line in said.err.splitlines() if line.startswith("seawall: ")]
    assert len(complaints) == 1
    assert len(complaints[0]) < 1_000
    assert "Traceback" not in said.err


@pytest.mark.parametrize(("command", "hostile"), dealt(OF_USERS))
def test_what_a_user_wrote_is_refused_with_64(
    hostile: str, command: tuple[str, ...], tmp_path: Path, seawall: Seawall
) -> None:
    HOSTILE[hostile](tmp_path / "file.yaml")
    refused(seawall, command, tmp_path / "file.yaml", ExitCode.USAGE)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_history_of_jepsen_s_is_refused_with_3(hostile: str, tmp_path: Path, seawall: Seawall) -> None:
    HOSTILE[hostile](tmp_path / "history.edn")
    refused(seawall, ("import", "jepsen", "@", "--out", "out"), tmp_path / "history.edn", ExitCode.INVALID)


@pytest.mark.parametrize(("read", "hostile"), dealt(OF_RUNS))
def test_a_file_of_a_run_is_refused_with_3(
    read: tuple[str, tuple[str, ...]], hostile: str, tmp_path: Path, seawall: Seawall
) -> None:
    name, command = read
    story = Story("r")
    story.send()
    run = story.finish().write(tmp_path / "r")
    check([run], engine="reference")
    (run / name).unlink()
    HOSTILE[hostile](run / name)
    refused(seawall, command, run, ExitCode.INVALID)
