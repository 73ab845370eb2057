"""Reduces the files of large runs to digests, before Spark reads their rows.

Spark would read every row once for each question. A digest reads a chunk of some ten thousand rows once for all
questions: rows in order become one row for a whole interval, and facts about 64 neighbouring offsets, values or
operations become the bits of a word. :mod:`spark_analysis.digests` then compares the chunks with each other.

This runs where the files are, in Spark's Python workers, so it needs nothing but NumPy and Arrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness import compacted
from spark_analysis import history_digest, log_digest
from spark_analysis.chunks import Chunk
from spark_analysis.digest_rows import Asked, assembled

CHUNK = 1 << 16
"""How many rows are digested together."""

_WORDS = frozenset({"run", "topic", "f", "type"})


def digested(contents: Iterable[pa.RecordBatch], table: str, asked: Asked) -> Iterator[pa.RecordBatch]:
    """The digests of Parquet files of ``table``, each of which is a row of ``contents``; see ``digest_rows.SCHEMA``."""
    digest = {"history": history_digest, "replica_logs": log_digest}[table]
    for batch in contents:
        for content in batch.column(0):
            words = _WORDS.intersection(digest.READ)
            file = pq.ParquetFile(pa.BufferReader(content.as_buffer()), read_dictionary=words)
            for read in file.iter_batches(asked.rows, columns=list(digest.READ), use_threads=False):
                rows = read if table == "history" else read.filter(pc.field("topic") != compacted.TOPIC)
                if rows.num_rows:
                    chunk = Chunk(rows)
                    yield assembled(chunk, list(digest.digest(chunk, asked)))
