"""Renders the report as one HTML page, and chooses what it shows, in which order, and how much of it."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from checkers.registry import KINDS
from harness.model import TopicPartition
from reports import chapters, glossary, groups, latency, lost_records, records, sentences, service, strip
from reports.chapters import Chapter, Detail
from reports.incidents import Incident
from reports.lanes.frame import Frame
from reports.outages import outages
from reports.power import power
from reports.run import PartitionRows, Run
from reports.scale import Window, seconds

SIZE_CAP: Final = 2_900_000
"""The size of a report in bytes that is never exceeded while there is anything to leave out."""

_UNPRINTABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that a page may not hold; names of files that are not UTF-8 are read with surrogates."""

_OWN_FILES: Final = ("report.html", records.FILE)

DETAILS: Final = (
    Detail(8, 500, 8, 6, 10, 200),
    Detail(8, 240, 6, 4, 5, 100),
    Detail(5, 160, 4, 2, 3, 40),
    Detail(3, 100, 2, 1, 1, 10),
)
"""From the richest down; the first that fits :data:`SIZE_CAP` is taken, or else the last."""


@dataclass(frozen=True, slots=True)
class Strip:
    """A partition's strip of the whole run.

    Attributes:
        accused: how many anomalies the partition has.
        unmarked: how many of them are at ranges that the verdict counts and does not list, and so not in the strip.
    """

    partition: TopicPartition
    accused: int
    whole: Markup
    unmarked: int


def rendered(run: Run, found: Sequence[Incident], sources: chapters.Sources) -> str:
    """The page, in as much detail as fits."""
    for detail in DETAILS:
        page = _render(run, found, sources, detail)
        if len(page.encode()) <= SIZE_CAP:
            break
    return page


def sources_of(run: Run) -> chapters.Sources:
    """Where the chapters are read from; each partition is read once."""
    rows_of = cache(run.rows_of)
    return chapters.Sources(run, rows_of, cache(lambda place: lost_records.acknowledged(run, rows_of(place))))


def _render(run: Run, found: Sequence[Incident], sources: chapters.Sources, detail: Detail) -> str:
    environment = Environment(loader=PackageLoader("reports"), autoescape=True, undefined=StrictUndefined)
    environment.trim_blocks = environment.lstrip_blocks = True
    environment.filters["named"] = run.names.words
    page = environment.get_template("report.html.j2").render(_context(run, found, sources, detail))
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", page)


def _context(run: Run, found: Sequence[Incident], sources: chapters.Sources, detail: Detail) -> Mapping[str, Any]:
    chosen = _chosen(run, detail.strips)
    told = chapters.chapters(sources, found, detail)
    style, script = f"\n{_own('report.css')}\n", f"//<![CDATA[\n{_own('report.js')}//]]>"
    frame = Frame(_window(run), run.brokers, detail.bins)
    return {
        "style": Markup(style),  # noqa: S704 - our own file
        "script": Markup(script),  # noqa: S704 - our own file
        "policy": _policy(style, script),
        "run": run,
        "banner": sentences.banner(run),
        "chapters": told,
        "closeups": {c.incident.number: _closeup(run, sources.rows_of, c, found, detail) for c in told if c.closeup},
        "by_fault": chapters.by_fault(told),
        "strips": [_strip(run, sources.rows_of(p), frame, found) for p in chosen],
        "strips_hidden": len(run.partitions()) - len(chosen),
        "has_strip": {str(p) for p in chosen},
        "services": (services := service.services(run)),
        "service_strip": service.drawn(run, frame, services),
        "latencies": latency.latencies(run, frame),
        "groups": groups.standings(run),
        "power": power(run),
        "reduced": detail is not DETAILS[0],
        "brokers": [(b, frame.colour(b)) for b in run.brokers],
        "window": _window(run),
        "kinds": {k: glossary.meaning(k) for k in sorted({a.kind for a in run.verdict.anomalies} | set(KINDS))},
        "glossary": glossary,
        "findings": records.FILE,
        "files": list(_files(run.directory)),
        "configuration": json.dumps(run.manifest.configuration, indent=2, ensure_ascii=False, default=str),
        "duration": seconds(run.end_ns - run.start_ns),
        "prediction": sentences.prediction,
        "count": sentences.count,
        "place": chapters.place,
    }


def _own(name: str) -> str:
    return resources.files("reports").joinpath(f"templates/{name}").read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """A content security policy that allows the page's own style and script, and nothing that a name may inject."""
    own, ours = (b64encode(sha256(text.encode()).digest()).decode() for text in (style, script))
    allowed = f"style-src 'sha256-{own}'; script-src 'sha256-{ours}'"
    return f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def _chosen(run: Run, limit: int) -> Sequence[TopicPartition]:
    """The partitions worth a strip: those with anomalies, then those where most happened."""
    accused = lost_records.accused_by_partition(run.verdict)
    cut, elected = run.truncations_by_partition(), run.elections_by_partition()
    unsure = run.unacknowledged_by_partition()

    def dullness(p: TopicPartition) -> tuple[int, int, int, TopicPartition]:
        return -accused.get(p, 0), -cut.get(p, 0) - elected.get(p, 0), -unsure.get(p, 0), p

    return sorted(run.partitions(), key=dullness)[:limit]


def _window(run: Run) -> Window:
    return Window(run.start_ns, run.start_ns, run.end_ns)


def _strip(run: Run, rows: PartitionRows, frame: Frame, found: Sequence[Incident]) -> Strip:
    extents = [x for x in run.verdict.extents if (x.topic, x.partition) == rows.partition]
    number = sum(extent.count for extent in extents)
    pieces = [p for one in found for p in (*one.roots, *one.consequences) if p.partition == rows.partition]
    unmarked = sum(piece.count for piece in pieces if piece.offset is not None and not piece.is_listed)
    whole = strip.drawn(frame, rows, _strip_content(run, rows, found, 130.0 if number else 74.0))
    return Strip(rows.partition, number, whole, unmarked)


def _strip_content(run: Run, rows: PartitionRows, found: Sequence[Incident], height: float) -> strip.StripContent:
    accused = lost_records.charges(run, rows, found)
    has_sends = "history" not in run.left_out
    return strip.StripContent(
        run.faults,
        outages(run),
        run.starts(),
        accused,
        run.final_read_ns(),
        height,
        run.watched,
        run.sampled,
        has_sends,
    )


def _closeup(run: Run, rows_of: Any, chapter: Chapter, found: Sequence[Incident], detail: Detail) -> tuple[str, Markup]:
    assert chapter.closeup is not None
    partition, start_ns, end_ns = chapter.closeup
    window = Window(run.start_ns, start_ns, end_ns)
    rows = rows_of(partition)
    drawn = strip.drawn(Frame(window, run.brokers, detail.bins), rows, _strip_content(run, rows, found, 130.0))
    return f"{partition}, {window.seconds(start_ns)} to {window.seconds(end_ns)}", drawn


def _files(directory: Path) -> Iterator[tuple[str, int]]:
    """The files of the run directory and their sizes in bytes, those of the report left out."""
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if path.is_file() and name not in _OWN_FILES and not name.startswith("."):
            yield name, path.stat().st_size
