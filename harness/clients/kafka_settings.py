"""How our clients are set up, by the names that Apache Kafka's own client has for its settings.

kafka-python has the same names with underscores: :func:`underscored`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.client_ports import Isolation, Manner
from harness.membership import Commits, Membership

_POLL_RECORDS = 500
_HEARTBEATS = 10
_LINGER_S = 0.005
_BYTES_BESIDE = 150
"""About what a record takes besides its text, where batches are counted in bytes."""

IMPATIENT = {
    "metadata.max.age.ms": 1000,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 250,
    "retry.backoff.ms": 100,
}
"""As for librdkafka: a client that takes seconds to notice a new leader measures itself."""


def sending(manner: Manner, acks: int, timeout_s: float) -> dict[str, object]:
    """``manner`` as settings of a producer that waits ``timeout_s`` for each answer."""
    request_ms = max(1, int(manner.request_timeout_s(timeout_s) * 1000))
    linger_s = _LINGER_S if manner.linger_s is None else manner.linger_s
    linger_ms = int(linger_s * 1000) if manner.batch > 1 else 0
    return {
        "acks": acks,
        "enable.idempotence": manner.idempotent,
        "retries": max(manner.retries, 1 if manner.idempotent else 0),
        "request.timeout.ms": request_ms,
        "linger.ms": linger_ms,
        "delivery.timeout.ms": max(int(timeout_s * 1000), request_ms + linger_ms),
        "max.block.ms": max(1, int(timeout_s * 1000)),
        "batch.size": 0 if manner.batch == 1 else manner.batch * _BYTES_BESIDE,
        "compression.type": manner.compression,
        "max.in.flight.requests.per.connection": manner.in_flight or (5 if manner.idempotent else 1),
    }


def transacting(name: str, timeout_s: float) -> dict[str, object]:
    """The settings of a producer with the transactional id ``name``, each of whose calls may take ``timeout_s``."""
    timeout_ms = max(1000, int(timeout_s * 1000))
    return {
        "transactional.id": name,
        "transaction.timeout.ms": timeout_ms,
        "delivery.timeout.ms": timeout_ms,
        "request.timeout.ms": max(500, timeout_ms - 500),
        "max.block.ms": timeout_ms,
        "linger.ms": 0,
    }


def reading(isolation: Isolation) -> dict[str, object]:
    """How all our consumers read; see :func:`harness.clients.reader.reading`."""
    return {
        "enable.auto.commit": False,
        "auto.offset.reset": "none",
        "isolation.level": isolation,
        "fetch.max.wait.ms": 100,
        "max.poll.records": _POLL_RECORDS,
        "allow.auto.create.topics": False,
        "request.timeout.ms": 3000,
    }


def belonging(membership: Membership) -> dict[str, object]:
    """The settings of a member of a group of either protocol."""
    static = {} if membership.instance is None else {"group.instance.id": membership.instance}
    longest_ms = max(round(membership.poll_timeout_s * 1000), _session_ms(membership))
    return {
        "group.id": membership.group,
        "max.poll.interval.ms": longest_ms,
        **static,
        **_committing(membership.commits),
    }


def heartbeating(membership: Membership) -> dict[str, object]:
    """What a member of a group of the classic protocol sets besides."""
    session_ms = _session_ms(membership)
    return {"session.timeout.ms": session_ms, "heartbeat.interval.ms": max(session_ms // _HEARTBEATS, 1)}


def underscored(settings: Mapping[str, object]) -> dict[str, Any]:
    """``settings`` by kafka-python's names."""
    return {name.replace(".", "_"): value for name, value in settings.items()}


def _committing(commits: Commits) -> dict[str, object]:
    if not commits.is_automatic:
        return {}
    return {"enable.auto.commit": True, "auto.commit.interval.ms": max(round(commits.every_s * 1000), 1)}


def _session_ms(membership: Membership) -> int:
    return round(membership.session_timeout_s * 1000)
