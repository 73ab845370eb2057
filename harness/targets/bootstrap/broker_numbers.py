"""The numbers by which seawall calls the brokers of a running cluster: their ids, unless those are too large.

From ``CONTROLLER_ID`` on node ids are those of controllers here, and a cluster may have such ids for brokers: up to
3.x Kafka drew them from 1001 on. Then the brokers are 0, 1, 2 ... in the order of their ids.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.model import CONTROLLER_ID, NO_LEADER, NodeId


class BrokerNumbers:
    """The numbers of some brokers; one that comes up later is given the next.

    Args:
        ids: of the brokers.
        in_their_order: whether the brokers are 0, 1, 2 ... in the order of ``ids``, whatever these are.
    """

    def __init__(self, ids: Iterable[int], *, in_their_order: bool = False) -> None:
        self._ids = list(ids) if in_their_order else sorted(ids)
        self._drawn = in_their_order or (bool(self._ids) and self._ids[-1] >= CONTROLLER_ID)

    @property
    def are_drawn(self) -> bool:
        """Whether they are not the ids."""
        return self._drawn

    def of(self, broker: int) -> NodeId:
        """The number of the broker with this id; of no broker it is ``NO_LEADER``."""
        if broker < 0:
            return NO_LEADER
        if not self._drawn:
            return NodeId(broker)
        if broker not in self._ids:
            self._ids.append(broker)
        return NodeId(self._ids.index(broker))

    def all(self) -> Sequence[NodeId]:
        """That of every broker, in the order of the ids."""
        return [self.of(broker) for broker in self._ids]

    def in_words(self) -> str:
        """What the brokers with which ids are called; empty: they are called by their ids."""
        if not self._drawn:
            return ""
        return ", ".join(f"{broker} is called {self.of(broker)} here" for broker in self._ids)
