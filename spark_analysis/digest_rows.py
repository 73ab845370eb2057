"""What digests look like: rows of whole numbers about a partition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_analysis.chunks import NEVER, Chunk, Groups, Numbers, Place

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "tally": (
        "final", "txn", "acks", "process", "known", "malformed", "rows", "offset", "index", "first"
    ),
    "order": ("first", "last", "begin_ns", "end_ns", "steady"),
    "operations": ("word", "chunk", "begun", "others", "ended", "strange"),
    "values": ("invoked", "word", "bits", "rows", "low", "high", "print", "strange"),
    "offsets": (
        "source", "whose", "word", "bits", "rows", "low", "high", "print", "strange", "acked", "first_ns", "last_ns",
        "heard_ns",
    ),
    "foretold": ("word", "chunk", "sent", "read"),
    "sends": ("offset", "row", "invoked_row"),
    "halves": ("value", "offset", "row", "invoked_row"),
    "polls": ("process", "first_row", "last_row", "first", "last", "steady"),
    "seconds": ("second", "first_ack", "last_ack", "first_try", "last_try"),
    "first_acks": ("time_ns",),
    "log_words": (
        "node", "leader_epoch", "word", "bits", "rows", "low", "high", "contents", "values", "valued", "strange",
        "damaged",
    ),
    "producers": ("node", "producer_id", "producer_epoch", "first", "last", "steady", "offset", "until"),
}  # fmt: skip
"""The digests, and what their columns ``c0``, ``c1`` ... hold, all of them whole numbers: see
:mod:`spark_analysis.digests`."""

ACKS, FINAL, EARLY, LOG = range(4)
"""Who says what is at an offset: ``source`` of ``offsets``."""

_NUMBERED = max(map(len, COLUMNS.values()))
SCHEMA = pa.schema(
    [(name, pa.string()) for name in ("digest", "run", "topic")]
    + [("partition", pa.int32())]
    + [(name, pa.string()) for name in ("f", "type")]
    + [(f"c{number}", pa.int64()) for number in range(_NUMBERED)]
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What a digest of the history depends on besides the rows.

    Attributes:
        since: by partition, with which row its final read begins; see ``checkers.final_reads``. Of a partition that is
            not there all that says so is of the final read.
        healed_ns: by run, when its last fault was healed.
        shift: by how many bits a number is shifted to the number of its word.
        rows: how many rows are looked at together.
    """

    since: Mapping[Place, int]
    healed_ns: Mapping[str, int]
    shift: int
    rows: int


def nullable(values: Numbers) -> pa.Array:
    """``values``, of which those that are of nothing are null."""
    return pa.array(values, mask=np.abs(values) == NEVER)


def piece(digest: str, rows: Chunk, place: Numbers, columns: Mapping[str, Any], **words: pa.Array) -> pa.Table:
    """A digest's rows: ``place`` tells of what each is, by the numbers of ``rows.places``."""
    number = len(place)
    names = zip(*rows.places, strict=True)
    types = (pa.string(), pa.string(), pa.int32())
    run, topic, partition = (
        pa.array(name, kind).take(pa.array(place)) for name, kind in zip(names, types, strict=True)
    )
    known = {"digest": pa.repeat(digest, number), "run": run, "topic": topic, "partition": partition, **words}
    for position, name in enumerate(COLUMNS[digest]):
        values = columns[name]
        known[f"c{position}"] = values.cast(pa.int64()) if isinstance(values, pa.Array) else pa.array(_whole(values))
    return pa.table([known[one.name] if one.name in known else pa.nulls(number, one.type) for one in SCHEMA], SCHEMA)


def _whole(values: npt.NDArray[Any]) -> Numbers:
    return np.ascontiguousarray(values).astype(np.int64, copy=False)


def word_columns(words: Groups, number: Numbers, shift: int) -> dict[str, Numbers]:
    """What :func:`spark_analysis.blocks.words` tells of each word of numbers."""
    return {
        "word": words.first(number >> shift),
        "bits": words.bits(number, shift),
        "rows": words.rows(),
        "low": words.least(number),
        "high": words.most(number),
    }
