"""Which transactions follow from which others, as far as they may be on a cycle?

An edge leads from a transaction to one that wrote the next record of a partition (``ww``), or that read its record
(``wr``). Only transactions that write can be on a cycle. Other sends between two of them are passed over, and reading
what such a send wrote is reading what follows the transaction before it (``wwr``).

Almost all of these edges point forward in time, and a cycle needs one that does not. Every node of a cycle lies within
the interval of time that the backward edges on it cover together, so only edges within one such interval are kept:
concurrent transactions entangle few others. Where they entangle more than :data:`MOST` edges, only reads are followed;
where even these are more, none is, and the finding is INDETERMINATE.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis.records import is_uncommitted
from spark_analysis.tables import PLACE, Tables
from spark_analysis.views import Activity, Records

MOST = 20_000
"""How many edges of one interval of time reach the driver."""

_EDGE = ("topic", "partition", "offset", "value", "row", "process")


def dependencies(tables: Tables, activity: Activity, records: Records) -> DataFrame | None:
    """The edges, with the fields of ``facts.Dependency``; None: there are no transactions."""
    if "txn" not in activity.uses:
        return None
    within = _within_stretches(_edges(tables, records))
    interval = Window.partitionBy("run", "interval")
    counted = within.withColumns(
        {"all": f.count("*").over(interval), "read": f.count(f.when(f.col("kind") == "wr", 1)).over(interval)}
    )
    first = f.row_number().over(interval.orderBy("source", "target", "kind")) == 1
    kept = (f.col("all") <= MOST) | ((f.col("kind") == "wr") & (f.col("read") <= MOST))
    edges_kept = counted.withColumn("entangled", first & (f.col("read") > MOST)).where(kept | f.col("entangled"))
    kind = f.when(f.col("entangled"), "entangled").otherwise(f.col("kind"))
    return edges_kept.select("run", kind.alias("kind"), "source", "target", *_EDGE)


def _edges(tables: Tables, records: Records) -> DataFrame:
    """``run, source, target, kind``, the columns of ``_EDGE``, and roughly when the two ends happened."""
    of_transactions = f.col("txn_op").isNotNull() & f.col("seen_row").isNotNull() & ~is_uncommitted()
    # A transaction gets any one number if no read shows it committed: where a send ended.
    seen, ended = f.least("ack_row", "value_committed_row"), f.col("send_row")
    known = f.coalesce(*[f.min(row).over(Window.partitionBy("run", "txn_op")) for row in (seen, ended)])
    writes = records.all().where(of_transactions).select(
        *PLACE, "offset", "value",
        f.col("txn_op").alias("op"),
        f.col("send_row").alias("row"),
        f.col("sender").alias("process"),
        known.alias("at"),
        f.lit(False).alias("reads"),
    )  # fmt: skip
    polled = (f.col("f") == "poll") & (f.col("type") != "invoke") & f.col("txn") & f.col("value").isNotNull()
    polls = tables.history.where(polled).select(*PLACE, "offset", "value", "op", f.col("index").alias("row"), "process")
    writers = writes.groupBy("run", "op").agg(f.min("at").alias("at"))
    reads = polls.join(writers, on=["run", "op"], how="inner").withColumn("reads", f.lit(True))
    order = Window.partitionBy(*PLACE).orderBy("offset", "reads", "row", "value")
    source = f.last(f.when(~f.col("reads"), f.struct("op", "at", "offset")), ignorenulls=True)
    events = writes.unionByName(reads).withColumn(
        "source", source.over(order.rowsBetween(Window.unboundedPreceding, -1))
    )
    kind = f.when(~f.col("reads"), "ww").when(f.col("source.offset") == f.col("offset"), "wr").otherwise("wwr")
    edges = events.withColumn("kind", kind).where(f.col("source.op") != f.col("op"))
    grouped = edges.groupBy("run", f.col("source.op").alias("source"), f.col("op").alias("target"), "kind").agg(
        f.min("source.at").alias("begin"), f.min("at").alias("end"), f.min(f.struct(*_EDGE)).alias("edge")
    )
    return grouped.select("run", "source", "target", "kind", "begin", "end", "edge.*")


def _within_stretches(edges: DataFrame) -> DataFrame:
    """The edges both of whose ends lie in one ``interval`` that backward edges cover without a gap."""
    low, high = f.least("begin", "end"), f.greatest("begin", "end")
    back = edges.where(f.col("begin") >= f.col("end")).select("run", low.alias("low"), high.alias("high"))
    reach = f.max("high").over(
        Window.partitionBy("run").orderBy("low", "high").rowsBetween(Window.unboundedPreceding, -1)
    )
    begins = back.withColumn("begins", f.coalesce(f.col("low") > reach, f.lit(True)))
    number = f.sum(f.col("begins").cast("int")).over(Window.partitionBy("run").orderBy("low", "high"))
    intervals = (
        begins.withColumn("interval", number)
        .groupBy("run", "interval")
        .agg(f.min("low").alias("low"), f.max("high").alias("high"))
    )
    marked = edges.select("*", low.alias("low"), high.alias("high"), f.lit(1).alias("order")).unionByName(
        intervals.withColumn("order", f.lit(0)), allowMissingColumns=True
    )
    latest = f.last(f.when(f.col("order") == 0, f.struct("interval", "high")), ignorenulls=True).over(
        Window.partitionBy("run").orderBy("low", "order").rowsBetween(Window.unboundedPreceding, 0)
    )
    known = marked.withColumn("latest", latest).where((f.col("order") == 1) & (f.col("high") <= f.col("latest.high")))
    return known.withColumn("interval", f.col("latest.interval"))
