"""A replica cuts nothing that is committed off its log (R10).

``committed-cut``: a truncation removed offsets that are known to have been committed. Of what a replica cuts, the
timeline says the offsets, not the records; a tail that never was committed may, and must, be cut. So a cut offset
counts only when the record is known to be the committed one, which it is when the replica had got it in leader epoch
e (while it followed the leader of e, or led), and

* the leader of e is known to have had a high watermark above the offset in that epoch, before the cut; or
* the replica itself had a high watermark above the offset, when it had the record.

What a power loss takes is no truncation. That the record is fetched again afterwards makes it no loss, but while it
is gone there is a copy less than everybody relies on, and the next election may make it one.

Severity: ``VIOLATION``. ``DOCUMENTED`` when an unclean election gave it up (see :mod:`checkers.forks`) and the
configuration permits such elections; and in generations before 2.0.1, whose followers cut by their own watermark or
look an epoch up only once: there the danger is known, and the loss, where it comes to one, is found for itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from checkers.conclusion import Conclusion, RunFacts, age, cite, detail, seen_at
from checkers.copies import Copy, copies
from harness.checker import Evidence
from harness.model import TopicPartition
from spark_analysis.facts import Stretch

KINDS = ("committed-cut",)


class _Proof(NamedTuple):
    """That a copy had been committed up to an offset, and the row that says so."""

    end: int
    evidence: Evidence


def conclude(run: RunFacts) -> Iterator[Conclusion]:
    """Every breach in one run: for each cut the lowest offset that is known to have been committed."""
    for place, nodes in run.told.items():
        led = _leaders(nodes.values())
        for ours in nodes.values():
            cuts: dict[Stretch, list[Copy]] = {}
            for copy in copies(ours, run.faults):
                if copy.lost is not None and copy.event in ("truncation", "log_start"):
                    cuts.setdefault(copy.lost, []).append(copy)
            for cut, gone in cuts.items():
                yield from _judged(run, place, cut, gone, [*_watermarks(led, cut), *_own(ours, cut)])


def _leaders(nodes: Iterable[Sequence[Stretch]]) -> list[Stretch]:
    """The stretches in which somebody led."""
    return [one for ours in nodes for one in ours if one.role == "leader" and one.kind == "state"]


def _watermarks(led: Sequence[Stretch], cut: Stretch) -> Iterator[tuple[Stretch, int, int]]:
    """What leaders had committed before a cut: the stretch, the watermark, and the row that says so."""
    for one in led:
        if one.end_ns <= cut.begin_ns:
            yield one, one.high_watermark or 0, one.end_sequence
        elif one.begin_ns <= cut.begin_ns:
            yield one, one.first_high_watermark or 0, one.sequence


def _own(ours: Sequence[Stretch], cut: Stretch) -> Iterator[tuple[Stretch, int, int]]:
    """What the replica itself took for committed before it cut it."""
    for one in ours:
        if age(one) < age(cut) and one.kind == "state" and one.role != "leader":
            yield one, one.high_watermark or 0, one.end_sequence


def _judged(
    run: RunFacts, place: TopicPartition, cut: Stretch, gone: Sequence[Copy], marks: Sequence[tuple[Stretch, int, int]]
) -> Iterator[Conclusion]:
    for copy in sorted(gone, key=lambda c: c.start):
        proof = next(_proofs(copy, marks), None)
        if proof is not None:
            yield _conclusion(run, place, cut, copy, proof)
            return


def _proofs(copy: Copy, marks: Sequence[tuple[Stretch, int, int]]) -> Iterator[_Proof]:
    for said, mark, sequence in marks:
        if mark <= copy.start:
            continue
        end = min(mark, copy.end)
        if said.role == "leader" and said.leader_epoch == copy.leader_epoch:
            says = f"node {said.node} led in epoch {said.leader_epoch} and had committed up to {mark}"
            yield _Proof(end, cite(said, says, sequence))
        elif said.role != "leader" and age(said) >= age(copy.got):
            yield _Proof(end, cite(said, f"node {said.node} had a high watermark of {mark} itself", sequence))


def _conclusion(run: RunFacts, place: TopicPartition, cut: Stretch, copy: Copy, proof: _Proof) -> Conclusion:
    given_up = any(fork.gave_up(copy.leader_epoch, copy.start) for fork in run.forks.get(place, ()))
    reason = detail(cut).get("reason", "no reason given")
    return Conclusion(
        run.finding(
            "committed-cut", place,
            offset=copy.start, until=proof.end, leader_epoch=copy.leader_epoch,
            excuse="unclean" if given_up else None, **seen_at(cut),
        ),
        f"Node {cut.node} cut offsets {copy.start} to {proof.end - 1} off its log ({reason}), which it had got in "
        f"epoch {copy.leader_epoch} and which had been committed.",
        (proof.evidence, cite(cut, f"node {cut.node} cut its log back to {copy.start} ({reason})")),
    )  # fmt: skip
