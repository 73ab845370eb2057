"""What one seed draws before the run begins: the cluster, its settings, its network and its load.

Swarm testing: every seed has a configuration of its own, most of them lopsided, because a mix of everything in which
nothing is rare finds less than many mixes in which something is missing.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

import faults
from harness.errors import UsageError
from harness.model import CORE, STACK, TopicPartition
from harness.replication.knobs import CURRENT_GENERATION, GENERATIONS, Knobs
from harness.simulation.core.drawn_kinds import DELETIONS, DISTURBANCES, DRAWN, FAULTS
from harness.simulation.core.drawn_loads import LOADS, PLAIN, drawn_horizon_ms, drawn_load, loads_of
from harness.spelling import closest

PARTITION = TopicPartition("ledger", 0)
"""The one partition of a simulated world; every broker holds a replica of it."""

MS = 1_000_000
"""Nanoseconds of a millisecond."""

NETWORKS = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.02), (0.02, 0.0, 0.01), (0.01, 0.02, 0.03))
"""Probabilities that a message is lost, arrives twice, or arrives very late."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """Everything about a simulated cluster but its seed. Times in virtual milliseconds, delays in microseconds.

    Attributes:
        faults: how often each fault of ``drawn_kinds.FAULTS`` comes up, relative to all others and to ``disturbances``;
            those that are missing never do. ``disturbances``: likewise, those of ``drawn_kinds.DISTURBANCES``.
        fault_count: how many of both together are drawn.
        loss: of each message, that it never arrives; ``duplicate``: that it arrives twice; ``late``: that it takes
            ``late_factor`` times as long.
        fetch_batches: how many batches one fetch answer carries at most.
        flush_messages: after how many records a log is flushed; 0: never. ``flush_ms`` likewise, by time.
        checkpoints_flushed: whether checkpoint files are flushed when they are written.
        lossy_budget: how many brokers may at one time have lost power, or have stopped uncleanly in such a time, or be
            about to, without having caught up again; what goes beyond is not done.
        acks: what the producers ask for, one each, in turn.
        produce_wait_ms: how long a leader lets acks=all wait (``request.timeout.ms`` of a producer); 0: as long as the
            client does (``send_timeout_ms``), which then never gets the error.
        deletions: how often records are deleted from the beginning of some log.
        load: which of ``drawn_loads.LOADS`` the clients are; on the bare core always ``plain``.
    """

    nodes: int = 3
    min_insync_replicas: int = 2
    unclean_leader_election_enable: bool = False
    replica_lag_time_max_ms: int = 200
    replica_fetch_wait_max_ms: int = 50
    replica_fetch_backoff_ms: int = 10
    request_timeout_ms: int = 100
    session_timeout_ms: int = 150
    heartbeat_ms: int = 50
    checkpoint_ms: int = 100
    checkpoints_flushed: bool = True
    flush_messages: int = 0
    flush_ms: int = 0
    fetch_batches: int = 1_000
    delay_us: int = 200
    spread_us: int = 400
    loss: float = 0.0
    duplicate: float = 0.0
    late: float = 0.0
    late_factor: int = 30
    producers: int = 2
    acks: tuple[int, ...] = (-1,)
    send_every_ms: int = 10
    records_per_send: int = 2
    send_timeout_ms: int = 100
    poll_every_ms: int = 40
    horizon_ms: int = 400
    fault_count: int = 6
    lossy_budget: int = 1
    faults: Mapping[str, int] = field(default_factory=dict)
    disturbances: Mapping[str, int] = field(default_factory=dict)
    deletions: int = 0
    produce_wait_ms: int = 0
    load: str = PLAIN

    @property
    def minimal_isr(self) -> int:
        """``min.insync.replicas``, or all replicas if that is less."""
        return min(self.min_insync_replicas, self.nodes)


DEPTHS = (CORE, STACK)
"""How much of a broker is real: see ``docs/simulation.md``."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a person decides about all seeds of an exploration: protocol, depth, and settings that are not drawn."""

    generation: str = CURRENT_GENERATION
    knobs: Knobs = GENERATIONS[CURRENT_GENERATION]
    pinned: Mapping[str, Any] = field(default_factory=dict)
    depth: str = CORE


