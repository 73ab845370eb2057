"""Digests a chunk of the history for all questions at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from harness.facts import SILENCE_NS
from spark_analysis.chunks import NEVER, ROOM, Chunk, Flags, Groups, Numbers, ranks, taken
from spark_analysis.digest_rows import ACKS, EARLY, FINAL, Asked, Piece, nullable, word_columns
from spark_analysis.records import ALL

READ = (
    "run", "index", "time_ns", "process", "op", "txn", "mop", "type", "f", "topic", "partition", "offset", "value",
    "acks", "final", "intact",
)  # fmt: skip
"""The columns that are read."""


def digest(rows: Chunk, asked: Asked) -> Iterator[Piece]:
    """Every digest of a chunk; ``digest_rows.COLUMNS`` names them."""
    index = rows.numbers("index")
    steady = bool((index[1:] > index[:-1]).all())
    history = _History(rows, asked, steady)
    yield history.tally()
    yield from history.order()
    yield history.operations()
    yield history.values()
    yield history.offsets()
    yield history.foretold()
    yield from history.sends()
    yield history.polls()
    yield history.seconds()
    yield history.first_acks()


class _History:
    """A chunk of the history; ``steady``: its indices rise."""

    def __init__(self, rows: Chunk, asked: Asked, steady: bool) -> None:
        self._rows, self._shift, self._steady, self._asked = rows, asked.shift, steady, asked
        self.index, self.time_ns, self.op = (rows.numbers(name) for name in ("index", "time_ns", "op"))
        self.process, self.acks, self.place = rows.numbers("process"), rows.numbers("acks"), rows.place
        self.offset, self.placed = rows.numbers("offset"), rows.known("offset")
        self.value, self.valued = rows.numbers("value"), rows.known("value")
        self.named = rows.known("topic")
        self.send, self.poll = rows.is_any("f", "send"), rows.is_any("f", "poll")
        self.invoke, self.ok = rows.is_any("type", "invoke"), rows.is_any("type", "ok")
        self.txn = rows.flags("txn")
        self.malformed = self._is_malformed()
        self.final = self._is_final()
        self.sending = self.send & self.named & ~self.malformed
        self.reading = self.poll & ~self.invoke & self.named & ~self.malformed
        self.sound = self.valued & rows.flags("intact", null=True)

    def _is_malformed(self) -> Flags:
        partition = self._rows.known("partition")
        lacking, named = ~(self.named & partition), self.named | partition
        sound = [
            (self.send, lacking | ~self.valued | ~self._rows.known("acks")),
            (self._rows.is_any("f", "commit"), lacking | ~self.placed),
            (self.poll, (named | self.placed) & (lacking | ~self.placed)),
        ]
        return np.select([which for which, _ in sound], [bad for _, bad in sound], named & lacking)

    def _is_final(self) -> Flags:
        final = self._rows.flags("final")
        if not self._asked.since:
            return final
        since = np.array([self._asked.since.get(place, 0) for place in self._rows.places], np.int64)
        return final & (~self.named | (self.index >= since[self.place]))

    def _indices(self, number: int) -> dict[str, Numbers]:
        """The lowest and highest index of the chunk, ``number`` times: they give the order of chunks."""
        return {"first": np.full(number, self.index.min()), "last": np.full(number, self.index.max())}

    def tally(self) -> Piece:
        """Counts of rows with the same columns."""
        (f, fs), (kind, kinds) = self._rows.words("f"), self._rows.words("type")
        acks = np.where(self._rows.known("acks"), self.acks, NEVER)
        process = np.where(self.final, self.process, NEVER)
        flags = {"final": self.final, "txn": self.txn, "known": self.placed, "malformed": self.malformed}
        flags["later"] = self._rows.numbers("mop") > 0
        packed = np.packbits(list(flags.values()), axis=0)[0].astype(np.int64)
        groups = Groups(self.place, f, kind, packed, ranks(acks), ranks(process))
        columns = {
            **{name: groups.first(flag) for name, flag in flags.items()},
            "acks": nullable(groups.first(acks)),
            "process": nullable(groups.first(process)),
            "rows": groups.rows(),
            "offset": nullable(groups.most(self.offset, self.placed)),
            "index": groups.most(self.index),
            "first": groups.least(self.index),
            "last_ns": groups.most(self.time_ns),
        }
        words = {
            name: pa.array(known, pa.string()).take(pa.array(groups.first(codes)))
            for name, codes, known in (("f", f, fs), ("type", kind, kinds))
        }
        return Piece("tally", groups.first(self.place), columns, words)

    def order(self) -> Iterator[Piece]:
        """By run, whether its rows follow each other, in time, too."""
        run, _ = self._rows.words("run")
        groups = Groups(run)
        follow = groups.steps(
            lambda one, next_: (self.index[next_] != self.index[one] + 1) | (self.time_ns[next_] < self.time_ns[one])
        )
        columns = {
            "first": groups.first(self.index),
            "last": groups.last(self.index),
            "begin_ns": groups.first(self.time_ns),
            "end_ns": groups.last(self.time_ns),
            "steady": follow,
        }
        yield Piece("order", groups.first(self.place), columns)

    def operations(self) -> Piece:
        """The operations that began here, those that only went on here, and the sends that ended."""
        run, _ = self._rows.words("run")
        counted = self.send | (self.poll & self.invoke)
        ends = ~self.invoke & ~self._rows.is_any("f", "close")
        step = 2 * self._rows.numbers("mop") + self.invoke
        each = Groups(run, self.op)
        begun, ended = each.least(self.index, self.invoke), each.least(self.index, ends)
        steps = Groups(run[counted], self.op[counted], step[counted])
        twice = np.zeros(len(self.op), np.bool_)
        twice[np.flatnonzero(counted)[steps.order[steps.starts]]] = steps.rows() > 1
        repeated = each.any(twice)
        op, run = each.first(self.op), each.first(run)
        place = each.first(self.place)
        words = Groups(run, op >> self._shift)
        columns = {
            "word": words.first(op >> self._shift),
            **self._indices(len(words.starts)),
            "begun": words.bits(op, self._shift, begun < NEVER),
            "others": words.bits(op, self._shift, (ended < NEVER) & (ended <= begun)),
            "ended": words.bits(op, self._shift, each.any(self.send & ends)),
            "strange": words.any(repeated) | (not self._steady),
        }
        return Piece("operations", words.first(place), columns)

    def values(self) -> Piece:
        """The values that were sent, and those whose send's outcome is recorded: 64 to a row."""
        which = self.sending
        value, place, invoked = self.value[which], self.place[which], self.invoke[which]
        plain = ~self.txn & (self.invoke | (self.ok & self.placed))
        words = Groups(place, invoked.astype(np.int64), value >> self._shift)
        columns = {
            "invoked": words.first(invoked),
            **word_columns(words, value, self._shift),
            "print": words.print_of(value, self.op[which]),
            "strange": words.any(~plain[which]),
        }
        return Piece("values", words.first(place), columns)

    def offsets(self) -> Piece:
        """The offsets that acknowledgements and deliveries name, 64 to a row."""
        which = (self.sending | self.reading) & self.placed
        place, offset, value, time_ns = taken(which, self.place, self.offset, self.value, self.time_ns)
        sending = self.send[which]
        strange = ~(self.ok & ~self.txn & self.sound)[which]
        claims = (self.send & self.ok & (self.acks == ALL))[which]
        source = np.where(sending, ACKS, np.where(self.final[which], FINAL, EARLY))
        whose = np.where(sending, 0, self.process[which])
        words = Groups(place, source, whose, offset >> self._shift)
        columns = {
            "source": words.first(source),
            "whose": words.first(whose),
            **word_columns(words, offset, self._shift),
            "print": words.print_of(offset, value),
            "strange": words.any(strange),
            "acked": words.reduced(np.add, claims.astype(np.int64)),
            "first_ns": nullable(words.least(time_ns, claims)),
            "last_ns": nullable(words.most(time_ns, claims)),
            "heard_ns": nullable(words.least(time_ns, claims | ~sending)),
        }
        return Piece("offsets", words.first(place), columns)

    def foretold(self) -> Piece:
        """The values that were sent here, and those that were read here without an earlier send."""
        which = (self.sending | self.reading) & self.valued
        value, place, index = taken(which, self.value, self.place, self.index)
        sending = self.send[which]
        each = Groups(place, value)
        sent, read = each.least(index, sending), each.least(index, ~sending)
        value, place = each.first(value), each.first(place)
        words = Groups(place, value >> self._shift)
        columns = {
            "word": words.first(value >> self._shift),
            **self._indices(len(words.starts)),
            "sent": words.bits(value, self._shift, sent < NEVER),
            "read": words.bits(value, self._shift, read < sent),
        }
        return Piece("foretold", words.first(place), columns)

    def sends(self) -> Iterator[Piece]:
        """Where records were acknowledged, in which row, and in which they were sent.

        Those whose send, or acknowledgement, is in another chunk are ``halves``. Consecutive offsets in order are one
        row, with the lowest of them, the first acknowledgement and the last send: others can be out of order only with
        these.

        And of every partition what was delivered before the final read, and whether that was overtaken: by a record
        that was sent here, or may have been in another chunk.
        """
        which = self.sending
        delivered, heard = self._heard()
        place, value, index = self.place[which], self.value[which], self.index[which]
        offset, acked = self.offset[which], (self.ok & self.placed)[which]
        each = Groups(place, value)
        begun, at, highest = each.least(index), each.least(offset, acked), each.most(offset, acked)
        row = each.least(index, acked)
        before = each.least(heard[which], self.invoke[which])
        place, value = each.first(place), each.first(value)
        invoked = each.first(self.invoke[which])
        acknowledged = at < NEVER
        ended = acknowledged & invoked
        yield self._overtaking(delivered, place[ended], at[ended], before[ended])
        # A value acknowledged at several offsets is out of order with everything, as are rows not in order here.
        torn = acknowledged & ((at < highest) | (not self._steady))
        row, begun = np.where(torn, -1, row), np.where(torn, NEVER - 1, begun)
        half = ~ended
        halves = {
            "value": value[half],
            "offset": nullable(at[half]),
            "row": nullable(np.where(acknowledged, row, NEVER)[half]),
            "invoked_row": nullable(np.where(invoked, begun, NEVER)[half]),
            "since": nullable(np.where(invoked, self._begin(), NEVER)[half]),
            "heard": nullable(before[half]),
        }
        yield Piece("halves", place[half], halves)
        place, offset, row, begun = taken(~half, place, at, row, begun)
        by_offset = np.lexsort((offset, place))
        place, offset, row, begun = (column[by_offset] for column in (place, offset, row, begun))
        follows = np.zeros(len(place), np.bool_)
        follows[1:] = (place[1:] == place[:-1]) & (offset[1:] == offset[:-1] + 1)
        intervals = Groups(np.cumsum(~follows))
        whole = _in_order(intervals, row, begun)
        single = ~whole[intervals.number_of_each()]
        columns = {
            "offset": np.concatenate([intervals.first(offset)[whole], offset[single]]),
            "row": np.concatenate([intervals.least(row)[whole], row[single]]),
            "invoked_row": np.concatenate([intervals.most(begun)[whole], begun[single]]),
        }
        yield Piece("sends", np.concatenate([intervals.first(place)[whole], place[single]]), columns)

    def _begin(self) -> int:
        return int(self.index.min()) if len(self.index) else NEVER

    def _heard(self) -> tuple[Flags, Numbers]:
        """The deliveries before the final read; and by row, the highest offset of those of its partition before it.

        ``-NEVER`` for none; ``NEVER - 1`` where rows are not in order, so that it is unknown.
        """
        delivered = self.reading & self.placed & self.sound & ~self.final
        heard = np.full(len(self.index), -NEVER, np.int64)
        if not delivered.any():
            return delivered, heard
        low, high = int(self.offset[delivered].min()), int(self.offset[delivered].max())
        span = high - low + 2
        if not self._steady or span * (len(self._rows.places) + 1) >= ROOM:
            return delivered, np.full(len(self.index), NEVER - 1, np.int64)
        concerned = np.flatnonzero(delivered | (self.sending & self.invoke))
        place = self.place[concerned].astype(np.min_scalar_type(len(self._rows.places)))  # small ones are sorted faster
        order = concerned[np.argsort(place, kind="stable")]
        # A partition's number is added, so that the running maximum begins anew with each.
        before = self.place[order] * span
        highest = np.maximum.accumulate(before + np.where(delivered, self.offset - low + 1, 0)[order]) - before
        heard[order] = np.where(highest > 0, highest + low - 1, -NEVER)
        return delivered, heard

    def _overtaking(self, delivered: Flags, place: Numbers, offset: Numbers, heard: Numbers) -> Piece:
        """By partition, the first delivery and the highest offset delivered; and the lowest of what was sent here.

        ``offset`` of it was stored, after ``heard`` had been delivered. ``since``: sent where the chunk begins, or
        later; ``NEVER`` if one of them has overtaken something.
        """
        since = np.where(heard > offset, NEVER, self._begin())
        both = np.concatenate([self.place[delivered], place])
        sent = np.arange(len(both)) >= np.count_nonzero(delivered)
        groups = Groups(both)
        rows = np.concatenate([self.index[delivered], since])
        offsets = np.concatenate([self.offset[delivered], offset])
        columns = {
            "row": nullable(groups.least(rows, ~sent)),
            "delivered": nullable(groups.most(offsets, ~sent)),
            "sent": nullable(groups.least(offsets, sent)),
            "since": np.ma.MaskedArray(groups.most(rows, sent), ~groups.any(sent)),
        }
        return Piece("overtaking", groups.first(both), columns)

    def polls(self) -> Piece:
        """The deliveries of each partition to each process: first and last offset, and whether they are consecutive."""
        which = self.reading
        place, process, offset, index = taken(which, self.place, self.process, self.offset, self.index)
        groups = Groups(place, process)
        steady = groups.steps(lambda one, next_: offset[next_] != offset[one] + 1)
        columns = {
            "process": groups.first(process),
            "first_row": groups.first(index),
            "last_row": groups.last(index),
            "first": groups.first(offset),
            "last": groups.last(offset),
            "steady": steady & groups.all(self.ok[which]) & self._steady,
        }
        return Piece("polls", groups.first(place), columns)

    def seconds(self) -> Piece:
        """By second, the first and last acknowledgement and attempt, and the last completion."""
        which = self.sending
        place, time_ns = taken(which, self.place, self.time_ns)
        ok, invoke = self.ok[which], self.invoke[which]
        second = time_ns // SILENCE_NS
        groups = Groups(place, second)
        columns = {
            "second": groups.first(second),
            "first_ack": nullable(groups.least(time_ns, ok)),
            "last_ack": nullable(groups.most(time_ns, ok)),
            "first_try": nullable(groups.least(time_ns, invoke)),
            "last_try": nullable(groups.most(time_ns, invoke)),
            "last_end": nullable(groups.most(time_ns, ~invoke)),
        }
        return Piece("seconds", groups.first(place), columns)

    def first_acks(self) -> Piece:
        """By partition, the first acknowledgement after the last fault was healed."""
        healed = [self._asked.healed_ns.get(run, NEVER) for run, _, _ in self._rows.places]
        which = self.sending & self.ok & (self.time_ns >= np.array(healed, np.int64)[self.place])
        place = self.place[which]
        groups = Groups(place)
        columns = {"time_ns": groups.least(self.time_ns[which])}
        return Piece("first_acks", groups.first(place), columns)


def _in_order(intervals: Groups, row: Numbers, begun: Numbers) -> Flags:
    """Whether within each interval of offsets nothing was acknowledged before something of a lower offset was sent."""
    number = intervals.number_of_each()
    span = max(int(begun.max()), int(row.max())) + 2 if len(row) else 1
    if len(row) * span >= ROOM:
        return np.zeros(len(intervals.starts), np.bool_)
    # A interval's number is added, so that the running maximum begins anew with each.
    before = np.maximum.accumulate(begun + number * span)
    wrong = np.zeros(len(row), np.bool_)
    wrong[1:] = before[:-1] > (row + number * span)[1:]
    wrong[intervals.starts] = False
    return ~intervals.any(wrong)
