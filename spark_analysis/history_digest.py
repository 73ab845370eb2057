"""What a chunk of the history says, for all questions at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from spark_analysis.chunks import NEVER, ROOM, Chunk, Flags, Groups, Numbers, ranks, taken
from spark_analysis.digest_rows import ACKS, EARLY, FINAL, Asked, nullable, piece, word_columns

READ = (
    "run", "index", "time_ns", "process", "op", "txn", "mop", "type", "f", "topic", "partition", "offset", "value",
    "acks", "final", "intact",
)  # fmt: skip
"""The columns that are read."""

SECOND_NS = 1_000_000_000
_ALL = -1


def digest(rows: Chunk, asked: Asked) -> Iterator[pa.Table]:
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

    def tally(self) -> pa.Table:
        """The rows by what they have in common."""
        (f, fs), (kind, kinds) = self._rows.words("f"), self._rows.words("type")
        acks = np.where(self._rows.known("acks"), self.acks, NEVER)
        process = np.where(self.final, self.process, NEVER)
        flags = {"final": self.final, "txn": self.txn, "known": self.placed, "malformed": self.malformed}
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
        }
        words = {
            name: pa.array(known, pa.string()).take(pa.array(groups.first(codes)))
            for name, codes, known in (("f", f, fs), ("type", kind, kinds))
        }
        return piece("tally", self._rows, groups.first(self.place), columns, **words)

    def order(self) -> Iterator[pa.Table]:
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
        yield piece("order", self._rows, groups.first(self.place), columns)

    def operations(self) -> pa.Table:
        """Which operations began here, which went on that had not begun here before, and which sends ended."""
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
            "chunk": np.full(len(words.starts), self.index.min()),
            "begun": words.bits(op, self._shift, begun < NEVER),
            "others": words.bits(op, self._shift, (ended < NEVER) & (ended <= begun)),
            "ended": words.bits(op, self._shift, each.any(self.send & ends)),
            "strange": words.any(repeated) | (not self._steady),
        }
        return piece("operations", self._rows, words.first(place), columns)

    def values(self) -> pa.Table:
        """Which values were sent, and of which somebody was told how that ended: 64 to a row."""
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
        return piece("values", self._rows, words.first(place), columns)

    def offsets(self) -> pa.Table:
        """What acknowledgements and readers say is there, 64 offsets to a row."""
        which = (self.sending | self.reading) & self.placed
        place, offset, value, time_ns = taken(which, self.place, self.offset, self.value, self.time_ns)
        sending = self.send[which]
        sound = self.valued & self._rows.flags("intact", null=True)
        strange = ~(self.ok & ~self.txn & sound)[which]
        claims = (self.send & self.ok & (self.acks == _ALL))[which]
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
        return piece("offsets", self._rows, words.first(place), columns)

    def foretold(self) -> pa.Table:
        """Which values were sent here, and which read that had not been sent here before."""
        which = (self.sending | self.reading) & self.valued
        value, place, index = taken(which, self.value, self.place, self.index)
        sending = self.send[which]
        each = Groups(place, value)
        sent, read = each.least(index, sending), each.least(index, ~sending)
        value, place = each.first(value), each.first(place)
        words = Groups(place, value >> self._shift)
        columns = {
            "word": words.first(value >> self._shift),
            "chunk": np.full(len(words.starts), self.index.min()),
            "sent": words.bits(value, self._shift, sent < NEVER),
            "read": words.bits(value, self._shift, read < sent),
        }
        return piece("foretold", self._rows, words.first(place), columns)

    def sends(self) -> Iterator[pa.Table]:
        """Where records were acknowledged, in which row, and in which they were sent.

        Those whose send, or acknowledgement, is in another chunk are ``halves``. A word of offsets that is full is one
        row, the lowest of its offsets: then the first acknowledgement and the last send of it are what others can be
        out of order with.
        """
        which = self.sending
        place, value, index = self.place[which], self.value[which], self.index[which]
        offset, acked = self.offset[which], (self.ok & self.placed)[which]
        each = Groups(place, value)
        begun, at, highest = each.least(index), each.least(offset, acked), each.most(offset, acked)
        row = each.least(index, acked)
        place, value = each.first(place), each.first(value)
        invoked = each.first(self.invoke[which])
        told = at < NEVER
        # What was acknowledged at several offsets is out of order with everything, as is what is not in order here.
        torn = told & ((at < highest) | (not self._steady))
        row, begun = np.where(torn, -1, row), np.where(torn, NEVER - 1, begun)
        half = ~(told & invoked)
        halves = {
            "value": value[half],
            "offset": nullable(at[half]),
            "row": nullable(np.where(told, row, NEVER)[half]),
            "invoked_row": nullable(np.where(invoked, begun, NEVER)[half]),
        }
        yield piece("halves", self._rows, place[half], halves)
        place, offset, row, begun = taken(~half, place, at, row, begun)
        sorted_ = np.lexsort((offset, place))
        place, offset, row, begun = (x[sorted_] for x in (place, offset, row, begun))
        words = Groups(place, offset >> self._shift)
        dense = words.steps(lambda one, next_: offset[next_] != offset[one] + 1)
        full = (words.rows() == 1 << self._shift) & dense & self._in_order(words, row, begun)
        single = ~full[words.number_of_each()]
        columns = {
            "offset": np.concatenate([words.first(offset)[full], offset[single]]),
            "row": np.concatenate([words.least(row)[full], row[single]]),
            "invoked_row": np.concatenate([words.most(begun)[full], begun[single]]),
        }
        yield piece("sends", self._rows, np.concatenate([words.first(place)[full], place[single]]), columns)

    @staticmethod
    def _in_order(words: Groups, row: Numbers, begun: Numbers) -> Flags:
        """Whether within each word nothing was acknowledged before something of a lower offset was sent."""
        if not len(row):
            return np.zeros(0, np.bool_)
        # A word's number is added, so that what is highest so far begins anew with each word.
        span = max(int(begun.max()), int(row.max())) + 2
        number = words.number_of_each()
        if (int(number.max()) + 1) * span >= ROOM:
            return np.zeros(len(words.starts), np.bool_)
        before = np.maximum.accumulate(begun + number * span)
        wrong = np.zeros(len(row), np.bool_)
        wrong[1:] = before[:-1] > (row + number * span)[1:]
        wrong[words.starts] = False
        return ~words.any(wrong)

    def polls(self) -> pa.Table:
        """What each process was given of each partition: from where to where, and whether one after the other."""
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
        return piece("polls", self._rows, groups.first(place), columns)

    def seconds(self) -> pa.Table:
        """By second, the first and last acknowledgement and attempt."""
        which = self.sending
        place, time_ns = taken(which, self.place, self.time_ns)
        ok, invoke = self.ok[which], self.invoke[which]
        second = time_ns // SECOND_NS
        groups = Groups(place, second)
        columns = {
            "second": groups.first(second),
            "first_ack": nullable(groups.least(time_ns, ok)),
            "last_ack": nullable(groups.most(time_ns, ok)),
            "first_try": nullable(groups.least(time_ns, invoke)),
            "last_try": nullable(groups.most(time_ns, invoke)),
        }
        return piece("seconds", self._rows, groups.first(place), columns)

    def first_acks(self) -> pa.Table:
        """By partition, the first acknowledgement after the last fault was healed."""
        healed = [self._asked.healed_ns.get(run, NEVER) for run, _, _ in self._rows.places]
        which = self.sending & self.ok & (self.time_ns >= np.array(healed, np.int64)[self.place])
        place = self.place[which]
        groups = Groups(place)
        columns = {"time_ns": groups.least(self.time_ns[which])}
        return piece("first_acks", self._rows, groups.first(place), columns)
