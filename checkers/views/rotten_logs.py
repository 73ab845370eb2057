"""The logs that a ``corrupt_log`` fault damaged where log recovery does not look when their broker starts.

A broker that was shut down cleanly trusts its disk when it starts again. So damage of a ``corrupt_log`` fault with
``clean: true`` stays, and the broker is not to blame. After a crash it has to scan its log and to cut off what is
damaged, also when it died while it loaded its logs (``interrupted``): then the fault explains only the damage itself.

A batch of another cluster in the place of one (``how: foreign``) is valid, of the same offsets and the same leader
epoch: no start has a reason to doubt it, clean or after a crash, nor has a follower that copies it. Where the leader
has records of another epoch at its offsets a follower has to cut it off, as any record.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from checkers.views.row import Row
from faults import traits_of
from harness.fault import DiskEffect
from harness.model import TopicPartition

Rotten = frozenset[tuple[TopicPartition, int]]
"""Partitions, and the nodes on whose disks their logs were damaged."""


def rotten(faults: Sequence[Row]) -> Rotten:
    """The logs that faults have damaged, and that their brokers had reason to trust."""
    found: set[tuple[TopicPartition, int]] = set()
    for fault, harm in _harms(faults):
        unnoticed = harm.get("clean") is True and harm.get("interrupted") is not True
        if unnoticed and harm.get("how") != "foreign":
            found.update((_where(harm), int(node)) for node in fault["nodes"])
    return frozenset(found)


def swapped(faults: Sequence[Row]) -> frozenset[TopicPartition]:
    """The partitions of which a fault has put records of another cluster into a log."""
    return frozenset(_where(harm) for _, harm in _harms(faults) if harm.get("how") == "foreign")


def _harms(faults: Sequence[Row]) -> Iterator[tuple[Row, dict[str, Any]]]:
    for fault in faults:
        if traits_of(fault["kind"]).disk is DiskEffect.DAMAGE and fault["injected_ns"] is not None:
            yield fault, json.loads(fault["parameters"] or "{}")


def _where(harm: dict[str, Any]) -> TopicPartition:
    return TopicPartition(harm.get("topic", ""), harm.get("partition", 0))
