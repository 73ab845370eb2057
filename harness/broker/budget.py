"""The disk-full fault: how many bytes a node may still write, in all and per directory, before ENOSPC."""

from __future__ import annotations


class Budgeted:
    """A disk with a limit, or several.

    Attributes:
        free_bytes: how much may still be written anywhere; None: as much as the machine takes.
        free_within: the same for what lies below one directory at the top, by its name.
    """

    def __init__(self, free_bytes: int | None = None) -> None:
        self.free_bytes = free_bytes
        self.free_within: dict[str, int] = {}

    def limit(self, directory: str, free_bytes: int | None) -> None:
        """Let ``directory`` (``""``: everything) take ``free_bytes`` more; None lifts the limit."""
        if not directory:
            self.free_bytes = free_bytes
        elif free_bytes is None:
            self.free_within.pop(directory, None)
        else:
            self.free_within[directory] = free_bytes

    def free_for(self, path: str) -> int | None:
        """How much the file ``path`` may still take; None: any number of bytes."""
        if not self.free_within:
            return self.free_bytes
        limits = [self.free_bytes, self.free_within.get(top(path))]
        return min((limit for limit in limits if limit is not None), default=None)

    def take(self, path: str, size: int) -> None:
        """Count ``size`` more bytes (fewer, when negative) of the file ``path``."""
        if self.free_bytes is not None:
            self.free_bytes -= size
        if self.free_within and top(path) in self.free_within:
            self.free_within[top(path)] -= size


def top(path: str) -> str:
    """The first part of ``path``."""
    return path.partition("/")[0]
