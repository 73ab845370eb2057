"""All rows about a record, combined: one row per partition, value and offset.

Most questions are filters of this table. Almost every value is at one offset, and almost every offset holds one value;
so one aggregation by value gives nearly everything, wherever a partition's records lie. Only values at several offsets
are taken apart by offset, and only offsets with several values are aggregated once more; where one look at the
aggregate shows that there are none, nothing of that is planned.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis.result_cache import Hold
from spark_analysis.tables import PLACE, Tables

ALL = -1
"""``acks`` of a sender that waits for every in-sync replica."""
NO_ACKS = 0
"""``acks`` of a sender that waits for no answer."""

UNKNOWN, FAILED, OK = 0, 1, 2
"""How a send ended, in ``sent``; of two rows of one send the more certain one has the higher number."""


_SEEN = {"seen_row": "unended_row", "seen_ns": "unended_ns"}


def reads(history: DataFrame) -> DataFrame:
    """Every record that a poll delivered.

    Returns:
        ``run, topic, partition, offset, value, leader_epoch, final, sound, row, time_ns, process, op, type``, however
        the poll ended. ``sound``: it is a workload's record and intact.
    """
    delivered = (f.col("f") == "poll") & (f.col("type") != "invoke") & f.col("topic").isNotNull()
    intact = f.coalesce("intact", f.lit(True))
    return history.where(delivered).select(
        *PLACE, "offset", "value", "leader_epoch", "final",
        (f.col("value").isNotNull() & intact).alias("sound"),
        f.col("index").alias("row"),
        *("time_ns", "process", "op", "type"),
    )  # fmt: skip


def records(tables: Tables, leaders: DataFrame, hold: Hold, closed: DataFrame | None = None) -> DataFrame:
    """The rows about each record, combined.

    Args:
        tables: the tables.
        leaders: from :func:`spark_analysis.leadership.leadership`.
        hold: computes a table and keeps it as long as it is referred to.
        closed: from :func:`spark_analysis.transaction_markers.replaced`; None: there are no transactions.

    Returns:
        one row per ``run, topic, partition, value, offset`` that anything names, with these columns; held. An unknown
        offset is null: that row stands for the send itself, and is there when nothing names an offset, or when the
        acknowledgement does not. A null value is a record that is not a workload's; of such values nothing is known.

        * of the value's send: ``sent`` (:data:`UNKNOWN`, :data:`FAILED` or :data:`OK`; null: it was not sent to this
          partition), ``invoked_ns, invoked_row``, ``sent_acks`` (the least in any row), ``txn_op`` (its
          operation, if that is a transaction), ``first_step, last_step`` (the first and the last step that sends it);
          and of its last row ``send_row, sent_ns, sender`` (the process);
        * of its acknowledgement with this offset, null without: ``ack_row, acked_ns, process, acks``;
        * of reads of it: ``read_row, read_ns`` (the first); ``committed_row, committed_ns`` (the first of a consumer
          that is read_committed), ``delivered_row, delivered_ns`` (the first sound one before
          the final read); ``polled`` (read before the final read), ``finally`` (by it), ``unsound`` (by an unsound
          read);
        * ``seen_row, seen_ns``: the first row that has the value here (``checkers.inconsistent_offsets``);
          ``strong``: it was soundly read, or acknowledged to a sender that waited for all;
        * ``unended_row, unended_ns``: an operation of unknown outcome has a row with this offset;
        * the lowest leader epoch according to reads (``epoch``), sound ones (``sound_epoch``), sound ones before the
          final read (``polled_epoch``), and the replicas' logs (``logged_epoch``);
        * ``aborted_ns, recommitted_ns``: since when an abort marker, or a commit marker, may have taken another one's
          place there;
        * ``in_final_log``: it is a workload's, and in the final leader's log; ``in_final_log_intact``: and intact;
          ``author``: then the producer id and epoch that it was numbered with, as one number; null without;
        * of the value: ``value_read_row``, its first read, ``value_committed_row`` likewise; ``final_offset``, the
          lowest offset at which the final read has it; ``lowest, highest``, the offsets at which it was seen or is
          intact in the final leader's log;
        * of the offset: ``final_value``, the lowest value that the final read has there; ``values_seen``, how many
          were seen there; ``instead_ns``, when another one first was; ``other_epochs``, in which leader epochs the
          replicas' logs have others there.
    """
    rows = _of_history(tables.history).unionByName(_of_logs(tables.replica_logs, leaders), allowMissingColumns=True)
    none = f.lit(None).cast("long")
    rows = rows.withColumns({"aborted_ns": none, "recommitted_ns": none}) if closed is None else rows
    if closed is not None:
        rows = rows.unionByName(closed, allowMissingColumns=True)
    # What is no workload's has no value to be known by, only an offset.
    by_value = rows.withColumn("spot", f.when(f.col("value").isNull(), f.col("offset")))
    offsets = (f.min("offset").alias("low"), f.max("offset").alias("high"))
    unplaced = f.max(f.col("ack_row").isNotNull() & f.col("offset").isNull()).alias("unplaced")
    grouped = hold(by_value.groupBy("value", "spot", *PLACE).agg(*_aggregates(), *offsets, unplaced))
    scattered = f.coalesce(
        (f.col("low") < f.col("high")) | (f.col("unplaced") & f.col("low").isNotNull()), f.lit(False)
    )
    crowds = grouped.groupBy("low", *PLACE).agg(
        f.count(f.when(f.col("low").isNotNull(), 1)).alias("values"), f.max(scattered).alias("scattered")
    )
    [found] = crowds.agg(f.max("values").alias("values"), f.max("scattered").alias("scattered")).collect()
    whole = _settled(grouped.where(~scattered).withColumn("offset", f.col("low")))
    if found["scattered"]:
        torn = grouped.where(scattered).select("value", *PLACE)
        whole = whole.unionByName(_by_offset(rows.join(torn, on=["value", *PLACE], how="left_semi")))
    if found["scattered"] or (found["values"] or 0) > 1:
        return hold(_crowded(whole))
    return whole.withColumns(
        {
            "final_value": f.when(f.col("finally"), f.col("value")),
            "values_seen": f.when(f.col("seen_row").isNotNull(), 1).otherwise(0),
            "instead_ns": f.lit(None).cast("long"),
            "other_epochs": f.array().cast("array<int>"),
        }
    )


def _settled(grouped: DataFrame) -> DataFrame:
    """Values at one offset: what is known of the offset is known of the value."""
    named = f.when(f.col("seen_row").isNotNull() | f.col("in_final_log_intact"), f.col("offset"))
    read = {"value_read_row": f.col("read_row"), "value_committed_row": f.col("committed_row")}
    of_values = {
        "final_offset": f.when(f.col("finally"), f.col("offset")),
        "lowest": named,
        "highest": named,
    }
    return _with_unended(grouped.withColumns(read)).withColumns(of_values).drop("spot", "low", "high", "unplaced")


def _with_unended(rows: DataFrame) -> DataFrame:
    """With the offsets in operations of unknown outcome, where the record was delivered."""
    delivered = f.when(f.col("txn_op").isNull(), f.col("value_read_row")).otherwise(f.col("value_committed_row"))
    counts = f.col("unended_row").isNotNull() & delivered.isNotNull() & (f.col("sent") != FAILED)
    seen = {name: f.least(name, f.when(counts, f.col(unended))) for name, unended in _SEEN.items()}
    return rows.withColumns({**seen, "strong": f.col("strong") | (counts & f.col("unended_all"))}).drop("unended_all")


def _by_offset(rows: DataFrame) -> DataFrame:
    """Values at several offsets, taken apart."""
    grouped = rows.groupBy("value", "offset", *PLACE).agg(*_aggregates())
    # The key with the most distinct values comes first: sorting compares it first.
    value = Window.partitionBy("value", *PLACE)
    named = f.when(f.col("seen_row").isNotNull() | f.col("in_final_log_intact"), f.col("offset"))
    of_values = {
        "sent": f.max("sent").over(value),
        "invoked_ns": f.min("invoked_ns").over(value),
        "invoked_row": f.min("invoked_row").over(value),
        "sent_acks": f.min("sent_acks").over(value),
        "txn_op": f.min("txn_op").over(value),
        "first_step": f.min("first_step").over(value),
        "last_step": f.max("last_step").over(value),
        **{name: f.max(name).over(value) for name in ("send_row", "sent_ns", "sender")},
        "value_read_row": f.min("read_row").over(value),
        "value_committed_row": f.min("committed_row").over(value),
    }
    of_offsets = {
        "final_offset": f.min(f.when(f.col("finally"), f.col("offset"))).over(value),
        "lowest": f.min(named).over(value),
        "highest": f.max(named).over(value),
    }
    return _with_unended(grouped.withColumns(of_values)).withColumns(of_offsets)


def _crowded(whole: DataFrame) -> DataFrame:
    """With what is known of the offsets."""
    named = f.col("seen_row").isNotNull()
    logged = f.col("logged_epoch").isNotNull() & f.col("value").isNotNull()
    offsets = whole.where(f.col("offset").isNotNull()).groupBy("offset", *PLACE)
    crowds = offsets.agg(
        f.min(f.when(f.col("finally"), f.col("value"))).alias("final"),
        f.count("seen_row").alias("seen"),
        f.count("*").alias("values"),
        f.slice(f.sort_array(f.collect_list(f.when(named, f.struct("seen_ns", "value")))), 1, 2).alias("first"),
        f.collect_list(f.when(logged, f.struct("logged_epoch", "value"))).alias("logged"),
    ).where(f.col("values") > 1)
    own = f.when(named, 1).otherwise(0)
    others = f.filter("first", lambda one: one["value"] != f.col("value"))
    rivals = f.filter("logged", lambda one: one["value"] != f.col("value"))
    return (
        whole.join(crowds, on=["offset", *PLACE], how="left")
        .withColumns(
            {
                "final_value": f.coalesce("final", f.when(f.col("finally"), f.col("value"))),
                "values_seen": f.coalesce("seen", own),
                "instead_ns": f.array_min(f.transform(others, lambda one: one["seen_ns"])),
                "other_epochs": f.transform(rivals, lambda one: one["logged_epoch"]),
            }
        )
        .drop("final", "seen", "values", "first", "logged")
    )


def is_uncommitted() -> Column:
    """Whether the record is of a transaction that failed, or is not known to be committed."""
    unknown = (f.col("sent") == UNKNOWN) & f.col("value_committed_row").isNull()
    return f.coalesce(f.col("txn_op").isNotNull() & ((f.col("sent") == FAILED) | unknown), f.lit(False))


def is_hidden() -> Column:
    """Whether the record is of a transaction, and an abort marker may have taken the place of another one there."""
    return f.col("txn_op").isNotNull() & f.col("aborted_ns").isNotNull()


def is_proof() -> Column:
    """Whether the rows of a value, together, show that it was delivered because its transaction had been committed."""
    early = f.min("committed_ns") < f.min("recommitted_ns")
    return f.min("committed_ns").isNotNull() & f.coalesce(early, f.lit(True))


def _of_history(history: DataFrame) -> DataFrame:
    kind, sending = f.col("type"), f.col("f") == "send"
    acked = sending & (kind == "ok")
    reading = (f.col("f") == "poll") & (kind != "invoke")
    blamed = reading & (f.coalesce("isolation", f.lit("read_committed")) != "read_uncommitted")
    sound = reading & f.col("value").isNotNull() & f.coalesce("intact", f.lit(True))
    unended = sending & (kind == "info") & f.col("offset").isNotNull()
    early = ~f.col("final")
    strong = sound | (acked & (f.col("acks") == ALL))
    return history.where(f.col("topic").isNotNull() & (sending | reading)).select(
        *PLACE, "value", "offset",
        f.when(sending, f.when(kind == "fail", FAILED).when(kind == "ok", OK).otherwise(UNKNOWN)).alias("sent"),
        *_columns(sending, invoked_ns="time_ns", invoked_row="index"),
        *_columns(sending, sent_ns="time_ns", send_row="index", sender="process", sent_acks="acks"),
        *_columns(acked, ack_row="index", acked_ns="time_ns", process="process", acks="acks"),
        *_columns(reading, read_row="index", read_ns="time_ns", epoch="leader_epoch"),
        *_columns(blamed, committed_row="index", committed_ns="time_ns"),
        *_columns(sending & f.col("txn"), txn_op="op"),
        *[f.when(sending, _step()).alias(name) for name in ("first_step", "last_step")],
        *_columns(sound & early, delivered_row="index", delivered_ns="time_ns", polled_epoch="leader_epoch"),
        *_columns(sound, sound_epoch="leader_epoch"),
        *_columns(unended, unended_row="index", unended_ns="time_ns"),
        *_columns(sound | (acked & f.col("offset").isNotNull()), seen_row="index", seen_ns="time_ns"),
        (reading & early).alias("polled"),
        (reading & f.col("final")).alias("finally"),
        (reading & ~sound).alias("unsound"),
        strong.alias("strong"),
        (unended & (f.col("acks") == ALL)).alias("unended_all"),
    )  # fmt: skip


def _step() -> Column:
    """An operation's step, as one number."""
    return f.shiftleft("op", 20) + f.col("mop")


