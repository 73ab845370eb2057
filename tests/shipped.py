"""Which of the shipped scenarios are not for every target."""

from __future__ import annotations

ON_REAL_KAFKA_ALONE = frozenset({"late-share-write", "share-coordinator-restarts"})
"""Their load needs what the built-in brokers do not have."""
