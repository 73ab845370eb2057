"""Selects the records of a large run that have to be judged one by one; the rest are settled.

Almost all records are settled: sent once, acknowledged once, delivered by the final read and to no consumer before they
were sent, and all rows about them agree. No question about single records finds anything in those. They are recognized
without joining a record's rows: for 64 neighbours at a time it is compared which offsets each witness names, and a
fingerprint of what it has there (64 bits of hash: of 2^64 words in which witnesses differ one may be taken for
settled). Only the other records, and all rows about their values, have to be joined.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce
from operator import and_
from typing import NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as f

from spark_analysis.blocks import different, merged, unpreceded, word_of
from spark_analysis.digest_rows import ACKS, FINAL, LOG
from spark_analysis.digests import Digests
from spark_analysis.parallel_jobs import in_parallel
from spark_analysis.records import ALL
from spark_analysis.result_cache import Hold
from spark_analysis.tables import PLACE, Tables
from spark_analysis.watermark_history import had_passed, watermarks, with_passing


class Unsettled(NamedTuple):
    """The records that are not settled.

    Attributes:
        tables: the rows of the history and of the replicas' logs about unsettled records, and some about others; of
            every value that has a row here all rows are here. None: there are none.
        words: every word of offsets: ``run, topic, partition, word, settled, acked``; ``acked``: how many of its
            records were acknowledged with acks=all.
    """

    tables: Tables | None
    words: DataFrame


def irregular(done: DataFrame, missing: DataFrame | None, disorder: DataFrame | None) -> set[str]:
    """The runs of which nothing is settled: those with transactions, and those whose history is not in order.

    Args:
        done: what clients did, from :func:`spark_analysis.tally.tally`.
        missing: the history's gaps; None: none.
        disorder: ``run, name, number``: what is out of order in it; None: nothing is.
    """
    runs = [done.where(f.col("txn") | f.col("malformed")).select("run")]
    if missing is not None:
        runs.append(missing.select("run"))
    if disorder is not None:
        runs.append(disorder.where(f.col("number") > 0).select("run"))
    return {row["run"] for row in reduce(DataFrame.union, runs).distinct().collect()}


def unsettled(
    tables: Tables,
    digests: Digests,
    log_words: DataFrame,
    leaders: DataFrame,
    hold: Hold,
    *,
    but: Collection[str],
    sampled: Collection[str] = (),
) -> Unsettled:
    """Select the records that are not settled.

    Args:
        tables: the tables, of the history only what is well formed.
        digests: the digests of their files.
        log_words: from :func:`spark_analysis.log_bitmaps.log_words`.
        leaders: from :func:`spark_analysis.leadership.leadership`.
        hold: computes a table and keeps it as long as it is referred to.
        but: the runs of which nothing is settled.
        sampled: the runs with sampled timelines, which do not show what was in time.
    """
    settled = f.col("settled") & ~f.col("run").isin(*but)
    marks, timed = watermarks(tables.timeline), ~f.col("run").isin(*sampled)
    agreed, values = in_parallel(
        tables.history.sparkSession,
        [
            lambda: hold(_offsets(digests, log_words, leaders, marks, timed).withColumn("settled", settled)),
            lambda: hold(_doubtful(digests, settled)),
        ],
    )
    offsets = _in_time(agreed, tables.history, marks, hold)
    near = offsets.where(~f.col("settled")).select(*PLACE, "word")
    if near.isEmpty() and values.isEmpty():
        return Unsettled(None, offsets)
    rows = [tables.history.where(f.col("topic").isNotNull()), tables.replica_logs]
    concerned = [_near(table, "offset", near) for table in rows]
    named = [table.select(*PLACE, word_of("value").alias("word")).where("word is not null") for table in concerned]
    all_values = hold(reduce(DataFrame.union, [values, *named]).distinct())
    # A row may come twice, which changes nothing: the aggregates are minima and maxima.
    history, logs = (
        table.unionByName(_near(whole, "value", all_values)) for table, whole in zip(concerned, rows, strict=True)
    )
    return Unsettled(tables._replace(history=history, replica_logs=logs), offsets)


def _doubtful(digests: Digests, settled: Column) -> DataFrame:
    """The words of values that are not settled."""
    return _values(digests.values()).where(~settled).select(*PLACE, "word").union(_foretold(digests.foretold()))


def _near(rows: DataFrame, number: str, wanted: DataFrame) -> DataFrame:
    with_words = rows.withColumn("word", word_of(number))
    return with_words.join(wanted, on=[*PLACE, "word"], how="left_semi").drop("word")  # few or many: Spark looks first


def _in_time(agreed: DataFrame, history: DataFrame, marks: DataFrame, hold: Hold) -> DataFrame:
    """``agreed`` without ``in_time``: words are not settled with an acknowledgement or delivery before the commit."""
    doubtful = agreed.where(f.col("settled") & ~f.col("in_time")).select(*PLACE, "word")
    if doubtful.isEmpty():
        return agreed.drop("in_time")
    claims = (f.col("f") == "send") & (f.col("type") == "ok") & (f.col("acks") == ALL)
    read = (f.col("f") == "poll") & (f.col("type") != "invoke")
    named = history.where(f.col("topic").isNotNull() & f.col("offset").isNotNull() & (claims | read))
    heard = _near(named.select(*PLACE, "offset", f.col("time_ns").alias("heard_ns")), "offset", doubtful)
    known = with_passing(heard, marks, "offset", blocks=True)
    early = known.where(~had_passed(f.col("heard_ns"))).groupBy(word_of("offset").alias("word"), *PLACE)
    both = agreed.join(early.agg(f.lit(True).alias("early")), on=[*PLACE, "word"], how="left")
    settled = f.col("settled") & (f.col("in_time") | f.col("early").isNull())
    return hold(both.withColumn("settled", settled).drop("in_time", "early"))


def _offsets(digests: Digests, log_words: DataFrame, leaders: DataFrame, marks: DataFrame, timed: Column) -> DataFrame:
    named = digests.offsets()
    known = named.unionByName(_final_log(log_words, leaders), allowMissingColumns=True)
    counts = {source: f.count(f.when(f.col("source") == source, 1)) for source in (ACKS, FINAL)}
    # Of words in which the log has nothing of a workload's, as of markers alone, those matter that a client names, too.
    concerns = (f.col("source") != LOG) | (f.col("valued") > 0)
    words = known.groupBy("word", *PLACE).agg(
        f.max(concerns).alias("concerns"),
        _agree().alias("agree"),
        f.max("high").alias("high"),
        (~f.max("strange") & (counts[ACKS] == 1) & (counts[FINAL] >= 1)).alias("plain"),
        *[f.sum("acked").alias("acked"), f.min("first_ns").alias("first_ns"), f.max("last_ns").alias("last_ns")],
        f.min("heard_ns").alias("heard_ns"),
    )
    passed = with_passing(words.where("concerns").drop("concerns"), marks, "high", blocks=True)
    joined = passed.join(f.broadcast(leaders.select(*PLACE, "terms")), on=list(PLACE), how="left")
    never = f.forall("terms", lambda term: term["high_watermark"] <= f.col("high")) & (f.size("terms") > 0)
    unacked = (f.col("acked") == 0) & ~f.coalesce(never, f.lit(False))
    founded = unacked | f.coalesce(f.exists("terms", _covers), f.lit(False))
    settled = f.coalesce(f.col("agree") & f.col("plain") & founded, f.lit(False))
    # Where no leader is known nothing can be too early.
    may_be_early = timed & f.col("heard_ns").isNotNull() & f.coalesce(f.size("terms") > 0, f.lit(False))
    in_time = ~may_be_early | had_passed(f.col("heard_ns"))
    return joined.select(*PLACE, "word", settled.alias("settled"), "acked", in_time.alias("in_time"))


def _agree() -> Column:
    """Whether all witnesses name the same numbers, each once, with the same fingerprint."""
    same = [f.min(name) == f.max(name) for name in ("bits", "print")]
    return reduce(and_, same) & (f.max(f.col("rows") - different()) == 0)


def _covers(term: Column) -> Column:
    """Whether this leader led during all of the word's sends, and had its records below the high watermark."""
    until = term["end_ns"].isNull() | (term["end_ns"] >= f.col("last_ns"))
    return (term["begin_ns"] <= f.col("first_ns")) & until & (term["high_watermark"] > f.col("high"))


def _final_log(log_words: DataFrame, leaders: DataFrame) -> DataFrame:
    ends = leaders.select(*PLACE, f.col("leader.node").alias("node"))
    final = log_words.join(f.broadcast(ends), on=[*PLACE, "node"], how="left_semi")
    aggregates = {"print": f.bit_xor("values"), "strange": f.max("strange"), "valued": f.sum("valued")}
    return merged(final, PLACE, **aggregates).withColumn("source", f.lit(LOG))


def _values(words: DataFrame) -> DataFrame:
    """Every word of values that were sent: ``run, topic, partition, word, settled``.

    Settled: each value was sent once, and acknowledged once.
    """
    settled = _agree() & ~f.max("strange") & (f.count("*") == 2)
    return words.groupBy("word", *PLACE).agg(settled.alias("settled"))


def _foretold(words: DataFrame) -> DataFrame:
    """The words of values of which one may have been delivered before it was sent: ``run, topic, partition, word``."""
    seen = f.struct("first", "last", "sent", "read")
    known = words.groupBy("word", *PLACE).agg(f.collect_list(seen).alias("chunks"))
    return known.where(unpreceded("chunks", "read", "sent")).select(*PLACE, "word")