def draw(seed: int, pinned: Mapping[str, Any] = MappingProxyType({})) -> Configuration:
    """The configuration of ``seed``, with the fields ``pinned`` given.

    ``faults`` and ``disturbances`` are one mix: where only one of them is pinned, nothing of the other comes up.
    """
    chance = random.Random(f"{seed}:configuration")
    nodes = pinned.get("nodes", chance.choice((2, 3, 3, 3, 3, 4)))
    min_isr = pinned.get("min_insync_replicas", chance.choice((1, 2, 2, 2, nodes)))
    wait_ms = pinned.get("replica_fetch_wait_max_ms", chance.choice((5, 20, 50, 100, 200)))
    wait_ms = min(wait_ms, pinned.get("request_timeout_ms", _TIMES[1]) // 2)
    session_ms = pinned.get("session_timeout_ms", chance.choice((30, 60, 120, 250)))
    session_ms = max(session_ms, 3 * pinned.get("heartbeat_ms", 0))
    loss, duplicate, late = chance.choice(NETWORKS)
    drawn = Configuration(
        nodes=nodes,
        min_insync_replicas=min(min_isr, nodes),
        unclean_leader_election_enable=chance.random() < 0.15,
        replica_lag_time_max_ms=chance.choice((40, 100, 300, 1_000)),
        replica_fetch_wait_max_ms=wait_ms,
        replica_fetch_backoff_ms=chance.choice((2, 10, 30)),
        request_timeout_ms=wait_ms + chance.choice((20, 60, 200)),
        session_timeout_ms=session_ms,
        heartbeat_ms=session_ms // 3,
        checkpoint_ms=chance.choice((10, 60, 400, 5_000)),
        checkpoints_flushed=chance.random() < 0.7,
        flush_messages=chance.choice((0, 0, 0, 1, 5)),
        flush_ms=chance.choice((0, 0, 20, 100)),
        fetch_batches=chance.choice((1, 2, 1_000)),
        delay_us=chance.choice((50, 200, 1_000)),
        spread_us=chance.choice((50, 400, 3_000)),
        loss=loss,
        duplicate=duplicate,
        late=late,
        producers=chance.choice((1, 2, 3)),
        acks=chance.choice(((-1,), (-1,), (-1,), (-1, 1), (1, -1, 0))),
        send_every_ms=chance.choice((4, 10, 25)),
        records_per_send=chance.choice((1, 1, 3)),
        send_timeout_ms=chance.choice((40, 150)),
        poll_every_ms=chance.choice((30, 100)),
        horizon_ms=chance.choice((200, 400, 800)),
        fault_count=chance.choice((2, 4, 6, 10, 16)),
        lossy_budget=min(min_isr, nodes) - 1,
        **_mix(chance, is_pinned=bool(pinned.keys() & _MIX)),
        deletions=chance.choice((0, 0, 0, 2, 6)),
    )
    return replace(drawn, **pinned) if pinned else drawn


def drawn_for(seed: int, chosen: Setup) -> Configuration:
    """The configuration of ``seed`` as the protocol can live with it, and on the whole broker with its load.

    Where an idle follower may lag, a fetch must not wait for as long as that, or the ISR never comes to rest: see
    Kafka's documentation of ``replica.fetch.wait.max.ms``.
    """
    drawn = draw(seed, chosen.pinned)
    if chosen.depth == STACK:
        drawn = _loaded(seed, drawn, chosen)
    if chosen.knobs.in_sync_at_the_end:
        return drawn
    most = max(drawn.replica_lag_time_max_ms // 2, 1)
    return replace(drawn, replica_fetch_wait_max_ms=min(drawn.replica_fetch_wait_max_ms, most))


def _loaded(seed: int, drawn: Configuration, chosen: Setup) -> Configuration:
    """``drawn`` with the load of ``seed``, which is drawn apart, so that all else is as it would be without.

    What is drawn depends on the generation and on no single knob: one that is turned leaves the load as it was.
    """
    load = chosen.pinned.get("load") or drawn_load(seed, GENERATIONS[chosen.generation])
    if load == PLAIN:
        return drawn
    return replace(drawn, load=load, horizon_ms=chosen.pinned.get("horizon_ms", drawn_horizon_ms(seed)))


_MIX = {"faults": FAULTS, "disturbances": DISTURBANCES}
"""The two fields that are drawn together, and what each may name."""


def _mix(chance: random.Random, *, is_pinned: bool) -> dict[str, Any]:
    """Some kinds of faults and disturbances, with weights; at least one, unless the mix is pinned."""
    some = {one.name: chance.choice((1, 1, 3)) for one in DRAWN if chance.random() < 0.4} or {DRAWN[0].name: 1}
    return {
        field: {} if is_pinned else {name: weight for name, weight in some.items() if name in known}
        for field, known in _MIX.items()
    }


SETTINGS: Mapping[str, str] = MappingProxyType(
    {"replication.factor": "nodes"} | {f.name.replace("_", "."): f.name for f in fields(Configuration)}
)
"""Which field each setting pins; Kafka's own names where Kafka has the setting."""

_MOST = 1_000
_TIMES = (1, 1_000_000)
"""Least and most of every number that :data:`RANGES` does not have."""
_NONE_TOO = (0, _TIMES[1])
_PROBABILITY = (0.0, 1.0)
_ACKS = {"all": -1, "-1": -1, "0": 0, "1": 1}

RANGES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "nodes": (1, 9),
        "min_insync_replicas": (1, 9),
        "session_timeout_ms": (20, _TIMES[1]),
        "request_timeout_ms": (20, _TIMES[1]),
        "flush_messages": _NONE_TOO,
        "flush_ms": _NONE_TOO,
        "delay_us": _NONE_TOO,
        "spread_us": _NONE_TOO,
        "loss": _PROBABILITY,
        "duplicate": _PROBABILITY,
        "late": _PROBABILITY,
        "late_factor": (1, _MOST),
        "producers": (1, 100),
        "records_per_send": (1, _MOST),
        "fault_count": (0, _MOST),
        "deletions": (0, _MOST),
        "produce_wait_ms": _NONE_TOO,
        "lossy_budget": (0, 9),
    }
)
"""Least and most of the fields that have narrower bounds than times do, or may be 0."""

