"""Replaces segment files by what compaction has left of them, so that a crash at any step loses nothing.

The steps are Kafka's (``UnifiedLog.replaceSegments``): the new file is written as ``.cleaned``, named ``.swap`` when it
is complete, the old files are removed, and it gets their first one's name. A starting broker removes what it finds as
``.cleaned``, and finishes what it finds as ``.swap``.
"""

from __future__ import annotations

from collections.abc import Sequence

from harness.broker.ports import FileSystem
from harness.broker.segment import Segment, batches_in
from harness.wire.declaration import Buffer

LOG = ".log"
CLEANED_SUFFIX = ".cleaned"
_SWAP = ".swap"


def replace(files: FileSystem, old: Sequence[Segment], batches: Sequence[Buffer]) -> None:
    """Let a file with ``batches`` take the place of the segments ``old``, which are closed.

    Raises:
        OSError: the file system refuses; a start finds the old segments, or the new one.
    """
    path = old[0].path
    cleaned = files.open(path + CLEANED_SUFFIX)
    cleaned.truncate(0)
    for batch in batches:
        rest = memoryview(batch)
        while rest:
            rest = rest[cleaned.append(rest) :]
    cleaned.flush()
    cleaned.close()
    files.rename(path + CLEANED_SUFFIX, path + _SWAP)
    for segment in reversed(old):
        segment.file.close()
        if segment is not old[0]:
            files.remove(segment.path)
    files.rename(path + _SWAP, path)


def finish(files: FileSystem, directory: str) -> None:
    """Undo or finish, in the log below ``directory``, what a crash has interrupted.

    Raises:
        OSError: the file system refuses.
    """
    names = files.list(directory)
    for name in names:
        if name.endswith(CLEANED_SUFFIX):
            files.remove(f"{directory}/{name}")
    for name in names:
        if name.endswith(LOG + _SWAP):
            _finish_one(files, directory, name, names)


def _finish_one(files: FileSystem, directory: str, name: str, names: Sequence[str]) -> None:
    swap = files.open(f"{directory}/{name}")
    ends = [header.end_offset for _, header in batches_in(swap)]
    swap.close()
    target = name.removesuffix(_SWAP)
    first = int(target.removesuffix(LOG))
    for other in names:
        stem = other.removesuffix(LOG)
        if other != stem and stem.isdecimal() and first < int(stem) < max(ends, default=first):
            files.remove(f"{directory}/{other}")
    files.rename(f"{directory}/{name}", f"{directory}/{target}")
