"""Finds topics of a run that a cluster answers for no more: Metadata has brokers, and not the topic.

A cluster of which nothing but clients' answers is known may come back without what it stored. Then the final read finds
no log to read. One answer proves nothing, for a broker that has just started may not know all topics yet, so the runner
asks for :data:`ASKED_FOR_S`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from harness.clock import PacedClock
from harness.target import Target

ASKED_FOR_S = 10.0
LEAST_LOOKS = 5
_POLL_S = 1.0


@dataclass(frozen=True, slots=True)
class UnknownTopic:
    """A topic that the run created and that no answer had, with the fields of ``run.json``.

    Attributes:
        topic: its name.
        asked_s: for how many seconds the runner asked.
        looks: how many answers named brokers, and not the topic.
    """

    topic: str
    asked_s: float
    looks: int


def unknown_topics(target: Target, topics: Collection[str], clock: PacedClock) -> Sequence[UnknownTopic]:
    """Those of ``topics`` that no answer of the cluster has, sorted; none as soon as each was in one.

    An answer without brokers does not count: it is none.
    """
    missing, looks, asked_s = set(topics), 0, 0.0
    begun_ns = clock.monotonic_ns()
    while missing and asked_s < ASKED_FOR_S:
        clock.sleep(_POLL_S)
        view = target.view()
        if view.live:
            looks += 1
            missing -= {name.topic for name in view.partitions}
        asked_s = (clock.monotonic_ns() - begun_ns) / 1e9
    return [UnknownTopic(name, asked_s, looks) for name in sorted(missing) if looks >= LEAST_LOOKS]
