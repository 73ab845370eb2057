"""Resolves a selector to a node of the observed cluster. Pure and seeded.

A selector is a broker's id, ``leader``, ``follower``, ``any``, ``controller`` or, where several controllers are a
quorum, ``controller-1`` ... Of several, ``controller`` is the active one. The same seed and view give the same node,
whatever the ``PYTHONHASHSEED``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from harness.errors import EnvironmentFault
from harness.model import CLIENTS, CONTROLLER, CONTROLLER_ID, NO_LEADER, NodeId, TopicPartition, node_name
from harness.spelling import closest
from harness.target import ClusterView, PartitionView

LEADER, FOLLOWER, ANY = "leader", "follower", "any"
_WORDS = (LEADER, FOLLOWER, ANY, CONTROLLER)
_OF_A_QUORUM = re.compile(rf"{CONTROLLER}-[1-9]")


def _is_selector(value: Any) -> int | str:
    return _checked(value, _WORDS)


def _is_end(value: Any) -> int | str:
    return _checked(value, (*_WORDS, CLIENTS))


def _checked(value: Any, words: Sequence[str]) -> int | str:
    if isinstance(value, str) and (value in words or is_of_a_quorum(value)):
        return value
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    hint = closest(value, words) if isinstance(value, str) else f"known: {', '.join(words)}."
    raise ValueError(f"{value!r} is neither a broker's id nor a selector; {hint}")


def is_of_a_quorum(selector: int | str) -> bool:
    """Whether it names one of several controllers, ``controller-1``."""
    return isinstance(selector, str) and _OF_A_QUORUM.fullmatch(selector) is not None


def _schema(words: Sequence[str]) -> WithJsonSchema:
    quorum = {"type": "string", "pattern": f"^{_OF_A_QUORUM.pattern}$"}
    return WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 0}, {"enum": [*words]}, quorum]})


Selector = Annotated[int | str, BeforeValidator(_is_selector), _schema(_WORDS)]
"""A node as a scenario names it."""

EndSelector = Annotated[int | str, BeforeValidator(_is_end), _schema((*_WORDS, CLIENTS))]
"""An end of a link as a scenario names it: a node, or ``clients``."""


class NothingToAimAt(EnvironmentFault):
    """No node of the observed cluster matches the selector; one may in a moment."""


def aim(
    selector: int | str,
    view: ClusterView,
    seed: int,
    topic: str | None = None,
    partition: int | None = None,
    *,
    avoid: Sequence[str] = (),
) -> str:
    """The name of the node that ``selector`` means in ``view``.

    ``topic`` and ``partition`` choose the partition of a leader or follower; without them the seed does.
    ``leader``, ``follower`` and ``any`` never pick nodes in ``avoid``.

    Raises:
        NothingToAimAt: no such node was observed.
    """
    match selector:
        case int():
            return node_name(NodeId(selector))
        case "controller":
            candidates = [view.controller] if view.controller is not None else []
        case "clients":
            return selector
        case _ if is_of_a_quorum(selector):
            return selector
        case _:
            candidates = [node for node in _candidates(selector, view, seed, topic, partition) if node not in avoid]
    if not candidates:
        raise NothingToAimAt(f"there is no {_described(selector, topic, partition)} to aim at.")
    return _drawn(seed, "node").choice(candidates)


def brokers(view: ClusterView) -> list[str]:
    """Every broker in ``view``, live or with a replica, in order."""
    holding = {node for partition in view.partitions.values() for node in partition.replicas}
    return [node_name(node) for node in sorted({*view.live, *holding} - {CONTROLLER_ID})]


def nodes(view: ClusterView) -> list[str]:
    """Every broker in ``view``, and then the dedicated controllers."""
    found = brokers(view)
    return [*found, *(name for name in view.controllers if name not in found)]


def _candidates(selector: str, view: ClusterView, seed: int, topic: str | None, partition: int | None) -> list[str]:
    if selector == ANY:
        return [node_name(node) for node in sorted(view.live)]
    led = [
        (name, state)
        for name, state in sorted(view.partitions.items())
        if state.leader != NO_LEADER and _is_meant(name, topic, partition)
    ]
    if selector == FOLLOWER:
        led = [(name, state) for name, state in led if _followers(state)]
    if not led:
        return []
    _, state = _drawn(seed, "partition").choice(led)
    return [node_name(state.leader)] if selector == LEADER else _followers(state)


def _followers(state: PartitionView) -> list[str]:
    return [node_name(node) for node in sorted(state.isr) if node != state.leader]


def _is_meant(name: TopicPartition, topic: str | None, partition: int | None) -> bool:
    return topic in (None, name.topic) and partition in (None, name.partition)


def _described(selector: str, topic: str | None, partition: int | None) -> str:
    if selector in (ANY, CONTROLLER):
        return "live broker" if selector == ANY else "active controller"
    where = f"{topic or 'any topic'}-{'any' if partition is None else partition}"
    return f"{'in-sync follower' if selector == FOLLOWER else 'leader'} of {where}"


def _drawn(seed: int, purpose: str) -> random.Random:
    return random.Random(f"{seed}:{purpose}")
