"""Where a secret may have come: run directories with their tables, journals of runs, and command lines."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harness.runner.journal import Journal

JOURNALED = "journaled"
"""The file below ``tmp_path`` with all that journals have had."""


@pytest.fixture(autouse=True)
def journals_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep what journals have, which are removed when their runs have ended."""
    write = Journal._write

    def kept(journal: Journal, text: str) -> None:
        with (tmp_path / JOURNALED).open("a") as file:
            file.write(text)
        write(journal, text)

    monkeypatch.setattr(Journal, "_write", kept)


class Watch:
    """Collects, while it is open, every command line on this machine that has a text in it."""

    def __init__(self, text: str) -> None:
        self._text = text.encode()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self.found: list[bytes] = []

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.2):
            for process in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    line = process.read_bytes()
                except OSError:
                    continue
                if self._text in line:
                    self.found.append(line)


def holding(directory: Path, *texts: str) -> list[Path]:
    """The files that have one of these texts in them, tables as what they hold: their pages are compressed."""
    files = [path for path in directory.rglob("*") if path.is_file()]
    return [path for path in files if any(text in content(path) for text in texts)]


def content(path: Path) -> str:
    return str(pq.read_table(path).to_pylist()) if path.suffix == ".parquet" else path.read_bytes().decode("latin-1")
