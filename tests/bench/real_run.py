"""One ``seawall run`` on real processes, in a process of its own, judged by the reference engine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

_TIMEOUT_S = 900.0
_NO_JAVA = {"JAVA_HOME": "/nonexistent"}
"""Without a JVM the reference engine decides alone, in a second; that both engines agree is tested elsewhere."""


class Ended(NamedTuple):
    """How it ended.

    Attributes:
        exit_code: negative: the signal that ended it.
        directory: of the run; None: it left none.
        verdict: its ``verdict.json``; None: it left none.
        last_words: the last lines that were printed on stderr.
    """

    exit_code: int
    directory: Path | None
    verdict: dict[str, Any] | None
    last_words: str


def run(options: Sequence[str], out: Path) -> Ended:
    """``seawall run random-chaos`` with ``options``; ``out`` is an empty directory.

    Raises:
        subprocess.TimeoutExpired: it did not end within a quarter of an hour.
    """
    command = [str(Path(sys.executable).with_name("seawall")), "run", "random-chaos", "--out", str(out), *options]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, env={**os.environ, **_NO_JAVA}
    )
    directory = next(out.glob("random-chaos/*"), None)
    written = directory / "verdict.json" if directory else None
    verdict = json.loads(written.read_text()) if written and written.exists() else None
    return Ended(done.returncode, directory, verdict, " ".join(done.stderr.strip().splitlines()[-3:]))
