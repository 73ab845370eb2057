"""Each partition's leaders, its final leader, and its unclean elections: one row per partition."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

from spark_analysis.tables import PLACE


def leadership(timeline: DataFrame) -> DataFrame:
    """The leaders of each partition, from the nodes' timelines.

    Returns:
        ``run, topic, partition, leader, unclean, terms, deleted, log_starts``:

        * ``leader``: the final leader's ``{leader_epoch, time_ns, node, high_watermark, log_end_offset,
          log_start_offset}``: of the replicas that are leaders as collected at the end, the one of the
          highest epoch; null when there is none;
        * ``unclean``: an array of ``{time_ns, leader_epoch, taken, log_end, before, heard}``, the unclean elections and
          what they gave up, as ``checkers.views.unclean_elections`` defines it: ``before`` is an array of
          ``{leader_epoch, incarnation, sequence, last, lowest}``, ``last`` being the log end in row ``sequence`` of
          that incarnation, its last in that epoch; ``heard``: every replica is in the election's epoch in the end, or
          in a later one;
        * ``terms``: an array of ``{leader_epoch, begin_ns, node, incarnation, end_ns, first_sequence, first_log_end,
          log_end, high_watermark, log_start, last_row_ns, last_ns, next_ns, there_ns}``, ordered by its fields in this
          order. A term lasts from a node's first row in that role and epoch to its first row in another (``end_ns``,
          null: never); ``log_end``, ``high_watermark`` and ``log_start`` are its maxima, ``last_row_ns`` is when its
          last row was written; ``last_ns`` is when that incarnation of the node last wrote anything, ``there_ns`` until
          when it is known to have lasted, ``next_ns`` when its next incarnation first wrote (null: never);
        * ``deleted``: an array of ``{time_ns, log_start}``, what was deleted on purpose, as
          ``checkers.views.deletions`` defines it;
        * ``log_starts``: an array of the offsets at which a replica's log started at some time.
    """
    terms = _terms(timeline)
    known = _marks(timeline).join(_leader_terms(terms, timeline), on=list(PLACE), how="full")
    forked = known.join(_of_replicas(terms), on=list(PLACE), how="left")
    views = {"unclean": f.transform("unclean", _with_losses), "deleted": _deleted(), "log_starts": _log_starts()}
    return forked.withColumns(views).drop("ends", "heard", "raised", "born", "started")


def _log_starts() -> Column:
    """The offsets at which a replica's log started; needs ``raised`` and ``started``."""
    none = f.array().cast("array<bigint>")
    raised = f.transform("raised", lambda one: one["log_start"])
    return f.array_union(f.coalesce(raised, none), f.coalesce("started", none))


def _deleted() -> Column:
    """What was deleted on purpose; needs ``terms``, ``raised`` and ``born``."""
    moves = f.filter("raised", lambda one: f.coalesce(one["by_itself"], f.lit(False)) | ~_may_deny(one))
    listed = f.transform(
        moves, lambda one: f.struct(one["time_ns"].alias("time_ns"), one["log_start"].alias("log_start"))
    )
    none = f.array().cast("array<struct<time_ns: bigint, log_start: bigint>>")
    return f.concat(f.coalesce(listed, none), f.coalesce("born", none))


def _may_deny(raised: Column) -> Column:
    """Whether a leader of that epoch wrote a later row, or was alive in the end."""
    return f.coalesce(
        f.exists(
            "terms",
            lambda term: (term["leader_epoch"] == raised["leader_epoch"]) & (term["there_ns"] > raised["time_ns"]),
        ),
        f.lit(False),
    )


def _with_losses(election: Column) -> Column:
    """What an unclean election gave up; needs ``terms``, ``ends`` and ``heard``."""
    starts = f.filter("terms", lambda term: term["leader_epoch"] >= election["leader_epoch"])
    winner = f.get(starts, f.lit(0))
    ends_of_winner = f.filter(
        "ends", lambda end: (end["node"] == winner["node"]) & (end["leader_epoch"] < winner["leader_epoch"])
    )
    names = ("leader_epoch", "incarnation", "sequence", "last", "lowest")
    before = f.transform(ends_of_winner, lambda end: f.struct(*[end[name].alias(name) for name in names]))
    return f.struct(
        election["time_ns"].alias("time_ns"),
        election["leader_epoch"].alias("leader_epoch"),
        winner["leader_epoch"].alias("taken"),
        winner["first_log_end"].alias("log_end"),
        before.alias("before"),
        (f.coalesce("heard", f.lit(-1)) >= election["leader_epoch"]).alias("heard"),
    )


