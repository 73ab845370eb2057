"""What the system does not let be written, in one sentence that names it, and a remedy."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import EnvironmentFault

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_REFUSALS = _FULL | {errno.EROFS, errno.EIO}
"""What only a write is refused with, whatever it was to."""


def unwritable(path: Path, error: OSError, what: str = "cannot be written") -> EnvironmentFault:
    """That ``path`` cannot be written because of ``error``, as an error for a person."""
    reason = os.strerror(error.errno) if error.errno else str(error).partition("\n")[0].rstrip(".")
    remedy = "Make room there, or name" if error.errno in _FULL else "Name"
    return EnvironmentFault(f"{path} {what}: {reason}.", f"{remedy} another place with --out.")


@contextmanager
def writing_below(path: Path) -> Iterator[None]:
    """Let what the system refuses to write inside name ``path``: its own error names no file.

    Raises:
        EnvironmentFault: instead of such an ``OSError``. All others stay as they are.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _REFUSALS:
            raise
        raise unwritable(path, error) from error
