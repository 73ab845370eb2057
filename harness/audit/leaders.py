"""Which leaders the canary partitions had, what operators tell besides, and what each such event has lost.

A change of leaders shows in Metadata, which the audit asks for again and again, or in the leader epochs of records
(KIP-101), which consumers report. Whether an election was unclean neither tells; that acknowledged records are gone
after it does.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from harness.audit.clock import as_text
from harness.audit.ledger import CanarySend, Reading
from harness.audit.result import Answered, Loss
from harness.errors import UsageError
from harness.model import NO_LEADER

_TOLD_WITHIN_NS = 60_000_000_000
"""How exact an operator's time is."""

_MOST_SHOWN = 200
"""How many characters of a line that is refused are shown."""


class Event(NamedTuple):
    """Something that may have lost records, between ``since_ns`` and ``until_ns``.

    Attributes:
        partition: of the canary topic; None: it is any.
        told: whether an operator tells of it.
        again: whether it was answered before, when not all that it may have lost was decided.
    """

    what: str
    since_ns: int
    until_ns: int
    partition: int | None
    told: bool
    again: bool = False

    @property
    def at(self) -> str:
        """When, in UTC: what an operator tells, or the time by which a change that was seen had happened."""
        return as_text(self.until_ns - (_TOLD_WITHIN_NS if self.told else 0))


class LookedFor(NamedTuple):
    """What a reading has looked for.

    Attributes:
        sends: all of them.
        reading: which has.
        given_up: of the sends, those that no later one looks for.
    """

    sends: Collection[CanarySend]
    reading: Reading
    given_up: Collection[CanarySend]


def told(line: str) -> Event:
    """What an operator tells in a line: a time of ISO 8601 with its offset, and what happened.

    Raises:
        UsageError: it is no such line.
    """
    written, _, what = line.strip().partition(" ")
    try:
        at = datetime.fromisoformat(written)
        at_ns = round(at.astimezone(UTC).timestamp() * 1e9)
    except (ValueError, OverflowError):
        at = None
    if at is None or at.tzinfo is None or not what.strip():
        lacks = "has no Z, or another offset, in its time" if at and not at.tzinfo else "is no time and what happened"
        raise UsageError(
            f"event {line[:_MOST_SHOWN]!r} {lacks}.",
            "Write '2026-11-29T10:00:00Z unclean election of orders-3'.",
        )
    return Event(what.strip(), at_ns - _TOLD_WITHIN_NS, at_ns + _TOLD_WITHIN_NS, None, True)


class Leaders:
    """Follows the leaders of the canary partitions."""

    def __init__(self) -> None:
        self._leaders: dict[int, int] = {}
        self._epochs: dict[int, int] = {}
        self._looked_ns: dict[int, int] = {}
        self._read_ns: int | None = None
        self._events: list[Event] = []

    def look(self, leaders: Mapping[int, int], now_ns: int) -> None:
        """Metadata names ``leaders`` by partition now; a partition without one is left out."""
        for partition, leader in sorted(leaders.items()):
            if leader == NO_LEADER:
                continue
            before = self._leaders.get(partition)
            if before is not None and before != leader:
                what = f"broker {leader} leads instead of {before}"
                self._events.append(Event(what, self._looked_ns[partition], now_ns, partition, False))
            self._leaders[partition], self._looked_ns[partition] = leader, now_ns

    def events(self, reading: Reading, now_ns: int) -> list[Event]:
        """The changes since the last reading that was noted; of a new epoch, only where Metadata showed no change."""
        found = list(self._events)
        for partition, epochs in sorted(reading.epochs.items()):
            newest, before = max(epochs), self._epochs.get(partition)
            if before is not None and newest > before and all(one.partition != partition for one in found):
                what = f"leader epoch {newest} follows {before}, from offset {epochs[newest]} on at the latest"
                found.append(Event(what, self._read_ns or 0, now_ns, partition, False))
        return found

    def note(self, reading: Reading, events: Collection[Event], now_ns: int) -> None:
        """The audit has reported what ``events`` have lost by a reading."""
        self._events = [one for one in self._events if one not in events]
        for partition, epochs in reading.epochs.items():
            self._epochs[partition] = max(*epochs, self._epochs.get(partition, 0))
        self._read_ns = now_ns


def losses(gone: Sequence[CanarySend], events: Sequence[Event], now_ns: int) -> list[Loss]:
    """What is gone, by partition, and by the events between which it was last known to be there."""
    groups: dict[tuple[int, int], list[CanarySend]] = {}
    for send in gone:
        borders = sorted(one.until_ns for one in events if one.partition == send.partition)
        groups.setdefault((send.partition, bisect_left(borders, send.seen_ns)), []).append(send)
    return [_loss(number, sends, now_ns) for (number, _), sends in sorted(groups.items())]


def _loss(partition: int, sends: Sequence[CanarySend], now_ns: int) -> Loss:
    offsets = [send.offset for send in sends if send.offset is not None]
    sent_in: dict[str, int] = {}
    for send in sorted(sends, key=lambda one: one.window):
        sent_in[str(send.window)] = sent_in.get(str(send.window), 0) + 1
    return Loss(
        partition=partition,
        records=len(sends),
        first_offset=min(offsets),
        last_offset=max(offsets),
        sent_in=sent_in,
        seen_ns=min(send.seen_ns for send in sends),
        missed_ns=now_ns,
    )


def answers(
    events: Iterable[Event], looked_for: LookedFor, lost: Sequence[Loss], partitions: int
) -> Iterator[Answered]:
    """What each event has lost in each partition, or in its own.

    Args:
        events: what happened.
        looked_for: after it.
        lost: everything that was ever found to be lost.
        partitions: of the canary topic.
    """
    for event in events:
        for number in range(partitions) if event.partition is None else (event.partition,):
            before = [
                one
                for one in looked_for.sends
                if one.partition == number and one.kind == "ok" and (one.ended_ns or 0) <= event.until_ns
            ]
            undecided = [one for one in before if looked_for.reading.is_undecided(one)]
            is_open = any(one not in looked_for.given_up for one in undecided)
            fits = [
                one
                for one in lost
                if one.partition == number and one.seen_ns <= event.until_ns and one.missed_ns >= event.since_ns
            ]
            yield Answered(
                event=event.what,
                told=event.told,
                at=event.at,
                partition=number,
                examined=len(before) - len(undecided),
                gone=sum(one.records for one in fits),
                first_offset=min((one.first_offset for one in fits), default=None),
                last_offset=max((one.last_offset for one in fits), default=None),
                undecided=len(undecided),
                between_ns=(event.since_ns, event.until_ns) if is_open else None,
                again=event.again,
            )


def to_answer_again(given: Iterable[Answered]) -> list[Event]:
    """The events to which these answers are not the last ones."""
    return [Event(one.event, *one.between_ns, one.partition, one.told, True) for one in given if one.between_ns]
