"""The site is built strictly, is whole, and loads nothing from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.reference_pages import ROOT

DOCS = ROOT / "docs"
LOADED = re.compile(
    r"<(?:script|img|iframe|source|video|audio|embed)\b[^>]*?\bsrc=\"([^\"]+)\"|<link\b[^>]*?\bhref=\"([^\"]+)\""
)
OF_STYLE = re.compile(r"@import\s+[\"']?([^\"';]+)|url\(\s*[\"']?([^\"')]+)")


LATE = pytest.mark.nightly("twice what reading takes; by day every page is read strictly, and two are written")


def build(pages: Path, place: Path, builder: str = "html") -> subprocess.CompletedProcess[str]:
    """As `make docs` does it; the builder ``dummy`` reads all and writes nothing."""
    pytest.importorskip("sphinx", reason="sphinx is not installed: make setup")
    strict = ("-E", "-q", "-W", "--keep-going", "-b", builder, "-c", str(DOCS), "-d", str(place / "cache"))
    command = (sys.executable, "-m", "sphinx", *strict, str(pages), str(place / "site"))
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("docs")
    built = build(DOCS, place)
    assert built.returncode == 0, built.stdout + built.stderr
    return place / "site"


def test_make_docs_is_the_build_that_is_tested() -> None:
    [command] = re.findall(r"^\t@\$\(BIN\)/python -m sphinx (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert command.split() == ["-E", "-q", "-W", "--keep-going", "-d", ".sphinx_cache", "docs", "site"]


def test_every_page_is_read_without_a_warning(tmp_path: Path) -> None:
    read = build(DOCS, tmp_path, "dummy")
    assert read.returncode == 0, read.stdout + read.stderr


@LATE
def test_every_link_of_the_site_leads_to_a_file_and_an_anchor_that_are_there(site: Path) -> None:
    pages = {path: path.read_text() for path in site.rglob("*.html") if "files" not in path.relative_to(site).parts}
    ids = {path: set(re.findall(r"\bid=\"([^\"]+)\"", text)) for path, text in pages.items()}
    links = {path: set(re.findall(r"<a\b[^>]*?\bhref=\"(?!\w+:)([^\"]+)\"", text)) for path, text in pages.items()}
    broken = [
        f"{path.relative_to(site)}: {target}"
        for path, targets in links.items()
        for target in targets
        if not leads_somewhere(path, target, ids)
    ]
    assert len(pages) > 60
    assert not broken


def leads_somewhere(path: Path, target: str, ids: dict[Path, set[str]]) -> bool:
    place, _, anchor = target.partition("#")
    file = (path.parent / place).resolve() if place else path
    return file.exists() and (not anchor or anchor in ids.get(file, {anchor}))


@LATE
def test_no_page_loads_anything_from_elsewhere(site: Path) -> None:
    assert not from_elsewhere(site)
    assert len(list(loaded(site))) > 500


def from_elsewhere(site: Path) -> list[tuple[str, str]]:
    return [found for found in loaded(site) if re.match(r"(https?:)?//", found[1])]


def loaded(site: Path) -> Iterator[tuple[str, str]]:
    """By file, what a browser fetches for it."""
    for kind, pattern in (("html", LOADED), ("css", OF_STYLE)):
        for path in site.rglob(f"*.{kind}"):
            for pair in pattern.findall(path.read_text()):
                yield path.name, "".join(pair)


def test_the_strict_build_refuses_broken_links_and_pages_that_are_not_in_the_navigation_and_loads_nothing(
    tmp_path: Path,
) -> None:
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "index.md").write_text("# Index\n\n## Begin\n\n* [One](one.md)\n\n[gone](gone.md) [module](../gone.py)\n")
    (pages / "one.md").write_text("# One\n\n[anchor](index.md#gone)\n")
    (pages / "forgotten.md").write_text("# Forgotten\n")
    built = build(pages, tmp_path)
    assert built.returncode == 1
    assert "'gone.md'" in built.stderr
    assert "'../gone.py'" in built.stderr
    assert "'gone'" in built.stderr
    assert re.search(r"forgotten\.md: WARNING: document isn't included in any toctree", built.stderr)
    assert len(list(loaded(tmp_path / "site"))) > 20
    assert not from_elsewhere(tmp_path / "site")