def _of_replicas(terms: DataFrame) -> DataFrame:
    """The log ends and births of the replicas of a partition.

    ``ends``: where the log of each ended in each leader epoch; ``born``: ``{time_ns, log_start}`` of the first row of a
    broker's life, where its log starts behind every earlier row of its lives before; ``started``: the log starts in
    states.
    """
    end = f.struct("node", "leader_epoch", "incarnation", "end.sequence", "end.last", "lowest")
    ended = f.col("leader_epoch").isNotNull() & f.col("end").isNotNull()
    earlier = Window.partitionBy(*PLACE, "node").orderBy("incarnation", "first_sequence")
    most = f.max("log_start").over(earlier.rowsBetween(Window.unboundedPreceding, -1))
    first = f.col("incarnation").eqNullSafe(f.lag("incarnation").over(earlier))
    known = terms.withColumn("higher", ~first & (f.col("first_log_start") > f.coalesce(most, f.lit(0))))
    birth = f.struct(f.col("begin_ns").alias("time_ns"), f.col("first_log_start").alias("log_start"))
    return known.groupBy(*PLACE).agg(
        f.collect_list(f.when(ended, end)).alias("ends"),
        f.collect_list(f.when(f.col("higher"), birth)).alias("born"),
        f.flatten(f.collect_set("log_starts")).alias("started"),
    )


def _marks(timeline: DataFrame) -> DataFrame:
    final = f.col("kind") == "final"
    unclean = (f.col("kind") == "election") & (f.get_json_object("detail", "$.clean") == "false")
    fields = f.struct("leader_epoch", "time_ns", "node", "high_watermark", "log_end_offset", "log_start_offset")
    raised = f.col("kind") == "log_start"
    by_itself = (f.col("role") == "leader") | (f.get_json_object("detail", "$.reason") == "retention")
    start = f.struct(
        "time_ns", _or_zero("log_start_offset").alias("log_start"), "leader_epoch", by_itself.alias("by_itself")
    )
    rows = timeline.where(f.col("topic").isNotNull() & (final | unclean | raised))
    return rows.groupBy(*PLACE).agg(
        f.max(f.when(final & (f.col("role") == "leader"), fields)).alias("leader"),
        f.min(f.when(final, f.coalesce("leader_epoch", f.lit(-1)))).alias("heard"),
        f.collect_list(f.when(unclean, f.struct("time_ns", "leader_epoch"))).alias("unclean"),
        f.collect_list(f.when(raised, start)).alias("raised"),
    )


def _leader_terms(terms: DataFrame, timeline: DataFrame) -> DataFrame:
    joined = terms.where(f.col("role") == "leader").join(
        f.broadcast(_lives(timeline)), on=["run", "node", "incarnation"], how="inner"
    )
    fields = (
        "leader_epoch", "begin_ns", "node", "incarnation", "end_ns", "first_sequence", "first_log_end", "log_end",
        "high_watermark", "log_start", "last_row_ns", "last_ns", "next_ns", "there_ns",
    )  # fmt: skip
    return joined.groupBy(*PLACE).agg(f.sort_array(f.collect_list(f.struct(*fields))).alias("terms"))


def _terms(timeline: DataFrame) -> DataFrame:
    states = timeline.where((f.col("kind") == "state") & f.col("topic").isNotNull())
    log_end, watermark = _or_zero("log_end_offset"), _or_zero("high_watermark")
    grouped = states.groupBy(*PLACE, "node", "incarnation", "role", "leader_epoch").agg(
        f.min("sequence").alias("first_sequence"),
        f.min("time_ns").alias("begin_ns"),
        f.max_by("time_ns", "sequence").alias("last_row_ns"),
        f.min_by(log_end, "sequence").alias("first_log_end"),
        f.min_by(_or_zero("log_start_offset"), "sequence").alias("first_log_start"),
        f.max(log_end).alias("log_end"),
        f.max(watermark).alias("high_watermark"),
        f.max(_or_zero("log_start_offset")).alias("log_start"),
        f.collect_set(_or_zero("log_start_offset")).alias("log_starts"),
        f.min("log_end_offset").alias("lowest"),
        f.max(
            f.when(f.col("log_end_offset").isNotNull(), f.struct("sequence", f.col("log_end_offset").alias("last")))
        ).alias("end"),
    )
    following = Window.partitionBy(*PLACE, "node").orderBy("incarnation", "first_sequence")
    return grouped.withColumn("end_ns", f.lead("begin_ns").over(following))


