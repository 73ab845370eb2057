"""The page in a real browser: its interaction, its layout, and that it runs nothing but its own script."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.checker import Anomaly, Evidence, Outcome, RunVerdict, Verdict
from harness.history.run_directory import Manifest
from tests.browser import MEASURE, Tab, browsing
from tests.reports.conftest import extents_of, lost_write, page

axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")

HOSTILE = "\"><img src=x onerror=\"document.title='it ran'\"><script>document.title='it ran'</script>"
WIDTHS = (390, 900, 1400)
LATE = pytest.mark.nightly("one more width or colour scheme; by day the narrowest and the light one")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with browsing() as opened:
        yield opened


@pytest.fixture
def show(browser: Any, tmp_path: Path) -> Iterator[Callable[..., Tab]]:
    tabs: list[Tab] = []

    def open_page(html: str, **options: Any) -> Tab:
        tabs.append(Tab(browser, html, tmp_path / "report.html", **options))
        return tabs[-1]

    yield open_page
    for tab in tabs:
        tab.context.close()


@pytest.fixture(scope="module")
def many_losses(tmp_path_factory: pytest.TempPathFactory) -> str:
    from tests.reports.conftest import double_failover

    recording = double_failover()
    losses = [lost_write(offset, value=197_568_495_000 + 2 * offset) for offset in range(60)]
    losses += [lost_write(2**62 + offset, value=2**62 + 9 * offset) for offset in range(3)]
    long = "node controller: " + "a probe got lost, and 78 more bytes are withheld; " * 9
    recording.fault("f009", "partition", ["0", "1", "2", "controller"], (1, 2, 3, 4, 5), long)
    counts = {"sends_ok": 900, "acked_all": 900, "acked_below_high_watermark": 900}
    verdict = RunVerdict("", Outcome.VIOLATION, "python", losses, counts=counts, extents=extents_of(losses))
    return page(recording.write(tmp_path_factory.mktemp("runs") / "many", verdict))


@pytest.mark.parametrize("name", ["loss", "random_page", "many_losses"])
def test_a_browser_shows_the_page_without_a_complaint(
    name: str, request: pytest.FixtureRequest, show: Callable[..., Tab]
) -> None:
    assert show(request.getfixturevalue(name)).said == []


def test_a_browser_runs_nothing_that_got_into_the_page(loss: str, show: Callable[..., Tab]) -> None:
    """The policy is what would hold if a name were not escaped."""
    smuggled = f"{HOSTILE}<b style='color: red'>x</b><img src='https://127.0.0.1/x' />"
    tab = show(loss.replace("<main>", f"<main>{smuggled}"))
    assert "it ran" not in tab.page.title()
    assert "".join(tab.said).count("Content Security Policy") >= 3


def test_hostile_names_stay_text(
    tmp_path: Path, new_recording: Callable[[Manifest], Any], show: Callable[..., Tab]
) -> None:
    recording = new_recording(Manifest(HOSTILE, HOSTILE, 1, HOSTILE, generation=HOSTILE))
    recording.send(1.0, 1, 0, topic=HOSTILE, error=HOSTILE)
    recording.fault(HOSTILE, HOSTILE, [HOSTILE], (1.0, 1.1, 1.2, 1.3, 1.4), HOSTILE)
    evidence = (Evidence("history", {"index": 0, HOSTILE: HOSTILE}, HOSTILE),)
    anomaly = Anomaly("lost-write", Verdict.VIOLATION, HOSTILE, 0, 0, 1, None, HOSTILE, evidence)
    tab = show(page(recording.write(tmp_path / "run", RunVerdict("", Outcome.VIOLATION, HOSTILE, [anomaly]))))
    tab.page.locator("a[data-time]").first.click()
    assert tab.said == []
    assert "it ran" not in tab.page.title().replace("'it ran'", "")
    assert tab.page.locator("img").count() == 0


@pytest.mark.parametrize("width", [pytest.param(one, marks=[] if one == min(WIDTHS) else [LATE]) for one in WIDTHS])
@pytest.mark.parametrize("name", ["many_losses", "random_page"])
def test_no_page_scrolls_sideways_and_no_cell_prints_over_another(
    width: int, name: str, request: pytest.FixtureRequest, show: Callable[..., Tab]
) -> None:
    tab = show(request.getfixturevalue(name), width=width)
    tab.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    assert tab.page.evaluate(MEASURE) == [0, 0]


def test_a_row_of_evidence_leads_to_its_place_in_the_strip_and_back(loss: str, show: Callable[..., Tab]) -> None:
    tab = show(loss)
    row = tab.page.locator("ol.evidence li", has_text="broker 2 truncated 21 to 20").first
    row.locator("a").click()
    assert tab.page.locator(".pin").count() == tab.page.locator(".shared svg.strip").count()
    assert tab.page.url.endswith("#time-ledger-0")
    assert "8.010 s broker 2 truncated" in tab.text(".readout p")
    assert tab.page.locator("#time-ledger-0").evaluate("one => one.getBoundingClientRect().top") < 400
    tab.page.locator(".readout .back").click()
    assert row.evaluate("one => one.classList.contains('target')")
    assert tab.page.locator(".pin").count() == 0


def test_all_strips_are_zoomed_together_and_come_back(loss: str, show: Callable[..., Tab]) -> None:
    tab = show(loss)
    axes = tab.page.locator(".shared svg.strip .axis")
    before = axes.all_text_contents()
    tab.page.locator("button[aria-label='zoom in']").first.click()
    zoomed = axes.all_text_contents()
    assert zoomed != before
    assert len(set(zoomed)) == 1
    tab.page.locator("button[aria-label=later]").last.click()
    assert axes.all_text_contents() != zoomed
    tab.page.locator(".readout button").click()
    assert len(set(axes.all_text_contents())) == 1
    assert tab.page.locator(".shared .pan").first.get_attribute("transform") == "matrix(1 0 0 1 0 0)"


def test_the_pointer_reads_out_time_and_values(loss: str, show: Callable[..., Tab]) -> None:
    tab = show(loss)
    tab.page.locator(".shared svg.strip rect.column").nth(40).hover()
    assert re.search(r"\d\.\d{3} s.*broker 0: hw \d+, log end \d+", tab.text(".readout p"), re.DOTALL)


def test_a_mark_in_a_strip_leads_to_its_incident(loss: str, show: Callable[..., Tab]) -> None:
    tab = show(loss)
    tab.page.locator(".shared svg.strip a").first.click()
    assert tab.page.url.endswith("#incident-1")


def test_tables_are_sorted_and_filtered(many_losses: str, show: Callable[..., Tab]) -> None:
    tab = show(many_losses)
    tab.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    table = tab.page.locator("table.records").first
    table.locator("th button", has_text="offset").click()
    table.locator("th button", has_text="offset").click()
    assert table.locator("th", has_text="offset").get_attribute("aria-sort") == "descending"
    offsets = table.locator("tbody tr td:nth-child(3)").all_text_contents()
    numbers = [int(offset.split()[0]) for offset in offsets]
    assert numbers == sorted(numbers, reverse=True)
    tab.page.locator("input.filter").first.fill("no such row")
    assert table.locator("tbody tr:visible").count() == 0


def test_the_command_is_copied(loss: str, show: Callable[..., Tab]) -> None:
    tab = show(loss, permissions=["clipboard-read", "clipboard-write"])
    tab.page.locator(".command button").first.click()
    copied = tab.page.evaluate("navigator.clipboard.readText()")
    assert copied == "seawall run kip-101-double-failover --generation 0.10 --seed 7"


def test_a_deep_link_opens_what_is_folded(many_losses: str, show: Callable[..., Tab]) -> None:
    tab = show(many_losses)
    folded = tab.page.locator("details ol.evidence li[id], details[id]").last
    name = folded.get_attribute("id")
    tab.page.evaluate(f"location.hash = '#{name}'")
    tab.page.wait_for_selector(f"[id='{name}'].target")
    assert folded.is_visible()


def test_everything_is_readable_without_the_script(loss: str, show: Callable[..., Tab]) -> None:
    plain, scripted = (show(loss, java_script_enabled=on) for on in (False, True))
    plain_words = plain.text("main")
    scripted.page.evaluate("document.querySelectorAll('.zoom, .copy').forEach(one => one.remove())")
    assert "".join(scripted.text("main").split()) == "".join(plain_words.split())
    assert "Gone from broker 2: it truncated its log from 21 to 20" in plain_words


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=LATE)])
def test_axe_finds_nothing_serious(scheme: str, loss: str, show: Callable[..., Tab]) -> None:
    tab = show(loss, color_scheme=scheme)
    found = axe.Axe().run(tab.page).response
    assert len(found["passes"]) > 10
    grave = [one for one in found["violations"] if one["impact"] in ("serious", "critical")]
    assert [(one["id"], one["nodes"][0]["html"][:200]) for one in grave] == []
