"""The broker's ports: a network, a file system, and (``harness.clock``) a clock.

The real driver implements these with asyncio and the operating system; a simulated driver can run the very
same broker, codec and segment files included, in virtual time. Nothing below a port may block, and nothing
above one may ``await``: handlers are plain functions, and waiting is an entry in a purgatory.

A node can die in two ways. A *kill* keeps all that was written. A *power loss* keeps what was flushed:

* a file's bytes, up to the size it had at its last :meth:`File.flush`;
* an entry of a directory (a file's or a directory's name), once :meth:`FileSystem.flush_directory` ran on that
  directory after the entry came to be; what lies below a lost entry is lost with it;
* of a text, the newest one that was replaced with ``flush=True``, and its name: an unflushed replacement is undone.

Cutting a file and removing one are durable at once (a journal may keep them either way; this way loses most).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

Buffer = bytes | bytearray | memoryview


class Timer(Protocol):
    """A pending :meth:`Network.call_later`."""

    def cancel(self) -> None:
        """Make sure that the callback will not run; harmless when it already has."""
        ...


class Connection(Protocol):
    """One established, ordered, reliable stream of length-prefixed frames."""

    peer: str
    """The node at the other end as a link end: a broker's id in decimal, ``controller`` or ``clients``."""

    @property
    def host(self) -> str:
        """The address of the other end."""
        ...

    def send(self, segments: list[Buffer]) -> None:
        """Queue one frame, given without its 4-byte length prefix, as segments that are written in order.

        Never blocks; on a connection that is already lost it does nothing.
        """
        ...

    def close(self) -> None:
        """Close the stream; ``on_lost`` follows."""
        ...

    def pause(self) -> None:
        """Deliver no further frames until :meth:`resume`: the owner has more than enough unanswered ones."""
        ...

    def resume(self) -> None:
        """Deliver frames again, later (never from within this call)."""
        ...

    def watch_hangup(self, hung_up: Callable[[], None]) -> None:
        """Have ``hung_up`` called, once and later, when the peer hangs up while this end is paused.

        What the peer sent before is still delivered after :meth:`resume`, and ``on_lost`` follows. While the link from
        the peer is cut, the hang-up is not noticed.
        """
        ...


class FrameHandler(Protocol):
    """The owner of a connection."""

    def on_frame(self, frame: memoryview) -> None:
        """One whole frame without its length prefix; the memory is only valid during the call."""
        ...

    def on_lost(self) -> None:
        """The connection was closed, by either end; called once."""
        ...


class Network(Protocol):
    """Streams between named nodes, and timers."""

    def listen(self, address: tuple[str, int], accept: Callable[[Connection], FrameHandler]) -> None:
        """Accept connections at ``address`` until the network closes.

        Raises:
            OSError: the address is taken or not ours.
        """
        ...

    def connect(
        self,
        address: tuple[str, int],
        peer: str,
        connected: Callable[[Connection], FrameHandler],
        failed: Callable[[], None],
    ) -> None:
        """Open a stream to node ``peer``; exactly one of ``connected`` and ``failed`` is called, later."""
        ...

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        """Run ``callback`` once, ``delay_s`` monotonic seconds from now."""
        ...


class File(Protocol):
    """One open file. Offsets and sizes are bytes."""

    def append(self, data: Buffer) -> int:
        """Write at the end, as ``write(2)`` does: may write less than asked, and returns how much.

        Raises:
            OSError: ``ENOSPC``, ``EIO`` ...: nothing was written by this call.
        """
        ...

    def read(self, position: int, size: int) -> bytes:
        """Up to ``size`` bytes from ``position``; fewer only at the end of the file."""
        ...

    def size(self) -> int:
        """The length of the file."""
        ...

    def truncate(self, size: int) -> None:
        """Cut the file to ``size``; works on a full disk."""
        ...

    def flush(self) -> None:
        """``fdatasync``: what the file holds now survives a power loss, if its name does."""
        ...

    def close(self) -> None:
        """Close the descriptor."""
        ...


class FileSystem(Protocol):
    """One broker's data directory. Paths are relative to it, with ``/``."""

    def open(self, path: str) -> File:
        """Open for reading and appending; created when missing (parents too)."""
        ...

    def list(self, path: str) -> list[str]:
        """The names in a directory, sorted; empty when it does not exist.

        Raises:
            OSError: it cannot be listed: ``ENOTDIR`` when it has failed.
        """
        ...

    def remove(self, path: str) -> None:
        """Delete a file."""
        ...

    def rename(self, source: str, destination: str) -> None:
        """Give a flushed and closed file another name, which another file may have; a power loss undoes nothing of it.

        Raises:
            OSError: nothing has changed.
        """
        ...

    def remove_directory(self, path: str) -> None:
        """Delete a directory, which must be empty; nothing happens if there is none.

        Raises:
            OSError: it is not empty.
        """
        ...

    def replace_text(self, path: str, text: str, *, flush: bool) -> None:
        """Atomically replace a small file: write a temporary, rename; ``flush`` makes this text and its name safe.

        Raises:
            OSError: the old content is still there.
        """
        ...

    def flush_directory(self, path: str) -> None:
        """``fsync`` of a directory (``""``: the data directory): its entries survive a power loss."""
        ...

    def read_text(self, path: str) -> str | None:
        """A small file's content; None when it does not exist."""
        ...
