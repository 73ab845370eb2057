"""What a follower cuts, knob by knob, where no story tells it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from harness.error_codes import ErrorCode
from harness.model import NO_EPOCH, NO_LEADER, NO_OFFSET, NodeId, Offset
from harness.replication.epochs import UNDEFINED
from harness.replication.following import Cut, Decision, Exit, Following, Phase, StartOver
from harness.replication.knobs import GENERATIONS, Knobs
from harness.replication.log_state import LogState, StoredLog
from harness.replication.messages import (
    BatchSpan,
    EpochEnd,
    EpochEndAnswered,
    EpochEntry,
    FetchAnswered,
    NextEpochLookup,
    NextFetch,
)

ONE, TWO = NodeId(1), NodeId(2)
CURRENT = GENERATIONS["4.1"]
EPOCHS = (EpochEntry(0, 0), EpochEntry(3, 4), EpochEntry(5, 8))


def a_log(end: Offset = 10, watermark: Offset = 6, epochs: Iterable[EpochEntry] = EPOCHS) -> LogState:
    return LogState(StoredLog(0, end, epochs, watermark))


def following(knobs: Knobs, log: LogState | None = None, *, unclean: bool = False) -> Following:
    return Following(log or a_log(), knobs, unclean_leader_election_enable=unclean)


def answered(knobs: Knobs, requested: int, end: EpochEnd) -> Decision:
    follower = following(knobs)
    follower.follow(ONE, 6)
    return follower.lookup_answered(EpochEndAnswered(ONE, 6, requested, ErrorCode.NONE, end, 0))


def ended(leader: NodeId, requested: int, end: EpochEnd) -> EpochEndAnswered:
    return EpochEndAnswered(leader, 6, requested, ErrorCode.NONE, end, 0)


def fetched(
    watermark: Offset, *, error: ErrorCode = ErrorCode.NONE, start: Offset = 0, end: Offset = 0
) -> FetchAnswered:
    return FetchAnswered(ONE, 6, 10, error, watermark, start, end, None, (), b"", 0)


@pytest.mark.parametrize(
    ("generation", "asks"),
    [
        ("0.10", NextFetch(ONE, NO_EPOCH, 10, NO_EPOCH)),
        ("0.11", NextEpochLookup(ONE, NO_EPOCH, 5)),
        ("2.0.0", NextEpochLookup(ONE, NO_EPOCH, 5)),
        ("2.0.1", NextEpochLookup(ONE, NO_EPOCH, 5)),
        ("2.1", NextEpochLookup(ONE, 6, 5)),
        ("2.8", NextFetch(ONE, 6, 10, 5)),
        ("3.7", NextFetch(ONE, 6, 10, 5)),
        ("4.1", NextFetch(ONE, 6, 10, 5)),
    ],
)
def test_each_generation_asks_a_new_leader_its_own_question(generation: str, asks: NextFetch | NextEpochLookup) -> None:
    follower = following(GENERATIONS[generation])
    follower.follow(ONE, 6)
    assert follower.next_request() == asks


def test_only_the_first_idea_tells_the_leader_the_followers_watermark() -> None:
    follower = following(replace(CURRENT, hw_advance="after_followers"))
    follower.follow(ONE, 6)
    assert follower.next_request() == NextFetch(ONE, 6, 10, 5, 6)


@pytest.mark.parametrize(
    ("end", "cut", "phase"),
    [
        (EpochEnd(5, 9), Cut(9, "epoch_end"), "fetching"),
        (EpochEnd(5, 20), Cut(10, "epoch_end"), "fetching"),
        (EpochEnd(3, 7), Cut(7, "epoch_end"), "fetching"),
        (EpochEnd(3, 20), Cut(8, "epoch_end"), "fetching"),
        (EpochEnd(4, 7), Cut(8, "epoch_end"), "looking_up"),
        (UNDEFINED, Cut(6, "high_watermark"), "fetching"),
        (EpochEnd(9, 7), Cut(7, "epoch_end"), "fetching"),
    ],
    ids=["shorter", "longer", "older", "older and longer", "unknown to us", "unknown to the leader", "nonsense"],
)
def test_a_pair_is_cut_to_where_both_end_the_same_epoch_or_asked_about_again(
    end: EpochEnd, cut: Cut, phase: Phase
) -> None:
    follower = following(GENERATIONS["2.1"])
    follower.follow(ONE, 6)
    assert follower.lookup_answered(EpochEndAnswered(ONE, 6, 5, ErrorCode.NONE, end, 0)) == cut
    assert follower.phase is phase


@pytest.mark.parametrize(("end", "cut"), [(9, 9), (20, 20), (4, 4)])
def test_an_offset_alone_is_taken_at_its_word(end: Offset, cut: Offset) -> None:
    assert answered(GENERATIONS["0.11"], 5, EpochEnd(NO_EPOCH, end)) == Cut(cut, "epoch_end")


def test_an_epoch_below_our_first_ends_where_the_leader_says_or_where_our_first_starts() -> None:
    log = LogState(StoredLog(4, 10, EPOCHS[1:], 6))
    end = EpochEndAnswered(ONE, 6, 5, ErrorCode.NONE, EpochEnd(1, 9), 0)
    cuts = []
    for rule in ("undefined", "start_of_first"):
        log.epochs._below_first = rule
        follower = following(GENERATIONS["2.1"], log)
        follower.follow(ONE, 6)
        cuts.append(follower.lookup_answered(end))
    assert cuts == [Cut(9, "epoch_end"), Cut(4, "epoch_end")]


def test_after_a_cut_that_left_no_epoch_the_watermark_decides() -> None:
    log = a_log(epochs=[EpochEntry(5, 8)])
    follower = following(GENERATIONS["2.1"], log)
    follower.follow(ONE, 6)
    follower.lookup_answered(EpochEndAnswered(ONE, 6, 5, ErrorCode.NONE, EpochEnd(2, 7), 0))
    follower.phase = "looking_up"
    log.truncated(8)
    assert follower.without_epochs() == Cut(6, "high_watermark")
    assert follower.next_request() == NextFetch(ONE, 6, 8, NO_EPOCH)


@pytest.mark.parametrize(
    ("when", "looks_again"),
    [
        ("leader_id_changed", [True, False, False, False, True]),
        ("epoch_gap", [True, False, False, True, True]),
        ("every_epoch", [True, False, True, True, True]),
    ],
)
def test_when_a_follower_looks_for_what_to_cut(when: str, looks_again: list[bool]) -> None:
    follower = following(replace(GENERATIONS["2.1"], truncate_when=when))  # type: ignore[arg-type]
    phases = []
    for leader, epoch in ((ONE, 0), (ONE, 0), (ONE, 1), (ONE, 3), (TWO, 4)):
        follower.phase = "fetching"
        follower.follow(leader, epoch)
        phases.append(str(follower.phase))
    assert [phase == "looking_up" for phase in phases] == looks_again


def test_an_epoch_without_a_leader_counts_as_missed() -> None:
    follower = following(GENERATIONS["2.0.1"])
    phases = []
    for leader, epoch in ((ONE, 0), (NO_LEADER, 1), (ONE, 2)):
        follower.phase = "fetching"
        follower.follow(leader, epoch)
        phases.append(follower.phase)
    assert phases == ["looking_up", "fetching", "looking_up"]


@pytest.mark.parametrize(
    ("rule", "leaders", "cut"),
    [
        ("leader_hw", 7, Cut(7, "leader_hw")),
        ("leader_hw", 3, Cut(3, "leader_hw")),
        ("leader_hw", 10, None),
        ("hw_after_first_fetch", 7, Cut(7, "hw_after_first_fetch")),
        ("hw_after_first_fetch", 3, Cut(6, "hw_after_first_fetch")),
        ("hw_after_first_fetch", 12, None),
    ],
)
def test_the_ideas_cut_once_on_the_first_answer(rule: str, leaders: Offset, cut: Cut | None) -> None:
    follower = following(replace(GENERATIONS["0.10"], truncation=rule))  # type: ignore[arg-type]
    assert follower.follow(ONE, 6) is None
    assert follower.parted(fetched(leaders)) == cut
    assert follower.parted(fetched(3)) is None


@pytest.mark.parametrize(
    ("rule", "unclean", "start", "end", "decision"),
    [
        ("lenient", False, 0, 7, Cut(7, "out_of_range")),
        ("exit", True, 0, 7, Cut(7, "out_of_range")),
        ("exit", False, 0, 7, Exit("log truncation from 10 to the leader's 7 is not allowed")),
        ("wipe", False, 0, 7, Exit("log truncation from 10 to the leader's 7 is not allowed")),
        ("wipe", False, 2, 10, StartOver(2, "out_of_range")),
        ("wipe", False, NO_OFFSET, 10, None),
        ("lenient", False, 2, 10, None),
        ("exit", False, 12, 15, StartOver(12, "out_of_range")),
        ("lenient", False, 12, NO_OFFSET, None),
    ],
)
def test_what_becomes_of_a_log_out_of_the_leaders_range(
    rule: str, unclean: bool, start: Offset, end: Offset, decision: Decision | None
) -> None:
    follower = following(replace(CURRENT, out_of_range=rule), unclean=unclean)  # type: ignore[arg-type]
    follower.follow(ONE, 6)
    answer = fetched(3, error=ErrorCode.OFFSET_OUT_OF_RANGE, start=start, end=end)
    assert follower.refused(answer) == decision


def test_another_error_says_nothing_about_the_log() -> None:
    follower = following(CURRENT)
    follower.follow(ONE, 6)
    assert follower.refused(fetched(3, error=ErrorCode.NOT_LEADER_OR_FOLLOWER, end=7)) is None


@pytest.mark.parametrize(
    ("generation", "answer", "awaited"),
    [
        ("2.1", EpochEndAnswered(ONE, 6, 5, ErrorCode.NONE, UNDEFINED, 0), True),
        ("2.1", EpochEndAnswered(ONE, 5, 5, ErrorCode.NONE, UNDEFINED, 0), False),
        ("2.1", EpochEndAnswered(ONE, NO_EPOCH, 5, ErrorCode.NONE, UNDEFINED, 0), False),
        ("2.1", EpochEndAnswered(TWO, 6, 5, ErrorCode.NONE, UNDEFINED, 0), False),
        ("2.1", EpochEndAnswered(ONE, 6, 3, ErrorCode.NONE, UNDEFINED, 0), False),
        ("0.11", EpochEndAnswered(ONE, NO_EPOCH, 5, ErrorCode.NONE, UNDEFINED, 0), True),
        ("2.8", EpochEndAnswered(ONE, 6, 5, ErrorCode.NONE, UNDEFINED, 0), False),
    ],
)
def test_an_answer_to_another_lookup_is_not_taken(generation: str, answer: EpochEndAnswered, awaited: bool) -> None:
    follower = following(GENERATIONS[generation])
    follower.follow(ONE, 6)
    assert follower.awaits_lookup(answer) == awaited


def test_a_leader_that_does_not_know_leaves_a_follower_where_an_earlier_answer_has_cut_it() -> None:
    follower = following(GENERATIONS["2.0.0"])
    follower.follow(ONE, 6)
    assert follower.lookup_answered(ended(ONE, 5, EpochEnd(4, 9))) == Cut(8, "epoch_end")
    assert follower.lookup_answered(ended(ONE, 3, UNDEFINED)) == Cut(8, "high_watermark")
    follower.follow(TWO, 6)
    assert follower.lookup_answered(ended(TWO, 3, UNDEFINED)) == Cut(6, "high_watermark")


def test_a_log_is_loaded_without_the_epochs_that_ended_before_its_start() -> None:
    assert LogState(StoredLog(6, 10, EPOCHS, 6)).epochs.entries == (EpochEntry(3, 6), EpochEntry(5, 8))


@pytest.mark.parametrize(
    ("rule", "first", "decision"),
    [
        ("refused", BatchSpan(8, 12, 6), None),
        ("cut", BatchSpan(8, 12, 6), Cut(8, "straddled_batch")),
        ("cut", BatchSpan(8, 10, 6), None),
        ("cut", BatchSpan(11, 12, 6), None),
    ],
)
def test_a_log_that_ends_within_the_leaders_first_batch_may_give_up_what_it_has_there(
    rule: str, first: BatchSpan, decision: Decision | None
) -> None:
    follower = following(replace(CURRENT, straddled_batch=rule))  # type: ignore[arg-type]
    follower.follow(ONE, 6)
    assert follower.misfit((first,)) == decision


@pytest.mark.parametrize("rule", ["refused", "cut"])
def test_an_empty_log_begins_where_the_leaders_first_batch_does(rule: str) -> None:
    follower = following(replace(CURRENT, straddled_batch=rule), LogState(StoredLog(10, 10, (), 10)))  # type: ignore[arg-type]
    assert follower.misfit((BatchSpan(8, 12, 6),)) == StartOver(8, "first_batch")
