"""Of which keys of a compacted log was a reader given less, or does an in-sync replica hold less, than there was?"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from harness.compacted import READ_WITHIN_NS, SLOTS, TOPIC
from harness.model import CONTROLLER_ID
from spark_analysis.demands import Damage, Demands
from spark_analysis.leadership import given_up
from spark_analysis.question import Question
from spark_analysis.records import ALL
from spark_analysis.tables import PLACE, Tables, table_by_run
from spark_analysis.views import Partitions, Scale, findings


def lost_keys(tables: Tables, partitions: Partitions, demands: Demands, scale: Scale) -> DataFrame:
    """``lost-key``, as ``checkers.lost_key`` defines it."""
    history = tables.history
    puts, scans = _puts(history), scale.hold(_scans(history))
    written = _written(history, puts)
    superseded = _superseded(written, scans)
    wanted = _newest(puts, scans).join(superseded, on=[*PLACE, "op", "key"], how="left_anti")
    given = _last_given(history)
    joined = wanted.join(given, on=[*PLACE, "op", "key"], how="left")
    unseen = joined.where(_is_missing("given"))
    if demands.tombstones_stay_ns:
        stay = f.broadcast(table_by_run(history.sparkSession, "stay_ns", demands.tombstones_stay_ns))
        unseen = unseen.join(_forgotten(unseen, written, scans, stay), on=[*PLACE, "op", "acked"], how="left_anti")
    first = f.row_number().over(Window.partitionBy(*PLACE, "put.value").orderBy("row", "acked"))
    lost = unseen.withColumn("rank", first).where(f.col("rank") == 1).select("*", "put.*")
    elections = partitions.rows.select(*PLACE, "unclean")
    known = lost.join(f.broadcast(elections), on=list(PLACE), how="left")
    none = f.lit(None).cast("int")
    excused = f.coalesce(given_up(none, f.col("offset"), f.col("since_ns")), f.lit(False))
    return findings(
        known,
        "lost-key",
        offset="offset",
        value="value",
        excuse=f.when(excused, "unclean"),
        row="row",
        time_ns="time_ns",
        process="process",
        acks=f.lit(ALL),
        other_offset=f.col("given.offset"),
        other_value=f.col("given.value"),
        since_ns="since_ns",
    )


def replica_lost_keys(
    tables: Tables, partitions: Partitions, *, demands: Demands, damage: Damage, scale: Scale
) -> DataFrame:
    """``replica-lost-key``, as ``checkers.lost_key`` defines it."""
    history = tables.history.where(f.col("run").isin(*demands.at_rest))
    last_begun = f.row_number().over(Window.partitionBy(*PLACE).orderBy(f.desc("begun")))
    final = _scans(history).where("final").withColumn("from_last", last_begun).where("from_last = 1").drop("from_last")
    puts = scale.hold(_puts(history))
    in_sync = f.broadcast(_last_isr(tables.timeline).join(_held_places(tables), on=list(PLACE), how="left_semi"))
    wanted = _newest(puts, final).join(in_sync, on=list(PLACE), how="inner")
    joined = wanted.join(_last_held(tables.compacted_logs), on=[*PLACE, "node", "key"], how="left")
    lacking = joined.where(_is_missing("held"))
    if demands.tombstones_stay_ns:
        gone = _gone(lacking, _written(history, puts), demands.tombstones_stay_ns)
        lacking = lacking.join(gone, on=[*PLACE, "acked"], how="left_anti")
    first = f.row_number().over(Window.partitionBy(*PLACE, "put.value").orderBy("node", "acked"))
    lost = lacking.withColumn("rank", first).where(f.col("rank") == 1).select("*", "put.*")
    led = lost.join(f.broadcast(partitions.rows.select(*PLACE, "unclean")), on=list(PLACE), how="left")
    excused = f.coalesce(given_up(f.lit(None).cast("int"), f.col("offset"), f.col("since_ns")), f.lit(False))
    return findings(
        led,
        "replica-lost-key",
        offset="offset",
        value="value",
        excuse=f.when(_is_damaged(damage), "damage").when(excused, "unclean"),
        row="row",
        time_ns="time_ns",
        acks=f.lit(ALL),
        node="node",
        other_offset=f.col("held.offset"),
        other_value=f.col("held.value"),
        since_ns="since_ns",
    )


def _is_missing(last: str) -> Column:
    """Whether the column, the last record of the key that there is, is neither ``put`` nor a later one."""
    earlier = f.col(f"{last}.offset") < f.col("put.offset")
    another = (f.col(f"{last}.offset") == f.col("put.offset")) & (f.col(f"{last}.value") != f.col("put.value"))
    return f.col(last).isNull() | earlier | another


def _gone(lacking: DataFrame, written: DataFrame, stay_ns: Mapping[str, int]) -> DataFrame:
    """What is not held, and may be gone with its tombstone, or a later one: ``run, topic, partition, acked``."""
    stay = f.broadcast(table_by_run(written.sparkSession, "stay_ns", stay_ns))
    tombstones = written.where("deletes").select(*PLACE, "key", f.col("since_ns").alias("sent_ns"), "offset")
    pairs = lacking.join(stay, on="run", how="inner").join(tombstones, on=[*PLACE, "key"], how="inner")
    is_later = f.col("offset").isNull() | (f.col("offset") >= f.col("put.offset"))
    is_old = f.col("time_ns") + READ_WITHIN_NS - f.col("sent_ns") >= f.col("stay_ns")
    return pairs.where(is_later & is_old).select(*PLACE, "acked").distinct()


def _last_isr(timeline: DataFrame) -> DataFrame:
    """The members of the ISR by the controller's last decision that names one: ``run, topic, partition, node``."""
    decided = timeline.where((f.col("node") == CONTROLLER_ID) & f.col("kind").isin("election", "isr"))
    named = decided.where(f.col("isr").isNotNull() & (f.col("topic") == TOPIC))
    last = named.groupBy(*PLACE).agg(f.max_by("isr", f.struct("incarnation", "sequence")).alias("isr"))
    return last.select(*PLACE, f.explode(f.array_distinct("isr")).alias("node"))


