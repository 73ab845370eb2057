"""Pages at three widths look like the screenshots that a maintainer approved: a violation, the index, a comparison.

``pytest tests/reports/test_screenshots.py --rewrite`` approves what they look like now; look at the images then.
Fonts differ between machines, so that elsewhere than where they were approved the comparison is skipped.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from checkers import check
from harness.checker import Outcome
from harness.cli import main
from harness.nightly import index
from harness.runner.plan import plan
from harness.runner.run import run
from harness.scenario import load
from tests.browser import browsing
from tests.harness.nightly.nights import THIRD, three_nights
from tests.reports.conftest import page

screenshots = pytest.importorskip("tests.reports.screenshots", reason="pillow is not installed", exc_type=ImportError)

STARTED = datetime(2026, 3, 5, 1, tzinfo=UTC)
WIDTHS = (390, 1000, 1400)
LATE = pytest.mark.nightly("one more width or page in a browser; by day each page has one width, and one is shifted")
SHIFTED = {
    "report": "table tbody td:nth-child(2) { position: relative; left: 9px; }",
    "index": "table.matrix tbody td:nth-child(3) { position: relative; left: 9px; }",
    "diff": "table tbody td:nth-child(2) { position: relative; left: 9px; }",
}


def simulated(out: Path, name: str, outcome: Outcome, **knobs: str) -> Path:
    """A run of the simulator, which is the same on every machine but for what run.json says about the machine."""
    changed = {f"replication.{knob}": value for knob, value in knobs.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_module("harness.runner.run"), "now", lambda: STARTED)
        directory = run(plan(load("kip-101-double-failover"), "simulated", "4.1", 7, overrides=changed), out / name)
    directory.write_manifest(replace(directory.manifest(), versions={"seawall": "0.1.0"}))
    (verdict,) = check([directory.path], engine="reference")
    assert verdict.outcome is outcome, verdict.reasons
    return directory.path


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Path]:
    out = tmp_path_factory.mktemp("pages")
    broken = simulated(out, "broken", Outcome.VIOLATION, truncation="hw")
    healthy = simulated(out, "healthy", Outcome.PASS)
    (out / "report.html").write_text(page(broken))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(out)  # the page names the directories
        main(["diff", *(str(one.relative_to(out)) for one in (healthy, broken)), "--html", "diff.html"])
    index.write(out, index.Nights(three_nights(), frozenset({THIRD})))
    return {name: out / f"{name}.html" for name in SHIFTED}


@pytest.fixture(scope="module")
def approves(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite"))


@pytest.fixture(scope="module")
def browser(approves: bool) -> Iterator[Any]:
    with browsing() as opened:
        if approves:
            screenshots.DIRECTORY.mkdir(exist_ok=True)
            screenshots.ORIGIN.write_text(json.dumps(screenshots.origin(opened), indent=1) + "\n")
        elif why := screenshots.strangeness(opened):
            pytest.skip(why)
        yield opened


def seen(browser: Any, path: Path, width: int, style: str = "") -> Any:
    """What the browser shows."""
    context = browser.new_context(viewport={"width": width, "height": 800}, bypass_csp=True, color_scheme="light")
    tab = context.new_page()
    tab.goto(path.as_uri())
    if style:
        tab.add_style_tag(content=style)
    image = screenshots.taken(tab)
    context.close()
    return image


@pytest.mark.parametrize("width", [pytest.param(one, marks=[] if one == 1000 else [LATE]) for one in WIDTHS])
@pytest.mark.parametrize("name", SHIFTED)
def test_a_page_looks_as_approved(  # noqa: PLR0917 - fixtures
    name: str, width: int, pages: Mapping[str, Path], browser: Any, approves: bool, tmp_path: Path
) -> None:
    image = seen(browser, pages[name], width)
    path = screenshots.path_of(name, width)
    if approves:
        screenshots.approve(name, width, image)
    assert path.stat().st_size < screenshots.MOST_BYTES
    approved = screenshots.approved(name, width)
    if (wrong := screenshots.complaint(approved, image)) is not None:
        screenshots.difference(approved, image).save(tmp_path / "difference.png")
        pytest.fail(f"{wrong}; see {tmp_path / 'difference.png'}, and approve it with --rewrite if it is better")


@pytest.mark.parametrize("name", [pytest.param(one, marks=[] if one == "report" else [LATE]) for one in SHIFTED])
def test_a_shifted_column_is_noticed(name: str, pages: Mapping[str, Path], browser: Any) -> None:
    approved = screenshots.approved(name, 1400)
    assert "blocks" in screenshots.complaint(approved, seen(browser, pages[name], 1400, SHIFTED[name]))


def test_an_overlap_is_noticed(pages: Mapping[str, Path], browser: Any) -> None:
    approved = screenshots.approved("diff", 1000)
    style = "table tbody tr:nth-child(2) { position: relative; top: -12px; }"
    assert "blocks" in screenshots.complaint(approved, seen(browser, pages["diff"], 1000, style))


def test_what_antialiasing_changes_is_not_noticed(pages: Mapping[str, Path], browser: Any) -> None:
    approved = screenshots.approved("index", 1400)
    style = "main { transform: translate(0.3px, 0.2px); }"
    assert screenshots.complaint(approved, seen(browser, pages["index"], 1400, style)) is None
