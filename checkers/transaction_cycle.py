"""Transactions are serializable: some order has each read only from those before it.

* ``G1c``: a cycle of transactions each of which read, or wrote after, the one before it, and at least one read.
* ``G0``: a cycle of transactions each of which wrote after the one before it.

One anomaly per set of transactions that follow from each other both ways; it names the first record of one such step,
and the evidence a shortest cycle through it.

Severity: ``VIOLATION`` for a ``G1c`` all of whose steps are reads: consumers read only what is committed, and what is
committed was so before it was read, so no order explains it. ``DOCUMENTED`` for a ``G0``, and for a ``G1c`` that needs
writes to close: Kafka lets transactions that write at the same time interleave, in one partition and between
partitions. ``INDETERMINATE`` when too many transactions are entangled to be followed.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence

from checkers.views.conclusion import Conclusion
from checkers.views.configured import Configured
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
from harness.checker import Evidence
from harness.excuse import Excuse
from harness.facts import ClientFacts, Dependency
from harness.model import TopicPartition

G1C = AnomalyKind(
    name="G1c",
    invariants=("C13",),
    meaning="Transactions that read from, or wrote after, each other in a circle.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset({Needs.VALUES, Needs.ENDS}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)

G0 = AnomalyKind(
    name="G0",
    invariants=("C13",),
    meaning="Transactions that wrote after each other in a circle.",
    shows_loss=False,
    shown_by_clients=True,
    relies_on=frozenset({Needs.VALUES, Needs.ENDS}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (G1C, G0)

_DID = {
    "ww": "wrote value {value} at offset {offset} of {place} after it",
    "wr": "read value {value} of it at offset {offset} of {place}",
    "wwr": "read value {value} at offset {offset} of {place}, which was written after it",
}
_STEPS_SHOWN = 8

Graph = Mapping[int, Sequence[Dependency]]


def conclude(configured: Configured, client_facts: ClientFacts) -> Iterator[Conclusion]:
    """Every set of transactions of one run that follow from each other both ways."""
    edges = sorted(client_facts.dependencies)
    reads = [edge for edge in edges if edge.kind == "wr"]
    writes = [edge for edge in edges if edge.kind == "ww"]
    read_cycles = _cycles(reads)
    yield from (_concluded(configured, "G1c", cycle, None) for cycle in read_cycles)
    yield from (_concluded(configured, "G0", cycle, "interleaving") for cycle in _cycles(writes))
    seen = {edge.source for cycle in read_cycles for edge in cycle}
    for cycle in _cycles([edge for edge in edges if edge.kind in _DID]):
        read = any(edge.kind != "ww" for edge in cycle)
        if read and not seen & {edge.source for edge in cycle}:
            yield _concluded(configured, "G1c", cycle, "interleaving")
    for edge in edges:
        if edge.kind == "entangled":
            yield Conclusion(
                configured.finding("G1c", TopicPartition(edge.topic, edge.partition), row=edge.row, excuse="entangled"),
                "So many transactions read from each other at one time that not all were followed.",
                (),
            )


def _concluded(configured: Configured, kind: str, cycle: Sequence[Dependency], excuse: Excuse | None) -> Conclusion:
    """``cycle``: every step within a set of transactions that follow from each other."""
    first = next((edge for edge in cycle if edge.kind != "ww"), cycle[0])
    steps = [first, *_way(cycle, first.target, first.source)]
    place = TopicPartition(first.topic, first.partition)
    number = len({edge.source for edge in cycle})
    verbs = "read from, or wrote after," if kind == "G1c" else "wrote after"
    return Conclusion(
        configured.finding(
            kind, place, offset=first.offset, value=first.value, row=first.row, process=first.process, excuse=excuse
        ),
        f"{number} transactions each {verbs} another of them: no order of them explains what they did.",
        tuple(Evidence("history", {"index": step.row}, _sentence(step)) for step in steps[:_STEPS_SHOWN]),
    )


def _sentence(step: Dependency) -> str:
    did = _DID[step.kind].format(value=step.value, offset=step.offset, place=TopicPartition(step.topic, step.partition))
    return f"operation {step.target} (process {step.process}) follows from operation {step.source}: it {did}"


def _way(edges: Iterable[Dependency], start: int, goal: int) -> list[Dependency]:
    """A shortest way from ``start`` to ``goal``."""
    graph = _graph(edges)
    came: dict[int, Dependency] = {}
    queue = deque([start])
    while queue and goal not in came:
        for edge in graph[queue.popleft()]:
            if edge.target not in came and edge.target != start:
                came[edge.target] = edge
                queue.append(edge.target)
    way: list[Dependency] = []
    while goal != start:
        way.append(came[goal])
        goal = came[goal].source
    return way[::-1]


def _graph(edges: Iterable[Dependency]) -> Mapping[int, list[Dependency]]:
    found: dict[int, list[Dependency]] = defaultdict(list)
    for edge in edges:
        found[edge.source].append(edge)
    return found


def _cycles(edges: Sequence[Dependency]) -> list[list[Dependency]]:
    """The edges within each strongly connected component of two nodes or more."""
    component = _components(_graph(edges))
    found: dict[int, list[Dependency]] = defaultdict(list)
    for edge in edges:
        if component[edge.source] == component[edge.target]:
            found[component[edge.source]].append(edge)
    return [found[root] for root in sorted(found)]


def _components(graph: Mapping[int, Sequence[Dependency]]) -> dict[int, int]:
    """By node, the lowest node of its strongly connected component (Tarjan's algorithm, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    found: dict[int, int] = {}
    for root in sorted(graph):
        work = [(root, 0)] if root not in index else []
        while work:
            node, at = work.pop()
            if at == 0:
                index[node] = low[node] = len(index)
                stack.append(node)
            followers = graph.get(node, ())
            while at < len(followers) and followers[at].target in index:
                target = followers[at].target
                low[node] = min(low[node], low[node] if target in found else index[target])
                at += 1
            if at < len(followers):
                work += [(node, at + 1), (followers[at].target, 0)]
                continue
            if low[node] == index[node]:
                members = stack[stack.index(node) :]
                del stack[stack.index(node) :]
                found |= dict.fromkeys(members, min(members))
            if work:
                parent = work[-1][0]
                low[parent] = min(low[parent], low[node])
    return found
