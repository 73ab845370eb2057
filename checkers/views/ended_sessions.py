"""When a broker's session ends, the controller takes the broker out of leadership and out of the ISR.

The controller records that a session has ended, then its decisions because of that. Its first other row in the same
life shows that it has gone on. If the broker then is still a leader, or in an ISR that has other members (the last
member stays where an ISR may not be empty), the partition is unavailable although other replicas could lead, or waits
for a replica that cannot fetch. A life of the controller that ends before such a row proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from checkers.views.conclusion import age, detail
from checkers.views.states import States
from harness.facts import StateInterval
from harness.model import CONTROLLER_ID

ENDED = frozenset({"expired"})
"""How a session ends: the ``change`` of the controller's row."""

_CONTROL = frozenset({"session", "election", "isr"})


class Neglected(NamedTuple):
    """A session whose end the controller has not acted on.

    Attributes:
        broker: whose session it was.
        ended: the row of its end. ``kept``: the decision in force afterwards. ``following``: the controller's first
            row that is no consequence of the end.
    """

    broker: int
    ended: StateInterval
    kept: StateInterval
    following: StateInterval


def neglected(states: States, decisions: Sequence[StateInterval]) -> Iterator[Neglected]:
    """Every session whose end has had no consequences for the partition of ``decisions``, which are in order."""
    for ended, following in _ended_sessions(states):
        broker = int(detail(ended).get("broker", -1))
        known = [one for one in decisions if age(one) < age(following)]
        kept = known[-1] if known else None
        if kept is None or kept.isr is None:
            continue
        if kept.leader == broker or (broker in kept.isr and len(kept.isr) > 1):
            yield Neglected(broker, ended, kept, following)


def _ended_sessions(states: States) -> Iterator[tuple[StateInterval, StateInterval]]:
    """The row of every session that ended, and the first row of the same life that is no consequence of it."""
    rows = sorted((x for x in states.intervals if x.node == CONTROLLER_ID and x.kind in _CONTROL), key=age)
    for at, ended in enumerate(rows):
        if ended.kind == "session" and detail(ended).get("change") in ENDED:
            following = next((x for x in rows[at + 1 :] if not _is_consequence(x)), None)
            if following is not None and following.incarnation == ended.incarnation:
                yield ended, following


def _is_consequence(row: StateInterval) -> bool:
    details = detail(row)
    return details.get("change") in ENDED or str(details.get("cause", "")).startswith("session of")