_ORDERED = (("heartbeat_ms", "session_timeout_ms"), ("replica_fetch_wait_max_ms", "request_timeout_ms"))
"""Of each two the second is at least twice the first: with less, no cluster comes to rest."""


def setup(generation: str, overrides: Mapping[str, str], depth: str = CORE) -> Setup:
    """The setup of ``--generation``, ``--set`` and ``--depth``.

    Keys are ``replication.<knob>``, Kafka's settings (``min.insync.replicas``), or other fields of
    :class:`Configuration` with dots for underscores.

    Raises:
        UsageError: a key or a value that makes no sense.
    """
    from harness.replication.knobs import generation as knobs_of  # noqa: PLC0415 - the name is the parameter's, too

    knobs = {key.removeprefix("replication."): value for key, value in overrides.items() if _is_knob(key)}
    pinned = dict(_pinned(key, text) for key, text in overrides.items() if not _is_knob(key))
    for shorter, longer in _ORDERED:
        if shorter in pinned and longer in pinned and pinned[shorter] * 2 > pinned[longer]:
            names = longer.replace("_", "."), shorter.replace("_", ".")
            raise UsageError(f"--set {names[0]} must be at least twice {names[1]}.")
    if depth not in DEPTHS:
        raise UsageError(f"--depth {depth!r} is not known.", f"Depths: {', '.join(DEPTHS)}.")
    made = Setup(generation, knobs_of(generation, knobs), pinned, depth)
    _refuse_load(made)
    return made


def _refuse_load(made: Setup) -> None:
    """Refuse a pinned load that its depth, or its generation, does not have.

    Raises:
        UsageError: which, and why.
    """
    load = made.pinned.get("load", PLAIN)
    if load != PLAIN and made.depth != STACK:
        raise UsageError(f"--set load={load} needs coordinators, and the bare core has none.", "Add --depth stack.")
    if load not in loads_of(made.knobs):
        known = ", ".join(loads_of(made.knobs))
        raise UsageError(f"--set load={load}: generation {made.generation} does not serve it.", f"Loads: {known}.")


def _is_knob(key: str) -> bool:
    return key.startswith("replication.") and key not in SETTINGS


def _pinned(key: str, text: str) -> tuple[str, Any]:
    if key not in SETTINGS:
        raise UsageError(f"--set {key!r} is not known.", f"Settings: replication.<knob>, {', '.join(SETTINGS)}.")
    return SETTINGS[key], _value(key, text)


def _value(key: str, text: str) -> Any:
    name = SETTINGS[key]
    default = getattr(Configuration(), name)
    try:
        match default:
            case bool():
                return {"true": True, "false": False}[text.lower()]
            case int() | float():
                return _within(key, text, type(default)(text), RANGES.get(name, _TIMES))
            case tuple():
                return tuple(_ACKS[acks] for acks in text.split(","))
            case str():
                return _load(text)
            case _:
                return _weights(key, text)
    except (KeyError, ValueError):
        raise UsageError(f"--set {key}: {text!r} is not a value for it.") from None


def _load(text: str) -> str:
    if text not in LOADS:
        raise UsageError(f"--set load: {text!r} is not known; {closest(text, LOADS)}", f"Loads: {', '.join(LOADS)}.")
    return text


def _within(key: str, text: str, value: float, bounds: tuple[float, float]) -> float:
    least, most = bounds
    if not least <= value <= most:
        raise UsageError(f"--set {key}={text} is out of range.", f"It is at least {least} and at most {most}.")
    return value


def _weights(key: str, text: str) -> dict[str, int]:
    """``kill:3,pause`` as weights."""
    parts = [part.partition(":") for part in text.split(",")]
    for name, *_ in parts:
        if name not in _MIX[key]:
            raise UsageError(f"--set {key}={text}: {_unknown(key, name)}")
    weights = {name: int(weight if colon else 1) for name, colon, weight in parts}
    if not all(1 <= weight <= _MOST for weight in weights.values()):
        raise UsageError(
            f"--set {key}={text}: weights are at least 1 and at most {_MOST}.",
            "For no faults and no disturbances at all: fault.count=0.",
        )
    return weights


def _unknown(key: str, name: str) -> str:
    """What is wrong with a name that a mix does not have."""
    other = next((field for field, known in _MIX.items() if name in known), None)
    if other is not None:
        return f"{name!r} belongs to --set {other}."
    if name in DELETIONS:
        return f"{name!r} is not weighted; --set deletions=N says how often records are deleted."
    if name in faults.KINDS:
        return f"no seed draws {name!r}, because the core has none of the connections and files that it harms."
    return f"unknown {key.removesuffix('s')} {name!r}; {closest(name, _MIX[key])}"
