"""What an audit knows of its records, and what of that carries over from one window to the next.

A window is the sends that begin in it, whenever they end. It is judged when all of them have ended and everything that
the log holds was read after that, so that neither a slow acknowledgement nor a consumer that lags is taken for a loss.
Every send is carried for as long as the audit keeps it (``--keep``): each later window reads the log again, and a
record is judged with the first window whose reading does not show it as it was acknowledged. One that it shows is left
out of that window's history, for nothing is to be said of it.

A carried record is **sound** when it was acknowledged and is at its offset, and there alone; when its outcome is
unknown and it is there once or not at all, for it may appear as late as it likes; or when its send is proven to have
failed and it is nowhere. What is acknowledged behind the end of what was read is **undecided**, and carried on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from harness.client_ports import Polled
from harness.history.recorder import PolledRecord
from harness.history.sends import Answer, Completion
from harness.model import NO_EPOCH, Offset, ProcessId


@dataclass(slots=True, eq=False)
class CanarySend:
    """One record, and what became of it. Times are those of the audit, see :class:`harness.audit.clock.AuditClock`.

    Attributes:
        window: the number of the window in which the send began.
        ended_ns: None while it is under way.
        kind: likewise.
        read_ns: when a tailing consumer was first given it; None: it was not.
        seen_ns: when the log was last known to hold it: acknowledged, or read with a later window.
    """

    window: int
    value: int
    partition: int
    process: ProcessId
    begun_ns: int
    timestamp_ms: int
    ended_ns: int | None = None
    kind: Completion | None = None
    offset: Offset | None = None
    error: str | None = None
    read_ns: int | None = None
    seen_ns: int = 0

    def end(self, answer: Answer, now_ns: int) -> None:
        """It was answered."""
        self.kind, self.offset, self.error = answer
        self.ended_ns = self.seen_ns = now_ns


class Poll(NamedTuple):
    """A poll of a consumer, from ``begun_ns`` to ``ended_ns``; ``final``: it read everything that the log holds."""

    process: ProcessId
    begun_ns: int
    ended_ns: int
    polled: Polled
    final: bool


class Reading:
    """What the log held when everything was read.

    Args:
        polls: of the consumers that read it, in their order.
        exhausted: the partitions in which nothing more came for a while although nothing was held back.

    Attributes:
        places: by partition and value, the offsets at which it is.
        last: by partition, the record with the highest offset.
        epochs: by partition and leader epoch, the first offset of that epoch.
    """

    def __init__(self, polls: Sequence[Poll], exhausted: Collection[int] = ()) -> None:
        self.polls = polls
        self._exhausted = frozenset(exhausted)
        self.places: dict[tuple[int, int], set[Offset]] = defaultdict(set)
        self.last: dict[int, PolledRecord] = {}
        self.epochs: dict[int, dict[int, Offset]] = defaultdict(dict)
        for record in records_of(polls):
            if record.value is not None:
                self.places[record.partition, record.value].add(record.offset)
            if record.partition not in self.last or record.offset >= self.last[record.partition].offset:
                self.last[record.partition] = record
            if record.leader_epoch is not None and record.leader_epoch != NO_EPOCH:
                first = self.epochs[record.partition]
                first[record.leader_epoch] = min(record.offset, first.get(record.leader_epoch, record.offset))

    def reached(self, partition: int) -> Offset:
        """One more than the last offset of a partition that was read; 0: nothing was."""
        last = self.last.get(partition)
        return 0 if last is None else last.offset + 1

    def is_sound(self, send: CanarySend) -> bool:
        """See the module."""
        places = self.places.get((send.partition, send.value), set())
        match send.kind:
            case "ok":
                return places == {send.offset}
            case "fail":
                return not places
            case _:
                return len(places) <= 1

    def is_behind_the_end(self, send: CanarySend) -> bool:
        """Whether an acknowledged record is at an offset that was not reached."""
        return send.kind == "ok" and send.offset is not None and send.offset >= self.reached(send.partition)

    def is_undecided(self, send: CanarySend) -> bool:
        """Whether it is not sound, and nothing is known of it yet: a later reading may come as far.

        A record that a consumer was given before is gone when nothing more comes behind the end.
        """
        came = send.partition in self._exhausted and send.read_ns is not None and self.reached(send.partition) > 0
        return self.is_behind_the_end(send) and not came

    def is_amiss(self, send: CanarySend) -> bool:
        """Whether it is neither sound nor undecided."""
        return not (self.is_sound(send) or self.is_undecided(send))

    def is_gone(self, send: CanarySend) -> bool:
        """Whether an acknowledged record is known not to be at its offset any more."""
        if send.kind != "ok" or self.is_undecided(send):
            return False
        return send.offset not in self.places.get((send.partition, send.value), set())


def records_of(polls: Iterable[Poll]) -> Iterator[PolledRecord]:
    """All records that polls have delivered."""
    return (record for poll in polls for record in poll.polled.records)


@dataclass(slots=True)
class Ledger:
    """The sends that are carried, by value; those of the present window are among them."""

    sends: dict[int, CanarySend] = field(default_factory=dict)

    def add(self, send: CanarySend) -> None:
        """A send begins."""
        self.sends[send.value] = send

    def of_window(self, window: int) -> list[CanarySend]:
        """Those that began in a window."""
        return [send for send in list(self.sends.values()) if send.window == window]

    def before(self, window: int) -> list[CanarySend]:
        """Those that began before it."""
        return [send for send in list(self.sends.values()) if send.window < window]

    def forget(self, sends: Iterable[CanarySend]) -> None:
        """They are not carried any more."""
        for send in sends:
            self.sends.pop(send.value, None)

    def older_than(self, begun_ns: int) -> list[CanarySend]:
        """Those that began before ``begun_ns``: the topic's retention may delete them soon."""
        return [send for send in list(self.sends.values()) if send.begun_ns < begun_ns]
