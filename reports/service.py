"""Availability and recovery of each partition: the outages and recoveries in the verdict, as numbers and as a strip."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from harness.checker import Outage
from harness.model import TopicPartition
from reports.lanes.frame import LEFT, Frame, Lane
from reports.run import Run
from reports.scale import NS, seconds
from reports.strip import stacked
from reports.svg import join, text

_ROW = 14.0


@dataclass(frozen=True, slots=True)
class Service:
    """A partition's service to clients.

    Attributes:
        outages: a second or more each in which clients sent and no send was acknowledged.
        out_s: how long these lasted together.
        share: the part of the load's time outside of them; None: the report does not have the history.
        longest_s: the longest of them.
        isr_full_s: from when the last fault was healed until the ISR was full; None: it was not, or there was none.
        first_ack_s: until the first acknowledgement; None likewise.
    """

    partition: TopicPartition
    outages: Sequence[Outage]
    out_s: float
    share: float | None
    longest_s: float
    isr_full_s: float | None
    first_ack_s: float | None


def services(run: Run) -> Sequence[Service]:
    """The service of each partition that the verdict tells of."""
    begin_ns, end_ns = _load(run)
    found = []
    for one in run.verdict.recovery:
        out_s = sum(o.end_ns - o.begin_ns for o in one.outages) / NS
        load_s = (end_ns - begin_ns) / NS
        acked_s = None
        if one.healed_ns is not None and one.first_ack_ns is not None:
            acked_s = (one.first_ack_ns - one.healed_ns) / NS
        share = None if "history" in run.left_out else max(0.0, 1 - out_s / load_s) if load_s else 1.0
        place = TopicPartition(one.topic, one.partition)
        found.append(Service(place, one.outages, out_s, share, one.longest_outage_s, one.isr_full_after_s, acked_s))
    return found


def _load(run: Run) -> tuple[int, int]:
    """When clients sent, from the first send or outage to the last one."""
    sends = run.sends_span()
    spans = [(o.begin_ns, o.end_ns) for one in run.verdict.recovery for o in one.outages]
    spans += [sends] if sends else []
    return min((a for a, _ in spans), default=run.start_ns), max((b for _, b in spans), default=run.start_ns)


def drawn(run: Run, frame: Frame, found: Sequence[Service]) -> Markup:
    """A row for each partition, on bands for the faults, with a bar for each outage."""
    bars, names = [], []
    for row, service in enumerate(found):
        names.append(text(LEFT - 6, row * _ROW + 10, str(service.partition), class_="row-name"))
        for o in service.outages:
            lasted = seconds(o.end_ns - o.begin_ns)
            title = f"{service.partition}: no acknowledgement for {lasted}, {frame.span(o.begin_ns, o.end_ns)}"
            bars.append(frame.bar(o.begin_ns, o.end_ns, row * _ROW + 2, _ROW - 4, class_="out", title=title))
    quiet = [] if bars else [text(LEFT + 2, 10, "no outage", class_="quiet")]
    lane = Lane("no service", _ROW * max(1, len(found)), join(bars, quiet), join(names))
    label = f"Outages: {sum(len(s.outages) for s in found)} on {len(found)} partitions."
    return stacked(frame, [lane], run.faults, label=label)