def _held_places(tables: Tables) -> DataFrame:
    """The partitions of which some replica holds a record."""
    return _kept(tables.compacted_logs).select(*PLACE).distinct()


def _last_held(logs: DataFrame) -> DataFrame:
    """By replica and key, the last record that its log has ``held``: offset and value."""
    keyed = _kept(logs).select(*PLACE, "node", _key(), f.struct("offset", "value").alias("held"))
    return keyed.groupBy(*PLACE, "node", "key").agg(f.max("held").alias("held"))


def _kept(logs: DataFrame) -> DataFrame:
    return logs.where(f.col("value").isNotNull() & f.col("intact"))


def _is_damaged(damage: Damage) -> Column:
    """Whether a fault has damaged the log of the node, or swapped records in one of the partition's."""
    spoilt = [
        (f.col("run") == run) & (f.col("topic") == topic) & (f.col("partition") == partition) & (f.col("node") == node)
        for run, logs in damage.rotten.items()
        for topic, partition, node in logs
    ]
    swapped = [
        (f.col("run") == run) & (f.col("topic") == topic) & (f.col("partition") == partition)
        for run, places in damage.swapped.items()
        for topic, partition in places
    ]
    return reduce(or_, [*spoilt, *swapped], f.lit(False))


def _key() -> Column:
    """The number of the key of the record of ``value``: see :mod:`harness.compacted`."""
    return f.floor(f.pmod(f.col("value"), f.lit(SLOTS)) / 2).alias("key")


def _puts(history: DataFrame) -> DataFrame:
    """The acknowledged records: ``run, topic, partition, key, acked, sent, put``.

    ``acked`` and ``sent`` are rows of the history; ``put``: offset, value and since_ns.
    """
    own = history.where((f.col("f") == "put") & f.col("topic").isNotNull())
    invoked = own.where(f.col("type") == "invoke").groupBy("run", "op")
    begun = invoked.agg(f.max("time_ns").alias("begun_ns"), f.max("index").alias("invoked"))
    acked = own.where((f.col("type") == "ok") & f.col("offset").isNotNull() & f.col("value").isNotNull())
    known = acked.join(begun, on=["run", "op"], how="left")
    since_ns = f.coalesce("begun_ns", "time_ns").alias("since_ns")
    sent = f.coalesce("invoked", "index").alias("sent")
    put = f.struct("offset", "value", since_ns).alias("put")
    return known.select(*PLACE, _key(), f.col("index").alias("acked"), sent, put)


def _written(history: DataFrame, puts: DataFrame) -> DataFrame:
    """The records that are, or may be, in the log: ``run, topic, partition, key, deletes, sent, since_ns, offset``.

    ``offset``: null when it was never acknowledged.
    """
    own = history.where((f.col("f") == "put") & f.col("topic").isNotNull())
    acked = (f.col("type") == "ok") & f.col("offset").isNotNull() & f.col("value").isNotNull()
    known = own.where(acked | (f.col("type") == "fail")).select("run", "op").distinct()
    begun = own.where((f.col("type") == "invoke") & f.col("value").isNotNull())
    unknown = begun.join(known, on=["run", "op"], how="left_anti").select(
        *PLACE,
        _key(),
        _deletes(f.col("value")),
        f.col("index").alias("sent"),
        f.col("time_ns").alias("since_ns"),
        f.lit(None).cast("long").alias("offset"),
    )
    kept = puts.select(*PLACE, "key", _deletes(f.col("put.value")), "sent", "put.since_ns", "put.offset")
    return unknown.unionByName(kept)


