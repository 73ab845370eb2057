from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.cli.origin import PACKAGES
from harness.targets.compose import refusals
from harness.targets.compose.compose_file import understood
from tests.docs.reference_pages import ROOT

DOCS = ROOT / "docs"


def symptoms() -> Iterator[str]:
    """What the tables of the page quote, in pieces where values are left out."""
    _, _, tables = (DOCS / "troubleshooting.md").read_text().partition("## Installing and starting")
    for cell in re.findall(r"^\| ([^|]*) \|", tables, re.MULTILINE):
        if cell.startswith("`"):
            yield from (piece.strip() for piece in cell.split("`")[1].split("…"))


@cache
def code() -> str:
    """All code, with adjacent literals joined and what an f-string fills in left out."""
    below = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return re.sub(r"[\"']\s*\n\s*f?[\"']", "", "\n".join(path.read_text() for path in below))


@pytest.mark.parametrize("symptom", list(symptoms()))
def test_a_quoted_error_is_one_that_the_code_has(symptom: str) -> None:
    assert symptom in code()


def test_the_compose_file_that_the_page_shows_is_understood_and_not_refused() -> None:
    [shown] = re.findall(r"```yaml\n(.*?)```", (DOCS / "compose-file.md").read_text(), re.DOTALL)
    file = understood(yaml.safe_load(shown), Path("stack.yml"))
    refusals.refuse(file)
    assert [broker.name for broker in file.brokers] == ["kafka-1", "kafka-2", "kafka-3"]
    assert list(file.nodes) == ["0", "1", "2", "controller"]


def test_the_readme_has_two_pictures_and_leads_to_the_site() -> None:
    readme = (ROOT / "README.md").read_text()
    assert len(re.findall(r"^!\[", readme, re.MULTILINE)) == 2
    assert "](docs/index.md)" in readme
    assert "](docs/getting-started.md)" in readme


def test_the_first_page_leads_to_ci_and_the_page_of_outputs_warns_of_what_is_removed() -> None:
    assert "[Every night in CI](ci.md)" in (DOCS / "getting-started.md").read_text()
    merge, _, _ = (DOCS / "nightly-outputs.md").read_text().partition("## What is new tonight")
    assert "`--keep none`" in merge


def pictures() -> list[Path]:
    return sorted((DOCS / "img").glob("*.svg"))


@pytest.mark.parametrize("picture", pictures(), ids=lambda path: path.name)
def test_a_picture_has_a_title_brings_its_background_and_loads_nothing(picture: Path) -> None:
    text = picture.read_text()
    assert "<title" in text
    assert re.search(r"<rect [^>]*fill=\"#fff(fff)?\"", text), "dark pages would show dark text on dark"
    assert not re.search(r"(href|src)=|@import|url\((?!#)", text)


def test_every_page_is_in_the_navigation() -> None:
    """As the strict build requires, and cheaper; decisions are listed in their own index."""
    listed: set[Any] = {"index"}
    for index in ("index.md", "adr/README.md"):
        entries = re.findall(r"^(?:\* |\| )\[[^\]]+\]\(([^)#:]+)\.md\)", (DOCS / index).read_text(), re.MULTILINE)
        listed |= {str(Path(index).parent / entry) for entry in entries}
    pages = {str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md")}
    assert pages == listed
