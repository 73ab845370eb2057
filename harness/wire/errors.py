"""What decoding raises: a peer's bytes are wrong. The owner of the connection answers or hangs up."""

from __future__ import annotations


class WireError(Exception):
    """These bytes are not the message they should be, or not one that we speak."""


class CorruptBatch(WireError):
    """A record batch is torn, has a length or magic that cannot be, or holds records that do not parse.

    A wrong checksum is not an exception but the answer of :func:`harness.wire.batches.verify`.
    """
