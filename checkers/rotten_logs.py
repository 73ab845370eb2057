"""Which logs a fault has damaged so that no start of their broker has to notice.

A broker that was shut down in good order trusts what it finds on its disk when it starts again. What a ``corrupt_log``
fault with ``clean: true`` did to a log meanwhile therefore stays, and the broker is not to blame. After a crash it has
to scan its log and to cut off what is damaged, also when it died while it loaded its logs (``interrupted``): then
nothing is put down to the fault but the damage itself.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from checkers.rows import Row
from harness.model import TopicPartition

Rotten = frozenset[tuple[TopicPartition, int]]
"""Partitions, and the nodes on whose disks their logs were damaged."""


def rotten(faults: Sequence[Row]) -> Rotten:
    """The logs that faults have damaged, and that their brokers had reason to trust."""
    found: set[tuple[TopicPartition, int]] = set()
    for fault in faults:
        if fault["kind"] != "corrupt_log" or fault["injected_ns"] is None:
            continue
        harm = json.loads(fault["parameters"] or "{}")
        if harm.get("clean") is True and harm.get("interrupted") is not True:
            place = TopicPartition(harm.get("topic"), harm.get("partition", 0))
            found.update((place, int(node)) for node in fault["nodes"])
    return frozenset(found)
