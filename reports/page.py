"""Renders the report as one HTML page, and chooses what it shows, in which order, and how much of it."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from checkers.promises import KINDS
from harness.checker import Extent
from harness.model import TopicPartition
from reports import glossary, groups, losses, replicas, sentences, story, strip
from reports.lanes.frame import Frame
from reports.outages import outages
from reports.power import power
from reports.run import PartitionRows, Run, partition_of
from reports.scale import Window, seconds

SIZE_CAP: Final = 2_000_000
"""The size of a report in bytes that is never exceeded while there is anything to leave out."""

_UNPRINTABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""Characters that a page may not hold; names of files that are not UTF-8 are read with surrogates."""

_NEAR: Final = 6
"""Places of anomalies at most this many offsets apart share one table of logs."""


@dataclass(frozen=True, slots=True)
class Detail:
    """How much a report shows.

    Attributes:
        strips: partitions with a time strip.
        bins: points of a line and ticks of a row across a strip.
        rows: anomalies of one kind.
        stories: lost ranges with a story, and places whose logs are shown.
    """

    strips: int
    bins: int
    rows: int
    stories: int


DETAILS: Final = (Detail(8, 500, 40, 8), Detail(8, 240, 30, 6), Detail(5, 160, 20, 4), Detail(3, 100, 10, 2))
"""From the richest down; the first that fits :data:`SIZE_CAP` is taken, or else the last."""


@dataclass(frozen=True, slots=True)
class Strip:
    """A partition's strips: the whole run, and close-ups of its losses with their time in words.

    Attributes:
        accused: how many anomalies the partition has.
        unmarked: how many of them are at ranges that the verdict counts and does not list, and so not in the strips.
    """

    partition: TopicPartition
    accused: int
    whole: Markup
    closeups: Sequence[tuple[str, Markup]]
    unmarked: int


@dataclass(frozen=True, slots=True)
class Story:
    """A lost range and what happened to it."""

    partition: TopicPartition
    where: str
    values: str
    events: Sequence[story.Event]


@dataclass(frozen=True, slots=True)
class Logs:
    """Replica logs around a place."""

    partition: TopicPartition
    kinds: str
    table: replicas.LogTable


def rendered(run: Run) -> str:
    """The page, in as much detail as fits."""
    rows_of = cache(run.rows_of)
    for detail in DETAILS:
        page = _render(run, detail, rows_of)
        if len(page.encode()) <= SIZE_CAP:
            break
    return page


def _render(run: Run, detail: Detail, rows_of: Callable[[TopicPartition], PartitionRows]) -> str:
    environment = Environment(loader=PackageLoader("reports"), autoescape=True, undefined=StrictUndefined)
    environment.trim_blocks = environment.lstrip_blocks = True
    page = environment.get_template("report.html.j2").render(_context(run, detail, rows_of))
    return _UNPRINTABLE.sub("\N{REPLACEMENT CHARACTER}", page)


def _context(run: Run, detail: Detail, rows_of: Callable[[TopicPartition], PartitionRows]) -> Mapping[str, Any]:
    chosen = _chosen(run, detail.strips)
    lost = losses.lost(run.verdict)
    places = _places(run.verdict.extents)
    rows = {p: rows_of(p) for p in _needed(chosen, lost[: detail.stories], places[: detail.stories])}
    style = f"\n{_style()}\n"
    return {
        "style": Markup(style),  # noqa: S704 - our own file
        "policy": _policy(style),
        "run": run,
        "banner": sentences.banner(run),
        "sections": losses.sections(run.verdict, detail.rows),
        "stories": [_story(run, rows, s) for s in lost[: detail.stories]],
        "stories_hidden": len(lost) - len(lost[: detail.stories]) + losses.lost_unlisted(run.verdict),
        "strips": [_strip(run, rows[p], detail, lost[: detail.stories]) for p in chosen],
        "strips_hidden": len(run.partitions()) - len(chosen),
        "logs": [_logs(run, rows[place[0]], place) for place in places[: detail.stories]],
        "logs_hidden": len(places) - detail.stories,
        "groups": groups.standings(run),
        "power": power(run),
        "reduced": detail is not DETAILS[0],
        "brokers": [(b, Frame(_window(run), run.brokers, 1).colour(b)) for b in run.brokers],
        "window": _window(run),
        "kinds": {k: glossary.meaning(k) for k in sorted({a.kind for a in run.verdict.anomalies} | set(KINDS))},
        "glossary": glossary,
        "files": list(_files(run.directory)),
        "configuration": json.dumps(run.manifest.configuration, indent=2, ensure_ascii=False, default=str),
        "duration": seconds(run.end_ns - run.start_ns),
        "prediction": sentences.prediction,
        "count": sentences.count,
    }


def _style() -> str:
    return resources.files("reports").joinpath("templates/report.css").read_text(encoding="utf-8")


