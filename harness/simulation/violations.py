"""The violation of an invariant, as the witness reports it."""

from __future__ import annotations

from typing import NamedTuple

from harness.checker import Verdict
from harness.model import Offset

LOST = "lost-write"
"""A record that was acknowledged is not in the final leader's log at its acknowledged offset."""
VANISHED = "vanished-read"
"""A record that a consumer was given is not in the final leader's log where it was."""
DIVERGED = "replica-divergence"
"""In the end, two replicas hold different records at an offset below both their high watermarks."""
REGRESSED = "hw-regression"
"""A leader took office without a record that had been committed."""
UNJUSTIFIED = "unjustified-ack"
"""An acknowledgement that the state of the cluster did not warrant."""
STUCK = "stuck"
"""All faults had been mended, and the cluster did not come to rest."""
EXITED = "exited"
"""The protocol made a broker shut down."""
DANGER = "danger"
"""Nothing is lost yet, but a promise that prevents loss is broken."""

BROKEN_CORE = "broken-core"
"""An assertion of the replication core about itself failed."""

GRAVEST_FIRST = (BROKEN_CORE, LOST, DIVERGED, VANISHED, REGRESSED, UNJUSTIFIED, STUCK, EXITED, DANGER)


class Violation(NamedTuple):
    """One breach of one invariant.

    Attributes:
        invariant: its id: R1 to R10 about logs, T1 to T14 about watermarks and epochs, C1 and C8 about clients, or
            ``checkers``; see ``docs/simulation.md``.
        kind: one of the words above, or a kind of the checkers'.
        offset: where; None: nowhere in particular.
        value: the record that was acknowledged or delivered; None: no particular one.
        nodes: the replicas concerned.
        event: how many things had happened before.
        verdict: VIOLATION, unless the configuration gave it away.
    """

    invariant: str
    kind: str
    offset: Offset | None
    value: int | None
    nodes: tuple[int, ...]
    time_ns: int
    event: int
    verdict: Verdict
    why: str

    def __str__(self) -> str:
        place = "" if self.offset is None else f" at offset {self.offset}"
        nodes = f", broker {', '.join(map(str, self.nodes))}" if self.nodes else ""
        when = f"{self.time_ns / 1e6:.3f} ms (event {self.event})"
        return f"{self.invariant} {self.kind}{place}{nodes}, {when}: {self.why}"


def gravest(violations: tuple[Violation, ...]) -> Violation | None:
    """The first violation of the gravest kind that nothing excuses; None: there is none."""
    unexcused = [one for one in violations if one.verdict is Verdict.VIOLATION]
    return min(unexcused, key=lambda one: _gravity(one.kind), default=None)


def _gravity(kind: str) -> int:
    """Where a kind stands among :data:`GRAVEST_FIRST`; one of the checkers alone is as an unjustified ack."""
    return GRAVEST_FIRST.index(kind if kind in GRAVEST_FIRST else UNJUSTIFIED)
