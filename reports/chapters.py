"""Prepares an incident for the page: what was promised, what happened, where, to which records, and what shows it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from markupsafe import Markup

from harness.anomaly import LOST_WRITE
from harness.checker import Anomaly, offsets
from harness.model import TopicPartition
from reports import glossary, lost_records, replicas, story
from reports.exhibits import Exhibit, evidence, exhibits, times_of
from reports.incidents import Incident, Piece
from reports.lost_range import Loss
from reports.records import Record, records
from reports.run import PartitionRows, Run, partition_of
from reports.scale import NS
from reports.sentences import count

_NEAR: Final = 6
"""Places of anomalies at most this many offsets apart share one table of logs."""
_PLACES: Final = 12
"""How many places a list names."""
_EXCUSED_TOLD: Final = 2
"""How many incidents are told in full where all are excused."""


@dataclass(frozen=True, slots=True)
class Detail:
    """How much a report shows.

    Attributes:
        strips: partitions with a time strip.
        bins: points of a line and ticks of a row across a strip.
        told: incidents with a story, logs and a close-up, each with as many as ``stories``.
        examples: anomalies of one kind of an incident with their evidence.
        records: records of an incident in its table.
    """

    strips: int
    bins: int
    told: int
    stories: int
    examples: int
    records: int


@dataclass(frozen=True, slots=True)
class Told:
    """A lost range and what happened to it."""

    id: str
    partition: TopicPartition
    where: str
    values: Markup
    events: Sequence[story.Event]


@dataclass(frozen=True, slots=True)
class Logs:
    """Replica logs around a place."""

    partition: TopicPartition
    kinds: str
    table: replicas.LogTable


@dataclass(frozen=True, slots=True)
class Example:
    """An anomaly with its evidence."""

    anomaly: Anomaly
    where: str
    exhibits: Sequence[Exhibit]


@dataclass(frozen=True, slots=True)
class Consequence:
    """Everything of one kind that follows, or that shows the same records from another side."""

    kind: str
    count: int
    places: Sequence[str]
    places_hidden: int
    examples: Sequence[Example]


@dataclass(frozen=True, slots=True)
class Chapter:
    """An incident; what is left out is counted.

    Attributes:
        closeup: the partition and the time of its picture; None: it has none.
    """

    incident: Incident
    title: str
    promise: str
    happened: str
    cause: Sequence[str]
    places: Sequence[str]
    places_hidden: int
    stories: Sequence[Told]
    stories_hidden: int
    logs: Sequence[Logs]
    logs_hidden: int
    closeup: tuple[TopicPartition, int, int] | None
    examples: Sequence[Example]
    examples_hidden: int
    consequences: Sequence[Consequence]
    records: Sequence[Record]
    records_hidden: int

    @property
    def fault(self) -> str | None:
        """The last fault before the loss."""
        return next((one.fault for one in self.incident.stories if one.fault is not None), None)


@dataclass(frozen=True, slots=True)
class Sources:
    """Where chapters are read from: the run, and by partition its rows and its acknowledged sends."""

    run: Run
    rows_of: Callable[[TopicPartition], PartitionRows]
    sends_of: Callable[[TopicPartition], lost_records.Acknowledged]


def chapters(sources: Sources, found: Sequence[Incident], detail: Detail) -> Sequence[Chapter]:
    """One chapter an incident; only the first ones are told in full."""
    grave = [incident.number for incident in found if not incident.is_excused]
    told = (grave or [incident.number for incident in found[:_EXCUSED_TOLD]])[: detail.told]
    return [_chapter(sources, incident, detail, told=incident.number in told) for incident in found]


def title(incident: Incident) -> str:
    """What happened, in a few words."""
    if incident.kind == LOST_WRITE:
        return f"{count(incident.count, 'acknowledged write')} lost"
    return f"{incident.count:,} \N{MULTIPLICATION SIGN} {incident.kind}" if incident.count > 1 else incident.kind


def place(partition: TopicPartition | None, offset: int | None, end_offset: int | None) -> str:
    """A place in words; the end is exclusive."""
    if partition is None:
        return "the cluster"
    if offset is None or end_offset is None:
        return str(partition)
    return f"{partition} at {offsets(offset, end_offset)}"


def _chapter(sources: Sources, incident: Incident, detail: Detail, *, told: bool) -> Chapter:
    run, lost = sources.run, lost_records.lost(incident)
    stories = _stories(sources, incident, lost[: detail.stories if told else 0])
    spans = _spans(incident)
    drawn = detail.stories if told and "replica_logs" not in run.left_out else 0
    logs = [_logs(sources, span) for span in spans[:drawn]]
    own = [piece for piece in incident.roots if piece.kind == incident.kind]
    examples = [a for piece in own for a in piece.examples]
    shown = list(islice(records(incident, sources.sends_of), detail.records))
    mine = [one for one in shown if one.kind == incident.kind]
    first = examples[0] if examples else None
    head = _examples(run, incident, examples[: detail.examples if told else 1], f"incident-{incident.number}")
    return Chapter(
        incident=incident,
        title=title(incident),
        promise=glossary.promise(incident.kind) or glossary.meaning(incident.kind),
        happened=first.why if first else glossary.meaning(incident.kind),
        cause=_cause(incident, first),
        places=_places(own[:_PLACES]),
        places_hidden=len(own[_PLACES:]),
        stories=[one for one, _ in stories],
        stories_hidden=len(lost) - len(stories),
        logs=logs,
        logs_hidden=len(spans) - len(logs),
        closeup=_closeup(run, [loss for _, loss in stories], head) if told else None,
        examples=head,
        examples_hidden=incident.count - len(head),
        consequences=[_consequence(run, incident, kind, of, told=told) for kind, of in incident.by_kind().items()],
        records=mine,
        records_hidden=incident.count - sum(one.count for one in mine),
    )


def _cause(incident: Incident, first: Anomaly | None) -> Sequence[str]:
    """The checker's own words on what took the records, and on the verdict."""
    words = [one.words for one in incident.stories[:1]]
    if len(incident.stories) > 1:
        more, fault = count(len(incident.stories) - 1, "more lost range"), incident.stories[0].fault
        words.append(f"The same fault came before {more} of it." if fault else f"No fault came before {more} of it.")
    whose = [first.attribution.words] if first and first.attribution else []
    return [*words, *([first.because] if first and first.because else []), *whose]


