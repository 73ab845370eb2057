"""Measures for how long the sampler has not observed a broker that was up."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

UNSEEN_NS = 5_000_000_000
"""From how long on a timeline records that a broker was up and not observed."""


class UnobservedTime:
    """The time without an observation of one broker."""

    def __init__(self) -> None:
        self._known_ns: int | None = None
        self._longest_ns = 0

    def note(self, is_known: bool, now_ns: int) -> None:
        """Record one attempt; ``is_known``: the broker answered, or was down or paused.

        Time without an attempt counts, too: the harness itself may have been starved.
        """
        if self._known_ns is not None:
            self._longest_ns = max(self._longest_ns, now_ns - self._known_ns)
        if is_known or self._known_ns is None:
            self._known_ns = now_ns

    def annotated(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The row, with the longest silence since the last row in its ``detail``, if it was long."""
        longest_ns, self._longest_ns = self._longest_ns, 0
        if longest_ns <= UNSEEN_NS:
            return dict(row)
        detail = json.loads(row.get("detail") or "{}")
        return {**row, "detail": json.dumps({**detail, "unseen_ms": longest_ns // 1_000_000})}
