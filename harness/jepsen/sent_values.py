"""A compact set of the values that a history has sent to each key."""

from __future__ import annotations

from collections import defaultdict

_BLOCK_BITS = 6
_WITHIN = (1 << _BLOCK_BITS) - 1


class SentValues:
    """A bit for each value of a key, 64 to a block.

    The values of a key mostly ascend, so that blocks are full; a scattered value needs a block of its own, which takes
    little more than an entry of a set.
    """

    def __init__(self) -> None:
        self._blocks: dict[int, dict[int, int]] = defaultdict(dict)

    def add(self, key: int, value: int) -> bool:
        """Note that ``value`` is sent to ``key``; returns whether that is the first time."""
        blocks, block, bit = self._blocks[key], value >> _BLOCK_BITS, 1 << (value & _WITHIN)
        known = blocks.get(block, 0)
        blocks[block] = known | bit
        return not known & bit