def _places(found: Sequence[Piece]) -> Sequence[str]:
    """The places of pieces in words, those of a partition together."""
    by_place: dict[str, list[str]] = defaultdict(list)
    for piece in found:
        by_place["the cluster" if piece.partition is None else str(piece.partition)].append(_offsets(piece))
    return [f"{name} {', '.join(where)}".strip() for name, where in by_place.items()]


def _offsets(piece: Piece) -> str:
    many = f" ({piece.count:,})" if piece.count > 1 else ""
    if piece.offset is None or piece.end_offset is None:
        return f"{'' if piece.partition is None else 'without an offset'}{many}".strip()
    if not piece.is_listed:
        return f"{count(piece.ranges, 'more range')} from offset {piece.offset} on{many}"
    return f"{offsets(piece.offset, piece.end_offset)}{many}"


def _stories(sources: Sources, incident: Incident, lost: Sequence[lost_records.Lost]) -> Sequence[tuple[Told, Loss]]:
    found = []
    for number, one in enumerate(lost, 1):
        loss = Loss(sources.run, sources.rows_of(one.partition), one.offset, one.end_offset)
        name = f"incident-{incident.number}-story-{number}"
        values = _values(sources.run, loss)
        found.append((Told(name, one.partition, loss.where, values, story.events(loss)), loss))
    return found


