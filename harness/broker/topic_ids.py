"""Topic ids: derived from names, which identify a topic for ever in a cluster that never deletes one."""

from __future__ import annotations

from hashlib import sha256


def topic_id(cluster_id: str, topic: str) -> bytes:
    """The id (a UUID of 16 raw bytes) of ``topic``: the same on every node of the cluster, another in another."""
    return sha256(f"{cluster_id}/{topic}".encode()).digest()[:16]
