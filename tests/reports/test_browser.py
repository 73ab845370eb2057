"""The page as a browser shows it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

import pytest

from harness.checker import Outcome, RunVerdict
from tests.reports.conftest import extents_of, lost_write, page

pytestmark = pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")


@pytest.mark.parametrize("name", ["loss", "random_page"])
def test_a_browser_shows_the_page_without_a_complaint(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    path.write_text(request.getfixturevalue(name))
    assert complaints(path) == []


def test_a_browser_runs_nothing_that_got_into_the_page(loss: str, tmp_path: Path) -> None:
    """The policy is what would hold if a name were not escaped."""
    path = tmp_path / "report.html"
    smuggled = "<script>console.log('it ran')</script><b style='color: red'>x</b><img src='https://127.0.0.1/x' />"
    path.write_text(loss.replace("<main>", f"<main>{smuggled}"))
    said = "".join(complaints(path))
    assert "it ran" not in said
    assert said.count("Content Security Policy") >= 3


def complaints(path: Path) -> list[str]:
    """What a browser writes on its console when it shows a page."""
    return [line for line in shown(path).stderr.splitlines() if "CONSOLE" in line]


def shown(path: Path) -> subprocess.CompletedProcess[str]:
    """What a browser makes of a page."""
    browser = ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom")
    profile = f"--user-data-dir={path.parent / 'profile'}"
    done = subprocess.run((*browser, profile, path.as_uri()), capture_output=True, text=True, check=True, timeout=120)
    assert "</html>" in done.stdout
    return done


@pytest.mark.parametrize("outcome", [Outcome.VIOLATION, Outcome.PASS, Outcome.INVALID])
def test_no_page_scrolls_sideways_and_no_cell_prints_over_another(
    outcome: Outcome, tmp_path: Path, double_failover_recording: Any
) -> None:
    losses = [lost_write(offset, value=197_568_495_000 + 2 * offset) for offset in range(60)]
    losses += [lost_write(2**62 + offset, value=2**62 + 9 * offset) for offset in range(3)]
    long = "node controller: " + "a probe got lost, and 78 more bytes are withheld; " * 9
    double_failover_recording.fault("f009", "partition", ["0", "1", "2", "controller"], (1, 2, 3, 4, 5), long)
    anomalies = [] if outcome is Outcome.PASS else losses
    counts = {"sends_ok": 900, "acked_all": 900, "acked_below_high_watermark": 900}
    verdict = RunVerdict("", outcome, "python", anomalies, counts=counts, extents=extents_of(anomalies))
    html = page(double_failover_recording.write(tmp_path / "run", verdict))
    widths = (420, 900, 1600)
    assert measured(html, widths, tmp_path / "frames.html") == dict.fromkeys(widths, (0, 0))


def measured(html: str, widths: Sequence[int], path: Path) -> Mapping[int, tuple[int, int]]:
    """By width, of a page in a frame of that width: how many pixels it can be scrolled sideways, and how many cells of
    anomalies print over another. The policy of the page forbids scripts, and Chromium's windows are never narrower
    than some 500 pixels.
    """
    inner = re.sub("<meta http-equiv=[^>]*>", "", html)
    frames = [f'<iframe width="{width}" style="border: 0" srcdoc="{escape(inner)}"></iframe>' for width in widths]
    path.write_text(f"<!DOCTYPE html><html><body>{''.join(frames)}<script>{_MEASURE}</script></body></html>")
    found = re.search("<title>(.*?)</title>", shown(path).stdout)
    assert found
    return dict(zip(widths, map(tuple, json.loads(found[1])), strict=True))


_MEASURE = """
const overlap = (a, b) => a.left < b.right - 1 && a.right > b.left + 1 && a.top < b.bottom - 1 && a.bottom > b.top + 1;
function printed(cell) {
  const range = cell.ownerDocument.createRange();
  range.selectNodeContents(cell);
  return range.getBoundingClientRect();
}
function overprints(row) {
  const cells = [...row.cells];
  const over = (a, b) => a !== b && overlap(printed(a), b.getBoundingClientRect());
  return cells.filter(a => cells.some(b => over(a, b))).length;
}
function measure({contentDocument: page}) {
  const {scrollWidth, clientWidth} = page.documentElement;
  const rows = [...page.querySelectorAll("table.anomalies tbody tr")];
  return [scrollWidth - clientWidth, rows.map(overprints).reduce((a, b) => a + b, 0)];
}
addEventListener("load", () => document.title = JSON.stringify([...document.querySelectorAll("iframe")].map(measure)));
"""
