"""Ties ``verdict.json`` to the run that it judges, by digests of the checker's inputs and of the verdict itself.

A seal detects files that were mixed up, edited or recorded anew since the check. It is no proof against forgery:
anyone can compute the digests again. Only ``seawall check`` decides again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness import documents
from harness.documents import Unfit
from harness.history.run_directory import RunDirectory
from harness.history.schema import EVERY_TABLE

_INPUTS = "inputs"
_DIGEST = "digest"
_DOCUMENTS = ("run.json", "schedule_log.json")


def inputs(directory: RunDirectory) -> dict[str, str]:
    """The SHA-256 of the run's existing documents and tables, by name.

    A table's digest covers the names and digests of its files, in order. Hashing takes about a second per GB; a file is
    hashed again only when its size or times have changed.
    """
    found = {name: _file(directory.path / name) for name in _DOCUMENTS}
    with ThreadPoolExecutor(os.cpu_count(), "digest") as pool:
        for name in EVERY_TABLE:
            files = directory.table_files(name) if directory.has_table(name) else []
            digests = list(pool.map(_file, files))
            found[name] = _table(files, digests) if files else None
    return {name: digest for name, digest in found.items() if digest is not None}


def sealed(verdict: Mapping[str, Any], digests: Mapping[str, str]) -> dict[str, Any]:
    """The verdict with the ``digests`` of its inputs, and its own digest."""
    bound: dict[str, Any] = json.loads(json.dumps({**verdict, _INPUTS: dict(digests)}))  # as it will be read
    return {**bound, _DIGEST: _own(bound)}


def doubts(directory: RunDirectory, verdict: Mapping[str, Any]) -> Sequence[str]:
    """Why ``verdict.json`` is not the checker's verdict on its directory, a sentence each; empty: it is."""
    recorded = verdict.get(_INPUTS)
    if not isinstance(recorded, dict) or _DIGEST not in verdict:
        return ["verdict.json does not say what it was made of: it may be of another run, or of an older version."]
    if verdict[_DIGEST] != _own({name: value for name, value in verdict.items() if name != _DIGEST}):
        return ["verdict.json was changed after the checker had written it."]
    if not recorded:
        return ["verdict.json was made of a run behind a URI, of which no digests were taken: this may be another run."]
    now = inputs(directory)
    changed = [name for name in (*_DOCUMENTS, *EVERY_TABLE) if recorded.get(name) != now.get(name)]
    if not changed:
        return []
    return [f"What was checked is not what is in this directory now: {', '.join(changed)} changed since."]


def _own(document: Mapping[str, Any]) -> str:
    written = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(written.encode()).hexdigest()


def _table(files: Sequence[Path], digests: Sequence[str | None]) -> str:
    lines = [f"{path.name} {digest}\n" for path, digest in zip(files, digests, strict=True)]
    return hashlib.sha256("".join(lines).encode(errors="surrogateescape")).hexdigest()


def _file(path: Path) -> str | None:
    """The SHA-256 of a file; None: it is missing or unreadable."""
    try:
        found = path.stat()
        return _hashed(path, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    except (OSError, Unfit):
        return None


@lru_cache(maxsize=100_000)
def _hashed(path: Path, *_: int) -> str:
    with documents.opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
