"""Window operations over very many ordered rows, without sorting them all in one place.

Rows are cut into blocks by the number that orders them: offsets, positions in the history. Every block is sorted by
itself, and passes on one row to those after it, few enough to be sorted in one place.

Where only presence matters nothing is sorted: 64 numbers at a time become the bits of one word. Where only order
matters, eight neighbours at a time are compared as one row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add, or_
from typing import Literal, NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f

BLOCK = 1 << 16
"""How many consecutive numbers are a block."""

WORD_SHIFT = 6
"""By how many bits a number is shifted to the number of its word: a word has 64 bits, as a long integer has."""


OCTET_SHIFT = 3
"""By how many bits a number is shifted to the number of its octet: eight neighbours, an eighth of a word."""


class Earlier(NamedTuple):
    """A column with a value of the rows before.

    Attributes:
        value: a value of each of them; null ones do not count.
        of: the one to take: the ``last``, or the ``least``.
    """

    value: Column
    of: Literal["last", "least"]


def with_earlier(
    rows: DataFrame,
    keys: Sequence[str],
    order: str,
    wanted: Mapping[str, Earlier],
    *,
    descending: bool = False,
    blocks: bool,
) -> DataFrame:
    """``rows`` with columns about those before each row that have the same ``keys``.

    Args:
        rows: the rows.
        keys: the columns within whose values order matters.
        order: the column that orders them, whole numbers; of equal ones only ``last`` counts the earlier as before the
            later, in no particular order.
        wanted: by name, the new columns; null: no row is before.
        descending: whether the highest comes first.
        blocks: whether there may be so many that they must be cut into blocks.
    """
    if not blocks:
        return rows.withColumns({name: _carried(one, keys, order, descending) for name, one in wanted.items()})
    cut = rows.withColumn("block", f.expr(f"`{order}` div {BLOCK}"))
    inner = cut.withColumns({name: _carried(one, ["block", *keys], order, descending) for name, one in wanted.items()})
    left = {f"left_{name}": _left(one, order, descending) for name, one in wanted.items()}
    ends = cut.groupBy("block", *keys).agg(*[value.alias(name) for name, value in left.items()])
    carried = {
        f"carried_{name}": _carried(Earlier(f.col(f"left_{name}"), one.of), keys, "block", descending)
        for name, one in wanted.items()
    }
    known = ends.select("block", *keys, *[value.alias(name) for name, value in carried.items()])
    both = inner.join(known, on=["block", *keys], how="inner")
    return both.withColumns({name: _both(name, one) for name, one in wanted.items()}).drop("block", *carried)


def _carried(one: Earlier, keys: Sequence[str], order: str, descending: bool) -> Column:
    column = f.col(order)
    window = Window.partitionBy(*keys).orderBy(column.desc() if descending else column.asc())
    if one.of == "last":
        return f.last(one.value, ignorenulls=True).over(window.rowsBetween(Window.unboundedPreceding, -1))
    return f.min(one.value).over(window.rangeBetween(Window.unboundedPreceding, -1))


def _left(one: Earlier, order: str, descending: bool) -> Column:
    """What a block leaves to those after it."""
    if one.of == "least":
        return f.min(one.value)
    known = f.when(one.value.isNotNull(), f.col(order))
    return f.min_by(one.value, known) if descending else f.max_by(one.value, known)


def _both(name: str, one: Earlier) -> Column:
    carried = f"carried_{name}"
    return f.least(name, carried) if one.of == "least" else f.coalesce(name, carried)


def words(rows: DataFrame, keys: Sequence[str], number: str, **more: Column) -> DataFrame:
    """Which numbers there are, 64 to a row.

    Returns:
        ``keys, word, bits, rows, low, high``: the numbers are those of ``word`` whose bits are set, the lowest of them
        is ``low``, the highest ``high``; and how many rows they have together. ``more`` are aggregates of those rows.
    """
    column = f.col(number)
    bit = f.call_function("shiftleft", f.lit(1).cast("long"), place_of(number))
    return rows.groupBy(word_of(number).alias("word"), *keys).agg(
        f.bit_or(bit).alias("bits"),
        f.count("*").alias("rows"),
        f.min(column).alias("low"),
        f.max(column).alias("high"),
        *[aggregate.alias(name) for name, aggregate in more.items()],
    )


def octets(rows: DataFrame, keys: Sequence[str], number: str, value: str, **more: Column) -> DataFrame:
    """Eight neighbouring numbers to a row, and whether a value rises with them.

    Returns:
        ``keys, octet, bits, rows, least, most, rises``: the numbers are those of ``octet`` whose bits are set; how many
        rows they have together, the least and the highest ``value``, and whether no number has a lower one than a
        lower number (of numbers with several rows the highest counts). ``more`` are aggregates of those rows.
    """
    places = range(1 << OCTET_SHIFT)
    place = f.col(number).bitwiseAND(len(places) - 1)
    maxima = [f.max(f.when(place == one, f.col(value))).alias(f"most_{one}") for one in places]
    known = rows.groupBy(f.shiftright(f.col(number), OCTET_SHIFT).alias("octet"), *keys).agg(
        *maxima, f.count("*").alias("rows"), *[aggregate.alias(name) for name, aggregate in more.items()]
    )
    maximum_of = [f.col(f"most_{one}") for one in places]
    bits = [f.when(one.isNotNull(), 1 << position).otherwise(0) for position, one in enumerate(maximum_of)]
    falls = [
        one < f.greatest(f.lit(None), *maximum_of[:position]) for position, one in enumerate(maximum_of) if position
    ]
    return known.select(
        *keys, "octet", "rows", *more,
        reduce(add, bits).cast("long").alias("bits"),
        f.least(f.lit(None), *maximum_of).alias("least"),
        f.greatest(f.lit(None), *maximum_of).alias("most"),
        (~reduce(or_, [f.coalesce(fall, f.lit(False)) for fall in falls])).alias("rises"),
    )  # fmt: skip


def merged(known: DataFrame, keys: Sequence[str], **more: Column) -> DataFrame:
    """Words of finer keys, from :func:`words`, as words of ``keys``; ``more`` are aggregates of those rows."""
    return known.groupBy("word", *keys).agg(
        f.bit_or("bits").alias("bits"),
        f.sum("rows").alias("rows"),
        f.min("low").alias("low"),
        f.max("high").alias("high"),
        *[aggregate.alias(name) for name, aggregate in more.items()],
    )


def out_of_order(rows: DataFrame, keys: Sequence[str], number: str, low: Column, high: Column) -> DataFrame:
    """The ``keys`` within which a row's ``high`` is more than the ``low`` of one with a higher number.

    Of rows with equal numbers one may count as the higher. Only blocks are sorted, and then a row of each: whether one
    block is in order with another shows from the extremes of both.
    """
    cut = rows.select(
        f.expr(f"`{number}` div {BLOCK}").alias("block"), *keys, number, low.alias("low"), high.alias("high")
    )
    until_here = Window.partitionBy("block", *keys).orderBy(number).rowsBetween(Window.unboundedPreceding, -1)
    compared = cut.withColumn("wrong", f.max("high").over(until_here) > f.col("low"))
    blocks = compared.groupBy("block", *keys).agg(
        f.coalesce(f.max("wrong"), f.lit(False)).alias("wrong"), f.min("low").alias("low"), f.max("high").alias("high")
    )
    before = Window.partitionBy(*keys).orderBy("block").rowsBetween(Window.unboundedPreceding, -1)
    wrong = f.col("wrong") | f.coalesce(f.max("high").over(before) > f.col("low"), f.lit(False))
    return blocks.withColumn("wrong", wrong).where("wrong").select(*keys).distinct()


def word_of(number: str) -> Column:
    """The ``word`` of a number; see :func:`words`."""
    return f.shiftright(f.col(number), WORD_SHIFT)


def place_of(number: str) -> Column:
    """The bit of a number in its ``word``."""
    return f.col(number).bitwiseAND((1 << WORD_SHIFT) - 1).cast("int")


def unpreceded(chunks: str, later: str, earlier: str) -> Column:
    """Whether a chunk has a number among its bits ``later`` that no chunk before it has among its bits ``earlier``.

    ``chunks``: the column with an array, for each chunk of a word: ``{first, last, later, earlier}``. A chunk
    is before another when it ends before that begins: of two whose rows come in turns neither is.
    """

    def is_so(one: Column) -> Column:
        before = f.filter(chunks, lambda other: other["last"] < one["first"])
        known = f.aggregate(before, f.lit(0).cast("long"), lambda bits, other: bits.bitwiseOR(other[earlier]))
        return one[later].bitwiseAND(f.bitwise_not(known)) != 0

    return f.exists(chunks, is_so)


def different() -> Column:
    """How many numbers a row of :func:`words` holds."""
    return f.bit_count("bits")


def gaps(present: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Which numbers are missing: ``keys, first, end`` (exclusive), also from 0 to the first.

    Args:
        present: from :func:`words`.
        keys: as there.
    """
    word = f.struct("low", "high", "bits")
    blocks = present.groupBy(f.expr(f"word div {BLOCK}").alias("block"), *keys).agg(
        f.min("low").alias("low"),
        f.max("high").alias("high"),
        f.sum(different()).alias("different"),
        f.collect_list(word).alias("words"),
    )
    whole = f.array(f.struct("low", "high"))
    pieces = f.flatten(f.transform("words", _pieces))
    dense = f.col("different") == f.col("high") - f.col("low") + 1
    known = blocks.select(*keys, f.explode(f.when(dense, whole).otherwise(pieces)).alias("there"))
    before = f.lag("there.high", 1, -1).over(Window.partitionBy(*keys).orderBy("there.low"))
    steps = known.select(*keys, before.alias("before"), "there.low")
    missing = steps.where(f.col("low") > f.col("before") + 1)
    return missing.select(*keys, (f.col("before") + 1).alias("first"), f.col("low").alias("end"))


def _pieces(word: Column) -> Column:
    """The intervals of numbers that are there, ``{low, high}``; of a word with gaps every number is one."""
    dense = f.bit_count(word["bits"]) == word["high"] - word["low"] + 1
    whole = f.array(f.struct(word["low"].alias("low"), word["high"].alias("high")))
    numbers = f.filter(
        f.sequence(word["low"], word["high"]),
        lambda number: f.getbit(word["bits"], number.bitwiseAND((1 << WORD_SHIFT) - 1).cast("int")) == 1,
    )
    return f.when(dense, whole).otherwise(
        f.transform(numbers, lambda number: f.struct(number.alias("low"), number.alias("high")))
    )
