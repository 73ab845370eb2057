"""Measures how soon pages open in a cold, headless Chromium, beside an empty page on the same machine.

``python -m tests.bench.pages index`` makes the index of nights: of 10,000 cells, and of 10,000 series on eight nights.
``python -m tests.bench.pages FILE...`` measures pages that are there. Each is opened in a new browser several times;
the best time is printed, because other programs make times longer and none makes them shorter.

Columns: MB of the file; seconds from navigation to DOMContentLoaded, to the first paint and until the page is idle,
where it has answered an animation frame; and the processor seconds of the renderer's main thread, with the part that
is layout and style. ``filter`` is the time of a keystroke in a filter, with its layout.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from harness.nightly import index
from harness.nightly.result import CellOutcome, CellResult
from tests.browser import CHROMIUM
from tests.harness.nightly.cells import cell, lossy

LOAD = """async () => {
  await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  const [shown] = performance.getEntriesByType("navigation");
  const paint = performance.getEntriesByName("first-contentful-paint")[0];
  return [shown.domContentLoadedEventEnd, paint ? paint.startTime : NaN, performance.now()];
}"""

FILTER = """async text => {
  const input = document.querySelector("table.matrix th input, .filtered th input, input.filter");
  if (!input) return NaN;
  const begun = performance.now();
  input.value = text;
  input.dispatchEvent(new Event("input", {bubbles: true}));
  document.body.offsetHeight;
  await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
  return performance.now() - begun;
}"""


def nights(series: int, number: int) -> Iterator[CellResult]:
    """A tenth of the series fails, differently each night, and a twentieth proves nothing."""
    for night in range(1, number + 1):
        day = f"2026-03-{night:02}"
        for one in range(series):
            told: dict[str, Any] = {"scenario": f"scenario-{one}", "settings": {"min.insync.replicas": str(one % 3)}}
            match (one + night) % 20:
                case 0 | 1:
                    yield lossy(day, night, **told)
                case 2:
                    yield cell(day, night, outcome=CellOutcome.INVALID, **told)
                case _:
                    yield cell(day, night, **told)


def made_index(directory: Path) -> list[Path]:
    """Both cases, as files."""
    found = []
    for name, series, number in (("10000-cells", 500, 20), ("10000-series", 10_000, 8)):
        results = list(nights(series, number))
        target = directory / name
        target.mkdir(parents=True, exist_ok=True)
        found.append(index.write(target, index.Nights(results, frozenset({results[-1].night}))))
        found += sorted(target.glob("night-*.html"))
    return found


def opened(page: Path, width: int) -> dict[str, float]:
    """What one cold browser measures."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_context(viewport={"width": width, "height": 800}).new_page()
        tab.set_default_timeout(120_000)
        client = tab.context.new_cdp_session(tab)
        client.send("Performance.enable", {"timeDomain": "threadTicks"})
        tab.goto(page.as_uri(), wait_until="load", timeout=120_000)
        loaded, painted, idle = tab.evaluate(LOAD)
        metrics = {one["name"]: one["value"] for one in client.send("Performance.getMetrics")["metrics"]}
        typed = min(tab.evaluate(FILTER, text) for text in ("b", "bu", "b"))
        heap = metrics["JSHeapUsedSize"] / 1e6
        browser.close()
    layout = metrics["LayoutDuration"] + metrics["RecalcStyleDuration"]
    return {
        "loaded": loaded / 1000, "painted": painted / 1000, "idle": idle / 1000, "cpu": metrics["TaskDuration"],
        "layout": layout, "filter": typed / 1000, "nodes": metrics["Nodes"], "heap_mb": heap,
    }  # fmt: skip


def best(page: Path, width: int, times: int) -> dict[str, float]:
    """The best of several cold browsers, column by column."""
    measured = [opened(page, width) for _ in range(times)]
    return {name: min(one[name] for one in measured) for name in measured[0]}


def main(words: Sequence[str]) -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("pages", nargs="+", help="'index', or files")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--width", type=int, default=1400)
    parser.add_argument("--directory", type=Path, help="where pages are made, and kept")
    chosen = parser.parse_args(words)
    directory = chosen.directory or Path(tempfile.mkdtemp(prefix="pages-"))
    try:
        directory.mkdir(parents=True, exist_ok=True)
        empty = directory / "empty.html"
        empty.write_text("<!DOCTYPE html><title>empty</title><p>empty</p>")
        pages = made_index(directory) if chosen.pages == ["index"] else [Path(one).resolve() for one in chosen.pages]
        for page in (empty, *pages):
            figures = best(page, chosen.width, chosen.times)
            row = " ".join(f"{name} {value:.3g}" for name, value in figures.items())
            print(f"{page.parent.name}/{page.name}: {page.stat().st_size / 1e6:.2f} MB {row}", flush=True)  # noqa: T201
    finally:
        if chosen.directory is None:
            shutil.rmtree(directory)


if __name__ == "__main__":
    main(sys.argv[1:])