def _deletes(value: Column) -> Column:
    """Whether the record is a tombstone."""
    return (f.pmod(value, f.lit(2)) == 1).alias("deletes")


def _superseded(written: DataFrame, scans: DataFrame) -> DataFrame:
    """The keys of which another record may be behind the end of a reading: ``run, topic, partition, op, key``."""
    pairs = written.join(f.broadcast(scans.where(~f.col("final"))), on=list(PLACE), how="inner")
    behind = f.col("offset").isNull() | (f.col("offset") >= f.col("end_offset"))
    return pairs.where((f.col("sent") < f.col("row")) & behind).select(*PLACE, "op", "key").distinct()


def _forgotten(unseen: DataFrame, written: DataFrame, scans: DataFrame, stay: DataFrame) -> DataFrame:
    """What was not given and may be gone with its tombstone, or a later one: ``run, topic, partition, op, acked``."""
    tombstones = written.where("deletes").select(*PLACE, "key", f.col("since_ns").alias("sent_ns"), "offset")
    times = scans.select(*PLACE, "op", "begun_ns")
    timed = unseen.join(times, on=[*PLACE, "op"], how="inner").join(stay, on="run", how="inner")
    pairs = timed.join(tombstones, on=[*PLACE, "key"], how="inner")
    is_later = f.col("offset").isNull() | (f.col("offset") >= f.col("put.offset"))
    is_old = f.col("time_ns") - f.col("sent_ns") >= f.col("stay_ns")
    is_slow = f.col("time_ns") - f.col("begun_ns") >= f.col("stay_ns")
    nothing_older = f.col("given").isNull() | (is_slow & (f.col("given.offset") < f.col("put.offset")))
    return pairs.where(is_later & is_old & nothing_older).select(*PLACE, "op", "acked").distinct()


def _scans(history: DataFrame) -> DataFrame:
    """The readings that came to their end.

    ``run, topic, partition, op, begun, begun_ns, end_offset, final, row, time_ns, process``.
    """
    own = history.where((f.col("f") == "scan") & f.col("topic").isNotNull())
    begun = own.where(f.col("type") == "invoke").select(
        *PLACE,
        "op",
        "final",
        f.col("index").alias("begun"),
        f.col("time_ns").alias("begun_ns"),
        f.coalesce("offset", f.lit(0)).alias("end_offset"),
    )
    ended = (
        own.where(f.col("type") == "ok")
        .groupBy("run", "op")
        .agg(f.min(f.struct("index", "time_ns", "process")).alias("first"))
    )
    joined = begun.join(ended, on=["run", "op"], how="inner")
    first = {"row": "first.index", "time_ns": "first.time_ns", "process": "first.process"}
    return joined.withColumns({name: f.col(column) for name, column in first.items()}).drop("first")


def _newest(puts: DataFrame, scans: DataFrame) -> DataFrame:
    """By reading and key, the last ``put`` that had been acknowledged when the reading began; several at one offset."""
    before = (f.col("acked") < f.col("begun")) & (f.col("final") | (f.col("put.offset") < f.col("end_offset")))
    pairs = puts.join(f.broadcast(scans), on=list(PLACE), how="inner").where(before)
    from_last = f.rank().over(Window.partitionBy(*PLACE, "op", "key").orderBy(f.desc("put.offset")))
    columns = [*PLACE, "op", "key", "row", "time_ns", "process", "acked", "put"]
    return pairs.withColumn("from_last", from_last).where(f.col("from_last") == 1).select(*columns)


def _last_given(history: DataFrame) -> DataFrame:
    """By reading and key, the last record that was ``given``: offset and value."""
    rows = history.where((f.col("f") == "scan") & (f.col("type") == "ok") & f.col("topic").isNotNull())
    rows = rows.where(f.col("value").isNotNull() & f.col("offset").isNotNull())
    keyed = rows.select(*PLACE, "op", _key(), f.struct("offset", "value").alias("given"))
    return keyed.groupBy(*PLACE, "op", "key").agg(f.max("given").alias("given"))


QUESTIONS = (Question(lost_keys, about="scan"), Question(replica_lost_keys, about="scan"))
