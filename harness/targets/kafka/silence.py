"""For how long a broker could have been looked at and was not."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

TOLD_NS = 5_000_000_000
"""After how long without a look at a broker that is up a timeline has to tell of it."""


class Silence:
    """Of one broker, as the one who looks at it notes it."""

    def __init__(self) -> None:
        self._known_ns: int | None = None
        self._longest_ns = 0

    def note(self, is_known: bool, now_ns: int) -> None:
        """Take in one attempt; ``is_known``: it has answered, or was down or stopped, which is known as well.

        How long there was no attempt counts, too: the harness itself may have had no time.
        """
        if self._known_ns is not None:
            self._longest_ns = max(self._longest_ns, now_ns - self._known_ns)
        if is_known or self._known_ns is None:
            self._known_ns = now_ns

    def told(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The row, and in its ``detail`` the longest silence since the last row that was told, if it was long."""
        longest_ns, self._longest_ns = self._longest_ns, 0
        if longest_ns <= TOLD_NS:
            return dict(row)
        detail = json.loads(row.get("detail") or "{}")
        return {**row, "detail": json.dumps({**detail, "unseen_ms": longest_ns // 1_000_000})}
