"""What a fault is: aimed, journaled, injected, probed, healed, probed again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Protocol, Self

from harness.target import Capability, ClusterView, Receipt, Target


class Fault(Protocol):
    """One fault, aimed: it knows its nodes and parameters and can be injected and healed any number of times.

    An implementation is a frozen pydantic model, one file in ``faults/``, whose fields are what a scenario may
    write (``{fault: disk_full, node: leader, free_bytes: 4096}``) and which is registered in ``faults/__init__``.
    Selectors such as ``leader``, ``follower`` or ``any`` are resolved by :meth:`aimed`, pure and seeded.
    """

    kind: ClassVar[str]
    needs: ClassVar[Capability]

    def aimed(self, view: ClusterView, seed: int) -> Self:
        """This fault with every selector replaced by the nodes it means in ``view``."""
        ...

    def nodes(self) -> Sequence[str]:
        """The nodes it touches, once aimed."""
        ...

    def claims(self) -> Sequence[str]:
        """What it has to itself while it is in force, once aimed: ``the process of node 1``, ``link 1->0``.

        Two faults that claim the same could not be told apart, and healing one would mend the other.
        """
        ...

    def parameters(self) -> dict[str, Any]:
        """Its fields as plain data, for the journal and the faults table."""
        ...

    def inject(self, target: Target) -> None:
        """Make it so."""
        ...

    def probe(self, target: Target) -> Receipt:
        """Whether it is in effect."""
        ...

    def heal(self, target: Target) -> None:
        """Undo it; harmless when it was never injected."""
        ...

    def probe_healed(self, target: Target) -> Receipt:
        """Whether the node is sound again: ``holds`` is True when the fault is gone."""
        ...