def _values(run: Run, loss: Loss) -> Markup:
    """The values of a lost range in ascending order, in words; without the history, those of the verdict's examples."""
    chip, values = run.names.chip, sorted(loss.values)
    if "history" in run.left_out and values:
        more = loss.end_offset - loss.offset - 1
        return Markup("{} and {:,} more").format(chip(values[0]), more) if more else chip(values[0])
    if len(values) < 2:
        return chip(values[0]) if values else Markup("not known")
    return Markup("{} to {} ({:,} records)").format(chip(values[0]), chip(values[-1]), len(values))


def _spans(incident: Incident) -> Sequence[tuple[TopicPartition, int, int, str]]:
    """Where to show logs: partition, offset, end offset (exclusive), kinds; first where its roots are."""
    at: dict[TopicPartition, list[tuple[int, int, str]]] = defaultdict(list)
    for piece in (*incident.roots, *incident.consequences):
        if piece.partition is not None and piece.is_listed:
            at[piece.partition].append((piece.offset or 0, piece.end_offset or 0, piece.kind))
    places = [(p, *span) for p, spans in sorted(at.items()) for span in _merged(spans)]
    return sorted(places, key=lambda one: (incident.kind not in one[3].split(", "), one[:2]))


def _merged(spans: Sequence[tuple[int, int, str]]) -> Iterator[tuple[int, int, str]]:
    for first, end in lost_records.merged([(first, end) for first, end, _ in spans], _NEAR - 1):
        kinds = {kind for begin, _, kind in spans if first <= begin < end}
        yield first, end, ", ".join(sorted(kinds))


def _logs(sources: Sources, span: tuple[TopicPartition, int, int, str]) -> Logs:
    partition, offset, end_offset, kinds = span
    return Logs(partition, kinds, replicas.table(sources.run, sources.rows_of(partition), offset, end_offset))


def _examples(run: Run, incident: Incident, shown: Sequence[Anomaly], name: str) -> Sequence[Example]:
    times = times_of(run, [piece for a in shown for piece in evidence(a)])
    return [
        Example(a, place(partition_of(a.topic, a.partition), a.offset, None if a.offset is None else a.offset + 1),
                exhibits(a, times, f"{name}-evidence-{number}"))
        for number, a in enumerate(shown, 1)
    ]  # fmt: skip


def _consequence(run: Run, incident: Incident, kind: str, found: Sequence[Piece], *, told: bool) -> Consequence:
    shown = [a for piece in found for a in piece.examples][: 1 if told else 0]
    examples = _examples(run, incident, shown, f"incident-{incident.number}-{kind}")
    places = _places(found[:_PLACES])
    return Consequence(kind, sum(p.count for p in found), places, len(found[_PLACES:]), examples)


def _closeup(run: Run, told: Sequence[Loss], examples: Sequence[Example]) -> tuple[TopicPartition, int, int] | None:
    """Partition and time of the first story, or of the first example's evidence; None if that is most of the run."""
    spans = [(loss.known.partition, *loss.closeup()) for loss in told[:1]]
    for one in examples[:1]:
        partition = partition_of(one.anomaly.topic, one.anomaly.partition)
        times = [shown.time_ns for shown in one.exhibits if shown.time_ns is not None]
        if not spans and partition is not None and times:
            margin = max((max(times) - min(times)) // 8, NS // 4)
            low, high = max(run.start_ns, min(times) - margin), min(run.end_ns, max(times) + margin)
            spans.append((partition, low, high))
    return next((span for span in spans if (span[2] - span[1]) * 10 < (run.end_ns - run.start_ns) * 7), None)


def by_fault(found: Sequence[Chapter]) -> Mapping[str, Sequence[int]]:
    """By fault: the incidents that followed it."""
    named: dict[str, list[int]] = defaultdict(list)
    for one in found:
        if one.fault is not None:
            named[one.fault].append(one.incident.number)
    return named
