"""What runs were configured to do, and what faults did to them, by run; nothing here needs Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

Log = tuple[str, int, int]
"""A replica's log: topic, partition, node."""


class Demands(NamedTuple):
    """What the configurations of the runs promise, and how their timelines were recorded.

    Attributes:
        sampled: the runs whose timelines consist of samples of the brokers' states.
        at_rest: the runs that promise to come to rest, and in which every fault was healed.
        lag_ns: by run, how long a replica that lags may stay in the ISR; without runs that do not state it.
        min_isr: by run, how large an ISR has to be for acks=all; without runs that do not state it.
        kept_ns: by run, how long at least the coordinator of a group of the classic protocol keeps a member that is
            silent, or does not join again; without runs that do not state it.
        virtual: the runs in virtual time, where the clients are the simulation's own.
        tombstones_stay_ns: by run, how long a compacted log keeps a tombstone after its send at least; without runs in
            which it stays for ever.
    """

    sampled: Sequence[str] = ()
    at_rest: Sequence[str] = ()
    lag_ns: Mapping[str, int] = MappingProxyType({})
    min_isr: Mapping[str, int] = MappingProxyType({})
    kept_ns: Mapping[str, int] = MappingProxyType({})
    virtual: Sequence[str] = ()
    tombstones_stay_ns: Mapping[str, int] = MappingProxyType({})


class Damage(NamedTuple):
    """What faults did to the runs that no broker noticed, and when the last of them was healed.

    Attributes:
        healed_ns: by run, when its last fault was healed; a run without faults is not in it.
        rotten: by run, the logs that a fault has damaged unnoticed: topic, partition and node.
        swapped: by run, the partitions of which a fault has put records of another cluster into a log.
    """

    healed_ns: Mapping[str, int] = MappingProxyType({})
    rotten: Mapping[str, Sequence[Log]] = MappingProxyType({})
    swapped: Mapping[str, Sequence[tuple[str, int]]] = MappingProxyType({})