def _lives(timeline: DataFrame) -> DataFrame:
    running = f.col("kind") != "final"
    there = running | ~f.col("role").eqNullSafe("offline")
    lives = timeline.groupBy("run", "node", "incarnation").agg(
        f.min(f.when(running, f.col("time_ns"))).alias("first_ns"),
        f.max(f.when(running, f.col("time_ns"))).alias("last_ns"),
        f.max(f.when(there, f.col("time_ns"))).alias("there_ns"),
    )
    following = Window.partitionBy("run", "node").orderBy("incarnation")
    next_ns = f.lead("first_ns").over(following).alias("next_ns")
    return lives.where(f.col("last_ns").isNotNull()).select(
        "run", "node", "incarnation", "last_ns", "there_ns", next_ns
    )


def led_during(term: Column) -> Column:
    """Whether the leader's term has an instant in common with the send from ``invoked_ns`` to ``acked_ns``."""
    return led_between(term, f.col("invoked_ns"), f.col("acked_ns"))


def led_between(term: Column, begin_ns: Column, end_ns: Column) -> Column:
    """Whether the leader's term has an instant in common with that time; where the timeline is ``sampled``, may have.

    There a term may have begun before the first sample of it.
    """
    ended = term["end_ns"].isNotNull() & (term["end_ns"] < begin_ns)
    return (f.col("sampled") | (term["begin_ns"] <= end_ns)) & ~ended


def may_have_lacked(leader_epoch: Column, since_ns: Column, until_ns: Column) -> Column:
    """Whether one of the row's ``terms`` in that time was of an earlier epoch than a record's."""

    def lacked(term: Column) -> Column:
        return led_between(term, since_ns, until_ns) & (term["leader_epoch"] < leader_epoch)

    return f.coalesce(f.exists("terms", lacked), f.lit(False))


def given_up(leader_epoch: Column, offset: Column, time_ns: Column) -> Column:
    """Whether one of the row's ``unclean`` elections gave up a record of ``leader_epoch`` at ``offset``.

    Where that epoch is null: whether one came at ``time_ns`` or later.
    """
    known = f.exists("unclean", lambda election: _gave_up(election, leader_epoch, offset))
    return f.when(
        leader_epoch.isNull(), f.exists("unclean", lambda election: election["time_ns"] >= time_ns)
    ).otherwise(known)


def still_given_up(leader_epoch: Column, offset: Column) -> Column:
    """Whether one of the row's ``unclean`` elections gave up a record, and a replica has not heard of it."""
    return f.exists("unclean", lambda election: ~election["heard"] & _gave_up(election, leader_epoch, offset))


def thrown_back(leader_epoch: Column, offset: Column, time_ns: Column) -> Column:
    """Whether one of the row's ``unclean`` elections until ``time_ns`` gave up a record (null epoch: may have)."""
    return f.exists(
        "unclean",
        lambda election: (
            (election["time_ns"] <= time_ns) & (leader_epoch.isNull() | _gave_up(election, leader_epoch, offset))
        ),
    )


def cut_off(offset: Column, time_ns: Column, leader_epoch: Column | None = None) -> Column:
    """Whether one of the row's ``unclean`` elections gave up everything from ``offset`` on that is of ``leader_epoch``.

    Where the epoch is unknown: one at ``time_ns`` or later.
    """

    def is_so(election: Column) -> Column:
        later = election["time_ns"] >= time_ns
        if leader_epoch is not None:
            later = f.when(leader_epoch.isNull(), later).otherwise(election["leader_epoch"] > leader_epoch)
        return later & (election["log_end"].isNull() | (election["log_end"] <= offset))

    return f.exists("unclean", is_so)


