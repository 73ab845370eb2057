"""How Sphinx makes the documentation site of the pages in docs/: `make docs` builds it into site/.

The lists of docs/index.md are the navigation, so that a forge, which renders the same file, shows it as well. A link to
a file that is no page, such as a module, leads to a copy of that file in the site. Pages load nothing from other hosts.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parent.parent

project = "seawall"
project_copyright = "the seawall authors"
extensions = ["myst_parser"]
myst_heading_anchors = 4
highlight_language = "none"
smartquotes = False  # `--option` has two hyphens
exclude_patterns = ["_static"]
html_theme = "furo"
html_title = "seawall"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/seawall.svg"
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # it would fetch pages, which a browser refuses a site that is opened from a disk

_HAS_CONTENTS = ("index", "adr/README")
_ENTRY = re.compile(r"^(?:\* |\| )\[([^\]]+)\]\(([^)#:]+)\.md\)", re.MULTILINE)
_SHOWN_BY_BROWSERS = {".json", ".html", ".png", ".svg", ".txt"}


def _contents(section: str) -> str:
    """A hidden table of contents of the pages that begin the lines of a section's list or table."""
    caption, _, text = section.partition("\n")
    entries = [f"{title} <{page}>" for title, page in _ENTRY.findall(text)]
    return "\n".join(["```{toctree}", ":hidden:", f":caption: {caption}", "", *entries, "```", ""]) if entries else ""


def _add_contents(_app: Sphinx, page: str, source: list[str]) -> None:
    if page in _HAS_CONTENTS:
        sections = re.split(r"^##? ", source[0], flags=re.MULTILINE)[1:]
        source[0] += "\n" + "\n".join(filter(None, map(_contents, sections)))


def _site_path(file: Path) -> str:
    """Where the copy of a file of the project is in the site: as text, where a browser would offer to save it."""
    shown = file.suffix in _SHOWN_BY_BROWSERS
    return f"files/{file.relative_to(ROOT)}{'' if shown else '.txt'}"


def _linked(app: Sphinx, page: str, target: str) -> str | None:
    """A link from a page to the copy of what ``target`` names; None if that does not exist."""
    place = Path(app.srcdir, page).parent
    file = Path(os.path.normpath(place / target))
    if not file.exists() or not file.is_relative_to(ROOT):
        return None
    copy = Path(app.outdir, _site_path(file))
    copy.parent.mkdir(parents=True, exist_ok=True)
    if file.is_dir():
        inside = sorted(path for path in file.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
        copy.write_text("".join(f"{path.relative_to(ROOT)}\n" for path in inside))
    else:
        shutil.copyfile(file, copy)
    return os.path.relpath(copy, Path(app.outdir, page).parent)


def _link_files(app: Sphinx, doctree: nodes.document) -> None:
    """Lead links to copies of files that are no pages: downloads, directories, and documents outside of docs/."""
    for found in [*doctree.findall(addnodes.download_reference), *doctree.findall(addnodes.pending_xref)]:
        target = found["reftarget"]
        if found.get("refdomain") == "doc":
            if not Path(target).is_absolute():
                continue  # a page
            target += ".md"
        if link := _linked(app, app.env.docname, target):
            found.replace_self(nodes.reference("", "", *found.children, refuri=link))


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    app.connect("source-read", _add_contents)
    app.connect("doctree-read", _link_files, priority=100)  # before Sphinx collects downloads, at 500