def _columns(condition: Column, **columns: str) -> list[Column]:
    return [f.when(condition, f.col(source)).alias(name) for name, source in columns.items()]


def _of_logs(logs: DataFrame, leaders: DataFrame) -> DataFrame:
    ends = leaders.select(*PLACE, f.col("leader.node").alias("end_node"))
    joined = logs.join(f.broadcast(ends), on=list(PLACE), how="left")
    held = f.coalesce((f.col("node") == f.col("end_node")) & f.col("value").isNotNull(), f.lit(False))
    return joined.select(
        *PLACE, "value", "offset",
        f.when(f.col("leader_epoch") >= 0, f.col("leader_epoch")).alias("logged_epoch"),
        held.alias("in_final_log"),
        (held & f.col("intact")).alias("in_final_log_intact"),
        f.when(held & f.col("intact"), _author()).alias("author"),
    )  # fmt: skip


def _author() -> Column:
    """A producer's id and epoch, as one number; null of a record that is not numbered."""
    return f.shiftleft("producer_id", 16) + f.col("producer_epoch")


def _aggregates() -> list[Column]:
    lowest = (
        "invoked_ns", "invoked_row", "sent_acks", "txn_op", "ack_row", "acked_ns", "process", "acks", "read_row",
        "read_ns", "committed_row", "committed_ns", "delivered_row", "delivered_ns", "seen_row", "seen_ns", "epoch",
        "sound_epoch", "polled_epoch", "logged_epoch", "unended_row", "unended_ns", "aborted_ns", "recommitted_ns",
        "first_step", "author",
    )  # fmt: skip
    flags = ("polled", "finally", "unsound", "strong", "unended_all", "in_final_log", "in_final_log_intact")
    return [
        *[f.max(name).alias(name) for name in ("sent", "send_row", "sent_ns", "sender", "last_step")],
        *[f.min(name).alias(name) for name in lowest],
        *[f.coalesce(f.max(name), f.lit(False)).alias(name) for name in flags],
    ]
