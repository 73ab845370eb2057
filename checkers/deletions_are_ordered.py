"""DeleteRecords deletes what it is asked to, all of it, and nothing else (KIP-107).

``wrong-deletion``: a leader let a log begin somewhere else than a DeleteRecords of the schedule said (its ``log_start``
row gives that as the reason), so that it deleted too much or too little, or what it had to refuse; or the final
leader's log begins before the offset up to which a leader has said that it had deleted everything. Not judged where the
schedule asks for the high watermark, whose value at the time is not in the evidence. That nothing was deleted is not
judged where a broker of the partition was started again, for where a log begins is written down now and then, and a
start may find an older offset; nor where another leader was elected, which may not have heard of the deletion.

Severity: ``VIOLATION``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from checkers.conclusion import Conclusion, RunFacts, cite, detail, seen_at
from checkers.expected import Order
from harness.model import TopicPartition
from spark_analysis.facts import Stretch

KINDS = ("wrong-deletion",)


def conclude(run: RunFacts) -> Iterator[Conclusion]:
    """Every DeleteRecords of one run that deleted something else."""
    for place, orders in () if run.wanted is None else sorted(run.wanted.orders.items()):
        taken = [one for one in orders if not one.refused]
        asked = [one.before for one in taken if one.before is not None]
        if len(asked) == len(taken):
            yield from _elsewhere(run, place, asked)
        yield from _nowhere(run, place, orders)


def _elsewhere(run: RunFacts, place: TopicPartition, asked: Sequence[int]) -> Iterator[Conclusion]:
    """Logs that began where no order said."""
    for one in (x for ours in run.told.get(place, {}).values() for x in ours if _is_obeying(x)):
        start = one.log_start_offset or 0
        if start not in asked:
            low = max((before for before in asked if before < start), default=0)
            yield _wrong(
                run, place, one, (low, start),
                f"Node {one.node} was asked to delete what lies before {_listed(asked) or 'an offset'} of {place}, "
                f"{'' if asked else 'had to refuse, '}and its log begins at {start}.",
            )  # fmt: skip


def _nowhere(run: RunFacts, place: TopicPartition, orders: Sequence[Order]) -> Iterator[Conclusion]:
    """A leader that has still what a leader had said to have deleted."""
    leaders = [one for one in run.ended.get(place, {}).values() if (one.role, _source(one)) == ("leader", "live")]
    again = any(one.incarnation > 0 for ours in run.told.get(place, {}).values() for one in ours)
    again |= any((one.leader_epoch or 0) > 0 for one in run.decided.get(place, ()))
    before = max((one.before for one in orders if one.obeyed and one.before is not None), default=0)
    for one in leaders if not again else ():
        if one.log_start_offset is not None and one.log_start_offset < before:
            yield _wrong(
                run, place, one, (one.log_start_offset, before),
                f"A leader of {place} said that it had deleted what lies before {before}, and in the end the log of "
                f"node {one.node}, which leads, begins at {one.log_start_offset}.",
            )  # fmt: skip


def _wrong(run: RunFacts, place: TopicPartition, one: Stretch, offsets: tuple[int, int], why: str) -> Conclusion:
    finding = run.finding(
        "wrong-deletion", place, offset=offsets[0], until=offsets[1], leader_epoch=one.leader_epoch, **seen_at(one)
    )
    return Conclusion(finding, why, (cite(one, f"node {one.node}'s log begins at {one.log_start_offset}"),))


def _source(one: Stretch) -> str:
    return str(detail(one).get("source", "live"))


def _is_obeying(one: Stretch) -> bool:
    return one.kind == "log_start" and one.role == "leader" and detail(one).get("reason") == "delete_records"


def _listed(offsets: Sequence[int]) -> str:
    return " and ".join(map(str, sorted(set(offsets))))
