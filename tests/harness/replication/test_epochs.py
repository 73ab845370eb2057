from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.replication.epochs import UNDEFINED, LeaderEpochCache
from harness.replication.messages import EpochEnd, EpochEntry

ENTRIES = (EpochEntry(2, 30), EpochEntry(3, 50), EpochEntry(4, 70))
LOG_END = 80


def test_an_epoch_ends_where_the_next_one_starts() -> None:
    cache = LeaderEpochCache([EpochEntry(0, 0), EpochEntry(1, 120)])
    assert cache.end_offset_for(0, 200) == EpochEnd(0, 120)


@pytest.mark.parametrize(
    ("requested", "answer"),
    [
        (2, EpochEnd(2, 50)),
        (3, EpochEnd(3, 70)),
        (4, EpochEnd(4, LOG_END)),
        (1, EpochEnd(1, 30)),
        (0, EpochEnd(0, 30)),
        (5, UNDEFINED),
        (-1, UNDEFINED),
        (-2, UNDEFINED),
    ],
)
def test_end_offsets_of_known_older_and_newer_epochs(requested: int, answer: EpochEnd) -> None:
    assert LeaderEpochCache(ENTRIES).end_offset_for(requested, LOG_END) == answer


@pytest.mark.parametrize("requested", [0, 1])
def test_an_older_cache_does_not_know_where_epochs_before_its_first_end(requested: int) -> None:
    cache = LeaderEpochCache(ENTRIES, "undefined")
    assert cache.end_offset_for(requested, LOG_END) == UNDEFINED
    assert cache.end_offset_for(2, LOG_END) == EpochEnd(2, 50)


@pytest.mark.parametrize(
    ("start", "left"),
    [
        (20, [(2, 30), (3, 50), (4, 70)]),
        (30, [(2, 30), (3, 50), (4, 70)]),
        (31, [(2, 31), (3, 50), (4, 70)]),
        (50, [(3, 50), (4, 70)]),
        (60, [(3, 60), (4, 70)]),
        (80, [(4, 80)]),
    ],
)
def test_an_epoch_that_the_log_starts_in_starts_there(start: int, left: list[tuple[int, int]]) -> None:
    cache = LeaderEpochCache(ENTRIES)
    assert cache.truncate_from_start(start) == (tuple(left) != ENTRIES)
    assert list(cache.entries) == left


def test_an_emptied_log_knows_no_epoch() -> None:
    cache = LeaderEpochCache(ENTRIES)
    assert cache.clear()
    assert not cache.clear()
    assert cache.latest == -1


def test_a_skipped_epoch_is_answered_with_the_largest_one_below() -> None:
    cache = LeaderEpochCache([EpochEntry(1, 0), EpochEntry(5, 10), EpochEntry(6, 20)])
    assert cache.end_offset_for(3, 30) == EpochEnd(1, 10)


def test_an_empty_cache_knows_nothing() -> None:
    for requested in (0, -1, -2):
        assert LeaderEpochCache().end_offset_for(requested, 10) == UNDEFINED
    assert LeaderEpochCache().latest == -1


def test_a_later_start_of_the_latest_epoch_changes_nothing() -> None:
    cache = LeaderEpochCache(ENTRIES)
    assert not cache.assign(4, 75)
    assert cache.entries == ENTRIES


def test_a_new_epoch_drops_the_empty_epochs_before_it() -> None:
    cache = LeaderEpochCache(ENTRIES)
    assert cache.assign(9, 70)
    assert cache.entries == (*ENTRIES[:2], EpochEntry(9, 70))


def test_an_older_epoch_drops_the_newer_ones_it_contradicts() -> None:
    cache = LeaderEpochCache(ENTRIES)
    assert cache.assign(3, 90)
    assert cache.entries == (ENTRIES[0], EpochEntry(3, 90))


@pytest.mark.parametrize(("end", "left"), [(71, 3), (70, 2), (51, 2), (30, 0), (0, 0)])
def test_truncation_forgets_epochs_that_start_at_or_after_the_new_end(end: int, left: int) -> None:
    cache = LeaderEpochCache(ENTRIES)
    assert cache.truncate_from_end(end) == (left < 3)
    assert cache.entries == ENTRIES[:left]


def test_an_empty_epoch_at_the_end_is_forgotten_though_no_record_is_cut() -> None:
    cache = LeaderEpochCache([EpochEntry(0, 0), EpochEntry(1, 10)])
    assert cache.truncate_from_end(10)
    assert cache.latest == 0


@st.composite
def logs(draw: st.DrawFn) -> list[int]:
    """The leader epoch of each record of a log."""
    return sorted(draw(st.lists(st.integers(0, 8), max_size=30)))


@given(logs(), st.integers(0, 10))
def test_the_answer_is_what_reading_the_whole_log_would_say(log: list[int], requested: int) -> None:
    cache = LeaderEpochCache()
    for offset, epoch in enumerate(log):
        cache.assign(epoch, offset)
    assert cache.end_offset_for(requested, len(log)) == read_whole(log, requested)


def read_whole(log: list[int], requested: int) -> EpochEnd:
    if not log or requested > log[-1]:
        return UNDEFINED
    end = sum(epoch <= requested for epoch in log)
    return EpochEnd(log[end - 1] if end else requested, end)


@given(logs(), st.integers(0, 30))
def test_truncating_the_cache_is_building_it_from_the_truncated_log(log: list[int], end: int) -> None:
    whole, cut = LeaderEpochCache(), LeaderEpochCache()
    for offset, epoch in enumerate(log):
        whole.assign(epoch, offset)
        if offset < end:
            cut.assign(epoch, offset)
    whole.truncate_from_end(end)
    assert whole.entries == cut.entries


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 20))))
def test_entries_increase_strictly_in_both_whatever_is_assigned(assigned: list[tuple[int, int]]) -> None:
    cache = LeaderEpochCache(EpochEntry(*entry) for entry in assigned)
    for older, newer in zip(cache.entries, cache.entries[1:], strict=False):
        assert older.leader_epoch < newer.leader_epoch
        assert older.start_offset < newer.start_offset
