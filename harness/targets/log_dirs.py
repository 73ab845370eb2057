"""Finds, fails and replaces the log directories of a node on real files.

A directory fails as in Kafka's tests of KIP-112: it is put aside, and a plain file takes its place. A broker that opens
a file in it gets ``ENOTDIR``: for checkpoints, new segments, new partitions, and at start. Open files stay usable. This
needs no privileges and no separate file system, unlike a read-only remount, which Linux refuses while a file is open
for writing.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Mapping, Sequence
from errno import ENOSPC, ENOTDIR
from pathlib import Path
from typing import Any, NamedTuple

from harness.broker.checkpoints import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from harness.errors import EnvironmentFault
from harness.target import Receipt

_ASIDE = ".aside"
_DISCARDED = ".discarded"
_PROBE = ".probe"
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2


def named(names: Sequence[str], log_dir: int | None) -> str:
    """The path of log directory number ``log_dir``, relative to the data directory; None: all of that.

    Raises:
        EnvironmentFault: there is none.
    """
    if log_dir is None:
        return ""
    if log_dir >= len(names):
        raise EnvironmentFault(
            f"there is no log directory {log_dir}: each broker has {len(names)}.", "Set log.dirs.count to have more."
        )
    return names[log_dir]


def found_in(data_dir: Path) -> list[Path]:
    """The log directories of a data directory: those below it, or else itself.

    The log of partition 0 of a topic ``log`` has such a name, too, but has segments, and checkpoints beside it.
    """
    if any((data_dir / checkpoint).exists() for checkpoint in (HIGH_WATERMARKS, RECOVERY_POINTS, LOG_STARTS)):
        return [data_dir]
    below = [path for path in sorted(data_dir.glob("log-*")) if path.is_dir() and not any(path.glob("*.log"))]
    return below or [data_dir]


# ------------------------------------------------------------------------------------------------------------ failing


def fail(directory: Path) -> None:
    """Exchange ``directory`` for a file atomically, so that the broker cannot create a new one meanwhile.

    Raises:
        EnvironmentFault: the file system cannot exchange two names.
    """
    aside = _beside(directory, _ASIDE)
    if aside.is_dir():
        return
    directory.mkdir(parents=True, exist_ok=True)
    aside.touch()
    _exchange(directory, aside)


def mend(directory: Path, *, empty: bool = False) -> bool:
    """Put ``directory`` back, or, if it is to be ``empty``, a new one; returns whether it had failed.

    It has failed while something is aside, whatever is in its place. A killed call is completed by the next one.
    """
    aside, discarded = _beside(directory, _ASIDE), _beside(directory, _DISCARDED)
    if aside.is_dir() and empty:
        _remove(discarded)
        aside.rename(discarded)
    has_failed = aside.is_dir() or not directory.is_dir()
    if not aside.is_dir():
        if has_failed:
            _remove(directory)
            directory.mkdir(parents=True)
    elif directory.exists():
        _exchange(directory, aside)
    else:
        aside.rename(directory)
    _remove(aside)
    _remove(discarded)
    return has_failed


def mend_all(below: Path) -> list[str]:
    """Put back everything that was put aside ``below`` a directory; returns the paths."""
    left = {_place_of(path) for suffix in (_ASIDE, _DISCARDED) for path in below.rglob(f"*{suffix}")}
    return [str(directory) for directory in sorted(left) if mend(directory)]


class NewDisk(NamedTuple):
    """An empty directory that replaced a failed one.

    Attributes:
        incarnation: the broker's last one before.
        found: the names in it right afterwards: none.
    """

    incarnation: int
    found: Sequence[str]


def refusal_of(directory: Path) -> int | None:
    """The ``errno`` that creating a file in ``directory`` gets; None: it works."""
    probe = directory / _PROBE
    try:
        os.close(os.open(probe, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
        probe.unlink()
    except OSError as error:
        return error.errno
    return None


_INTO = "%"


def _beside(directory: Path, suffix: str) -> Path:
    """A path beside the data directory, which is no part of the disk."""
    if directory.name.startswith("log-"):
        return directory.parent.with_name(f"{directory.parent.name}{_INTO}{directory.name}{suffix}")
    return directory.with_name(directory.name + suffix)


def _place_of(beside: Path) -> Path:
    """The directory whose name, with a suffix, is that of ``beside``."""
    return beside.parent / beside.stem.replace(_INTO, os.sep)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _exchange(one: Path, other: Path) -> None:
    """Exchange two names atomically (``renameat2(2)``)."""
    failed = ctypes.CDLL(None, use_errno=True).renameat2(
        _AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE
    )
    if failed:
        why = os.strerror(ctypes.get_errno())
        raise EnvironmentFault(
            f"{one} and {other} cannot change places: {why}.", "Write runs to a file system such as ext4, xfs or tmpfs."
        )


# ------------------------------------------------------------------------------------------------------------ in words


def offline(status: Mapping[str, Any]) -> list[int]:
    """The offline log directories in a broker's status."""
    return [number for number, one in enumerate(status.get("log_dirs", ())) if one["errno"] is not None]