def _policy(style: str) -> str:
    """A content security policy that allows the page's own style, and nothing that a name may inject."""
    digest = b64encode(sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


# ------------------------------------------------------------------------------------------------------- choosing


def _chosen(run: Run, limit: int) -> Sequence[TopicPartition]:
    """The partitions worth a strip: those with anomalies, then those where most happened."""
    accused = _accused_by_partition(run.verdict.extents)
    cut, elected = run.truncations_by_partition(), run.elections_by_partition()
    unsure = run.unacknowledged_by_partition()

    def dullness(p: TopicPartition) -> tuple[int, int, int, TopicPartition]:
        return -accused.get(p, 0), -cut.get(p, 0) - elected.get(p, 0), -unsure.get(p, 0), p

    return sorted(run.partitions(), key=dullness)[:limit]


def _accused_by_partition(extents: Iterable[Extent]) -> Mapping[TopicPartition, int]:
    counts: Counter[TopicPartition] = Counter()
    for extent in extents:
        if (place := partition_of(extent.topic, extent.partition)) is not None:
            counts[place] += extent.count
    return counts


def _places(extents: Sequence[Extent]) -> Sequence[tuple[TopicPartition, int, int, str]]:
    """Where to show logs: (partition, offset, end offset exclusive, kinds), first where records are gone."""
    at: dict[TopicPartition, list[tuple[int, int, str]]] = defaultdict(list)
    for extent in extents:
        spans = ((one.first_offset, one.end_offset, extent.kind) for one in extent.ranges)
        if (place := partition_of(extent.topic, extent.partition)) is not None:
            at[place] += spans
    places = [(p, *place) for p, spans in sorted(at.items()) for place in _merged(spans)]
    return sorted(places, key=lambda place: (not any(map(glossary.is_gone, place[3].split(", "))), place[:2]))


def _merged(spans: Sequence[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    for first, end in losses.merged([(first, end) for first, end, _ in spans], _NEAR - 1):
        kinds = {kind for begin, _, kind in spans if first <= begin < end}
        yield first, end, ", ".join(sorted(kinds))


def _needed(
    chosen: Sequence[TopicPartition],
    lost: Sequence[losses.Lost],
    places: Sequence[tuple[TopicPartition, int, int, str]],
) -> Sequence[TopicPartition]:
    return sorted({*chosen, *(one.partition for one in lost), *(place[0] for place in places)})


# -------------------------------------------------------------------------------------------------------- drawing


def _window(run: Run) -> Window:
    return Window(run.start_ns, run.start_ns, run.end_ns)


def _strip(run: Run, rows: PartitionRows, detail: Detail, lost: Sequence[losses.Lost]) -> Strip:
    accused = losses.accused(run, rows)
    count = _accused_by_partition(run.verdict.extents).get(rows.partition, 0)
    height = 130.0 if count else 74.0
    scene = strip.Scene(run.faults, outages(run), run.starts(), accused, run.final_read_ns(), height, run.sampled)
    mine = [_loss(run, rows, s) for s in lost if s.partition == rows.partition]
    windows = [Window(run.start_ns, *span) for span in _closeups(run, mine)]

    def draw(window: Window) -> Markup:
        return strip.drawn(Frame(window, run.brokers, detail.bins), rows, scene)

    closeups = [(f"{w.seconds(w.start_ns)} to {w.seconds(w.end_ns)}", draw(w)) for w in windows[:3]]
    extents = [x for x in run.verdict.extents if (x.topic, x.partition) == rows.partition]
    unmarked = sum(extent.in_more_ranges for extent in extents)
    return Strip(rows.partition, count, draw(_window(run)), closeups, unmarked)


def _closeups(run: Run, lost: Sequence[story.Loss]) -> Sequence[tuple[int, int]]:
    """The times of the stories, joined where they overlap, save those that last most of the run anyway."""
    spans: list[tuple[int, int]] = []
    for start, end in sorted(story.closeup(loss) for loss in lost):
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return [s for s in spans if (s[1] - s[0]) * 10 < (run.end_ns - run.start_ns) * 7]


def _loss(run: Run, rows: PartitionRows, lost: losses.Lost) -> story.Loss:
    return story.Loss(run, rows, lost.offset, lost.end_offset)


def _story(run: Run, rows: Mapping[TopicPartition, PartitionRows], lost: losses.Lost) -> Story:
    loss = _loss(run, rows[lost.partition], lost)
    values = sorted(loss.values)
    return Story(lost.partition, loss.where, _named(values), story.events(loss))


def _named(values: Sequence[int]) -> str:
    """Values in ascending order, in words."""
    if len(values) < 2:
        return str(values[0]) if values else "unknown"
    return f"{values[0]} to {values[-1]} ({len(values):,} values)"


def _logs(run: Run, rows: PartitionRows, place: tuple[TopicPartition, int, int, str]) -> Logs:
    _, offset, end_offset, kinds = place
    return Logs(rows.partition, kinds, replicas.table(run, rows, offset, end_offset))


def _files(directory: Path) -> Iterator[tuple[str, int]]:
    """The files of the run directory and their sizes in bytes, the report itself left out."""
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if path.is_file() and name != "report.html" and not name.startswith("."):
            yield name, path.stat().st_size
