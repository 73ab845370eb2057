"""The interface of a fault, which is aimed, journaled, injected, probed, healed and probed again, and its traits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

from harness.target import ClusterView, Receipt, Target


class ProcessEffect(Enum):
    """What a fault does to the process of each of its nodes, from injection until healing."""

    NONE = "it runs on"
    PAUSES = "it stands still"
    ENDS = "it has ended; healing starts it again"
    MAY_END = "it may end, and healing starts it again then"


class DiskEffect(Enum):
    """What a fault may take from the logs of its nodes."""

    NOTHING = "every byte that was written stays"
    UNFLUSHED = "what had not been flushed to the disk is gone"
    EVERYTHING = "the disk is empty"
    DAMAGE = "bytes of one log are wrong or missing, and stay so until a broker reads them"
    DIRECTORY = "the logs of one directory are out of reach, and gone if the directory is replaced"
    NEW_WRITES = "what is written while the fault is in force may be kept in part, or not at all"


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultTraits:
    """What is true of every fault of one kind; code that treats kinds differently reads it.

    Attributes:
        process: what it does to a node's process. A fault that is not ``NONE`` is healed before those that are, because
            a node that does not run answers nothing.
        disk: what it may take from a node's logs. It decides the fault budget and what excuses a loss.
        cuts_links: whether it is aimed at the links between nodes, and not at nodes.
        moves_clock: whether a node's clock is wrong while it is in force; it then is a :class:`ClockFault`. Such a
            fault takes no broker away, so that chaos lets others begin meanwhile.
        shown_as: what reports write over the time in which a broker does not run; None: it does run.
        column: the column of the detection matrix with how well bugs are found under it; None: it was not measured.
        column_on_controller: the same for a controller that is no broker.
    """

    process: ProcessEffect
    disk: DiskEffect
    cuts_links: bool
    moves_clock: bool
    shown_as: str | None
    column: str | None
    column_on_controller: str | None

    @property
    def affects_process(self) -> bool:
        """Whether a node's process does not run while the fault is in force, or may end at any moment."""
        return self.process is not ProcessEffect.NONE

    @property
    def stops_process(self) -> bool:
        """Whether a node's process certainly does not run while the fault is in force."""
        return self.process in (ProcessEffect.PAUSES, ProcessEffect.ENDS)

    @property
    def takes_from_disk(self) -> bool:
        """Whether a broker's disk may hold less afterwards than the broker had written before."""
        return self.disk not in (DiskEffect.NOTHING, DiskEffect.NEW_WRITES)


class Fault(Protocol):
    """One fault, aimed: it knows its nodes and parameters and can be injected and healed any number of times.

    An implementation is a frozen pydantic model, one file in ``faults/``, whose fields are what a scenario may
    write (``{fault: disk_full, node: leader, free_bytes: 4096}``) and which is registered in ``faults/__init__``.
    ``needs`` is the protocol of :mod:`harness.controls` that a target has to support. The methods are given such a
    target, and their argument has that type.

    Selectors such as ``leader``, ``follower`` or ``any`` are resolved by :meth:`aimed`, pure and seeded.
    """

    kind: ClassVar[str]
    traits: ClassVar[FaultTraits]
    needs: ClassVar[type[Target]]

    def aimed(self, view: ClusterView, seed: int) -> Self:
        """This fault with every selector replaced by the nodes it means in ``view``."""
        ...

    def nodes(self) -> Sequence[str]:
        """The nodes it touches, once aimed."""
        ...

    def claims(self) -> Sequence[str]:
        """What it alone may use while it is in force, once aimed: ``the process of node 1``, ``link 1->0``.

        Two faults that claim the same could not be distinguished, and healing one would mend the other.
        """
        ...

    def parameters(self) -> dict[str, Any]:
        """Its fields as plain data, for the journal and the faults table."""
        ...

    def inject(self, target: Any) -> None:
        """Put it in force."""
        ...

    def probe(self, target: Any) -> Receipt:
        """Whether it is in effect."""
        ...

    def heal(self, target: Any) -> None:
        """Undo it; harmless when it was never injected."""
        ...

    def probe_healed(self, target: Any) -> Receipt:
        """Whether the node is sound again: ``holds`` is True when the fault is gone."""
        ...


@runtime_checkable
class ClockFault(Protocol):
    """What a fault that moves clocks tells besides."""

    @property
    def clock_error_ms(self) -> float:
        """By how much a node's clock is off at most while it is in force, in milliseconds, either way."""
        ...


def nodes_named_by(fault: Fault, fields: Iterable[str]) -> Sequence[int | str]:
    """The nodes in these fields of ``fault``, also in lists of lists, such as links."""
    return list(_flat(fault.parameters().get(name) for name in fields))


def _flat(values: Iterable[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, (list, tuple)):
            yield from _flat(value)
        else:
            yield value
