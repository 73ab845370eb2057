"""What does each replica's log hold of each leader epoch, and of each producer?"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis.blocks import different, octets, out_of_order, word_of
from spark_analysis.tables import PLACE, Tables
from spark_analysis.views import LogWords, Scale


def log_epochs(tables: Tables, words: LogWords, scale: Scale) -> DataFrame:
    """The records of each leader epoch, with the fields of :class:`harness.facts.LogEpoch`.

    Only near offsets that are in a log more than once are the contents compared.
    """
    keys = [*PLACE, "node", "leader_epoch"]
    known, logs = words.rows, tables.replica_logs
    repeated = f.col("rows") > different()
    twice = known.where(repeated).select("word", *keys)
    epochs = known.groupBy(*keys).agg(
        f.min("low").alias("first"),
        f.max("high").alias("last"),
        f.sum(different()).alias("offsets"),
        f.sum(f.when(repeated, 0).otherwise(different())).alias("once"),
        f.min("damaged").alias("damaged"),
    )
    if scale.large and twice.isEmpty():
        return epochs.withColumnRenamed("once", "contents")
    near = logs.withColumn("word", word_of("offset")).join(f.broadcast(twice), on=["word", *keys], how="left_semi")
    contents = near.groupBy(*keys).agg(
        f.count_distinct(f.struct("offset", "value", "batch_base_offset", "batch_crc")).alias("contents")
    )
    whole = epochs.join(f.broadcast(contents), on=keys, how="left")
    contents_known = (f.col("once") + f.coalesce("contents", f.lit(0))).alias("contents")
    return whole.select(*keys, "first", "last", "offsets", contents_known, "damaged")


def producer_logs(tables: Tables, scale: Scale) -> DataFrame | None:
    """Producers with whose records something is wrong: the fields of :class:`harness.facts.ProducerLog`."""
    logs = tables.replica_logs
    if scale.digests:
        suspects = scale.hold(_suspects(scale.digests.producers()), few=True)
        if suspects.isEmpty():
            return None
        logs = logs.join(f.broadcast(suspects), on=[*PLACE, "node", "producer_id"], how="left_semi")
    numbered = logs.where(f.col("producer_id").isNotNull() & f.col("sequence").isNotNull())
    epoch = f.coalesce("producer_epoch", f.lit(0))
    keys = [*PLACE, "node", "producer_id", "producer_epoch"]
    placed = numbered.withColumn("producer_epoch", epoch)
    sequences = {"low": f.min("sequence"), "high": f.max("sequence"), "begin": f.min("offset")}
    known = octets(placed, keys, "sequence", "offset", **sequences)
    back = out_of_order(known, keys, "octet", f.col("least"), f.col("most")).withColumn("back", f.lit(True))
    octaves = known.groupBy(*keys).agg(
        f.min("low").alias("first"),
        f.max("high").alias("last"),
        f.sum("rows").alias("records"),
        f.sum(different()).alias("sequences"),
        f.min("begin").alias("offset"),
        f.max("most").alias("until"),
        f.min("rises").alias("rises"),
    )
    falls = ~f.col("rises") | f.coalesce("back", f.lit(False))
    grouped = octaves.join(back, on=keys, how="left").withColumn("falls", falls).drop("rises", "back")
    whose = Window.partitionBy(*PLACE, "node", "producer_id").orderBy("producer_epoch")
    older = f.max("until").over(whose.rowsBetween(Window.unboundedPreceding, -1))
    known = grouped.withColumn("older_until", f.when(older > f.col("offset"), older)).drop("until")
    width = f.col("last") - f.col("first") + 1
    irregular = (f.col("records") != width) | (f.col("sequences") != width) | f.col("falls")
    return known.where(irregular | f.col("older_until").isNotNull())


def _suspects(intervals: DataFrame) -> DataFrame:
    """The producers whose records do not follow each other, one epoch after the other, in some log: a quick look."""
    keys = [*PLACE, "node", "producer_id"]
    before = Window.partitionBy(*keys).orderBy("offset")
    earlier = {name: f.lag(name).over(before) for name in ("producer_epoch", "last", "until")}
    same = earlier["producer_epoch"] == f.col("producer_epoch")
    follows = f.when(same, f.col("first") == earlier["last"] + 1).otherwise(
        f.col("producer_epoch") > earlier["producer_epoch"]
    )
    apart = earlier["until"].isNull() | (follows & (f.col("offset") > earlier["until"]))
    wrong = intervals.select(*keys, (~f.col("steady") | ~apart).alias("wrong"))
    return wrong.where("wrong").select(*keys).distinct()
