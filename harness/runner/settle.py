"""Waits after healing until the cluster is whole again, so that the final read sees all that survived."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from faults import restart_of
from harness.clock import PacedClock
from harness.errors import InvalidRun
from harness.model import TopicPartition
from harness.runner.conditions import out_of_sync, unsettled
from harness.runner.nemesis import FaultRecord, Nemesis
from harness.target import Target

_POLL_S = 0.05
_SHOWN = 5


def settle(target: Target, partitions: Sequence[TopicPartition], timeout_s: float, clock: PacedClock) -> list[str]:
    """Wait until every partition has a leader, a full ISR, and replicas with equal logs.

    Returns:
        What is still missing after ``timeout_s``, one phrase each; empty when the cluster is whole.
    """
    return _awaited(lambda: unsettled(target, partitions), timeout_s, clock)


def regained(target: Target, partitions: Sequence[TopicPartition], timeout_s: float, clock: PacedClock) -> bool:
    """Wait up to ``timeout_s`` until every partition has a full ISR, and every controller all committed records.

    Returns:
        Whether they have.
    """
    return not _awaited(lambda: out_of_sync(target, partitions), timeout_s, clock)


def _awaited(look: Callable[[], list[str]], timeout_s: float, clock: PacedClock) -> list[str]:
    """Call ``look`` until it finds nothing missing, or for ``timeout_s``; returns its last result."""
    deadline_ns = clock.monotonic_ns() + int(timeout_s * 1e9)
    while (missing := look()) and clock.monotonic_ns() < deadline_ns:
        clock.sleep(_POLL_S)
    return missing


def restart_the_misled(nemesis: Nemesis) -> bool:
    """Kill real brokers whose clock was moved, and start them again; returns whether there were any.

    Kafka uses the wall clock for reconnects and fetch retries. A retry that was scheduled while the clock was ahead
    waits until the clock is there again.
    """
    nodes = misled(nemesis.records)
    for node in nodes:
        name = f"restart of {node}"
        before = sum(record.name.startswith(name) for record in nemesis.records)
        name += f", time {before + 1}" if before else ""
        nemesis.inject(name, restart_of(node))
        nemesis.heal(name)
    return bool(nodes)


def misled(records: Iterable[FaultRecord]) -> list[str]:
    """The nodes whose wall clocks were moved, in order, even if they are right again."""
    injected = [one.fault for one in records if one.fault is not None and one.injected_ns is not None]
    return list(dict.fromkeys(node for fault in injected if fault.traits.moves_clock for node in fault.nodes()))


def require_healed(records: Iterable[FaultRecord], lacks: str) -> None:
    """Refuse to blame a cluster while an injected fault may still be in force.

    Args:
        records: the faults.
        lacks: what the cluster did not do in time, in a clause.

    Raises:
        InvalidRun: a fault was injected, and no probe has seen it healed.
    """
    for one in records:
        if one.injected_ns is not None and one.heal_proven_ns is None:
            fault = f"fault {one.name} ({one.kind})"
            raise InvalidRun(f"{lacks}, and {fault} was not proven healed: {one.heal_proof}.")


def require_unblamed(lacks: str, missing: Sequence[str], blamed: Sequence[str]) -> None:
    """Refuse to blame a healed cluster when a probe blames the environment; ``lacks`` as above.

    Raises:
        InvalidRun: names what was missing, and what the probe saw.
    """
    if blamed:
        raise InvalidRun(f"{lacks}: {in_short(missing)}. A probe blames its environment: {blamed[0]}.")


def in_short(missing: Sequence[str]) -> str:
    """The first of several phrases, and how many more there are."""
    more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
    return "; ".join(missing[:_SHOWN]) + more
