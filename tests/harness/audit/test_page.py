"""The page of an audit."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkers.registry import KINDS
from harness.audit import page
from harness.audit.result import Answered, Latency, Loss, PartitionMeasures, WindowResult
from harness.checker import EvidenceTier, Outcome
from tests.browser import MEASURE, Tab, browsing

S = 10**9
LOSS = Loss(
    partition=0,
    records=1200,
    first_offset=100,
    last_offset=1299,
    sent_in={"2": 200, "3": 1000},
    seen_ns=S,
    missed_ns=9 * S,
)
ANSWERS = (
    Answered(
        event="broker 1 leads instead of 0",
        told=False,
        at="2026-11-29T10:10:00Z",
        partition=0,
        examined=1500,
        gone=1200,
        first_offset=100,
        last_offset=1299,
    ),
    Answered(
        event="unclean election of <orders>-3", told=True, at="2026-11-29T10:09:00Z", partition=1, examined=7, gone=0
    ),
    Answered(event="rolling upgrade", told=True, at="2026-11-01T10:00:00Z", partition=1, examined=0, gone=0),
)


def window(number: int, outcome: Outcome = Outcome.PASS) -> WindowResult:
    lossy = outcome is Outcome.VIOLATION
    return WindowResult(
        window=number,
        began="2026-11-29T10:00:00Z",
        ended="2026-11-29T10:05:00Z",
        outcome=outcome,
        interrupted=number == 4,
        blind_s=125.0 if number == 5 else 0.0,
        sent=3000,
        acknowledged=2990,
        failed=0,
        unknown=10,
        lost=1200 if lossy else 0,
        anomalies={"lost-write": 1200, "vanished-read": 7} if lossy else {},
        reasons=(),
        evidence=EvidenceTier.CLIENTS,
        not_asked=("hw-regression",),
        carried=36_000,
        undecided=0,
        unverified=0,
        ack=Latency(p50_ms=1.2, p99_ms=34.5, max_ms=1234.5),
        read=None,
        partitions=tuple(
            PartitionMeasures(partition=one, sent=1000, acknowledged=997, availability=0.95, longest_gap_s=15.0)
            for one in range(3)
        ),
        losses=(LOSS,) if lossy else (),
        answers=ANSWERS if lossy else (),
        run_directory=f"windows/{number:06d}" if lossy else None,
    )


def written(directory: Path, *results: WindowResult) -> str:
    said = ["Canary topic seawall-audit-18df000f-canary: 3 partitions, 3 replicas of each."]
    return page.write(
        directory, "bootstrap:kafka-1.example.com:9093,kafka-2.example.com:9093", said, results
    ).read_text()


def test_a_page_says_what_each_event_has_lost_and_escapes_what_an_operator_tells(tmp_path: Path) -> None:
    html = written(tmp_path, *map(window, range(1, 6)), window(6, Outcome.VIOLATION))
    assert (
        "6 windows: 1 with a violation, 0 undecided; 1,200 of 17,940 acknowledged records lost; blind for 125 s."
        in html
    )
    assert "1,200, offsets 100 to 1,299" in html
    assert "unclean election of &lt;orders&gt;-3" in html
    assert "none of 7" in html
    assert "unknown: no record of that time is kept" in html
    assert 'href="windows/000006/report.html"' in html
    assert f"Evidence: clients only. 1 of {len(KINDS)} kinds of anomaly were not asked for: hw-regression." in html


def test_a_later_answer_takes_the_place_of_an_earlier_one_and_says_what_is_undecided(tmp_path: Path) -> None:
    open_ = ANSWERS[1].model_copy(update={"undecided": 12, "between_ns": (S, 2 * S)})
    given_up = ANSWERS[2].model_copy(update={"undecided": 3})
    first = window(6).model_copy(update={"answers": (open_, given_up)})
    assert "none of 7; 12 not decided yet" in (html := written(tmp_path, first))
    assert "unknown; 3 given up undecided" in html
    second = window(7).model_copy(update={"answers": (ANSWERS[1].model_copy(update={"examined": 19}),)})
    html = written(tmp_path, first, second)
    assert "none of 19" in html
    assert "none of 7" not in html


def test_a_page_says_which_events_have_no_answer(tmp_path: Path) -> None:
    path = page.write(tmp_path, "bootstrap:kafka-1:9093", [], [window(1)], ["Passed over: event '<it> broke'."])
    assert '<p class="note">Passed over: event &#39;&lt;it&gt; broke&#39;.</p>' in path.read_text()


def test_a_page_of_days_leaves_windows_out_but_none_in_which_something_was_found(tmp_path: Path) -> None:
    days = [window(number, Outcome.VIOLATION if number == 10 else Outcome.PASS) for number in range(6, 866)]
    html = written(tmp_path, *days)
    assert html.count("<tr>") < page.MOST_WINDOWS + 20
    assert "windows/000010" in html
    assert f"{860 - page.MOST_WINDOWS - 1} older windows" in html


LATE = pytest.mark.nightly("one more width in a browser; by day the narrowest")


@pytest.mark.parametrize("width", [360, pytest.param(800, marks=LATE), pytest.param(1400, marks=LATE)])
def test_a_page_fits_its_window(tmp_path: Path, width: int) -> None:
    html = written(tmp_path, *map(window, range(1, 6)), window(6, Outcome.VIOLATION))
    with browsing() as browser:
        tab = Tab(browser, html, tmp_path / "page.html", width=width)
        assert tab.page.evaluate(MEASURE) == [0, 0]
        assert tab.said == []
