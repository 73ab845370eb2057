"""The digests of large runs as tables, combined from the digests of their files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType

from pyspark import cloudpickle
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from harness.errors import EnvironmentFault
from spark_analysis import blocks, chunks, digest_rows, digesting, history_digest, log_digest
from spark_analysis.blocks import merged
from spark_analysis.chunks import NEVER, Place
from spark_analysis.digest_rows import COLUMNS, SCHEMA, Asked
from spark_analysis.digesting import digested
from spark_analysis.files import TableFile
from spark_analysis.result_cache import Hold
from spark_analysis.tables import PLACE

# A worker need not have seawall: the functions travel with the task.
for _module in (chunks, digest_rows, digesting, history_digest, log_digest):
    cloudpickle.register_pickle_by_value(_module)  # type: ignore[no-untyped-call]

_FLAGS = frozenset({"final", "txn", "known", "malformed", "later", "steady", "invoked", "strange"})
_INTEGERS = frozenset({"acks", "process", "node", "leader_epoch", "producer_epoch"})
_SCHEMA = t.StructType(
    [
        *[t.StructField(name, t.StringType()) for name in ("digest", "run", "topic")],
        t.StructField("partition", t.IntegerType()),
        *[t.StructField(name, t.StringType()) for name in ("f", "type")],
        *[t.StructField(name, t.LongType()) for name in SCHEMA.names if name.startswith("c")],
    ]
)
MOST_BYTES = 64 * 1024 * 1024
"""How large a file may be: a task holds it three times while it is handed over."""

_TABLES = ("history", "replica_logs")
_ONE_FILE = "spark.sql.execution.arrow.maxRecordsPerBatch"


class Digests:
    """The digests of some files; every method returns one of them, combined from those of all chunks.

    Args:
        spark: the session.
        files: by table name, the files of all runs.
        hold: keeps a digest as long as it is referred to.
        only_run: the run whose rows all of them are; None: there are several.
        healed_ns: by run, when its last fault was healed.
        since: by partition, the row at which its final read begins.

    Raises:
        EnvironmentFault: a file is too large to be held in memory.
    """

    def __init__(
        self,
        spark: SparkSession,
        files: Mapping[str, Sequence[TableFile]],
        hold: Hold,
        *,
        only_run: str | None,
        healed_ns: Mapping[str, int],
        since: Mapping[Place, int] = MappingProxyType({}),
    ) -> None:
        self._again = partial(Digests, spark, files, hold, only_run=only_run, healed_ns=healed_ns)
        asked = Asked(dict(since), dict(healed_ns), blocks.WORD_SHIFT, digesting.CHUNK)
        usual = spark.conf.get(_ONE_FILE)
        spark.conf.set(_ONE_FILE, "1")
        try:
            parts = [_digested(spark, files.get(name, ()), name, asked) for name in _TABLES]
            self._rows = hold(parts[0].union(parts[1]), by="digest")
        finally:
            spark.conf.set(_ONE_FILE, str(usual))
        if only_run is not None:
            self._rows = self._rows.withColumn("run", f.lit(only_run))

    def since(self, begun: Mapping[Place, int]) -> Digests:
        """Those of the same files when the final reads begin with these rows."""
        return self._again(since=begun)

    def tally(self) -> DataFrame:
        """See :func:`spark_analysis.tally.tally`."""
        keys = ("f", "type", "final", "txn", "acks", "process", "known", "malformed", "later")
        return self._digest("tally").groupBy(*PLACE, *keys).agg(
            f.sum("rows").alias("rows"),
            f.max("offset").alias("offset"),
            f.max("index").alias("index"),
            f.min("first").alias("first"),
            f.max("last_ns").alias("last_ns"),
        )  # fmt: skip

    def order(self) -> DataFrame:
        """StateIntervals of the history: ``run, first, last, begin_ns, end_ns, steady``.

        Of each the first and last index and their times; ``steady``: in between each row follows the one before it, and
        is not older.
        """
        return self._digest("order").drop("topic", "partition")

    def operations(self) -> DataFrame:
        """The operations in each chunk of the history: ``run, word, first, last, begun, others, ended, strange``.

        64 to a row: the bits of those that began there, of those with a completion there and no invocation before it,
        and of those that are sends and ended there. ``first, last``: the chunk's lowest and highest index; ``strange``:
        of one of them the same step began, or ended, twice, or the chunk's rows are not in order.
        """
        return self._digest("operations").drop("topic", "partition")

    def values(self) -> DataFrame:
        """Every word of values that were sent.

        ``run, topic, partition, invoked``, and the columns of :func:`spark_analysis.blocks.words`; ``print``: a
        fingerprint of values and operations; ``strange``: whether any was not simply sent, or acknowledged.
        """
        return merged(self._digest("values"), [*PLACE, "invoked"], **_prints())

    def offsets(self) -> DataFrame:
        """Every word of offsets that acknowledgements, polls or logs name.

        ``run, topic, partition, source, whose``, and the columns of :func:`spark_analysis.blocks.words`; ``print``: a
        fingerprint of offsets and values; ``strange``: whether any was not simply acknowledged, or delivered; of
        claims, which are acknowledgements with acks=all, ``acked``: how many; ``first_ns, last_ns``: from when to when;
        and ``heard_ns``: the first claim or delivery.
        """
        return merged(
            self._digest("offsets"), [*PLACE, "source", "whose"], **_prints(),
            acked=f.sum("acked"),
            first_ns=f.min("first_ns"),
            last_ns=f.max("last_ns"),
            heard_ns=f.min("heard_ns"),
        )  # fmt: skip

    def foretold(self) -> DataFrame:
        """Which values a chunk of the history has: ``run, topic, partition, word, first, last, sent, read``.

        64 to a row: the bits of those sent there, and of those read there that had not been sent there before.
        ``first, last``: the chunk's lowest and highest index.
        """
        return self._digest("foretold")

    def sends(self) -> DataFrame:
        """Where records were acknowledged: ``run, topic, partition, offset, row, invoked_row``.

        A row may stand for a word of offsets in which everything is in order: then its offset is the lowest, ``row``
        the first acknowledgement, ``invoked_row`` the last send.
        """
        names = (*PLACE, "offset", "row", "invoked_row")
        halves = self.halves()
        # A value acknowledged at several offsets, or not sent, is out of order with everything.
        sound = (f.col("offset") == f.col("highest")) & f.col("invoked_row").isNotNull()
        row, invoked = f.when(sound, f.col("row")).otherwise(-1), f.when(sound, f.col("invoked_row"))
        whole = halves.where(f.col("offset").isNotNull()).withColumns(
            {"row": row, "invoked_row": f.coalesce(invoked, f.lit(NEVER))}
        )
        return self._digest("sends").select(*names).union(whole.select(*names))

    def halves(self) -> DataFrame:
        """The sends of which a chunk of the history has one end only, or no offset.

        ``run, topic, partition, value``, and what is known: ``offset, highest``, the least and the most offset of its
        acknowledgements; ``row, invoked_row``, the rows of its acknowledgement and invocation; ``since``, the first row
        of the chunk with the invocation; ``heard``, the highest offset delivered in that chunk before.
        """
        return self._digest("halves").groupBy("value", *PLACE).agg(
            f.min("offset").alias("offset"),
            f.max("offset").alias("highest"),
            *[f.min(name).alias(name) for name in ("row", "invoked_row", "since", "heard")],
        )  # fmt: skip

    def overtaking(self) -> DataFrame:
        """What was delivered before the final read, and what was sent: ``run, topic, partition, offset, row, since``.

        By chunk of the history one row with the highest ``offset`` that was delivered, and the first ``row`` that
        delivered anything; and one with the lowest ``offset`` that a record of its sends was given, with ``since``, the
        row with which the chunk begins: all of them were sent there or later. ``since`` is :data:`NEVER` where one was
        sent after a higher offset than its own had been delivered in that chunk. What is not of a row is null.
        Of ``halves`` each is a row.
        """
        none = f.lit(None).cast("long")
        chunks, halves = self._digest("overtaking"), self.halves()
        delivered = chunks.where(f.col("delivered").isNotNull()).select(*PLACE, "delivered", "row", none)
        sent = chunks.where(f.col("sent").isNotNull()).select(*PLACE, "sent", none, "since")
        torn = halves.where(f.col("offset").isNotNull()).select(*PLACE, "offset", none, sent_since())
        return delivered.union(sent).union(torn).toDF(*PLACE, "offset", "row", "since")

    def polls(self) -> DataFrame:
        """The deliveries of each process: ``run, topic, partition, process, first_row, last_row, first, last, steady``.

        By chunk of the history, the first and last row and offset; ``steady``: in between each offset follows the one
        before it, and nothing failed.
        """
        return self._digest("polls")

    def seconds(self) -> DataFrame:
        """By second: ``run, topic, partition, second, first_ack, last_ack, first_try, last_try, last_end``."""
        ends = {"first_ack": f.min, "last_ack": f.max, "first_try": f.min, "last_try": f.max, "last_end": f.max}
        return self._digest("seconds").groupBy(*PLACE, "second").agg(
            *[aggregate(name).alias(name) for name, aggregate in ends.items()]
        )  # fmt: skip

    def first_acks(self) -> DataFrame:
        """``run, topic, partition, time_ns``: see :func:`spark_analysis.silences.first_acks`."""
        return self._digest("first_acks").groupBy(*PLACE).agg(f.min("time_ns").alias("time_ns"))

    def log_words(self) -> DataFrame:
        """See :func:`spark_analysis.log_bitmaps.log_words`; the fingerprints are others."""
        return merged(
            self._digest("log_words"), [*PLACE, "node", "leader_epoch"],
            contents=f.bit_xor("contents"),
            values=f.bit_xor("values"),
            valued=f.sum("valued"),
            strange=f.max("strange"),
            damaged=f.min("damaged"),
        )  # fmt: skip

    def producers(self) -> DataFrame:
        """The records of each producer's epoch in a chunk of the logs.

        ``run, topic, partition, node, producer_id, producer_epoch, first, last, steady, offset, until``: the first and
        last sequence number and offset; ``steady``: in between each sequence number follows the one before it, and
        offsets rise.
        """
        return self._digest("producers")

    def _digest(self, name: str) -> DataFrame:
        words = [*PLACE, *(("f", "type") if name == "tally" else ())]
        numbers = [_typed(f"c{number}", column) for number, column in enumerate(COLUMNS[name])]
        return self._rows.where(f.col("digest") == name).select(*words, *numbers)


def sent_since() -> Column:
    """``since`` of :meth:`Digests.overtaking`, of a row with ``offset, since, heard``; see :meth:`Digests.halves`."""
    late = f.coalesce(f.col("heard") > f.col("offset"), f.lit(False)) | f.col("since").isNull()
    return f.when(late, NEVER).otherwise(f.col("since"))


def _prints() -> dict[str, Column]:
    return {"print": f.bit_xor("print"), "strange": f.max("strange")}


def _typed(source: str, name: str) -> Column:
    column = f.col(source)
    typed = column == 1 if name in _FLAGS else column.cast("int") if name in _INTEGERS else column
    return typed.alias(name)


def _digested(spark: SparkSession, files: Sequence[TableFile], table: str, asked: Asked) -> DataFrame:
    for file in files:
        if file.size > MOST_BYTES:
            raise EnvironmentFault(
                f"{file.uri} has {file.size >> 20} MiB: the files of a large run are held in memory, one by each task, "
                f"and may have {MOST_BYTES >> 20}.",
                "Write the table again as more files (docs/scale.md), or check without Spark: --engine reference.",
            )
    if not files:
        return spark.range(0).select(*[f.lit(None).cast(one.dataType).alias(one.name) for one in _SCHEMA.fields])
    contents = spark.read.format("binaryFile").load([file.literally for file in files]).select("content")
    return contents.mapInArrow(lambda contents: digested(contents, table, asked), _SCHEMA)
