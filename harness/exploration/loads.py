"""What the clients of each load do: the workload that they are, with parameters that a seed varies.

The detection matrix runs the same loads, each with the parameters of :data:`STEADY`.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from harness.replication.knobs import Knobs
from harness.simulation.core.drawn_loads import ASSIGNED, GROUPS, PIPELINED, PROCESSORS, TRANSACTIONS

Document = Mapping[str, Any]

_IN_A_GROUP: Document = {
    "name": "consumer_groups",
    "delivery_timeout_s": 0.6,
    "producers": 3,
    "members": 3,
    "rate": 80,
    "commit_every_s": 0.1,
    "session_timeout_s": 0.5,
    "poll_timeout_s": 0.8,
    "stays_s": 0.8,
    "away_s": 0.2,
}

STEADY: Mapping[str, Document] = MappingProxyType(
    {
        PIPELINED: {
            "name": "pipelined_sends",
            "delivery_timeout_s": 0.6,
            "producers": 3,
            "consumers": 1,
            "rate": 120,
            "burst": 6,
            "bursts": 2,
            "batch": 2,
            "linger_ms": 0,
        },
        GROUPS: _IN_A_GROUP,
        ASSIGNED: {**_IN_A_GROUP, "protocol": ["consumer"]},
        TRANSACTIONS: {
            "name": "transactions",
            "producers": 3,
            "rate": 25,
            "timeout_s": 1,
            "replaced": 0.1,
            "left_open": 0.05,
        },
        PROCESSORS: {
            "name": "consume_transform_produce",
            "delivery_timeout_s": 0.6,
            "producers": 1,
            "rate": 40,
            "processors": 3,
            "transactional_ids": "member",
            "timeout_s": 2,
            "session_timeout_s": 0.5,
            "poll_timeout_s": 0.8,
            "stays_s": 1.5,
            "away_s": 0.2,
            "late": 0.1,
        },
    }
)
"""By load, the workload with the parameters that are not varied."""


TOPIC = "accounts"
"""What the loads use; the witness watches another topic."""


class DrawnLoad(NamedTuple):
    """A load as a seed draws it, in the words of a scenario.

    Attributes:
        workload: what its clients do.
        settings: of the brokers, by Kafka's names.
        topic: that it uses.
    """

    workload: Document
    settings: Mapping[str, int]
    topic: Document


def drawn(seed: int, name: str, nodes: int, knobs: Knobs) -> DrawnLoad:
    """The load called ``name`` (not ``plain``) of ``seed``, for so many brokers with these knobs."""
    chance = random.Random(f"{seed}:{name}")
    replicas = min(3, nodes)
    session_ms = chance.choice((500, 1_000))
    settings = {
        "offsets.topic.replication.factor": replicas,
        "offsets.topic.num.partitions": chance.choice((1, 1, 3)),
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.num.partitions": chance.choice((1, 1, 3)),
        "group.initial.rebalance.delay.ms": chance.choice((0, 100)),
        "group.consumer.session.timeout.ms": session_ms,
        "group.consumer.heartbeat.interval.ms": session_ms // 4,
    }
    topic = {"name": TOPIC, "partitions": chance.choice((1, 2, 2, 3)), "replication_factor": replicas}
    return DrawnLoad({**STEADY[name], **_VARIED[name](chance, knobs)}, settings, topic)


def _pipelined(chance: random.Random, _: Knobs) -> Document:
    return {
        "producers": chance.choice((1, 2, 3)),
        "rate": chance.choice((60, 120, 240)),
        "burst": chance.choice((2, 6, 12)),
        "bursts": chance.choice((1, 2, 4)),
        "batch": chance.choice((1, 2, 5)),
        "in_flight": chance.choice((1, 2, 5)),
        "delivery_timeout_s": chance.choice((0.3, 0.6, 1.5)),
    }


def _in_a_group(chance: random.Random, _: Knobs) -> Document:
    session_s = chance.choice((0.5, 0.5, 1.0))
    return {
        "groups": chance.choice((1, 1, 2)),
        "members": chance.choice((2, 3, 4)),
        "static": chance.random() < 0.3,
        "subscribe": chance.choice((["names"], ["names", "pattern"])),
        "commits": chance.choice((["sync"], ["async"], ["auto"])),
        "commit_every_s": chance.choice((0.05, 0.1, 0.3)),
        "session_timeout_s": session_s,
        "poll_timeout_s": session_s + chance.choice((0.0, 0.3)),
        "stays_s": chance.choice((0, 0.5, 0.8, 2.0)),
        "away_s": chance.choice((0.05, 0.2, 0.8)),
    }


def _killed(chance: random.Random, stays_s: float) -> float:
    return chance.choice((0.0, 0.3)) if stays_s else 0.0


def _classic(chance: random.Random, knobs: Knobs) -> Document:
    varied = _in_a_group(chance, knobs)
    return {**varied, "killed": _killed(chance, varied["stays_s"])}


def _assigned(chance: random.Random, knobs: Knobs) -> Document:
    return {**_classic(chance, knobs), "remote_assignor": [chance.choice(("uniform", "range"))]}


def _transactions(chance: random.Random, _: Knobs) -> Document:
    return {
        "producers": chance.choice((1, 2, 4)),
        "rate": chance.choice((15, 25, 50)),
        "records": chance.choice((2, 6)),
        "batch": chance.choice((1, 3)),
        "aborted": chance.choice((0.0, 0.2, 0.5)),
        "left_open": chance.choice((0.0, 0.05)),
        "replaced": chance.choice((0.0, 0.1, 0.3)),
        "polling": chance.choice((0.2, 0.5)),
        "transaction_version_2": chance.choice((0.0, 0.5, 1.0)),
    }


def _processors(chance: random.Random, knobs: Knobs) -> Document:
    fenced = knobs.transactional_offsets == "fenced"
    stays_s = chance.choice((0, 0.8, 1.5))
    killed = _killed(chance, stays_s)
    return {
        "processors": chance.choice((2, 3)),
        "transactional_ids": chance.choice(("member", "partition")) if fenced else "partition",
        "stays_s": stays_s,
        "killed": killed,
        "aborted": chance.choice((0.0, 0.1, 0.3)),
        "late": chance.choice((0.0, 0.1)),
        "timeout_s": chance.choice((1, 2)),
        "transaction_version_2": chance.choice((0.0, 0.5, 1.0)),
    }


_VARIED: Mapping[str, Callable[[random.Random, Knobs], Document]] = {
    PIPELINED: _pipelined,
    GROUPS: _classic,
    ASSIGNED: _assigned,
    TRANSACTIONS: _transactions,
    PROCESSORS: _processors,
}
