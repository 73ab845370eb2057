"""Which records were appended before one that they were sent after?"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis.blocks import Earlier, different, out_of_order, place_of, with_earlier, word_of
from spark_analysis.chunks import NEVER
from spark_analysis.digest_rows import ACKS
from spark_analysis.digests import Digests, sent_since
from spark_analysis.leadership import cut_off
from spark_analysis.question import Question
from spark_analysis.records import ALL, UNKNOWN
from spark_analysis.tables import PLACE, Tables
from spark_analysis.views import Activity, Partitions, Records, Scale, findings, with_partitions

_EARLIER = ("row", "time_ns", "offset", "value", "acks", "leader_epoch", "invoked_ns")


def send_order(
    tables: Tables, activity: Activity, records: Records, partitions: Partitions, scale: Scale
) -> DataFrame | None:
    """The four kinds that ``checkers.send_order`` defines."""
    wrong = [] if scale.digests and _are_in_order(scale.digests, activity, records) else [_late(records, scale)]
    if "txn" in activity.uses:
        wrong.append(_within_transactions(tables, records))
    if "burst" in activity.uses:
        wrong.append(_within_bursts(tables))
    if not wrong:
        return None
    known = with_partitions(reduce(DataFrame.unionByName, wrong), partitions)
    gone = cut_off(f.col("offset"), f.col("earlier.time_ns"), f.col("earlier.leader_epoch"))
    weak = (f.col("acks") != ALL) | (f.col("earlier.acks") != ALL)
    return findings(
        known,
        f.col("kind"),
        **{name: name for name in ("offset", "value", "row", "time_ns", "process", "acks")},
        excuse=f.when(weak, "acks").when(gone, "unclean"),
        other_offset="earlier.offset",
        other_value="earlier.value",
        since_ns="earlier.invoked_ns",
    )


def _late(records: Records, scale: Scale) -> DataFrame:
    """Of every stored record the first earlier proof of a higher offset, where that came before it was sent."""
    every = records.all()
    acked = every.where(f.col("ack_row").isNotNull() & f.col("offset").isNotNull()).select(
        *PLACE, "process", "offset", "value", "acks", "invoked_row", "invoked_ns",
        f.col("ack_row").alias("row"),
        f.col("acked_ns").alias("time_ns"),
        f.lit(True).alias("acked"),
    )  # fmt: skip
    stored = acked.unionByName(_placed(every)).withColumn("leader_epoch", _no_epoch())
    acknowledged, delivered = (
        f.when(condition, f.struct(*_EARLIER)) for condition in (f.col("acked"), f.col("acked").isNull())
    )
    earlier = {"first_placed": Earlier(acknowledged, "least"), "first_delivered": Earlier(delivered, "least")}
    everything = stored.unionByName(_delivered(every), allowMissingColumns=True)
    known = with_earlier(everything, PLACE, "offset", earlier, descending=True, blocks=scale.large)
    own = {"own": Earlier(acknowledged, "least")}
    sent = known.where(f.col("acked").isNotNull())
    both = with_earlier(sent, ["process", *PLACE], "offset", own, descending=True, blocks=scale.large)
    late = {name: f.coalesce(f.col(name)["row"] < f.col("invoked_row"), f.lit(False)) for name in ("own", *earlier)}
    before = f.when(late["own"], f.col("own")).when(late["first_placed"], f.col("first_placed"))
    read = late["first_delivered"] & (before.isNull() | (before["acks"] != ALL))
    kind = f.when(read, "G1c-realtime").when(late["own"], "nonmonotonic-send").when(late["first_placed"], "G0-realtime")
    return both.withColumn("kind", kind).where(f.col("kind").isNotNull()).select(
        *PLACE, "kind", "process", "offset", "value", "acks", "row", "time_ns",
        f.when(read, f.col("first_delivered")).otherwise(before).alias("earlier"),
    )  # fmt: skip


def _delivered(records: DataFrame) -> DataFrame:
    """Every record that was delivered before the final read; so it was committed, whatever its sender waited for.

    Returns:
        ``run, topic, partition, offset, value, invoked_ns, acks, row, time_ns, leader_epoch``: of its first delivery.
    """
    return records.where(f.col("delivered_row").isNotNull()).select(
        *PLACE, "offset", "value", "invoked_ns",
        f.lit(ALL).alias("acks"),
        f.col("delivered_row").alias("row"),
        f.col("delivered_ns").alias("time_ns"),
        f.col("polled_epoch").alias("leader_epoch"),
    )  # fmt: skip


def _no_epoch() -> Column:
    return f.lit(None).cast("int")


def _no_time() -> Column:
    return f.lit(None).cast("bigint")


def _placed(records: DataFrame) -> DataFrame:
    """The records whose acknowledgement has no offset, and that are at one offset all the same.

    Returns:
        ``run, topic, partition, process, offset, value, acks, invoked_row, invoked_ns, row, time_ns, acked``; where
        ``acked``, that row shows that the record is stored.
    """
    once = records.where(f.col("lowest") == f.col("highest"))
    acked = f.col("ack_row").isNotNull()
    unplaced = acked & f.col("offset").isNull()
    unended = (f.col("sent") == UNKNOWN) & (f.col("offset") == f.col("lowest"))
    of_ack = {"process": "process", "acks": "acks", "row": "ack_row", "time_ns": "acked_ns"}
    of_send = {"process": "sender", "acks": "sent_acks", "row": "send_row", "time_ns": "sent_ns"}
    return once.where(unplaced | unended).select(
        *PLACE, "value", "invoked_row", "invoked_ns",
        f.col("lowest").alias("offset"),
        *[f.when(acked, f.col(of_ack[name])).otherwise(f.col(of_send[name])).alias(name) for name in of_ack],
        (acked & (f.col("acks") != 0)).alias("acked"),
    )  # fmt: skip


def _are_in_order(digests: Digests, activity: Activity, records: Records) -> bool:
    """Whether no record was acknowledged before one with a lower offset was sent: a quick look."""
    # A value sent, or acknowledged, several times may be in order in each chunk, and not as a whole.
    doubtful = [
        words.where(f.col("rows") > different()).select(*PLACE)
        for words in (digests.values(), digests.offsets().where(f.col("source") == ACKS))
    ]
    sends, overtaking = digests.sends(), digests.overtaking()
    if "record" in activity.uses:
        placed = _placed(records.unsettled)
        doubtful.append(_acknowledged(placed, digests))
        row = f.when(f.col("acked"), f.col("row")).otherwise(NEVER)
        sends = sends.union(placed.select(*PLACE, "offset", row, "invoked_row"))
        overtaking = overtaking.union(_overtaking(placed, digests))
    doubtful.append(out_of_order(sends, PLACE, "offset", f.col("row"), f.col("invoked_row")))
    doubtful.append(out_of_order(overtaking, PLACE, "offset", f.col("row"), f.col("since")))
    doubtful.append(_overlapping(digests.order()))
    return reduce(DataFrame.union, doubtful).isEmpty()


def _overlapping(intervals: DataFrame) -> DataFrame:
    """The runs in which a chunk of the history begins before another one has ended, or is not in order itself."""
    before = Window.partitionBy("run").orderBy("first").rowsBetween(Window.unboundedPreceding, -1)
    overlaps = f.coalesce(f.max("last").over(before) >= f.col("first"), f.lit(False))
    known = intervals.withColumn("overlaps", overlaps | ~f.col("steady"))
    return known.where("overlaps").select("run", f.lit(None).cast("string"), f.lit(None).cast("int"))


def _overtaking(placed: DataFrame, digests: Digests) -> DataFrame:
    """Whether one of ``placed`` may have overtaken what was delivered; see ``Digests.overtaking``."""
    sent = placed.select(*PLACE, "value", "offset")
    known = sent.join(digests.halves().select(*PLACE, "value", "since", "heard"), on=[*PLACE, "value"], how="left")
    return known.select(*PLACE, "offset", f.lit(None).cast("long"), sent_since())


def _acknowledged(placed: DataFrame, digests: Digests) -> DataFrame:
    """The partitions in which one of ``placed`` is where another process's record was acknowledged.

    A row of ``digests.sends()`` may stand for all offsets around it.
    """
    acks = digests.offsets().where(f.col("source") == ACKS).select(*PLACE, "word", "bits")
    near = placed.select(*PLACE, "offset", word_of("offset").alias("word")).join(acks, on=[*PLACE, "word"], how="inner")
    return near.where(f.getbit("bits", place_of("offset")) == 1).select(*PLACE)


def _within_transactions(tables: Tables, records: Records) -> DataFrame:
    sent = (f.col("f") == "send") & (f.col("type") != "invoke") & f.col("txn")
    at_one = (f.col("lowest") == f.col("highest")) & (f.col("offset") == f.col("lowest"))
    shown = records.unsettled.where(at_one & f.col("txn_op").isNotNull()).select(*PLACE, "value", "lowest")
    stored = f.coalesce("offset", f.when(f.col("type") != "fail", f.col("lowest")))
    rows = tables.history.where(sent).join(shown, on=[*PLACE, "value"], how="left")
    known = {"row": f.col("index"), "offset": stored, "leader_epoch": _no_epoch(), "invoked_ns": _no_time()}
    return _within_operations(rows.withColumns(known).where(f.col("offset").isNotNull()))


def _within_bursts(tables: Tables) -> DataFrame:
    acknowledged = (f.col("f") == "send") & (f.col("type") == "ok") & ~f.col("txn") & f.col("offset").isNotNull()
    known = {"row": f.col("index"), "leader_epoch": _no_epoch(), "invoked_ns": _no_time()}
    return _within_operations(tables.history.where(acknowledged).withColumns(known))


def _within_operations(located: DataFrame) -> DataFrame:
    """Each of some sends with an offset, in order by operation and partition, that is before its predecessor."""
    before = Window.partitionBy(*PLACE, "op").orderBy("mop", "index")
    steps = located.withColumns({"earlier": f.lag(f.struct(*_EARLIER)).over(before), "step": f.lag("mop").over(before)})
    # Several rows of one send, which only a malformed history has, are not out of order with each other.
    back = steps.where((f.col("offset") < f.col("earlier.offset")) & (f.col("step") < f.col("mop")))
    return back.select(
        *PLACE, f.lit("int-nonmonotonic-send").alias("kind"), "process", "offset", "value", "acks", "row", "time_ns",
        "earlier",
    )  # fmt: skip


QUESTIONS = (Question(send_order),)
