"""A replica cuts nothing that is committed off its log (R10).

``committed-cut``: a truncation removed offsets that are known to have been committed. Of what a replica cuts, the
timeline says the offsets, not the records; a tail that never was committed may, and must, be cut. So a cut offset
counts only when the record is known to be the committed one, which it is when the replica had got it in leader epoch
e (while it followed the leader of e, or led), and

* the leader of e is known to have had a high watermark above the offset in that epoch, before the cut; or
* the replica itself had a high watermark above the offset, when it had the record.

What a power loss takes is no truncation. That the record is fetched again afterwards makes it no loss, but while it
is gone there is a copy less than everybody relies on, and the next election may make it one.

Severity: ``VIOLATION``. ``DOCUMENTED`` when an unclean election began an epoch later than e and the configuration
permits such elections; and in generations before 2.0.1, whose followers cut by their own watermark or look an epoch
up only once: there the danger is known, and the loss, where it comes to one, is found for itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from checkers.conclusion import Conclusion, RunFacts, cite, detail, seen_at
from harness.checker import Evidence
from harness.model import TopicPartition
from spark_analysis.facts import Stretch

KINDS = ("committed-cut",)


class _Part(NamedTuple):
    """Consecutive offsets of a log that the replica got in one leader epoch; ``marked``: up to its own watermark."""

    start: int
    end: int
    leader_epoch: int
    source: Stretch


class _Proof(NamedTuple):
    offset: int
    end: int
    leader_epoch: int
    evidence: Evidence


def conclude(run: RunFacts) -> Iterator[Conclusion]:
    """Every breach in one run."""
    for place, nodes in run.told.items():
        led = _leaders(nodes)
        for ours in nodes.values():
            yield from _cuts(run, place, ours, led)


def _leaders(nodes: dict[int, list[Stretch]]) -> dict[int, list[Stretch]]:
    """The stretches in which somebody led, by leader epoch."""
    found: dict[int, list[Stretch]] = {}
    for ours in nodes.values():
        for one in ours:
            if one.role == "leader" and one.leader_epoch is not None and one.kind == "state":
                found.setdefault(one.leader_epoch, []).append(one)
    return found


def _cuts(
    run: RunFacts, place: TopicPartition, ours: Sequence[Stretch], led: dict[int, list[Stretch]]
) -> Iterator[Conclusion]:
    """Follow what one replica's log holds, and look at each cut."""
    log: list[_Part] = []
    marks: list[Stretch] = []
    for one in ours:
        start, end = _bounds(one, log[-1].end if log else 0)
        if start < end:
            proof = _proof(log, marks, led, one, (start, end))
            if proof is not None:
                yield _conclusion(run, place, one, proof)
            log, marks = _cut(log, start), [m for m in marks if (m.high_watermark or 0) <= start]
        if one.kind == "log_start":
            log = []
        if one.first_log_end is None or one.log_end_offset is None or one.leader_epoch is None:
            continue
        held = log[-1].end if log else None
        if held is None or one.first_log_end < held:
            log = _cut(log, one.first_log_end)
            marks = [m for m in marks if (m.high_watermark or 0) <= one.first_log_end]
            start = one.first_log_end
        else:
            start = held
        # A log end that fell within the stretch was a restart's or a cut's, and those begin a stretch of their own.
        if one.kind == "state" and one.log_end_offset > start:
            log.append(_Part(start, one.log_end_offset, one.leader_epoch, one))
        if one.kind == "state" and one.role in ("leader", "follower"):
            marks.append(one)


def _bounds(one: Stretch, held: int) -> tuple[int, int]:
    """What a row says was removed from the end of a log; nothing for most rows.

    A log that starts anew where it has nothing loses everything: that is a cut if it ends earlier than before.
    """
    if one.kind == "log_start":
        return one.first_log_end or 0, held
    if one.kind != "truncation":
        return 0, 0
    said = detail(one)
    start, end = sorted((int(said.get("from_offset", 0)), int(said.get("to_offset", 0))))
    return start, end


def _cut(log: Sequence[_Part], end: int) -> list[_Part]:
    return [part._replace(end=min(part.end, end)) for part in log if part.start < end]


def _proof(
    log: Sequence[_Part], marks: Sequence[Stretch], led: dict[int, list[Stretch]], cut: Stretch, bounds: tuple[int, int]
) -> _Proof | None:
    """The lowest offset that was cut although it is known to have been committed, and how that is known."""
    for part in log:
        low, high = max(part.start, bounds[0]), min(part.end, bounds[1])
        if low >= high:
            continue
        for said, mark, sequence in _watermarks(led.get(part.leader_epoch, ()), cut.begin_ns):
            if mark > low:
                says = f"node {said.node} led in epoch {part.leader_epoch} and had committed up to {mark}"
                return _Proof(low, min(high, mark), part.leader_epoch, cite(said, says, sequence))
        own = max(marks, key=lambda m: m.high_watermark or 0, default=None)
        if own is not None and (own.high_watermark or 0) > low:
            says = f"node {own.node} had a high watermark of {own.high_watermark} itself"
            upto = min(high, own.high_watermark or 0)
            return _Proof(low, upto, part.leader_epoch, cite(own, says, own.end_sequence))
    return None


def _watermarks(led: Sequence[Stretch], before_ns: int) -> Iterator[tuple[Stretch, int, int]]:
    """What leaders had committed before a time: the stretch, the watermark, and the row that says so."""
    for one in led:
        if one.end_ns <= before_ns:
            yield one, one.high_watermark or 0, one.end_sequence
        elif one.begin_ns <= before_ns:
            yield one, one.first_high_watermark or 0, one.sequence


def _conclusion(run: RunFacts, place: TopicPartition, cut: Stretch, proof: _Proof) -> Conclusion:
    given_up = any(epoch > proof.leader_epoch for epoch in run.unclean.get(place, ()))
    reason = detail(cut).get("reason", "no reason given")
    return Conclusion(
        run.finding(
            "committed-cut", place,
            offset=proof.offset, until=proof.end, leader_epoch=proof.leader_epoch,
            excuse="unclean" if given_up else None, **seen_at(cut),
        ),
        f"Node {cut.node} cut offsets {proof.offset} to {proof.end - 1} off its log ({reason}), which it had got in "
        f"epoch {proof.leader_epoch} and which had been committed.",
        (proof.evidence, cite(cut, f"node {cut.node} cut its log back to {cut.first_log_end} ({reason})")),
    )  # fmt: skip
