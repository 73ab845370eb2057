"""Topic ids: derived from the name, and from how many topics of that name the cluster has deleted before."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

TopicOf = Callable[[bytes], str | None]
"""Returns the topic with an id; None: there is none."""


def topic_id(cluster_id: str, topic: str, incarnation: int = 0) -> bytes:
    """The id (a UUID of 16 raw bytes) of ``topic``: the same on every node of the cluster, another in another.

    ``incarnation``: how many topics of this name were deleted before; see
    :class:`harness.replication.controller_messages.TopicState`.
    """
    reborn = f"/{incarnation}" if incarnation else ""
    return sha256(f"{cluster_id}/{topic}{reborn}".encode()).digest()[:16]
