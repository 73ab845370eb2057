"""The log directories of a node on real files: which there are, how one fails, and what is said about them.

A directory fails as in Kafka's own tests of KIP-112: what is there is put aside, and a plain file takes its place.
Whoever names a file in it gets ``ENOTDIR``: checkpoints, new segments, new partitions, and a start. What was open
before stays usable until then. It takes no privileges, and no file system of its own, unlike a volume that is
remounted read-only, which Linux refuses anyhow while somebody has a file on it open for writing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.broker.checkpoints import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS
from harness.errors import EnvironmentFault
from harness.target import Receipt

_ENOSPC = 28
_ASIDE = ".aside"
_PROBE = ".probe"


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

    The log of partition 0 of a topic ``log`` looks like one, but for its segments, and for the checkpoints beside it.
    """
    if any((data_dir / checkpoint).exists() for checkpoint in (HIGH_WATERMARKS, RECOVERY_POINTS, LOG_STARTS)):
        return [data_dir]
    below = [path for path in sorted(data_dir.glob("log-*")) if path.is_dir() and not any(path.glob("*.log"))]
    return below or [data_dir]


# ------------------------------------------------------------------------------------------------------------ failing


def fail(directory: Path) -> None:
    """Put ``directory`` aside, and a file in its place."""
    aside = _aside(directory)
    if not aside.exists() and directory.is_dir():
        directory.rename(aside)
    directory.touch()


def mend(directory: Path, *, empty: bool = False) -> None:
    """Put ``directory`` back, or, if it is to be ``empty``, a new one; harmless when it has not failed."""
    if directory.is_dir():
        return
    aside = _aside(directory)
    directory.unlink(missing_ok=True)
    if aside.exists() and not empty:
        aside.rename(directory)
    else:
        directory.mkdir(parents=True)
        shutil.rmtree(aside, ignore_errors=True)


def mend_all(below: Path) -> list[str]:
    """Put back whatever has been put aside ``below`` a directory; returns the paths of what has."""
    mended = []
    for aside in sorted(below.rglob(f"*{_ASIDE}")):
        directory = aside.parent / aside.name.removesuffix(_ASIDE).replace(_INTO, os.sep)
        mend(directory)
        mended.append(str(directory))
    return mended


class NewDisk(NamedTuple):
    """An empty directory that was put in for one that had failed.

    Attributes:
        incarnation: of the broker that had ended before.
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


def _aside(directory: Path) -> Path:
    """Beside the data directory, so that it is no part of the disk while it is away."""
    if directory.name.startswith("log-"):
        return directory.parent.with_name(f"{directory.parent.name}{_INTO}{directory.name}{_ASIDE}")
    return directory.with_name(directory.name + _ASIDE)


# ------------------------------------------------------------------------------------------------------------ in words


def offline(status: Mapping[str, Any]) -> list[int]:
    """The log directories that a broker, by its status, has given up."""
    return [number for number, one in enumerate(status.get("log_dirs", ())) if one["errno"] is not None]


def newness(node: str, log_dir: int, disk: NewDisk | None, incarnation: int) -> Receipt:
    """Whether log directory ``log_dir`` is an empty one that was put in before this ``incarnation`` of the broker."""
    if disk is None:
        return Receipt(False, f"node {node}: log directory {log_dir} was not replaced")
    seen = f"node {node}: log directory {log_dir} was replaced after incarnation {disk.incarnation} had ended, and "
    seen += f"held {', '.join(disk.found) or 'nothing'}; incarnation {incarnation} has it now"
    return Receipt(not disk.found and incarnation > disk.incarnation, seen)


def fullness(node: str, full: str, probes: Mapping[str, int | None]) -> Receipt:
    """Whether writes below ``full`` are refused for want of space, and nowhere else.

    ``probes`` are the ``errno`` that a write of 64 KiB got in each directory; None: it worked.
    """
    others = {name: errno for name, errno in probes.items() if name != full}
    seen = f"node {node}: a scratch write of 64 KiB{f' in {full}' if full else ''} got errno {probes[full]}"
    seen += "".join(f", in {name} errno {errno}" for name, errno in others.items())
    return Receipt(probes[full] == _ENOSPC and not any(others.values()), seen)


def writable(node: str, probes: Mapping[str, int | None]) -> Receipt:
    """Whether writes work in all directories; ``probes`` as for :func:`fullness`."""
    seen = ", ".join(f"in {name or 'its log directory'} errno {errno}" for name, errno in probes.items())
    worked = all(errno is None for errno in probes.values())
    return Receipt(worked, f"node {node}: a scratch write of 64 KiB {'worked' if worked else 'did not work'}: {seen}")


def refused_write(node: str, refusals: Sequence[Mapping[str, Any]], log_dir: int | None) -> Receipt:
    """Whether a node says that a write of its own found no space: in log directory ``log_dir``; None: anywhere."""
    for refusal in refusals:
        if refusal["errno"] == _ENOSPC and log_dir in (None, refusal.get("log_dir")):
            what = f"{refusal['operation']} {refusal['partition'] or ''}".rstrip()
            where = "" if log_dir is None else f" in log directory {log_dir}"
            torn = f"{refusal['torn_bytes']} torn bytes were cut off again"
            return Receipt(
                True, f"node {node}: a write of its own ({what}){where} was refused with errno {_ENOSPC}; {torn}"
            )
    return Receipt(False, f"node {node}: no write of its own was refused")
