"""A page in a real browser: the system's Chromium, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")


class Tab:
    """A page in the browser, and what it wrote on its console."""

    def __init__(self, browser: Any, html: str, path: Path, *, width: int = 1400, **options: Any) -> None:
        path.write_text(html)
        self.context = browser.new_context(viewport={"width": width, "height": 800}, **options)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.goto(path.as_uri())

    def text(self, selector: str) -> str:
        """The text of the first element."""
        return str(self.page.locator(selector).first.text_content())


@contextmanager
def browsing() -> Iterator[Any]:
    """A browser without a window; without Playwright or Chromium the test is skipped."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


MEASURE = """() => {
  const over = (a, b) => a.left < b.right - 1 && a.right > b.left + 1 && a.top < b.bottom - 1 && a.bottom > b.top + 1;
  const printed = cell => {
    const range = document.createRange();
    range.selectNodeContents(cell);
    return range.getBoundingClientRect();
  };
  const shown = row => [...row.cells].filter(cell => cell.offsetParent);
  const overprints = row => shown(row).filter(a =>
    shown(row).some(b => a !== b && over(printed(a), b.getBoundingClientRect())));
  const rows = [...document.querySelectorAll("table.stacks tbody tr")];
  const {scrollWidth, clientWidth} = document.documentElement;
  return [scrollWidth - clientWidth, rows.reduce((sum, row) => sum + overprints(row).length, 0)];
}"""
"""How many pixels a page can be scrolled sideways, and how many cells of tables print over another."""
