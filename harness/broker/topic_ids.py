"""Topic ids: derived from names, which identify a topic for ever in a cluster that never deletes one."""

from __future__ import annotations

from hashlib import sha256


def topic_id(cluster_id: str, topic: str) -> bytes:
    """The id (a UUID of 16 raw bytes) of ``topic``: the same on every node of the cluster, another in another."""
    return sha256(f"{cluster_id}/{topic}".encode()).digest()[:16]


class TopicIds:
    """The ids of the topics that a node has met, and their names."""

    def __init__(self, cluster_id: str) -> None:
        self._cluster_id = cluster_id
        self._ids: dict[str, bytes] = {}
        self._names: dict[bytes, str] = {}

    def of(self, topic: str) -> bytes:
        """The id of ``topic``."""
        found = self._ids.get(topic)
        if found is None:
            found = self._ids[topic] = topic_id(self._cluster_id, topic)
            self._names[found] = topic
        return found

    def name_of(self, found: bytes) -> str | None:
        """The topic that has this id; None: no request has named it."""
        return self._names.get(found)
