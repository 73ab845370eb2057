"""The base of faults of a single node: it resolves the node at which they are aimed."""

from __future__ import annotations

from typing import Any, Self

from pydantic import BaseModel, ConfigDict

from harness.model import is_broker
from harness.selection import Selector, aim
from harness.target import ClusterView


class NodeFault(BaseModel):
    """A fault of one node.

    Attributes:
        node: a broker's id, or a selector: ``leader``, ``follower``, ``any``, ``controller``.
        topic: with ``partition``, the one whose leader or follower is meant.
        partition: its number.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    node: Selector
    topic: str | None = None
    partition: int | None = None

    def aimed(self, view: ClusterView, seed: int) -> Self:
        """See :meth:`harness.fault.Fault.aimed`."""
        name = aim(self.node, view, seed, self.topic, self.partition)
        return self.model_copy(update={"node": int(name) if is_broker(name) else name})

    def nodes(self) -> list[str]:
        """See :meth:`harness.fault.Fault.nodes`."""
        return [self.name]

    def claims(self) -> list[str]:
        """See :meth:`harness.fault.Fault.claims`. What starts, stops or ends a process has it to itself."""
        return [f"the process of node {self.name}"]

    def parameters(self) -> dict[str, Any]:
        """See :meth:`harness.fault.Fault.parameters`."""
        return self.model_dump(mode="json", exclude_none=True)

    @property
    def name(self) -> str:
        """The node's name, once aimed."""
        return str(self.node)
