"""Turns an ``OSError`` of a write into an ``EnvironmentFault`` that names the file and a remedy."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import EnvironmentFault

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_REFUSALS = _FULL | {errno.EROFS, errno.EIO}
"""The error numbers that only a write can cause."""


def unwritable(path: Path, error: OSError, what: str = "cannot be written") -> EnvironmentFault:
    """The error for a user that ``path`` cannot be written because of ``error``."""
    reason = os.strerror(error.errno) if error.errno else str(error).partition("\n")[0].rstrip(".")
    remedy = "Make room there, or name" if error.errno in _FULL else "Name"
    return EnvironmentFault(f"{path} {what}: {reason}.", f"{remedy} another place with --out.")


@contextmanager
def writing_below(path: Path) -> Iterator[None]:
    """Make a refused write inside name ``path``, for the system's error may name no file.

    Raises:
        EnvironmentFault: instead of such an ``OSError``.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _REFUSALS:
            raise
        raise unwritable(path, error) from error
