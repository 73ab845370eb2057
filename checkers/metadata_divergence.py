"""The controller's decisions about a partition are one sequence, which all controllers and brokers follow.

Every decision about a partition has a number of its own, its partition epoch, and with it the leader epoch, the leader
and the ISR that were decided.

* ``metadata-divergence``: rows give two different contents for one partition epoch: decisions of one controller, or of
  controllers one after the other, and the states of brokers that follow them (T14). A broker acts on what was never
  decided, or a controller has forgotten a decision and replaced it by another. One anomaly for each partition epoch,
  about the first row that differs. A controller that starts again records what it remembers of each partition, and its
  eligible leader replicas have to be the same, too (KIP-966). Partition epoch 0, in which a partition begins, is judged
  where the controller records why it decided.

For real Kafka the decisions are read from a log in which each has its number by counting, and brokers do not report
theirs. There the metadata logs are compared like every other log (see :mod:`checkers.replica_divergence`,
:mod:`checkers.lineage_break`, :mod:`checkers.epoch_regression` and :mod:`checkers.defective_log`; their topic is
``__cluster_metadata``), and so is what their leaders committed (see :mod:`checkers.hw_regression`).

Severity: ``VIOLATION``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain

from checkers.views.conclusion import Conclusion, cite, detail, seen_at
from checkers.views.configured import Configured
from checkers.views.states import States
from harness.anomaly import (
    NO_WORD,
    NOTHING,
    AnomalyKind,
    CauseAt,
    Found,
    Needs,
    Sampled,
    Unseen,
)
from harness.facts import StateInterval
from harness.model import CONTROLLER_ID, TopicPartition

METADATA_DIVERGENCE = AnomalyKind(
    name="metadata-divergence",
    invariants=("T14",),
    meaning="Two rows give different contents for one decision of the controller.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.ISR}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (METADATA_DIVERGENCE,)


def conclude(states: States, configured: Configured) -> Iterator[Conclusion]:
    """Every breach in one run."""
    for place in sorted({*states.reported, *states.decided}):
        reported = (x for intervals in states.reported.get(place, {}).values() for x in intervals if x.kind == "state")
        versions: dict[int, list[StateInterval]] = defaultdict(list)
        decided = states.decided.get(place, ())
        first = 0 if any(one.partition_epoch == 0 and "cause" in detail(one) for one in decided) else 1
        for one in sorted(chain(decided, reported), key=_when):
            if one.partition_epoch is not None and one.partition_epoch >= first and _content(one) is not None:
                versions[one.partition_epoch].append(one)
        for rows in versions.values():
            yield from _differing(configured, place, rows)


def _differing(configured: Configured, place: TopicPartition, rows: Sequence[StateInterval]) -> Iterator[Conclusion]:
    first, other = rows[0], next((one for one in rows if _content(one) != _content(rows[0])), None)
    if other is None:
        first, other = _forgotten(rows)
    if other is not None:
        yield Conclusion(
            configured.finding(
                "metadata-divergence", place,
                leader_epoch=other.leader_epoch, other_node=first.node, **seen_at(other),
            ),
            f"Partition epoch {first.partition_epoch} is {_words(first)} to {_who(first)}, and {_words(other)} to "
            f"{_who(other)}.",
            tuple(cite(one, f"{_who(one)} has: {_words(one)}") for one in (first, other)),
        )  # fmt: skip


def _forgotten(rows: Sequence[StateInterval]) -> tuple[StateInterval, StateInterval | None]:
    """A decision, and the first row of the controller's that names other eligible leader replicas; None: none does."""
    decided = [one for one in rows if one.node == CONTROLLER_ID]
    others = (one for one in decided if _eligible(one) != _eligible(decided[0]))
    return (decided or rows)[0], next(others, None)


def _eligible(one: StateInterval) -> tuple[list[int], list[int]]:
    """The eligible leader replicas, and the last known ones, of a decision."""
    rows = detail(one)
    return sorted(rows.get("elr") or ()), sorted(rows.get("last_known_elr") or ())


def _content(one: StateInterval) -> tuple[int, int, tuple[int, ...]] | None:
    """What was decided; None: the row does not have all of it."""
    if one.leader_epoch is None or one.leader is None or one.isr is None:
        return None
    return one.leader_epoch, one.leader, tuple(sorted(one.isr))


def _when(one: StateInterval) -> tuple[int, int, int, int]:
    return one.begin_ns, one.node, one.incarnation, one.sequence


def _words(one: StateInterval) -> str:
    eligible, known = _eligible(one)
    beside = f", eligible beside it {eligible}" if eligible else ""
    beside += f", last known to be {known}" if known else ""
    return f"leader {one.leader} in epoch {one.leader_epoch} with an ISR of {list(one.isr or ())}{beside}"


def _who(one: StateInterval) -> str:
    return "the controller" if one.node == CONTROLLER_ID else f"node {one.node}"
