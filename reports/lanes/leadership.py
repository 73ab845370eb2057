"""Which broker led in which epoch: the controller's decisions in the first row, then each broker's own role.

Two full bands at the same time are two brokers that both believed they led.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from markupsafe import Markup

from reports.lanes.frame import LEFT, Frame, Lane, Outage, ends
from reports.rows import Change, State
from reports.run import PartitionRows
from reports.svg import join, tag, text

_ROW = 16.0


class Term(NamedTuple):
    """A stretch in which a node believed that ``leader`` led in ``epoch``; ``leads``: the node is that leader."""

    start_ns: int
    end_ns: int
    leader: int
    epoch: int | None
    leads: bool
    why: str


def lane(frame: Frame, rows: PartitionRows, outages: Sequence[Outage], starts: Mapping[int, Sequence[int]]) -> Lane:
    """One row for the controller if it has rows, one for each broker that holds a replica.

    Args:
        frame: the window.
        rows: the partition.
        outages: when which broker did not run.
        starts: by node: when it was started, ascending; what it believed before is void from then on.
    """
    until = frame.window.end_ns
    claimed = [
        (f"broker {b}", believed(states, until, starts.get(b, ())), b)
        for b, states in sorted(rows.states.items())
        if states
    ]
    reigns = [("controller", decided(rows.changes, until), None)] if any(_elections(rows.changes)) else []
    lines = [
        _line(frame, name, terms, [o for o in outages if o.node == node], number * _ROW)
        for number, (name, terms, node) in enumerate([*reigns, *claimed])
    ]
    rows_named = [*reigns, *claimed]
    names = [text(LEFT - 6, n * _ROW + 11, name, class_="row-name") for n, (name, _, _) in enumerate(rows_named)]
    return Lane("leader, epoch", _ROW * max(1, len(lines)), join(lines), join(names))


def told(frame: Frame, states: Sequence[State]) -> Lane:
    """One row for what clients were told, thin where the leader did not answer."""
    name = "as clients were told"
    terms = [one._replace(why="by Metadata and ListOffsets") for one in believed(states, frame.window.end_ns)]
    return Lane("leader, epoch", _ROW, _line(frame, name, terms, (), 0), text(LEFT - 6, 11, "told", class_="row-name"))


def decided(changes: Sequence[Change], until_ns: int) -> list[Term]:
    """The terms of the leaders that the controller elected."""
    elections = _elections(changes)
    until = ends([e.time_ns for e in elections], until_ns)
    return [
        Term(e.time_ns, end, e.leader, e.leader_epoch, True, _why(e)) for e, end in zip(elections, until, strict=True)
    ]


def believed(states: Sequence[State], until_ns: int, starts: Sequence[int] = ()) -> list[Term]:
    """The terms as a broker saw them, one for each change of its role, leader or epoch; a start ends the one before."""
    firsts = [next(group) for _, group in groupby(states, key=lambda s: (s.role, s.leader, s.leader_epoch))]
    until = ends([s.time_ns for s in firsts], until_ns)
    return [
        Term(s.time_ns, _end(s.time_ns, end, starts), s.leader, s.leader_epoch, s.role == "leader", s.role or "no role")
        for s, end in zip(firsts, until, strict=True)
        if s.leader is not None
    ]


def _end(start_ns: int, end_ns: int, starts: Sequence[int]) -> int:
    restarted_ns = next((t for t in starts if t > start_ns), end_ns)
    return max(start_ns, min(end_ns, restarted_ns))


def _elections(changes: Sequence[Change]) -> list[Change]:
    return [c for c in changes if c.kind == "election"]


def _why(election: Change) -> str:
    kind = {True: "clean election", False: "UNCLEAN election", None: "election"}[election.clean]
    isr = ",".join(map(str, election.isr))
    return f"{kind}, ISR {{{isr}}}" + (f": {election.cause}" if election.cause else "")


def _line(frame: Frame, name: str, terms: Sequence[Term], outages: Sequence[Outage], y: float) -> Markup:
    """A row: bands first, hatching over them, words on top where they fit beside the hatching."""
    seen = [t for t in terms if frame.window.overlaps(t.start_ns, t.end_ns)]
    dark = [o for o in outages if frame.window.overlaps(o.start_ns, o.end_ns)]
    return join(
        [_band(frame, name, term, y) for term in seen],
        [_outage(frame, gap, y + 1, _ROW - 3) for gap in dark],
        [_words(frame, term, dark, y) for term in seen if term.leads],
    )


def _band(frame: Frame, name: str, term: Term, y: float) -> Markup:
    epoch = "unknown epoch" if term.epoch is None else f"epoch {term.epoch}"
    led = "no leader" if term.leader < 0 else f"broker {term.leader} leads"
    title = f"{name}: {led}, {epoch}, {frame.span(term.start_ns, term.end_ns)} ({term.why})"
    colour = frame.colour(term.leader)
    if term.leads:
        return frame.bar(term.start_ns, term.end_ns, y + 1, _ROW - 3, title=title, class_=f"band {colour}")
    return frame.bar(term.start_ns, term.end_ns, y + 6, 3, title=title, class_=f"follows {colour}")


def _words(frame: Frame, term: Term, dark: Sequence[Outage], y: float) -> Markup:
    who = "no leader" if term.leader < 0 else f"b{term.leader}"
    start, end = _widest(_clear(frame, term, dark))
    for words in (f"{who} · epoch {term.epoch}", f"e{term.epoch}"):
        if frame.fits(words, start, end):
            class_ = "label" if term.leader < 0 else "on-band"
            return text(frame.x(start) + 3, y + 11, words, class_=class_)
    return Markup("")


def _clear(frame: Frame, term: Term, dark: Sequence[Outage]) -> Iterator[tuple[int, int]]:
    """The stretches of a term inside the window that no outage covers."""
    start, until = max(term.start_ns, frame.window.start_ns), min(term.end_ns, frame.window.end_ns)
    for gap in sorted(dark, key=lambda o: o.start_ns):
        if gap.end_ns > start and gap.start_ns < until:
            yield start, max(start, gap.start_ns)
            start = gap.end_ns
    yield start, max(start, until)


def _widest(spans: Iterable[tuple[int, int]]) -> tuple[int, int]:
    return max(spans, key=lambda span: span[1] - span[0])


def _outage(frame: Frame, gap: Outage, y: float, height: float) -> Markup:
    """A hatched stretch over a broker's row: it did not run, whatever it had believed."""
    title = f"broker {gap.node} {gap.word}, {frame.span(gap.start_ns, gap.end_ns)}"
    kind = "paused" if gap.is_alive else "dead"
    start, end = max(gap.start_ns, frame.window.start_ns), min(gap.end_ns, frame.window.end_ns)
    ground = frame.bar(start, end, y, height, class_=f"ground {kind}-ground")
    hatch = frame.bar(start, end, y, height, class_=f"outage {kind}")
    words = [text(frame.x(start) + 4, y + 10, gap.word, class_="label")] if frame.fits(gap.word, start, end) else []
    return tag("g", ground, hatch, *words, title=title)
