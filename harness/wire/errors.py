"""The errors of decoding malformed bytes of a peer, on which the connection's owner answers or closes it."""

from __future__ import annotations


class WireError(Exception):
    """These bytes are not the expected message, or an unsupported one."""


class CorruptBatch(WireError):
    """A record batch is torn, has a length or magic that cannot be, or holds records that do not parse.

    A wrong checksum is not an exception but the answer of :func:`harness.wire.batches.verify`.
    """
