"""The index of nights, and a page a night: what they show, that they stay small, and that names stay names."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from harness.errors import InvalidRun
from harness.nightly import bank, history_file, index, junit, outputs, results_file, summary
from harness.nightly.result import CellOutcome, CellResult, Incident
from tests.browser import MEASURE, Tab, browsing
from tests.harness.nightly.cells import cell, lossy
from tests.harness.nightly.nights import FIRST, SECOND, THIRD, three_nights

HOSTILE = "</title><script>alert('x')</script>&\"' ]]> \x07\ud800"


def tree(path: Path) -> ET.Element:
    """A page, which reads the same as XML and as HTML."""
    return ET.fromstring(path.read_text().removeprefix("<!DOCTYPE html>"))


def rows(path: Path, table: int) -> list[list[str]]:
    """What the cells of a table of a page say."""
    body = list(tree(path).iter("tbody"))[table]
    return [["".join(one.itertext()).strip() for one in row] for row in body]


def written(directory: Path, results: list[CellResult], known: bank.Bank = ()) -> Path:
    return index.write(directory, index.Nights(results, frozenset({THIRD})), known)


def test_three_nights_show_what_is_new_still_failing_flaky_fixed_and_not_run(tmp_path: Path) -> None:
    path = written(tmp_path, three_nights())
    found = {row[3]: (row[0], row[6], row[7]) for row in rows(path, 0)}
    assert found == {
        "new-bug": ("new", THIRD, THIRD),
        "old-bug": ("still failing", SECOND, THIRD),
        "at-times": ("flaky", FIRST, THIRD),
        "mended": ("fixed", FIRST, FIRST),
        "left-out": ("not run", FIRST, FIRST),
    }
    matrix = {row[2]: row[4:] for row in rows(path, 2)}
    assert matrix["new-bug"] == ["new", "··V", "violation"]
    assert matrix["mended"] == ["fixed", "V··", "pass"]
    assert matrix["left-out"] == ["not run", "V", ""]
    assert matrix["sound"] == ["", "···", "pass"]
    [head, *_] = tree(path).iter("h1")
    assert head.text == f"Night {THIRD}: 3 violation, 2 pass"


def test_a_seed_of_the_bank_that_did_not_pass_keeps_a_finding_from_being_fixed(tmp_path: Path) -> None:
    results = three_nights()
    banked = [one for one in bank.updated((), results) if one.scenario == "mended"]
    [standing] = [row[0] for row in rows(written(tmp_path, results, tuple(banked)), 0) if row[3] == "mended"]
    assert standing == "fixed"
    without = [one for one in results if not (one.scenario == "mended" and one.night == SECOND and one.seed == 1)]
    without.append(cell(THIRD, 9, scenario="mended"))
    [standing] = [row[0] for row in rows(written(tmp_path, without, tuple(banked)), 0) if row[3] == "mended"]
    assert standing == "flaky"


def test_junit_and_summary_of_the_third_night_say_the_same(tmp_path: Path) -> None:
    results = three_nights()
    tonight = [one for one in results if one.night == THIRD]
    outputs.write(tmp_path, tonight, [one for one in results if one.night != THIRD])
    suites = ET.parse(tmp_path / junit.NAME).getroot()
    standings = {
        str(suite.get("name")).rsplit(".", 1)[1]: [one.get("value") for one in suite.iter("property")
        if one.get("name") == "standing"] for suite in suites
    }  # fmt: skip
    assert standings == {
        "new-bug": ["new"], "old-bug": ["still failing"], "at-times": ["flaky"], "mended": [], "sound": []
    }  # fmt: skip
    text = (tmp_path / summary.NAME).read_text()
    assert "Findings: 1 new, 1 still failing, 1 flaky, 1 fixed, 1 not run." in text


def test_the_page_of_a_night_has_stories_and_folds_what_passed(tmp_path: Path) -> None:
    results = [lossy(THIRD), *(cell(THIRD, seed, scenario="sound") for seed in range(30))]
    written(tmp_path, results)
    page = tmp_path / f"night-{THIRD}.html"
    said = " ".join("".join(tree(page).itertext()).split())
    assert "Broker 2 truncated its log to offset 20. seawall run random-chaos --seed 7" in said
    assert [row[6] for row in rows(page, 0)] == ["7", "30 cells"]


def test_nights_below_a_directory_are_found_with_their_reports_and_the_history(tmp_path: Path) -> None:
    for night in (SECOND, THIRD):
        report = tmp_path / night / "runs/7/report.html"
        report.parent.mkdir(parents=True)
        report.touch()
        results_file.write(tmp_path / night / "results.jsonl", [lossy(night), lossy(night, seed=8)])
    results_file.write(tmp_path / history_file.NAME, [lossy(FIRST), lossy(SECOND)])
    nights = index.Nights.below(tmp_path)
    assert {(one.night, one.seed, one.report) for one in nights.results} == {
        (FIRST, 7, None), (SECOND, 7, f"{SECOND}/runs/7/report.html"), (SECOND, 8, None),
        (THIRD, 7, f"{THIRD}/runs/7/report.html"), (THIRD, 8, None),
    }  # fmt: skip
    assert nights.here == {SECOND, THIRD}
    with pytest.raises(InvalidRun, match=r"holds no results\.jsonl"):
        index.Nights.below(tmp_path / THIRD / "runs")


def test_hostile_names_are_text_and_their_links_lead_nowhere_else(tmp_path: Path) -> None:
    told: dict[str, Any] = {"scenario": HOSTILE, "target": HOSTILE, "story": (HOSTILE,), "reproduce": HOSTILE}
    told |= {"settings": {HOSTILE: HOSTILE}, "incidents": (Incident(kind=HOSTILE, place=HOSTILE, count=1),)}
    result = lossy(THIRD, **told, report="javascript:alert(1)", versions={"a": HOSTILE})
    path = written(tmp_path, [result])
    for page in (path, tmp_path / f"night-{THIRD}.html"):
        assert len(list(tree(page).iter("script"))) == 1
        assert {one.get("href", "").partition(":")[0] for one in tree(page).iter("a")} <= {
            "#findings", "#trends", "#matrix", "#nights", "#failures", "#cells", "./index.html",
            "./javascript%3Aalert%281%29", f"./night-{THIRD}.html",
        }  # fmt: skip
    night = cell("../../etc/passwd")
    assert index.write(tmp_path, index.Nights([night], frozenset({night.night}))).exists()
    assert len(list(tmp_path.glob("night-*.html"))) == 2


def many(series: int, nights: int) -> list[CellResult]:
    outcomes = [CellOutcome.PASS, CellOutcome.PASS, CellOutcome.INVALID, CellOutcome.VIOLATION]
    return [
        cell(f"2026-03-{night:02}", night, scenario=f"scenario-{number}", outcome=outcomes[(number + night) % 4])
        for night in range(1, nights + 1)
        for number in range(series)
    ]


def test_ten_thousand_cells_make_a_small_page(tmp_path: Path) -> None:
    path = index.write(tmp_path, index.Nights(many(500, 20), frozenset({"2026-03-20"})))
    assert path.stat().st_size < 700_000
    assert (tmp_path / "night-2026-03-20.html").stat().st_size < 1_000_000


@pytest.mark.nightly("three widths of two pages, and a large one; by day test_screenshots has the index in a browser")
def test_a_browser_shows_every_width_and_filters_a_large_page(tmp_path: Path) -> None:
    wordy = Incident(kind="lost-write", place="a-topic-with-a-name-that-does-not-end" * 5 + "/0", count=10**9)
    wide = [*three_nights(), *(lossy(THIRD, 2**62, scenario="x" * 200, incidents=(wordy,) * 9),)]
    written(tmp_path, wide)
    pages = [(tmp_path / name).read_text() for name in ("index.html", f"night-{THIRD}.html")]
    with browsing() as browser:
        for html, width in product(pages, (420, 900, 1600)):
            assert Tab(browser, html, tmp_path / "page.html", width=width).page.evaluate(MEASURE) == [0, 0]
        tab = Tab(
            browser, index.write(tmp_path, index.Nights(many(350, 2), frozenset())).read_text(), tmp_path / "p.html"
        )
        assert tab.page.evaluate("document.querySelectorAll('table.matrix tbody tr').length") == 350
        tab.page.locator("table.matrix th input").nth(2).fill("scenario-34")
        assert tab.page.locator("table.matrix tbody tr:visible").count() == 11
        assert "11 of 350 rows" in tab.text("#matrix ~ .filtered")
        tab.page.locator("table.matrix th input").nth(5).fill("invalid")
        assert tab.page.locator("table.matrix tbody tr:visible td:last-child").all_text_contents() == ["invalid"] * 3


def test_a_browser_filters_by_any_column_and_runs_nothing_else(tmp_path: Path) -> None:
    plain = written(tmp_path, three_nights()).read_text()
    smuggled = "<script>document.title='it ran'</script><img src='x' onerror=\"document.title='it ran'\" />"
    with browsing() as browser:
        tab = Tab(browser, plain, tmp_path / "page.html")
        tab.page.locator("table.matrix th input").nth(2).fill("BUG")
        shown = tab.page.locator("table.matrix tbody tr:visible td:nth-child(3)")
        assert shown.all_text_contents() == ["new-bug", "old-bug"]
        assert tab.said == []
        tab = Tab(browser, plain.replace("<main>", f"<main>{smuggled}"), tmp_path / "page.html")
        assert "it ran" not in tab.page.title()
        assert "".join(tab.said).count("Content Security Policy") >= 3
