"""A healed cluster comes to rest: one leader, everybody in sync, equal logs (R2, T13).

``stuck``: at the end of a run that promises to settle (``guarantees.settles``) and in which every fault was healed, a
partition has no leader among the replicas, its ISR is not full, or a replica's log does not end where the leader's
does. One anomaly per partition, about the first reason. Kafka promises that a cluster recovers, and not when; so other
runs cannot be stuck: whether a longer wait would have helped, nobody knows.

Severity: ``VIOLATION``. ``DOCUMENTED`` when the replica that is missing was not running at the end: nobody can be in
sync with what is down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from checkers.conclusion import Conclusion, RunFacts, cite, detail, seen_at
from checkers.recovery import comes_to_rest
from harness.model import TopicPartition
from spark_analysis.facts import Stretch

KINDS = ("stuck",)


def conclude(run: RunFacts) -> Iterator[Conclusion]:
    """Every partition of one run that did not come to rest."""
    if not comes_to_rest(run.guarantees, run.faults):
        return
    for place, ends in run.ended.items():
        if len(ends) >= (run.replication(place) or len(ends)):
            yield from _stuck(run, place, ends)


def _stuck(run: RunFacts, place: TopicPartition, ends: Mapping[int, Stretch]) -> Iterator[Conclusion]:
    down = [x for x in ends.values() if detail(x).get("source") == "disk" or x.role == "offline"]
    leaders = [x for x in ends.values() if x.role == "leader" and x not in down]
    if not leaders:
        one, why = next(iter(ends.values())), "nobody leads it"
        says = f"node {one.node} calls itself {one.role or 'nothing'} in the end"
    else:
        leader = max(leaders, key=lambda x: (x.leader_epoch or 0, x.begin_ns, x.node))
        away = sorted(set(ends) - set(leader.isr or ()))
        behind = [x for x in ends.values() if x.log_end_offset != leader.log_end_offset]
        if away:
            one, why = ends[away[0]], f"node {', '.join(map(str, away))} is not in the ISR {list(leader.isr or ())}"
            says = f"node {one.node} is out of sync in the end"
        elif behind:
            one = behind[0]
            why = f"node {one.node}'s log ends at {one.log_end_offset}, the leader's at {leader.log_end_offset}"
            says = f"node {one.node}'s log ends at {one.log_end_offset}"
        else:
            return
    yield Conclusion(
        run.finding(
            "stuck", place, leader_epoch=one.leader_epoch, excuse="down" if one in down else None, **seen_at(one)
        ),
        f"All faults were healed, and {place} did not come to rest: {why}.",
        (cite(one, says),),
    )
