"""A chunk of a table as NumPy arrays, and groups of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Place = tuple[str, str | None, int | None]
"""Run, topic, partition."""

NEVER = 2**63 - 1
"""Stands for no number where the least is asked for; where the highest is, ``-NEVER`` does."""

ROOM = 1 << 62
"""Below this limit a product of numbers fits into 64 bits."""


class Chunk:
    """The columns of a chunk as NumPy arrays. Nulls are 0; :meth:`known` tells them apart.

    Attributes:
        number: how many rows there are.
        places: the partitions that they are about; ``place``: which of these each of them.
    """

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._batch = batch
        self.number = batch.num_rows
        self.place, self.places = self._found()

    def numbers(self, name: str) -> Numbers:
        """A column of whole numbers; null: 0."""
        column = self._batch.column(name)
        return np.asarray(column.fill_null(0) if column.null_count else column).astype(np.int64, copy=False)

    def flags(self, name: str, *, null: bool = False) -> Flags:
        """A column of flags; ``null``: what null is."""
        column = self._batch.column(name)
        return np.asarray(column.fill_null(null).to_numpy(zero_copy_only=False), np.bool_)

    def known(self, name: str) -> Flags:
        """In which rows a column is not null."""
        column = self._batch.column(name)
        if not column.null_count:
            return np.ones(self.number, np.bool_)
        return np.asarray(column.is_valid().to_numpy(zero_copy_only=False), np.bool_)

    def words(self, name: str) -> tuple[Numbers, list[str | None]]:
        """Which of the words each row has, and the words; the last is null."""
        column = self._batch.column(name)
        codes = np.asarray(column.indices.fill_null(len(column.dictionary))).astype(np.int64)
        return codes, [*column.dictionary.to_pylist(), None]

    def is_any(self, name: str, *words: str) -> Flags:
        """In which rows a column has one of ``words``."""
        codes, known = self.words(name)
        return np.array([word in words for word in known])[codes]

    def _found(self) -> tuple[Numbers, list[Place]]:
        (run, runs), (topic, topics) = self.words("run"), self.words("topic")
        known, partition = self.known("partition"), self.numbers("partition")
        groups = Groups(run, topic, known.astype(np.int64), partition)
        heads = (groups.first(key).tolist() for key in (run, topic, known, partition))
        places = [(str(runs[r]), topics[t], p if there else None) for r, t, there, p in zip(*heads, strict=True)]
        return groups.number_of_each(), places


class Groups:
    """Rows with equal keys, in the order of the keys, and within a group as they came."""

    def __init__(self, *keys: Numbers) -> None:
        whole, most = np.zeros(len(keys[0]), np.int64), 1
        for key in keys:
            place, span = _from_zero(key)
            if most * span >= ROOM:
                (whole, most), (place, span) = _from_zero(ranks(whole)), _from_zero(ranks(key))
            whole, most = whole * span + place, most * span
        self.order = np.argsort(whole, kind="stable")
        ordered = whole[self.order]
        self.starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(whole)])

    def number_of_each(self) -> Numbers:
        """By row, the number of its group."""
        numbers = np.zeros(len(self.order), np.int64)
        heads = np.zeros(len(self.order), np.int64)
        heads[self.starts[1:]] = 1
        numbers[self.order] = np.cumsum(heads)
        return numbers

    def first(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """By group, what the first row has."""
        return values[self.order[self.starts]]

    def last(self, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """By group, what the last row has."""
        ends = np.concatenate([self.starts[1:], [len(self.order)]]) - 1
        return values[self.order[ends]] if len(self.starts) else values[:0]

    def rows(self) -> Numbers:
        """By group, how many rows there are."""
        return np.diff(np.concatenate([self.starts, [len(self.order)]]))

    def reduced(self, how: np.ufunc, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """By group, what ``how`` makes of its values."""
        return how.reduceat(values[self.order], self.starts) if len(self.starts) else values[:0]

    def any(self, flags: Flags) -> Flags:
        """By group, whether any row has the flag."""
        return self.reduced(np.logical_or, flags)

    def all(self, flags: Flags) -> Flags:
        """By group, whether all rows have the flag."""
        return self.reduced(np.logical_and, flags)

    def least(self, values: Numbers, which: Flags | None = None) -> Numbers:
        """The least of ``which``; :data:`NEVER` for none."""
        return self.reduced(np.minimum, values if which is None else np.where(which, values, NEVER))

    def most(self, values: Numbers, which: Flags | None = None) -> Numbers:
        """The highest of ``which``; ``-NEVER`` for none."""
        return self.reduced(np.maximum, values if which is None else np.where(which, values, -NEVER))

    def bits(self, numbers: Numbers, shift: int, which: Flags | None = None) -> Numbers:
        """Which places of a word the numbers of ``which`` take."""
        places = (numbers & ((1 << shift) - 1)).astype(np.uint64)
        bits = np.left_shift(np.uint64(1), places)
        bits = bits if which is None else np.where(which, bits, np.uint64(0))
        return self.reduced(np.bitwise_or, bits).view(np.int64)

    def print_of(self, *numbers: Numbers) -> Numbers:
        """A fingerprint of the group's rows."""
        return self.reduced(np.bitwise_xor, mixed(*numbers)).view(np.int64)

    def steps(self, wrong: Callable[[Numbers, Numbers], Flags]) -> Flags:
        """Whether ``wrong`` is false of every two rows of a group that follow each other."""
        bad = np.zeros(len(self.order), np.bool_)
        if len(self.order) > 1:
            bad[1:] = wrong(self.order[:-1], self.order[1:])
        bad[self.starts] = False
        return ~(np.logical_or.reduceat(bad, self.starts)) if len(self.starts) else bad


def _from_zero(values: Numbers) -> tuple[Numbers, int]:
    """``values`` beginning with 0, and one more than the highest of them."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    return values - low, high - low + 1


def taken(which: Flags, *columns: Numbers) -> Iterator[Numbers]:
    """The rows ``which`` of each column."""
    return (column[which] for column in columns)


def ranks(values: Numbers) -> Numbers:
    """``values`` by their places among them, equal ones at the same: small numbers."""
    return np.unique(values, return_inverse=True)[1].astype(np.int64)


def mixed(*numbers: Numbers) -> npt.NDArray[np.uint64]:
    """64 bits of hash of each row: the finalizer of SplitMix64, over one number after the other."""
    mixed = np.zeros(len(numbers[0]), np.uint64)
    for values in numbers:
        mixed = (mixed ^ values.astype(np.uint64)) + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        mixed ^= mixed >> np.uint64(31)
    return mixed
