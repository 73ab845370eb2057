"""Every fault has a section of its own in ``docs/faults.md``, and every target one in ``docs/targets.md``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import faults
from harness.targets import kinds

DOCS = Path(__file__).parents[2] / "docs"


def sections(page: str) -> dict[str, str]:
    """What a page says below each of its headings."""
    parts = re.split(r"^##+ (.+)$", (DOCS / page).read_text(), flags=re.MULTILINE)[1:]
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("kind", faults.KINDS.own)
def test_a_fault_has_a_section(kind: str) -> None:
    assert sections("faults.md").get(kind, "").strip()


@pytest.mark.parametrize("name", kinds.KINDS.own)
def test_a_target_has_a_section_that_says_how_it_is_chosen(name: str) -> None:
    assert any(f"--target {name}" in text for text in sections("targets.md").values())
    assert re.search(rf"^\| `{name}[`:]", (DOCS / "targets.md").read_text(), re.MULTILINE)
