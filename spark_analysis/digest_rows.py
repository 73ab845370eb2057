"""The schema of digests: rows of whole numbers about a partition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_analysis.chunks import NEVER, Chunk, Groups, Numbers, Place

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "tally": (
        "final", "txn", "acks", "process", "known", "malformed", "later", "rows", "offset", "index", "first",
        "last_ns",
    ),
    "order": ("first", "last", "begin_ns", "end_ns", "steady"),
    "operations": ("word", "first", "last", "begun", "others", "ended", "strange"),
    "values": ("invoked", "word", "bits", "rows", "low", "high", "print", "strange"),
    "offsets": (
        "source", "whose", "word", "bits", "rows", "low", "high", "print", "strange", "acked", "first_ns", "last_ns",
        "heard_ns",
    ),
    "foretold": ("word", "first", "last", "sent", "read"),
    "sends": ("offset", "row", "invoked_row"),
    "halves": ("value", "offset", "row", "invoked_row", "since", "heard"),
    "overtaking": ("row", "delivered", "sent", "since"),
    "polls": ("process", "first_row", "last_row", "first", "last", "steady"),
    "seconds": ("second", "first_ack", "last_ack", "first_try", "last_try", "last_end"),
    "first_acks": ("time_ns",),
    "log_words": (
        "node", "leader_epoch", "word", "bits", "rows", "low", "high", "contents", "values", "valued", "strange",
        "damaged",
    ),
    "producers": ("node", "producer_id", "producer_epoch", "first", "last", "steady", "offset", "until"),
}  # fmt: skip
"""By digest, what its columns ``c0``, ``c1`` ... hold, all of them whole numbers: see
:mod:`spark_analysis.digests`."""

ACKS, FINAL, EARLY, LOG = range(4)
"""The witness of what is at an offset: ``source`` of ``offsets``."""

_NUMBERED = max(map(len, COLUMNS.values()))
SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("digest", "run", "topic")]
    + [("partition", pa.int32())]
    + [(name, pa.string()) for name in ("f", "type")]
    + [(f"c{number}", pa.int64()) for number in range(_NUMBERED)]
)


@dataclass(frozen=True, slots=True)
class Asked:
    """The inputs of a digest of the history besides its rows.

    Attributes:
        since: by partition, the row at which its final read begins; see ``checkers.views.final_reads``. In a partition
            that is not there all rows marked as final are of the final read.
        healed_ns: by run, when its last fault was healed.
        shift: by how many bits a number is shifted to the number of its word.
        rows: how many rows are digested together.
    """

    since: Mapping[Place, int]
    healed_ns: Mapping[str, int]
    shift: int
    rows: int


class Piece(NamedTuple):
    """Rows of a digest of a chunk.

    Attributes:
        digest: which of :data:`COLUMNS`.
        place: of which partition each row is, by the numbers of ``Chunk.places``.
        columns: their values, by the names of :data:`COLUMNS`; what is masked is null.
        words: their columns that are words.
    """

    digest: str
    place: Numbers
    columns: Mapping[str, npt.NDArray[Any]]
    words: Mapping[str, pa.Array] = MappingProxyType({})


def nullable(values: Numbers) -> npt.NDArray[Any]:
    """``values``, of which those that are of nothing are null."""
    return np.ma.MaskedArray(values, np.abs(values) == NEVER)


def assembled(rows: Chunk, pieces: Sequence[Piece]) -> pa.RecordBatch:
    """The pieces of a chunk, with the columns of :data:`SCHEMA`."""
    numbers = [len(piece.place) for piece in pieces]
    place = pa.array(np.concatenate([piece.place for piece in pieces]))
    names = pa.array([piece.digest for piece in pieces]).take(pa.array(np.repeat(np.arange(len(pieces)), numbers)))
    places = zip(("run", "topic", "partition"), zip(*rows.places, strict=True), strict=True)
    known = {"digest": names, **{name: pa.array(of, SCHEMA.field(name).type).take(place) for name, of in places}}
    for name in ("f", "type"):
        arrays = [piece.words.get(name) for piece in pieces]
        nulls = (pa.nulls(number, pa.string()) for number in numbers)
        known[name] = pa.concat_arrays([null if one is None else one for one, null in zip(arrays, nulls, strict=True)])
    for position in range(_NUMBERED):
        columns = [_column(piece, position) for piece in pieces]
        values = np.concatenate([np.ma.getdata(column) for column in columns])
        known[f"c{position}"] = pa.array(values, mask=np.concatenate([np.ma.getmaskarray(one) for one in columns]))
    return pa.RecordBatch.from_arrays([known[one.name] for one in SCHEMA], schema=SCHEMA)


def _column(piece: Piece, position: int) -> npt.NDArray[Any]:
    names = COLUMNS[piece.digest]
    if position >= len(names):
        return np.ma.MaskedArray(np.zeros(len(piece.place), np.int64), True)
    return piece.columns[names[position]].astype(np.int64, copy=False)


def word_columns(words: Groups, number: Numbers, shift: int) -> dict[str, Numbers]:
    """The columns of :func:`spark_analysis.blocks.words` for each word of numbers."""
    return {
        "word": words.first(number >> shift),
        "bits": words.bits(number, shift),
        "rows": words.rows(),
        "low": words.least(number),
        "high": words.most(number),
    }
