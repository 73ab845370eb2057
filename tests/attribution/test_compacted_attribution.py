"""Whose the lost keys of a compacted log are: lying clients, broken cleaners, and what frames say of a scan."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pytest

from checkers.views.frames import Frames
from checkers.views.row import Row
from checkers.wire_tap.scan_grounds import kept_from_reader, none_refused
from harness.checker import Side
from harness.compacted import SLOTS, TOPIC
from harness.findings import Finding
from tests.attribution.test_grounds import frame, row
from tests.attribution.trial import sides, verdict
from tests.by_night import some

LATE = pytest.mark.nightly("a run like another; by day one lie and one bug")
BY_DAY = {"drops_a_record", "cleaner_drops_the_last_value"}

LIES_ABOUT = {
    "acknowledges_what_it_never_sent": {Side.CLIENT},
    "reports_another_offset": {Side.CLIENT},
    "drops_a_record": {Side.CLIENT, Side.UNDECIDED},
    "makes_up_a_record": {Side.CLIENT, Side.UNDECIDED},
    "reports_a_record_elsewhere": {Side.CLIENT},
    "reports_refusals": {Side.UNDECIDED},
}
"""By lie, whose the lost keys are; undecided where the cleaner has changed a batch since, or may have removed it."""

BROKEN = {
    "cleaner_drops_the_last_value": {"lost-key", "replica-lost-key"},
    "followers_drop_the_last_value": {"replica-lost-key"},
    "cleaner_drops_tombstones": {"lost-key"},
    "tombstones_supersede_nothing": {"lost-key"},
    "segments_named_late": {"replica-lost-key"},
}


@pytest.mark.parametrize("lie", some(LIES_ABOUT, BY_DAY, LATE))
def test_a_key_that_a_client_lies_about_is_put_down_to_the_brokers(lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert sides(verdict(monkeypatch, lie=lie, load="compaction"))["lost-key"] == LIES_ABOUT[lie]


@pytest.mark.parametrize("bug", some(BROKEN, BY_DAY, LATE))
def test_a_key_that_a_cleaner_lost_is_put_down_to_the_clients(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = sides(verdict(monkeypatch, bugs=bug, load="compaction"))
    assert found == {kind: {Side.BROKER} for kind in BROKEN[bug]}


# ----------------------------------------------------------------------------------------------------- single frames

KEY = 3
OTHER_KEY, OLD, OWN, NEW = 1 * SLOTS + 8, 2 * SLOTS + 2 * KEY, 3 * SLOTS + 2 * KEY, 4 * SLOTS + 2 * KEY
LOST = Finding("r", "lost-key", TOPIC, 0, offset=4, value=OWN, row=3, time_ns=900, process=7, since_ns=100)
ABOUT = {"topic": TOPIC, "group": None}
ACKED = [
    row(0, 100, "put", "invoke", value=OWN, **ABOUT),
    row(1, 200, "put", "ok", value=OWN, offset=4, **ABOUT),
    row(2, 600, "scan", "invoke", offset=8, **ABOUT),
]
PRODUCED = frame("PRODUCE", 110, 190, topic=TOPIC, base_offset=4, end_offset=5, batch_crc=OWN)


def scanned(*given: tuple[int, int]) -> list[Row]:
    return [row(3 + n, 900, "scan", "ok", offset=at, value=value, **ABOUT) for n, (at, value) in enumerate(given)]


def fetched(at: int, crc: int, asked: tuple[int, int, int] = (700, 710, 0), records: int = 1) -> Row:
    """A batch that the reader was sent; ``asked``: when, when it was answered, and from which offset."""
    said = {"base_offset": at, "end_offset": at + 1, "batch_crc": crc, "records": records, "offset": asked[2]}
    return frame("FETCH", *asked[:2], topic=TOPIC, client_id="seawall-reader-7", **said)


def logged(*held: tuple[int, int]) -> list[Row]:
    return [{"topic": TOPIC, "partition": 0, "offset": at, "value": value, "batch_crc": value} for at, value in held]


def kept(wire: Sequence[Row], logs: Sequence[Row] = (), blind: Collection[str] = ()) -> bool | None:
    history = [*ACKED, *scanned((1, OLD), (6, OTHER_KEY))]
    return kept_from_reader(Frames([PRODUCED, *wire], blind, history, logs), LOST).holds


FIRST, LAST = fetched(1, OLD), fetched(6, OTHER_KEY)


def test_a_scan_that_was_sent_the_record_is_believed() -> None:
    assert kept([FIRST, LAST]) is True
    assert kept([FIRST, fetched(4, OWN), LAST]) is False
    assert kept([FIRST, fetched(4, 99), LAST], logged((4, OWN))) is None
    assert kept([FIRST, fetched(4, 99), LAST]) is None


def test_a_scan_that_was_sent_a_later_record_of_the_key_is_believed() -> None:
    assert kept([FIRST, fetched(5, NEW), LAST], logged((5, NEW))) is False
    assert kept([FIRST, fetched(6, NEW)], logged((6, NEW))) is False
    assert kept([FIRST, fetched(5, OTHER_KEY), LAST], logged((5, OTHER_KEY))) is True
    assert kept([FIRST, LAST, fetched(8, NEW)], logged((8, NEW))) is True


def test_a_batch_that_no_log_has_decides_although_the_reader_does_not_report_it() -> None:
    assert kept([FIRST, fetched(5, 99), LAST]) is None
    assert kept([FIRST, fetched(5, 99, records=0), LAST]) is True


def test_a_reader_is_blamed_that_asked_again_for_what_it_was_sent() -> None:
    sent, again = fetched(4, OWN), fetched(6, OTHER_KEY, (720, 730, 4))
    assert kept([FIRST, sent, again]) is None
    assert kept([FIRST, sent, fetched(6, OTHER_KEY, (720, 730, 5))]) is False


def test_a_scan_is_decided_whose_frames_are_not_known() -> None:
    assert kept([]) is None
    assert kept([FIRST, LAST], blind={"FETCH"}) is None
    assert kept([{**FIRST, "client_id": "seawall-reader-8"}]) is None
    without = Frames([FIRST, LAST], (), [*ACKED[:2], *scanned((1, OLD))], ())
    assert kept_from_reader(without, LOST).holds is None


@pytest.mark.parametrize(
    ("value", "time_ns", "holds"), [(NEW, 300, None), (NEW, 99, True), (OTHER_KEY, 300, True)], ids=str
)
def test_a_refusal_that_may_be_untrue_is_believed(value: int, time_ns: int, holds: bool | None) -> None:
    failed = row(9, time_ns, "put", "fail", value=value, **ABOUT)
    assert none_refused(Frames((), (), [*ACKED, failed], ()), LOST).holds is holds
