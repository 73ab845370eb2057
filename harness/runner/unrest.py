"""Proves the verdict ``stuck``: a healed cluster does not recover, and the machine under it is sound.

Recovery has four aspects: the cluster comes to rest, it delivers to consumers all records that it holds, it
acknowledges records, and it lets new clients take over what others held: the partitions of a group, a transactional id.

A cluster that is not at rest after the time that a scenario allows proves nothing yet: the machine may be slow, or a
link may be broken. So the runner keeps observing it until it has made no progress for several times the longest timeout
of Kafka (``replica.lag.time.max.ms``, a broker's session). Only observations in close succession count, for a machine
that delays the harness delays brokers, too. Then the runner probes the environment: processes that a signal has killed
or stopped, the links between the nodes that answer, their disks and their clocks. A probe that the target lacks blames
nothing. One that fails leaves the environment unknown, so it is blamed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import permutations, starmap
from typing import Any, Literal, NamedTuple

from harness.broker.settings import Settings
from harness.clock import PacedClock
from harness.controls import DiskSpace, Kills, Links, Pauses, WallClocks
from harness.errors import EnvironmentFault, NoSuchProbe
from harness.model import NO_LEADER, Link, NodeId, TopicPartition, node_name
from harness.observations import NodeStates, ReplicaStates
from harness.runner.conditions import unsettled
from harness.target import ClusterView, Receipt, Target, supports

STILL_TIMES = 5
"""For how many times the cluster's longest timeout it must have made no progress."""

_LOOKS = 20
"""The number of parts of that time, in each of which there must be an observation."""

_PATIENCE = 10
"""For how many times that time the runner observes a cluster that makes progress, or on a slow machine."""

_OFF_MS = 1_000
"""The tolerance of a correct clock."""


RecoveryAspect = Literal["rest", "reads", "sends", "takeovers"]
"""The aspects of recovery: coming to rest, delivering records to consumers, acknowledging records, and letting clients
take over what others held."""


class Look(NamedTuple):
    """One observation of a cluster.

    Attributes:
        recovered: whether nothing is missing any more.
        missing: what is missing, one phrase each, which begins with the partition.
        left: a measure without unit of what is left to do, which falls with progress.
    """

    recovered: bool
    missing: Sequence[str]
    left: int


@dataclass(frozen=True, slots=True)
class Unrest:
    """A cluster that did not recover in one aspect.

    Attributes:
        of: the aspect.
        still_s: for how long it had made no progress; ``looks``: the number of observations meanwhile.
        missing: what was missing in the end, one phrase each.
        view: the cluster then; ``gone``: the brokers that had exited by themselves.
        blamed: what probes blame in the environment, and probes that failed, one sentence each; empty: nothing.
        probes: the results of the other probes.
    """

    of: RecoveryAspect
    still_s: float
    looks: int
    missing: tuple[str, ...]
    view: ClusterView
    gone: tuple[NodeId, ...] = ()
    blamed: tuple[str, ...] = ()
    probes: tuple[str, ...] = ()

    def to_json(self, partitions: Sequence[TopicPartition]) -> dict[str, Any]:
        """Its part of ``run.json``; the phrases by partition."""
        phrases = {str(name): [_without(name, phrase) for phrase in self.missing if _is_of(name, phrase)]
                   for name in partitions}  # fmt: skip
        return {
            "of": self.of,
            "still_s": round(self.still_s, 3),
            "looks": self.looks,
            "missing": {name: found for name, found in phrases.items() if found},
            "eligible": {
                str(name): [*seen.isr, *seen.elr]
                for name, seen in sorted(self.view.partitions.items())
                if seen.leader == NO_LEADER and name in partitions
            },
            "gone": list(self.gone),
            "probes": list(self.probes),
        }


def still_for_s(settings: Settings) -> float:
    """For how long a cluster with these settings must have made no progress."""
    return STILL_TIMES * max(settings.replica_lag_time_max_ms, settings.broker_session_timeout_ms) / 1000


def rest(target: Target, partitions: Sequence[TopicPartition]) -> Look:
    """What keeps a cluster from being at rest."""
    missing = unsettled(target, partitions)
    return Look(not missing, missing, _behind(target, partitions) if missing else 0)


def observed(
    target: Target, of: RecoveryAspect, look: Callable[[], Look], still_s: float, clock: PacedClock
) -> Unrest | None:  # fmt: skip
    """Observe a cluster until it has recovered (None), or has made no progress for ``still_s``."""
    begun_s = since_s = looked_s = _now_s(clock)
    nearest, looks, slowest_s = _Distance(), 0, 0.0
    while not (found := look()).recovered:
        missing = tuple(found.missing)
        nearer = nearest.falls_to(len(missing), found.left)
        took_s, looked_s = _now_s(clock) - looked_s, _now_s(clock)
        slowest_s = max(slowest_s, took_s)
        if nearer or took_s > _late_s(still_s):
            since_s, looks = looked_s, 0
        looks += 1
        if looked_s - since_s >= still_s and missing:
            return Unrest(of, looked_s - since_s, looks, missing, target.view())
        if looked_s - begun_s >= _PATIENCE * still_s:
            what = "it was still getting nearer" if slowest_s <= _late_s(still_s) else f"a look took {slowest_s:.1f} s"
            why = f"after {looked_s - begun_s:.0f} s {what}"
            return Unrest(of, 0.0, looks, missing, target.view(), blamed=(why,))
        clock.sleep(still_s / _LOOKS)
    return None


