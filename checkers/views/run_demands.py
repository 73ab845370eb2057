"""What the configuration of one run promises, and what faults did to it that no broker noticed."""

from __future__ import annotations

from typing import NamedTuple

from harness.model import TopicPartition


class RunDemands(NamedTuple):
    """What the configuration promises.

    Attributes:
        settled: whether the run promises to come to rest, and every fault was healed.
        lag_ns: how long a replica that lags may stay in the ISR; None: the run does not state it.
        min_isr: how large an ISR has to be for acks=all; None: the run does not state it.
        kept_ns: how long at least the coordinator of a group of the classic protocol keeps a member that is silent, or
            does not join again; None: the run does not state it.
        virtual: whether it was in virtual time, where the clients are the simulation's own.
        tombstones_stay_ns: how long a compacted log keeps a tombstone after its send at least; None: for ever.
    """

    settled: bool = False
    lag_ns: int | None = None
    min_isr: int | None = None
    kept_ns: int | None = None
    virtual: bool = False
    tombstones_stay_ns: int | None = None


class RunDamage(NamedTuple):
    """What faults did.

    Attributes:
        healed_ns: when the last fault was healed; None: there was none.
        rotten: the logs that a fault has damaged unnoticed, see :mod:`checkers.views.rotten_logs`: partition and node.
        swapped: the partitions of which a fault has put records of another cluster into a log, see there.
    """

    healed_ns: int | None = None
    rotten: frozenset[tuple[TopicPartition, int]] = frozenset()
    swapped: frozenset[TopicPartition] = frozenset()
