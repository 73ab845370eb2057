"""Reads from a fault's proof what the fault took from a replica's log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from harness.fault import DiskEffect
from harness.model import TopicPartition

_VERBS: Final[Mapping[DiskEffect, str]] = MappingProxyType(
    {DiskEffect.UNFLUSHED: "dropped", DiskEffect.DAMAGE: "damaged"}
)
_EMPTY: Final = "its disk is empty"
"""The words of a wiped disk's proof."""


def taken(disk: DiskEffect, proof: str | None, partition: TopicPartition) -> str | None:
    """In words what a fault with this effect took of a partition's log: ``dropped ledger-0/0.log (106 bytes)``.

    A power loss names the first of the files of which something was lost, so that more may have been; a wiped disk is
    empty. None: the proof does not name this log.
    """
    if disk is DiskEffect.EVERYTHING:
        return "emptied the disk" if _EMPTY in (proof or "") else None
    if disk not in _VERBS:
        return None
    pieces = [piece.partition(" and ")[0].strip() for piece in re.split(r"[;,]\s|:\s", proof or "")]
    mine = [piece for piece in pieces if piece.startswith((f"{partition}/", f"{partition} at "))]
    return f"{_VERBS[disk]} {', '.join(mine)}" if mine else None
