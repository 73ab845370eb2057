"""What is decided of a partition is one sequence of decisions, and everybody goes by that.

Every decision about a partition has a number of its own, its partition epoch, and with the number belongs what was
decided: the leader epoch, the leader and the ISR.

* ``metadata-divergence``: of one partition epoch two different things are said, by whoever: decisions of the
  controller's, or of controllers one after the other, and brokers that were told of them (T14). Somebody acts on what
  nobody decided, or on what the controller has forgotten and replaced by something else. One anomaly for each partition
  epoch, about the first who says otherwise than was said before. Partition epoch 0, in which a partition begins, is
  not judged.

Of a real Kafka the decisions are read from a log in which each has its number by counting, and brokers do not tell
theirs. There the records of the metadata logs themselves are compared, as those of every other log are (see
:mod:`checkers.replicas_agree`, :mod:`checkers.lineages_match`, :mod:`checkers.epochs_only_rise` and
:mod:`checkers.logs_are_whole`; their topic is ``__cluster_metadata``), and what its leaders say is committed (see
:mod:`checkers.watermarks_only_rise`).

Severity: ``VIOLATION``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain

from checkers.conclusion import Conclusion, RunFacts, cite, seen_at
from harness.model import CONTROLLER_ID, TopicPartition
from spark_analysis.facts import Stretch

KINDS = ("metadata-divergence",)


def conclude(run: RunFacts) -> Iterator[Conclusion]:
    """Every breach in one run."""
    for place in sorted({*run.told, *run.decided}):
        told = (x for ours in run.told.get(place, {}).values() for x in ours if x.kind == "state")
        versions: dict[int, list[Stretch]] = defaultdict(list)
        for one in sorted(chain(run.decided.get(place, ()), told), key=_when):
            if one.partition_epoch and one.partition_epoch > 0 and _content(one) is not None:
                versions[one.partition_epoch].append(one)
        for said in versions.values():
            yield from _differing(run, place, said)


def _differing(run: RunFacts, place: TopicPartition, said: Sequence[Stretch]) -> Iterator[Conclusion]:
    first = said[0]
    other = next((one for one in said if _content(one) != _content(first)), None)
    if other is not None:
        yield Conclusion(
            run.finding(
                "metadata-divergence", place,
                leader_epoch=other.leader_epoch, other_node=first.node, **seen_at(other),
            ),
            f"Partition epoch {first.partition_epoch} is {_words(first)} to {_who(first)}, and {_words(other)} to "
            f"{_who(other)}.",
            tuple(cite(one, f"{_who(one)} says: {_words(one)}") for one in (first, other)),
        )  # fmt: skip


def _content(one: Stretch) -> tuple[int, int, tuple[int, ...]] | None:
    """What was decided; None: not all of it is told."""
    if one.leader_epoch is None or one.leader is None or one.isr is None:
        return None
    return one.leader_epoch, one.leader, tuple(sorted(one.isr))


def _when(one: Stretch) -> tuple[int, int, int, int]:
    return one.begin_ns, one.node, one.incarnation, one.sequence


def _words(one: Stretch) -> str:
    return f"leader {one.leader} in epoch {one.leader_epoch} with an ISR of {list(one.isr or ())}"


def _who(one: Stretch) -> str:
    return "the controller" if one.node == CONTROLLER_ID else f"node {one.node}"
