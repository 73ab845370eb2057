"""Applies a power loss to the disk of a container through the holder, which mounts the same volume and outlives it.

The shim in the node keeps the ledger of what has reached the disk; both containers see the same inodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath

from docker.models.containers import Container

from harness.targets.compose.containers import told_by
from harness.targets.kafka.flushed import Found, Listing, Loss

_NONE = "none"
_LIST = """\
list() { [ ! -e "$1" ] || find "$1" -ignore_readdir_race "${@:2}"; }
list "$1" -path "$2" -prune -o -type d -printf 'directory %i\\n' -o -type f -printf 'file %i %s %P\\n'
list "$2" -type f -printf 'older %i %s %f\\n'
"""
_TAKE = f"""\
set -e
cd "$1"
older=$2
shift 2
while [ $# -gt 0 ]; do
    if [ "$2" = {_NONE} ]; then rm "$1"
    else
        [ "$3" = {_NONE} ] || mv -f "$older/$3" "$1"
        truncate -s "$2" "$1"
    fi
    shift 3
done
"""
_FORGET = '[ ! -e "$1" ] || find "$1" -ignore_readdir_race -mindepth 1 -delete'


class HeldDisk:
    """Implements :class:`harness.targets.kafka.flushed.Disk`.

    Args:
        holder: which has the disk mounted.
        disk: the directory of the node's files in the holder.
        kept: the directory of the earlier contents of replaced files.
    """

    def __init__(self, holder: Container, disk: str, kept: str) -> None:
        self._holder = holder
        self._disk, self._kept = disk, kept

    def listing(self) -> Listing:
        """See :class:`~harness.targets.kafka.flushed.Disk`."""
        files, directories, older = {}, [], {}
        for line in self._shell(_LIST, self._disk, self._kept).splitlines():
            match line.split(" ", 3):
                case ["directory", inode]:
                    directories.append(int(inode))
                case ["file", inode, size, path]:
                    files[PurePosixPath(path)] = Found(int(inode), int(size))
                case ["older", inode, size, replaced_by]:
                    older[int(replaced_by)] = Found(int(inode), int(size))
                case _:
                    raise AssertionError(f"container {self._holder.name} lists {line!r}")
        return Listing(files, directories, older)

    def take(self, losses: Sequence[Loss]) -> None:
        """See :class:`~harness.targets.kafka.flushed.Disk`."""
        words = [word for cut, older in losses for word in (cut.path, _word(cut.after_bytes), _word(older))]
        self._shell(_TAKE, self._disk, self._kept, *words)

    def forget_older(self) -> None:
        """See :class:`~harness.targets.kafka.flushed.Disk`."""
        self._shell(_FORGET, self._kept)

    def _shell(self, script: str, *words: str) -> str:
        return told_by(self._holder, "bash", "-c", script, "seawall", *words)


def _word(number: int | None) -> str:
    return _NONE if number is None else str(number)
