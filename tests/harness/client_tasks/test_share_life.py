"""What a consumer of a share group does, and a drain, as the history has it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from harness.client_ports import ClientContext
from harness.client_tasks.share_life import Drain, ShareLife
from harness.clients.threaded_clients import ThreadTask
from harness.clock import SystemClock
from harness.history.kept_recorder import KeptRecorder
from harness.history.recorder import PolledRecord
from harness.history.sends import Answer
from harness.history.shares import Acknowledging, SharedRecord, Shares
from harness.model import TopicPartition
from harness.share_ports import Acquired, ShareMembership

P, Q = TopicPartition("t", 0), TopicPartition("t", 1)
MOST = 7
LAST_P, LAST_Q = 98, 99
SECOND_NS = 1_000_000_000
CONFIRMED = Answer("ok")

Poll = Sequence[tuple[TopicPartition, int, int]] | str
"""What a poll gives: places, offsets and values; or the name of its error."""


class Group:
    """Clients whose share consumers give what was written down before, a second for each poll, and then nothing."""

    def __init__(self, *polls: Poll, answers: Mapping[int, Answer] | None = None, stops_after: int = 100) -> None:
        self.closed = self.made = 0
        self._polls = deque(polls)
        self._answers = dict(answers or {})
        self._left = stops_after
        self._now_ns = 0

    @property
    def stopping(self) -> bool:
        return self._left <= 0

    def monotonic_ns(self) -> int:
        return self._now_ns

    def share_consumer(self, name: str, membership: ShareMembership) -> Group:
        del name, membership
        self.made += 1
        return self

    async def acquire(self, timeout_s: float) -> Acquired:
        del timeout_s
        self._now_ns += SECOND_NS
        self._left -= 1
        poll: Poll = self._polls.popleft() if self._polls else ()
        if isinstance(poll, str):
            return Acquired([], poll)
        return Acquired([SharedRecord(PolledRecord(*place, at, value, 0, True), 1) for place, at, value in poll], None)

    async def acknowledge(self, said: Sequence[Acknowledging], timeout_s: float) -> list[Answer]:
        del timeout_s
        return [self._answers.pop(one.offset, CONFIRMED) for one in said]

    async def close(self) -> None:
        self.closed += 1


class Told:
    """A group with its rows."""

    def __init__(self, group: Any) -> None:
        self.recorder = KeptRecorder("r", SystemClock())
        self.context = ClientContext(lambda: group, [Q, P], self.recorder, 1)
        self.shares = Shares(self.recorder, MOST)
        self.membership = ShareMembership("g", ["t"], "record_limit", 10)
        self.group = group

    def rows(self, *names: str) -> list[tuple[object, ...]]:
        self.recorder.flush()
        return [tuple(row[name] for name in names) for row in self.recorder.rows]

    def drain(self, last: Mapping[TopicPartition, int]) -> Drain:
        made = Drain(self.context, self.group, self.shares, self.membership, silence_s=3)
        task = ThreadTask(made.run(lambda value: value in last.values()))
        task.join(30)
        task.result()
        return made


def live(told: Told) -> ShareLife:
    """Poll once, and say something else of each record."""
    life = ShareLife(told.context, told.group, told.shares, told.membership)

    async def once() -> None:
        given = await life.acquire()
        words = iter(("accept", "release", "reject"))
        await life.acknowledge(given, lambda _: next(words))  # type: ignore[arg-type]
        await life.close()

    task = ThreadTask(once())
    task.join(30)
    task.result()
    return life


def test_a_record_has_a_row_when_it_is_given_and_when_it_is_acknowledged() -> None:
    told = Told(Group([(P, 4, 40), (P, 5, 50), (Q, 6, 60)], answers={5: Answer("info", error="_TIMED_OUT")}))
    life = live(told)
    names = ("f", "type", "partition", "offset", "value", "delivery_count", "acknowledgement", "error")
    assert told.rows(*names) == [
        ("acquire", "invoke", None, None, None, MOST, None, None),
        ("acquire", "ok", 0, 4, 40, 1, None, None),
        ("acquire", "ok", 0, 5, 50, 1, None, None),
        ("acquire", "ok", 1, 6, 60, 1, None, None),
        ("acknowledge", "invoke", 0, 4, 40, None, "accept", None),
        ("acknowledge", "invoke", 0, 5, 50, None, "release", None),
        ("acknowledge", "invoke", 1, 6, 60, None, "reject", None),
        ("acknowledge", "ok", 0, 4, 40, None, "accept", None),
        ("acknowledge", "info", 0, 5, 50, None, "release", "_TIMED_OUT"),
        ("acknowledge", "ok", 1, 6, 60, None, "reject", None),
    ]
    assert {*told.rows("group", "process", "final")} == {("g", 0, False)}
    assert life.reached == {P: 6, Q: 7}
    assert not life.is_usable  # its process has an operation of unknown outcome


def test_a_drain_ends_before_a_lock_has_ended() -> None:
    group = Group([(P, 1, LAST_P), (Q, 1, LAST_Q)], (), [(P, 0, 10)])
    told = Told(group)
    assert told.drain({P: LAST_P, Q: LAST_Q}).is_over
    drained = [row for row in told.rows("f", "type", "partition") if row[0] == "drain"]
    assert drained == [("drain", kind, p) for kind in ("invoke", "ok") for p in (0, 1)]
    given = [row[2] for row in told.rows("f", "type", "value") if row[:2] == ("acquire", "ok")]
    assert given == [LAST_P, LAST_Q, None, 10, None, None, None]
    assert group.closed == 1


@pytest.mark.parametrize("last", [{P: LAST_P}, {P: LAST_P, Q: LAST_Q}], ids=["unsent", "undelivered"])
def test_a_partition_that_gives_nothing_at_all_is_taken_to_be_drained(last: Mapping[TopicPartition, int]) -> None:
    told = Told(Group([(P, 1, LAST_P)], stops_after=20))
    assert not told.drain(last).is_over
    assert [row[1] for row in told.rows("f", "type") if row[0] == "drain"] == ["invoke", "invoke", "info", "info"]


def test_a_consumer_that_has_failed_ends_a_drain() -> None:
    lasts = [(P, 1, LAST_P), (Q, 1, LAST_Q)]
    group = Group(lasts, "NETWORK_EXCEPTION", [(P, 2, LAST_P), (Q, 2, LAST_Q)], (), answers={1: Answer("info")})
    told = Told(group)
    assert told.drain({P: LAST_P, Q: LAST_Q}).is_over
    assert (group.made, group.closed) == (3, 3)
    failed = [row for row in told.rows("f", "type", "error") if row[1] == "fail"]
    assert failed == [("acquire", "fail", "NETWORK_EXCEPTION")]


def test_what_one_consumer_of_a_drain_was_given_shows_what_another_is_given() -> None:
    lasts = [(P, 1, LAST_P), (Q, 1, LAST_Q)]
    told = Told(Group(lasts, answers={1: Answer("info")}, stops_after=20))
    assert not told.drain({P: LAST_P, Q: LAST_Q}).is_over
