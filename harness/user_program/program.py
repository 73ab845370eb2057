"""What a user's program is: its command line and environment, how many copies run, and what becomes of each."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

SINK = "sink"
"""The placeholder for where a program writes, or posts, its output."""

_VARIABLE = "SEAWALL_"


@dataclass(frozen=True, slots=True)
class Program:
    """A program, and how it is kept running.

    Attributes:
        argv: its command line, with placeholders: ``{bootstrap}``, ``{input}``, ``{output}``, ``{group}``, ``{copy}``,
            ``{sink}``.
        environment: its variables besides those of seawall, with placeholders, too.
        directory: in which it is started.
        files: the directory for its output and its logs.
        values: of the placeholders; those that differ between copies and lives are left out.
        copies: how many run at a time.
        restart_s: how long after its end a copy is started again.
        kill_every_s: how long a copy runs on the average before one of them is killed; 0: none is.
        stop_s: how long a copy may take to end when it is asked to.
        seed: of the kills.
        prints: whether its standard output is its output, so that all of it is kept.
        writes: whether it writes its output to a file of its own.
    """

    argv: Sequence[str]
    environment: Mapping[str, str]
    directory: str
    files: str
    values: Mapping[str, str]
    copies: int = 1
    restart_s: float = 1.0
    kill_every_s: float = 0.0
    stop_s: float = 5.0
    seed: int = 0
    prints: bool = False
    writes: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """The program that :meth:`text` describes."""
        return cls(**json.loads(text))

    def text(self) -> str:
        """Everything, in one line of JSON."""
        return json.dumps(asdict(self))

    def sink(self, copy: int, life: int) -> Path:
        """The file with the output of one life of a copy."""
        return Path(self.files) / f"output-{copy}-{life}.jsonl"

    def log(self, copy: int, stream: str) -> Path:
        """The file with what a copy says on its standard output, ``out``, or its standard error, ``err``."""
        return Path(self.files) / f"copy-{copy}.{stream}"

    def command(self, copy: int, life: int) -> list[str]:
        """The command line of one life of a copy."""
        values = self._values(copy, life)
        return [_filled(word, values) for word in self.argv]

    def variables(self, copy: int, life: int) -> dict[str, str]:
        """The variables of one life of a copy: every placeholder's, ``SEAWALL_INPUT``, and its own."""
        values = self._values(copy, life)
        ours = {f"{_VARIABLE}{name.upper()}": value for name, value in values.items()}
        return ours | {name: _filled(value, values) for name, value in self.environment.items()}

    def _values(self, copy: int, life: int) -> dict[str, str]:
        own = {SINK: str(self.sink(copy, life))} if self.writes else {}
        return {**self.values, **own, "copy": str(copy)}


def missing(argv: Sequence[str], directory: Path) -> str:
    """Why a program cannot be started, in a clause; empty: it can, as far as that is known before."""
    if not directory.is_dir():
        return f"there is no directory {directory}"
    path = argv[0] if "/" not in argv[0] else str(directory / argv[0])
    return "" if shutil.which(path) else f"there is no program {argv[0]!r} that this user may execute"


def _filled(text: str, values: Mapping[str, Any]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text
