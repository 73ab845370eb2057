"""What a frame says of one partition, or of one batch, as :mod:`harness.wire.summary` puts it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.wire.batches.header import BatchHeader, headers
from harness.wire.batches.stored import pieces
from harness.wire.declaration import Buffer
from harness.wire.errors import CorruptBatch

Part = dict[str, Any]
"""What a frame says of one partition, by the columns of the table ``wire``; JSON can carry it."""

Names = Mapping[bytes, str]
"""The names of topics by id."""


def known(number: int) -> int | None:
    """A number of which -1 means that there is none."""
    return None if number < 0 else number


def batch_headers(records: Buffer | None) -> Iterator[BatchHeader]:
    """The headers of the batches up to the first that is torn, as the last one of a fetch may be, or of format 0 or 1.

    A batch that claims nonsense ends them, too.
    """
    for piece in pieces(memoryview(records or b"")):
        try:
            yield from headers(piece)
        except CorruptBatch:
            return


def of_batch(header: BatchHeader) -> Part:
    """What a producer has written into the header of a batch."""
    numbered = header.producer_id >= 0
    return {
        "records": header.record_count,
        "batch_crc": header.crc,
        "producer_id": header.producer_id if numbered else None,
        "producer_epoch": header.producer_epoch if numbered else None,
        "base_sequence": known(header.base_sequence) if numbered else None,
    }
