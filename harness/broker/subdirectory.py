"""A directory of a file system as a file system of its own."""

from __future__ import annotations

from harness.broker.ports import File, FileSystem


class Subdirectory:
    """:class:`harness.broker.ports.FileSystem` below the directory ``name`` of ``files``.

    Its own name is made safe with the first thing in it that is.
    """

    def __init__(self, files: FileSystem, name: str) -> None:
        self._files = files
        self._name = name
        self._has_safe_name = False

    def open(self, path: str) -> File:
        """See :class:`harness.broker.ports.FileSystem`."""
        return self._files.open(self._path(path))

    def list(self, path: str) -> list[str]:
        """See :class:`harness.broker.ports.FileSystem`."""
        return self._files.list(self._path(path))

    def remove(self, path: str) -> None:
        """See :class:`harness.broker.ports.FileSystem`."""
        self._files.remove(self._path(path))

    def rename(self, source: str, destination: str) -> None:
        """See :class:`harness.broker.ports.FileSystem`."""
        self._files.rename(self._path(source), self._path(destination))
        self._flush_name()

    def remove_directory(self, path: str) -> None:
        """See :class:`harness.broker.ports.FileSystem`."""
        self._files.remove_directory(self._path(path))

    def replace_text(self, path: str, text: str, *, flush: bool) -> None:
        """See :class:`harness.broker.ports.FileSystem`."""
        self._files.replace_text(self._path(path), text, flush=flush)
        if flush:
            self._flush_name()

    def flush_directory(self, path: str) -> None:
        """See :class:`harness.broker.ports.FileSystem`."""
        self._files.flush_directory(self._path(path))
        self._flush_name()

    def read_text(self, path: str) -> str | None:
        """See :class:`harness.broker.ports.FileSystem`."""
        return self._files.read_text(self._path(path))

    def _path(self, path: str) -> str:
        return f"{self._name}/{path}" if path else self._name

    def _flush_name(self) -> None:
        if not self._has_safe_name:
            self._files.flush_directory("")
            self._has_safe_name = True