def _late_s(still_s: float) -> float:
    """The most time from one observation to the next; half of it is sleep."""
    return 2 * still_s / _LOOKS


def _now_s(clock: PacedClock) -> float:
    return clock.monotonic_ns() / 1e9


class _Distance:
    """The least that was missing, and the least that was left, so far."""

    def __init__(self) -> None:
        self._missing: int | None = None
        self._left: int | None = None

    def falls_to(self, missing: int, left: int) -> bool:
        """Whether one of the two has a new minimum."""
        nearer = self._missing is None or self._left is None or missing < self._missing or left < self._left
        self._missing = missing if self._missing is None else min(missing, self._missing)
        self._left = left if self._left is None else min(left, self._left)
        return nearer


def _behind(target: Target, partitions: Sequence[TopicPartition]) -> int:
    """By how many records all replicas and high watermarks are behind their leaders' log end offsets."""
    if not supports(target, ReplicaStates):
        return 0
    view, total = target.view(), 0
    for name in partitions:
        seen = view.partitions.get(name)
        if seen is None or seen.leader == NO_LEADER:
            continue
        leading = target.replica(node_name(seen.leader), name)
        if leading is None:
            continue
        total += leading.log_end_offset - leading.high_watermark
        for node in seen.replicas:
            if (replica := target.replica(node_name(node), name)) is not None:
                total += abs(leading.log_end_offset - replica.log_end_offset)
    return total


# ------------------------------------------------------------------------------------------------------------- probes


def probed(target: NodeStates, unrest: Unrest) -> Unrest:
    """``unrest`` with the results of all probes of the environment, unless something is blamed already."""
    if unrest.blamed:
        return unrest
    receipts = [one for one in _receipts(target) if one is not None]
    return replace(
        unrest,
        gone=tuple(node for node in _brokers(unrest.view) if target.has_exited(node_name(node)).holds),
        blamed=tuple(one.seen for one in receipts if not one.holds),
        probes=tuple(one.seen for one in receipts if one.holds),
    )


def _receipts(target: NodeStates) -> Iterator[Receipt | None]:
    """The receipt of each probe of the environment; None: this target has no such probe."""
    running = []
    for node in target.nodes():
        answers = target.is_running(node)
        if answers.holds:
            running.append(node)
            yield answers
            if supports(target, DiskSpace):
                yield _look(f"the disk of node {node}", partial(target.takes_writes, node))
            if supports(target, WallClocks):
                yield _look(f"the clock of node {node}", partial(_is_right, target, node))
        else:
            yield _look(f"the process of node {node}", partial(_is_its_own_doing, target, node, answers.seen))
    if supports(target, Links):
        for link in starmap(Link, permutations(running, 2)):
            yield _look(f"the link {link}", partial(target.carries, link))


def _brokers(view: ClusterView) -> list[NodeId]:
    return sorted({node for partition in view.partitions.values() for node in partition.replicas})


def _is_its_own_doing(target: NodeStates, node: str, seen: str) -> Receipt:
    """Whether a node that does not answer was neither paused nor killed, nor had a write refused by its disk."""
    harms = [target.is_paused] if supports(target, Pauses) else []
    harms += [target.is_dead] if supports(target, Kills) else []
    for probe in (*harms, target.has_refused_write):
        if (harmed := probe(node)).holds:
            return Receipt(False, harmed.seen)
    return Receipt(True, seen)


def _is_right(target: WallClocks, node: str) -> Receipt:
    """Whether a node's clock agrees with the harness's."""
    off_ms = target.clock_offset_ms(node)
    return Receipt(abs(off_ms) <= _OFF_MS, f"node {node}: its clock is off by {off_ms} ms")


def _look(at: str, probe: Callable[[], Receipt]) -> Receipt | None:
    """The probe's receipt; a failed probe blames the environment. None: there is no such probe."""
    try:
        return probe()
    except NoSuchProbe:
        return None
    except EnvironmentFault as failed:
        return Receipt(False, f"the probe of {at} failed: {failed.sentence.removesuffix('.')}")


def _is_of(name: TopicPartition, phrase: str) -> bool:
    return phrase.startswith(f"{name}: ")


def _without(name: TopicPartition, phrase: str) -> str:
    return phrase.removeprefix(f"{name}: ")
