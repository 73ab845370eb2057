"""What carries over from one window to the next, and what is judged with which."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.audit.ceiling import Load
from harness.audit.evidence import accused
from harness.audit.journal import Journal
from harness.audit.leaders import Event, Leaders, LookedFor, answers, losses, to_answer_again, told
from harness.audit.ledger import CanarySend, Ledger, Poll, Reading
from harness.audit.measures import Availability
from harness.audit.result import Answered
from harness.audit.told_events import ToldEvents
from harness.client_ports import Polled
from harness.errors import UsageError
from harness.history.recorder import PolledRecord
from harness.history.sends import Answer
from harness.model import NO_LEADER, ProcessId

S = 10**9


def send(value: int, window: int = 1, offset: int | None = None, kind: Any = "ok", at_s: int = 0) -> CanarySend:
    made = CanarySend(window, value, 0, ProcessId(0), at_s * S, at_s * 1000)
    made.end(Answer(kind, value if kind == "ok" and offset is None else offset), at_s * S + 1)
    return made


def ledger(*sends: CanarySend) -> Ledger:
    return Ledger({one.value: one for one in sends})


def reading(*places: tuple[int, int], exhausted: Sequence[int] = (), epoch: int = 0) -> Reading:
    records = [PolledRecord("canary", 0, offset, value, epoch, True) for offset, value in places]
    return Reading([Poll(ProcessId(1), 0, 1, Polled(records, None), True)], exhausted)


@pytest.mark.parametrize(
    ("kind", "places", "sound"),
    [
        ("ok", [(7, 7)], True),
        ("ok", [(7, 8)], False),
        ("ok", [(7, 7), (9, 7)], False),
        ("ok", [(9, 7)], False),
        ("info", [(9, 1)], True),
        ("info", [(9, 7)], True),
        ("info", [(9, 7), (11, 7)], False),
        ("fail", [(9, 1)], True),
        ("fail", [(9, 7)], False),
    ],
)
def test_a_carried_record_is_sound_where_it_was_acknowledged(
    kind: str, places: list[tuple[int, int]], sound: bool
) -> None:
    assert reading(*places).is_sound(send(7, kind=kind)) == sound


def test_a_window_is_judged_with_those_of_earlier_ones_alone_that_are_amiss() -> None:
    lost, sound, own = send(1), send(2), send(3, window=2, at_s=60)
    found = accused(2, ledger(lost, sound, own), reading((2, 2), (3, 3)))
    assert found.sends == [lost, own]
    assert found.carried == [lost]


def test_a_window_that_sent_nothing_to_a_partition_has_the_last_record_there_as_its_witness() -> None:
    earlier, last = send(1), send(2)
    found = accused(2, ledger(earlier, last), reading((1, 1), (2, 2)))
    assert (found.sends, found.witnesses) == ([], [last])


def test_a_record_behind_the_end_is_carried_on_unless_a_consumer_had_it_and_nothing_more_came() -> None:
    late = send(9)
    assert reading((2, 2)).is_undecided(late)
    assert reading((2, 2), exhausted=[0]).is_undecided(late)
    late.read_ns = 5
    assert reading((2, 2)).is_undecided(late)
    assert reading((2, 2), exhausted=[0]).is_gone(late)
    assert not reading((2, 2), exhausted=[0]).is_undecided(late)


def test_a_record_with_an_unknown_outcome_that_appears_windows_later_is_no_finding() -> None:
    unknown, own = send(1, kind="info"), send(5, window=4)
    found = accused(4, ledger(unknown, own), reading((4, 1), (5, 5)))
    assert found.sends == [own]


def test_what_is_older_than_an_audit_keeps_is_forgotten_and_counted_where_it_was_undecided() -> None:
    known = ledger(send(1), send(9), send(2, at_s=100))
    old = known.older_than(50 * S)
    known.forget(old)
    assert list(known.sends) == [2]
    assert [one.value for one in old if reading((1, 1), (2, 2)).is_undecided(one)] == [9]


def test_lost_records_are_put_down_to_the_change_of_leaders_after_which_they_were_missed() -> None:
    early, late, sound = send(1, at_s=10), send(2, at_s=30), send(3, at_s=30)
    first = Event("first", 15 * S, 20 * S, 0, False)
    second = Event("second", 35 * S, 40 * S, 0, False)
    third = Event("third", 5 * S, 8 * S, 0, False)
    lost = losses([early, late], [first, second], 60 * S)
    looked_for = LookedFor([early, late, sound], reading((3, 3)), [])
    found = list(answers([first, second, third], looked_for, lost, 1))
    assert [(one.event, one.examined, one.gone, one.first_offset, one.last_offset) for one in found] == [
        ("first", 1, 1, 1, 1),
        ("second", 3, 2, 1, 2),
        ("third", 0, 0, None, None),
    ]


def test_an_event_is_answered_again_until_what_it_may_have_lost_is_decided_or_given_up() -> None:
    event = Event("election", 15 * S, 20 * S, 0, False)
    sends = [send(1, at_s=1), send(2, at_s=2), send(3, at_s=3), send(9, at_s=30)]
    [first] = answers([event], LookedFor(sends, reading((1, 1)), []), [], 1)
    assert (first.examined, first.undecided, first.between_ns, first.again) == (1, 2, (15 * S, 20 * S), False)
    again = to_answer_again([first])
    assert again == [event._replace(again=True)]
    [second] = answers(again, LookedFor(sends, reading((1, 1), (2, 2)), []), [], 1)
    assert (second.examined, second.undecided, second.at, second.again) == (2, 1, first.at, True)
    [last] = answers(again, LookedFor(sends, reading((1, 1), (2, 2)), [sends[2]]), [], 1)
    assert (last.examined, last.undecided, to_answer_again([last])) == (2, 1, [])


def test_metadata_shows_a_change_of_leaders_and_no_leader_is_none() -> None:
    leaders = Leaders()
    for at, leader in enumerate([1, NO_LEADER, 1, 2]):
        leaders.look({0: leader}, at * S)
    [event] = leaders.events(reading((1, 1)), 9 * S)
    assert (event.what, event.since_ns, event.until_ns) == ("broker 2 leads instead of 1", 2 * S, 3 * S)
    leaders.note(reading((1, 1)), [event], 9 * S)
    assert leaders.events(reading((1, 1)), 10 * S) == []


def test_a_leader_epoch_of_records_shows_a_change_that_metadata_did_not() -> None:
    leaders = Leaders()
    assert leaders.events(reading((1, 1), epoch=3), 1 * S) == []
    leaders.note(reading((1, 1), epoch=3), [], 1 * S)
    [event] = leaders.events(reading((1, 1), epoch=5), 2 * S)
    assert event.what == "leader epoch 5 follows 3, from offset 1 on at the latest"


@pytest.mark.parametrize(
    "line",
    [
        *["", "yesterday it broke", "2026-11-29T10:00:00 no offset", "2026-11-29T10:00:00Z"],
        "0001-01-01T00:00:00+14:00 before all time",
    ],
)
def test_an_event_without_a_time_or_a_word_is_refused(line: str) -> None:
    with pytest.raises(UsageError):
        told(line)


def test_what_a_file_of_events_has_wrong_ends_nothing_and_is_said(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    lines = [
        "1970-01-01T00:01:00Z St\xf6rung".encode("latin-1"),
        b"1970-01-01T00:01:00 election",
        b"x" * 5000,
        b"1970-01-01T00:01:00Z rolling upgrade",
        b"1970-01-01T00:03:00Z failover",
    ]
    (tmp_path / "events").write_bytes(b"\n".join(lines))
    events = ToldEvents(journal, [])
    assert [one.what for one in events.due(120 * S)] == [r"St\xf6rung", "rolling upgrade"]
    no_offset, nonsense = events.passed_over
    assert "'1970-01-01T00:01:00 election' has no Z" in no_offset
    assert "is no time and what happened. Write '2026" in nonsense
    assert len(nonsense) < 500
    assert events.waiting == [
        "1970-01-01T00:03:00Z failover: the first window that is read after 1970-01-01T00:04:00Z answers it."
    ]
    answered = Answered(event="failover", told=True, at="1970-01-01T00:03:00Z", partition=0, examined=0, gone=0)
    events.note([answered])
    assert len(events.due(240 * S)) == 2
    (tmp_path / "events").unlink()
    (tmp_path / "events").mkdir()
    assert events.due(240 * S) == []
    assert "cannot be read: Is a directory." in events.passed_over[0]


def test_an_event_is_a_time_and_what_happened() -> None:
    event = told("1970-01-01T01:10:00+01:00 unclean election of orders-3")
    assert (event.what, event.since_ns, event.until_ns) == ("unclean election of orders-3", 540 * S, 660 * S)


def test_availability_counts_gaps_across_windows_but_not_where_the_audit_held_its_sends() -> None:
    followed = Availability(Load(1, 1), 0)
    sends = [send(n, at_s=n) for n in range(50)]
    [first] = followed.of_window(sends, (0, 60 * S), ())
    followed.note(sends, ())
    assert first.longest_gap_s == pytest.approx(11)
    assert first.availability == pytest.approx(1 - 11 / 60, abs=1e-3)
    [second] = followed.of_window([send(70, at_s=70)], (60 * S, 120 * S), [(75 * S, 110 * S)])
    assert second.longest_gap_s == pytest.approx(21)
    assert second.availability == pytest.approx(1 - (10 + 5 + 10) / 60, abs=1e-3)
