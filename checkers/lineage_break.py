"""Two replicas' logs that share a record are the same before it (R1b).

``lineage-break``: two replicas' logs hold records of the same leader epoch at the same offset, and below it, where both
have records, their leader epochs differ. One leader wrote the records that they share, so both must have what came
before these in that leader's log. This is stronger than agreement below the high watermarks: it shows a truncation that
stopped too early before anything is lost. (Two different records of one epoch at one offset are a
``replica-divergence``.) Corrupt records and
missing offsets are not compared.

One anomaly for each offset at which a break begins, whichever the replicas. ``until`` is the offset that they
share.

Severity: ``VIOLATION``. ``DOCUMENTED`` before 2.1, where fetches are not fenced and epochs are not always looked up
to the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from checkers.views.conclusion import Conclusion
from checkers.views.log_epochs import LogEpochs
from harness.anomaly import (
    NO_WORD,
    NOTHING,
    AnomalyKind,
    CauseAt,
    Found,
    Sampled,
    Since,
    Unseen,
)
from harness.checker import Evidence
from harness.facts import LogEpoch
from harness.model import TopicPartition

LINEAGE_BREAK = AnomalyKind(
    name="lineage-break",
    invariants=("R1b", "T14"),
    meaning="Two replicas share records, and differ before them.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset(),
    follows_from=("lost-write", "vanished-read", "replica-divergence"),
    cause_at=CauseAt.RANGE,
    excuses=NOTHING,
    since=Since(
        generation="2.1",
        why_not_before="fetches are not fenced by epoch (KIP-320), nor epochs always looked up to the end",
    ),
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
    shown_by_logs=True,
)
KINDS = (LINEAGE_BREAK,)


def conclude(log_epochs: LogEpochs) -> Iterator[Conclusion]:
    """Every breach in one run."""
    for place, logs in log_epochs.by_replica.items():
        found: dict[int, Conclusion] = {}
        for one, other in combinations(sorted(logs), 2):
            shared = _shared(logs[one], logs[other])
            if shared is None:
                continue
            broken = _broken(logs[one], logs[other], shared.first)
            if broken is not None:
                found.setdefault(broken, _conclusion(log_epochs, place, (one, other), broken, shared))
        yield from found.values()


def _shared(one: Sequence[LogEpoch], other: Sequence[LogEpoch]) -> LogEpoch | None:
    """The newest epoch of which both hold records at the same offsets; ``first`` is the first of these offsets."""
    known = {x.leader_epoch: x for x in other}
    for here in sorted(one, key=lambda x: -x.leader_epoch):
        there = known.get(here.leader_epoch)
        if here.leader_epoch >= 0 and there is not None and here.first <= there.last and there.first <= here.last:
            return here._replace(first=max(here.first, there.first))
    return None


def _broken(one: Sequence[LogEpoch], other: Sequence[LogEpoch], end: int) -> int | None:
    """The first offset below ``end`` at which the two hold records of different epochs."""
    edges = {x.first for x in (*one, *other)} | {x.last + 1 for x in (*one, *other)}
    for offset in sorted(edge for edge in edges if edge < end):
        epoch, other_epoch = _epoch_at(one, offset), _epoch_at(other, offset)
        if epoch is not None and other_epoch is not None and epoch != other_epoch:
            return offset
    return None


def _epoch_at(log: Sequence[LogEpoch], offset: int) -> int | None:
    """The epoch of the record at ``offset``; None: there is none, or more than one."""
    found = [x.leader_epoch for x in log if x.first <= offset <= x.last]
    return found[0] if len(found) == 1 and found[0] >= 0 else None


def _conclusion(
    log_epochs: LogEpochs, place: TopicPartition, nodes: tuple[int, int], offset: int, shared: LogEpoch
) -> Conclusion:
    about: dict[str, int | str] = {"topic": place.topic, "partition": place.partition}
    epochs = {node: _epoch_at(log_epochs.by_replica[place][node], offset) for node in nodes}
    return Conclusion(
        log_epochs.finding(
            "lineage-break", place,
            offset=offset, until=shared.first, leader_epoch=shared.leader_epoch, node=nodes[0], other_node=nodes[1],
        ),
        f"Nodes {nodes[0]} and {nodes[1]} share records of epoch {shared.leader_epoch} from offset {shared.first} on, "
        f"and at offset {offset} one has a record of epoch {epochs[nodes[0]]}, the other one of {epochs[nodes[1]]}.",
        tuple(
            Evidence(
                "replica_logs", {"node": node, **about, "offset": offset},
                f"node {node}'s log holds a record of epoch {epochs[node]} at offset {offset}",
            )
            for node in nodes
        ),
    )  # fmt: skip