def newness(node: str, log_dir: int, disk: NewDisk | None, incarnation: int) -> Receipt:
    """Whether log directory ``log_dir`` was replaced by an empty one before this ``incarnation`` of the broker."""
    if disk is None:
        return Receipt(False, f"node {node}: log directory {log_dir} was not replaced")
    seen = f"node {node}: log directory {log_dir} was replaced after incarnation {disk.incarnation} had ended, and "
    seen += f"held {', '.join(disk.found) or 'nothing'}; incarnation {incarnation} has it now"
    return Receipt(not disk.found and incarnation > disk.incarnation, seen)


def failure(node: str, log_dir: int, refusal: int | None) -> Receipt:
    """Whether log directory ``log_dir`` has failed, by the ``errno`` of creating a file in it; None: that worked."""
    return Receipt(refusal == ENOTDIR, f"node {node}: a new file in log directory {log_dir} got errno {refusal}")


def fullness(node: str, full: str, probes: Mapping[str, int | None]) -> Receipt:
    """Whether writes are refused for lack of space below ``full``, and nowhere else.

    ``probes`` are the ``errno`` that a write of 64 KiB got in each directory; None: it worked.
    """
    others = {name: errno for name, errno in probes.items() if name != full}
    seen = f"node {node}: a scratch write of 64 KiB{f' in {full}' if full else ''} got errno {probes[full]}"
    seen += "".join(f", in {name} errno {errno}" for name, errno in others.items())
    return Receipt(probes[full] == ENOSPC and not any(others.values()), seen)


def writable(node: str, probes: Mapping[str, int | None]) -> Receipt:
    """Whether writes work in all directories; ``probes`` as for :func:`fullness`."""
    seen = ", ".join(f"in {name or 'its log directory'} errno {errno}" for name, errno in probes.items())
    worked = all(errno is None for errno in probes.values())
    return Receipt(worked, f"node {node}: a scratch write of 64 KiB {'worked' if worked else 'did not work'}: {seen}")


def refused_write(node: str, refusals: Sequence[Mapping[str, Any]], log_dir: int | None) -> Receipt:
    """Whether a node reports a refused write of its own: in log directory ``log_dir``; None: anywhere."""
    for refusal in refusals:
        if refusal["errno"] == ENOSPC and log_dir in (None, refusal.get("log_dir")):
            what = f"{refusal['operation']} {refusal['partition'] or ''}".rstrip()
            where = "" if log_dir is None else f" in log directory {log_dir}"
            torn = f"{refusal['torn_bytes']} torn bytes were cut off again"
            return Receipt(
                True, f"node {node}: a write of its own ({what}){where} was refused with errno {ENOSPC}; {torn}"
            )
    return Receipt(False, f"node {node}: no write of its own was refused")
