"""The secret of a run, by which its nodes and its harness authenticate each other.

An address proves nothing: any user may connect from any address in 127.0.0.0/8, and may listen at the address of a dead
node. So the caller introduces itself first, and the called node proves in its reply that it knows the secret, too. An
introduction has :data:`INTRODUCTION_BYTES` bytes: the time at which it was made, a nonce, and an HMAC-SHA-256 of both
and of the names of both ends. It costs no round trip: the caller sends its requests right behind it, as it would
without one, over a link that is cut in one direction too.

An introduction cannot be replayed. The caller makes it once the connection is open; a listener refuses those that were
made before it began to listen, and receives every later one itself, because the kernel gives an address to one
listener. ``CLOCK_MONOTONIC`` is the same for all processes of a host, and no fault touches it.
"""

from __future__ import annotations

import hmac
import os
import secrets
import struct
import time
from dataclasses import dataclass, field
from typing import BinaryIO, Self

HARNESS = "harness"
"""The name by which the harness introduces itself: that of no node."""

_SECRET_BYTES = 32
_STAMP = struct.Struct(">q16s")
_PROOF_BYTES = 32
INTRODUCTION_BYTES = _STAMP.size + _PROOF_BYTES


@dataclass(frozen=True, slots=True)
class Secret:
    """The secret of one run."""

    key: bytes = field(repr=False)

    @classmethod
    def draw(cls) -> Self:
        """A new one."""
        return cls(secrets.token_bytes(_SECRET_BYTES))

    @classmethod
    def receive(cls, stream: BinaryIO) -> Self:
        """Read the secret from :meth:`told`.

        Raises:
            ValueError: it was not that.
        """
        key = bytes.fromhex(stream.readline().decode("ascii"))
        if len(key) != _SECRET_BYTES:
            raise ValueError(f"a secret of {len(key)} bytes instead of {_SECRET_BYTES}")
        return cls(key)

    def told(self) -> BinaryIO:
        """A pipe with the secret, for the standard input of a node: no other user can read it."""
        reading, writing = os.pipe()
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(self.key.hex().encode() + b"\n")
        return os.fdopen(reading, "rb")

    def introduction(self, caller: str, called: str) -> bytes:
        """The first frame of ``caller`` on an open connection to ``called``."""
        stamp = _STAMP.pack(time.monotonic_ns(), secrets.token_bytes(16))
        return stamp + self._proof(b"I am", caller, called, stamp)

    def knows(self, introduction: bytes, caller: str, called: str, since_ns: int) -> bool:
        """Whether this is an introduction of ``caller`` to ``called``, made at ``since_ns`` or later."""
        if len(introduction) != INTRODUCTION_BYTES:
            return False
        stamp, proof = introduction[: _STAMP.size], introduction[_STAMP.size :]
        is_genuine = hmac.compare_digest(proof, self._proof(b"I am", caller, called, stamp))
        return is_genuine and _STAMP.unpack(stamp)[0] >= since_ns

    def reply(self, introduction: bytes, caller: str, called: str) -> bytes:
        """The first frame of ``called`` to a ``caller`` that it knows."""
        return self._proof(b"So am I", caller, called, introduction)

    def is_reply(self, reply: bytes, introduction: bytes, caller: str, called: str) -> bool:
        """Whether this is the reply of ``called`` to that introduction."""
        return hmac.compare_digest(reply, self.reply(introduction, caller, called))

    def _proof(self, what: bytes, caller: str, called: str, text: bytes) -> bytes:
        message = b"\0".join((what, caller.encode(), called.encode(), text))
        return hmac.digest(self.key, message, "sha256")
