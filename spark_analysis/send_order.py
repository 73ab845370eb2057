"""Which records were appended before one that they were sent after?"""

from __future__ import annotations

from functools import reduce

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis.blocks import Earlier, different, out_of_order, place_of, with_earlier, word_of
from spark_analysis.chunks import NEVER
from spark_analysis.digest_rows import ACKS
from spark_analysis.digests import Digests
from spark_analysis.leadership import cut_off
from spark_analysis.records import ALL, UNKNOWN
from spark_analysis.tables import PLACE
from spark_analysis.views import Views, findings, with_partitions

_EARLIER = ("row", "time_ns", "offset", "value", "acks")


def unordered_sends(views: Views) -> DataFrame | None:
    """The three kinds that ``checkers.sends_are_ordered`` defines."""
    wrong = [] if views.digests and _are_in_order(views.digests, views) else [_late(views)]
    if "txn" in views.uses:
        wrong.append(_within_operations(views))
    if not wrong:
        return None
    known = with_partitions(reduce(DataFrame.unionByName, wrong), views)
    gone = cut_off(f.col("offset"), f.col("earlier.time_ns"))
    weak = (f.col("acks") != ALL) | (f.col("earlier.acks") != ALL)
    return findings(
        known,
        f.col("kind"),
        **{name: name for name in ("offset", "value", "row", "time_ns", "process", "acks")},
        excuse=f.when(weak, "acks").when(gone, "unclean"),
        other_offset="earlier.offset",
        other_value="earlier.value",
    )


def _late(views: Views) -> DataFrame:
    """Of every stored record the first acknowledgement of a higher offset, where that came before it was sent."""
    records = views.all_records()
    acked = records.where(f.col("ack_row").isNotNull() & f.col("offset").isNotNull()).select(
        *PLACE, "process", "offset", "value", "acks", "invoked_row",
        f.col("ack_row").alias("row"),
        f.col("acked_ns").alias("time_ns"),
        f.lit(True).alias("acked"),
    )  # fmt: skip
    stored = acked.unionByName(_placed(records))
    told = f.when(f.col("acked"), f.struct(*_EARLIER))
    known = with_earlier(
        stored, PLACE, "offset", {"anybody": Earlier(told, "least")}, descending=True, blocks=views.large
    )
    own = {"own": Earlier(told, "least")}
    both = with_earlier(known, ["process", *PLACE], "offset", own, descending=True, blocks=views.large)
    later = [f.coalesce(f.col(name)["row"] < f.col("invoked_row"), f.lit(False)) for name in ("own", "anybody")]
    kind = f.when(later[0], "nonmonotonic-send").when(later[1], "G0-realtime")
    return both.withColumn("kind", kind).where(f.col("kind").isNotNull()).select(
        *PLACE, "kind", "process", "offset", "value", "acks", "row", "time_ns",
        f.when(later[0], f.col("own")).otherwise(f.col("anybody")).alias("earlier"),
    )  # fmt: skip


def _placed(records: DataFrame) -> DataFrame:
    """The records of whose send nobody was told where they are, and that are at one offset all the same.

    Returns:
        ``run, topic, partition, process, offset, value, acks, invoked_row, row, time_ns, acked``; ``acked``: that row
        says that the record is stored.
    """
    once = records.where(f.col("lowest") == f.col("highest"))
    acked = f.col("ack_row").isNotNull()
    unplaced = acked & f.col("offset").isNull()
    unended = (f.col("sent") == UNKNOWN) & (f.col("offset") == f.col("lowest"))
    of_ack = {"process": "process", "acks": "acks", "row": "ack_row", "time_ns": "acked_ns"}
    of_send = {"process": "sender", "acks": "sent_acks", "row": "send_row", "time_ns": "sent_ns"}
    return once.where(unplaced | unended).select(
        *PLACE, "value", "invoked_row",
        f.col("lowest").alias("offset"),
        *[f.when(acked, f.col(of_ack[name])).otherwise(f.col(of_send[name])).alias(name) for name in of_ack],
        (acked & (f.col("acks") != 0)).alias("acked"),
    )  # fmt: skip


def _are_in_order(digests: Digests, views: Views) -> bool:
    """Whether no record was acknowledged before one with a lower offset was sent: a look that is quick."""
    # What was sent, or acknowledged, several times may have been in order here and there, and not as a whole.
    several = [
        words.where(f.col("rows") > different()).select(*PLACE)
        for words in (digests.values(), digests.offsets().where(f.col("source") == ACKS))
    ]
    told = digests.sends()
    if "record" in views.uses:
        placed = _placed(views.records)
        several.append(_acknowledged(placed, digests))
        row = f.when(f.col("acked"), f.col("row")).otherwise(NEVER)
        told = told.union(placed.select(*PLACE, "offset", row, "invoked_row"))
    wrong = out_of_order(told, PLACE, "offset", f.col("row"), f.col("invoked_row"))
    return reduce(DataFrame.union, [wrong, *several]).isEmpty()


def _acknowledged(placed: DataFrame, digests: Digests) -> DataFrame:
    """The partitions in which one of ``placed`` is where somebody else's record was acknowledged.

    A row of ``digests.sends()`` may stand for all offsets around it.
    """
    acks = digests.offsets().where(f.col("source") == ACKS).select(*PLACE, "word", "bits")
    near = placed.select(*PLACE, "offset", word_of("offset").alias("word")).join(acks, on=[*PLACE, "word"], how="inner")
    return near.where(f.getbit("bits", place_of("offset")) == 1).select(*PLACE)


def _within_operations(views: Views) -> DataFrame:
    sent = (f.col("f") == "send") & (f.col("type") != "invoke") & f.col("txn")
    at_one = (f.col("lowest") == f.col("highest")) & (f.col("offset") == f.col("lowest"))
    shown = views.records.where(at_one & f.col("txn_op").isNotNull()).select(*PLACE, "value", "lowest")
    stored = f.coalesce("offset", f.when(f.col("type") != "fail", f.col("lowest")))
    rows = views.tables.history.where(sent).join(shown, on=[*PLACE, "value"], how="left")
    told = rows.withColumns({"row": f.col("index"), "offset": stored}).where(f.col("offset").isNotNull())
    before = Window.partitionBy(*PLACE, "op").orderBy("mop", "index")
    steps = told.withColumns({"earlier": f.lag(f.struct(*_EARLIER)).over(before), "step": f.lag("mop").over(before)})
    # Several rows of one send, which only a history has that is none, are not out of order with each other.
    back = steps.where((f.col("offset") < f.col("earlier.offset")) & (f.col("step") < f.col("mop")))
    return back.select(
        *PLACE, f.lit("int-nonmonotonic-send").alias("kind"), "process", "offset", "value", "acks", "row", "time_ns",
        "earlier",
    )  # fmt: skip
