"""Digests a chunk of the replicas' logs for all questions at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spark_analysis.chunks import Chunk, Groups, taken
from spark_analysis.digest_rows import Asked, Piece, nullable, word_columns

READ = (
    "run", "node", "topic", "partition", "offset", "leader_epoch", "value", "batch_crc", "intact", "producer_id",
    "producer_epoch", "sequence",
)  # fmt: skip
"""The columns that are read."""


def digest(rows: Chunk, asked: Asked) -> Iterator[Piece]:
    """Every digest of a chunk; ``digest_rows.COLUMNS`` names them."""
    yield _log_words(rows, asked.shift)
    yield _producers(rows)


def _log_words(rows: Chunk, shift: int) -> Piece:
    node, epoch, offset = (rows.numbers(name) for name in ("node", "leader_epoch", "offset"))
    value, valued, intact = rows.numbers("value"), rows.known("value"), rows.flags("intact")
    words = Groups(rows.place, node, epoch, offset >> shift)
    columns = {
        "node": words.first(node),
        "leader_epoch": words.first(epoch),
        **word_columns(words, offset, shift),
        "contents": words.print_of(offset, epoch, value, valued.astype(np.int64), rows.numbers("batch_crc")),
        "values": words.print_of(offset, value),
        "valued": words.reduced(np.add, valued.astype(np.int64)),
        "strange": words.any(~(valued & intact)),
        "damaged": nullable(words.least(offset, ~intact)),
    }
    return Piece("log_words", words.first(rows.place), columns)


def _producers(rows: Chunk) -> Piece:
    """The sequence numbers of each producer's epoch in each log: first and last, and whether they are consecutive."""
    which = rows.known("producer_id") & rows.known("sequence")
    names = ("node", "producer_id", "producer_epoch", "sequence", "offset")
    place, node, whose, epoch, sequence, offset = taken(which, rows.place, *map(rows.numbers, names))
    groups = Groups(place, node, whose, epoch)
    steady = groups.steps(lambda one, next_: (sequence[next_] != sequence[one] + 1) | (offset[next_] <= offset[one]))
    columns = {
        "node": groups.first(node),
        "producer_id": groups.first(whose),
        "producer_epoch": groups.first(epoch),
        "first": groups.first(sequence),
        "last": groups.last(sequence),
        "steady": steady,
        "offset": groups.first(offset),
        "until": groups.last(offset),
    }
    return Piece("producers", groups.first(place), columns)