def deleted_to(until_ns: Column) -> Column:
    """Up to which offset (exclusive) was deleted on purpose by then."""
    known = f.filter("deleted", lambda one: one["time_ns"] <= until_ns)
    return f.coalesce(f.array_max(f.transform(known, lambda one: one["log_start"])), f.lit(0))


def begins_behind(offset: Column, since_ns: Column) -> Column:
    """Whether the partition's log begins behind an offset in the end because its records were deleted on purpose.

    A deletion counts that was recorded since the record was sent; null: that is not known. In a sampled timeline any
    such log counts.
    """
    behind = f.coalesce(offset < f.col("leader.log_start_offset"), f.lit(False))
    later = f.exists(
        "deleted", lambda one: (offset < one["log_start"]) & (since_ns.isNull() | (one["time_ns"] >= since_ns))
    )
    return behind & (f.col("sampled") | later)


def _gave_up(election: Column, leader_epoch: Column, offset: Column) -> Column:
    open_ = offset.isNull() | election["log_end"].isNull()
    lacking = (offset >= election["log_end"]) | (offset < _had_before(election, leader_epoch))
    return (election["leader_epoch"] > leader_epoch) & (open_ | lacking)


def gave_up_some(election: Column, term: Column, begin: Column) -> Column:
    """Whether an unclean election gave up anything that a leader wrote in that term from an offset on."""
    first, last = f.greatest(begin, term["first_log_end"]), term["log_end"] - 1
    lacking = _gave_up(election, term["leader_epoch"], first) | _gave_up(election, term["leader_epoch"], last)
    return (first <= last) & lacking


def gave_up_of(offset: Column, since_ns: Column) -> Column:
    """Whether an unclean election gave up what a leader, still in office then, wrote at ``offset`` (null: anywhere).

    Where the timeline is ``sampled``: whether one came then or later.
    """

    def wrote(election: Column, term: Column) -> Column:
        there = (term["first_log_end"] <= offset) & (offset < term["log_end"])
        at_it = there & _gave_up(election, term["leader_epoch"], offset)
        return _led_since(term, since_ns) & f.when(offset.isNull(), gave_up_some(election, term, f.lit(0))).otherwise(
            at_it
        )

    known = f.exists("unclean", lambda election: f.exists("terms", lambda term: wrote(election, term)))
    return f.when(f.col("sampled"), f.exists("unclean", lambda election: election["time_ns"] >= since_ns)).otherwise(
        known
    )


def may_be_deleted(offset: Column, since_ns: Column) -> Column:
    """Whether a record was deleted on purpose since it was sent.

    Of an unknown offset (null): whether anything has been deleted since then that may have been written since then.
    """
    start = f.coalesce("leader.log_start_offset", f.lit(0))
    since_then = f.filter("deleted", lambda one: one["time_ns"] >= since_ns)
    most = f.coalesce(f.array_max(f.transform(since_then, lambda one: one["log_start"])), f.lit(0))
    able = f.filter("terms", lambda term: _led_since(term, since_ns))
    lowest = f.array_min(f.transform(able, lambda term: term["first_log_end"]))
    deleted = f.coalesce(f.least(start, most) > lowest, f.lit(False))
    anything = f.when(f.col("sampled"), start > 0).otherwise(deleted)
    return f.when(offset.isNull(), anything).otherwise(begins_behind(offset, since_ns))


def _led_since(term: Column, since_ns: Column) -> Column:
    return term["end_ns"].isNull() | (term["end_ns"] >= since_ns)


def _had_before(election: Column, leader_epoch: Column) -> Column:
    """Up to which offset (exclusive) the new leader had its log before it was in ``leader_epoch``, and kept it."""
    earlier = f.array_max(f.filter(election["before"], lambda end: end["leader_epoch"] < leader_epoch))
    since = f.filter(election["before"], lambda end: end["leader_epoch"] >= leader_epoch)
    lowest = f.array_min(f.transform(since, lambda end: end["lowest"]))
    return f.least(f.coalesce(earlier["last"], f.lit(0)), lowest, election["log_end"])


def _or_zero(column: str) -> Column:
    return f.coalesce(column, f.lit(0))
