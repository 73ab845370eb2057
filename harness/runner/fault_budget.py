"""Decides which faults may begin while others are in force, so that they break no more than Kafka promises to survive.

Whatever the budget, each fault must be provable when it begins and when it ends. So the nodes of a fault must run when
it begins, a fault of links or clocks ends only while the processes at its ends run, and no two faults share a process
that one of them has to itself.

``promised`` stays within the promises of the configuration. By Kafka's replication committed records survive any number
of crashes, pauses, partitions and full disks at once, for what a broker has written outlives its process; and fewer
than ``min.insync.replicas`` *lossy* failures at one time, which take records from a broker's disk (a power loss takes
unflushed ones). No release keeps the second promise in full, so the budget restricts it:

* At one time at most ``min.insync.replicas - 1`` brokers have lost something and are not back in every ISR that they
  were in. With a minimum of one nothing lossy is promised.
* A broker in the ISR of everything it holds may fail lossily, while each of these ISRs has another *sound* member: it
  has lost nothing, no fault touches it, and none has for as long as the cluster takes to react (a broker's session
  timeout or ``replica.lag.time.max.ms``, the longer one), for until then it may be about to leave the ISR. The last
  member of an ISR may not fail so: up to 3.9 it is elected although it has lost its tail ("last replica standing",
  KIP-966).
* Until the controller has dropped such a broker from an ISR, the others may fail in any way that leaves that ISR one
  sound member, and no clock steps: a real broker whose clock is put back may hear nothing more of its controller, which
  then drops it, too. Once dropped, the broker cannot be elected before it has caught up, and the others may all fail.
* The broker restarts only after it has been dropped: up to 3.9 one that is back before its session expires stays in the
  ISR with a truncated log, and may be elected. With eligible leader replicas (4.0 and later) the controller detects the
  unclean shutdown, and the broker may restart at once.

A cluster that flushes every record (``log.flush.interval.messages=1``) loses nothing with the power, and a power loss
counts as a crash there. ``any`` asks for none of this.

The promises are those of ``acks=all``: records with other acks may be lost in any of these, which is WEAK.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.broker.settings import Settings
from harness.fault import DiskEffect, Fault
from harness.model import NodeId, TopicPartition, is_broker, node_name
from harness.observations import NodeStates
from harness.replication.knobs import Knobs
from harness.target import ClusterView, PartitionView, Target, supports

BudgetName = Literal["promised", "any"]


@dataclass(frozen=True, slots=True)
class Promise:
    """What the configuration promises, as far as the budget needs to know.

    Attributes:
        lossy: how many brokers may at one time have lost something.
        flushes: whether a power loss takes nothing, because every record is flushed.
        knows_unclean: whether the controller takes no broker for in sync that has stopped uncleanly.
        starts_cut_off: whether a broker can start while its links are cut or its controller is away.
        noticed_s: for how long after a fault the leader may still remove a replica from the ISR.
    """

    lossy: int
    flushes: bool
    knows_unclean: bool
    starts_cut_off: bool = True
    noticed_s: float = 0.0

    @classmethod
    def of(cls, settings: Settings, knobs: Knobs, *, starts_cut_off: bool) -> Promise:
        """The promises of ``settings`` and the protocol."""
        return cls(
            lossy=settings.min_insync_replicas - 1,
            flushes=settings.log_flush_interval_messages == 1,
            knows_unclean=knobs.elections == "elr",
            starts_cut_off=starts_cut_off,
            noticed_s=max(settings.broker_session_timeout_ms, settings.replica_lag_time_max_ms) / 1000,
        )

    def is_lossy(self, fault: Fault) -> bool:
        """Whether ``fault`` takes records from a disk."""
        return fault.traits.takes_from_disk and not (self.flushes and fault.traits.disk is DiskEffect.UNFLUSHED)

    def never_affords(self, fault: Fault) -> str:
        """Why the ``promised`` budget never allows the fault; empty: it may."""
        if not self.is_lossy(fault) or self.lossy > 0:
            return ""
        return f"with min.insync.replicas={self.lossy + 1} Kafka promises to survive no failure that takes from a disk"


class FaultBudget:
    """Tracks the faults of one run.

    Args:
        name: see the module.
        promise: of the configuration.
        target: is probed for running nodes.
        now_s: returns the time.
    """

    def __init__(self, name: BudgetName, promise: Promise, target: Target, now_s: Callable[[], float]) -> None:
        self._keeps_promises = name == "promised"
        self._promise = promise
        self._target = target
        self._now_s = now_s
        self._touched_s: dict[str, float] = {}
        self._clock_stepped_s = -math.inf
        self._in_force: dict[str, Fault] = {}
        self._electable: dict[str, set[TopicPartition]] = {}
        self._catching_up: dict[str, set[TopicPartition]] = {}

    def began(self, name: str, fault: Fault, view: ClusterView) -> None:
        """The fault called ``name`` is in force; ``view`` is of just before."""
        self._in_force[name] = fault
        self._note_clock(fault)
        if self._promise.is_lossy(fault):
            for node in fault.nodes():
                self._electable[node] = set(_in_isr(view, node))
                self._catching_up[node] = set(_held(view, node))

    def ended(self, name: str) -> None:
        """The fault called ``name`` is healed."""
        fault = self._in_force.pop(name)
        self._note_clock(fault)
        if not fault.traits.moves_clock:
            self._touched_s.update(dict.fromkeys(fault.nodes(), self._now_s()))

    @property
    def has_lossy(self) -> bool:
        """Whether a broker has lost records and not caught up everywhere."""
        return bool(self._catching_up)

    def review(self, view: ClusterView) -> None:
        """Record which brokers have been dropped from an ISR, or are in it again and so have caught up.

        A broker that has long been back counts as caught up: it may have left and rejoined between two views.
        """
        for node, electable in self._electable.items():
            down = self._touched_by_process_fault(node)
            for name in sorted(self._catching_up[node]):
                seen = view.partitions.get(name)
                if seen is None:
                    continue
                if NodeId(int(node)) not in seen.isr:
                    electable.discard(name)
                elif not down and (name not in electable or not self._is_recent(self._touched_s.get(node, -math.inf))):
                    electable.discard(name)
                    self._catching_up[node].discard(name)
        done = [node for node, names in self._catching_up.items() if not names]
        for node in done:
            del self._catching_up[node], self._electable[node]

    def refusal(self, fault: Fault, view: ClusterView, overdue: Sequence[Fault] = ()) -> str:
        """Why the aimed ``fault`` must not begin now; empty: it may.

        ``overdue`` faults end as soon as the processes at their ends run.
        """
        return next(self._refusals(fault, view, overdue), "")

    def may_end(self, fault: Fault) -> bool:
        """Whether the end of ``fault``, which is due, can be proven now and is within the budget."""
        if self._keeps_promises and fault.traits.moves_clock and any(self._electable.values()):
            return False
        if not fault.traits.affects_process:
            return not any(self._touched_by_process_fault(node) for node in fault.nodes())
        if any(map(is_broker, fault.nodes())) and self._is_controller_away():
            return False
        if not self._keeps_promises or self._promise.knows_unclean or not self._promise.is_lossy(fault):
            return True
        return not any(self._electable.get(node) for node in fault.nodes())

    # ------------------------------------------------------------------------------------------------ internals

    def _refusals(self, fault: Fault, view: ClusterView, overdue: Sequence[Fault]) -> Iterator[str]:
        yield from self._excluded(fault)
        if fault.traits.affects_process and any(_share(fault, other) for other in overdue):
            yield "another fault waits for the node to run"
        if self._holds_up_starts(fault) and _of_processes(overdue):
            yield "a broker waits for the controller to start"
        for node in fault.nodes():
            if not self._is_running(node):
                yield f"node {node} does not run"
        if _needs_refusal(fault) and not self._is_written_to(fault, view):
            yield "too few replicas are in sync for writes that the disk could refuse"
        if self._keeps_promises:
            yield from self._more_than_promised(fault, view)

    def _excluded(self, fault: Fault) -> Iterator[str]:
        """The faults in force beside which it cannot be."""
        claims = set(fault.claims())
        for name, other in self._in_force.items():
            if claims.intersection(other.claims()):
                yield f"fault {name} has it"
            elif not fault.traits.affects_process and other.traits.affects_process and _share(fault, other):
                yield f"fault {name} has a process of it"
            elif self._is_full_or_cannot_start(fault, other) and _share(fault, other):
                yield f"fault {name} keeps it from being proven"

    def _is_full_or_cannot_start(self, fault: Fault, other: Fault) -> bool:
        """Whether ``other`` cuts links that the proof or the healing of ``fault`` needs."""
        if not other.traits.cuts_links:
            return False
        if _needs_refusal(fault):
            return True
        return fault.traits.affects_process and not self._promise.starts_cut_off

    def _is_written_to(self, fault: Fault, view: ClusterView) -> bool:
        """Whether leaders accept acks=all, and soon answer, wherever the fault's node holds a replica."""
        held = {name: node for node in fault.nodes() for name in _held(view, node)}
        return bool(held) and all(self._takes_writes(name, node, view) for name, node in held.items())

    def _takes_writes(self, name: TopicPartition, node: str, view: ClusterView) -> bool:
        members = {node_name(member) for member in view.partitions[name].isr}
        return node in members and len(members) > self._promise.lossy and members == set(self._sound(name, view))

    def _more_than_promised(self, fault: Fault, view: ClusterView) -> Iterator[str]:
        away = set() if fault.traits.moves_clock else set(fault.nodes())
        exposed = set().union(*self._electable.values()) if self._electable else set()
        if self._promise.is_lossy(fault):
            (node,) = fault.nodes()
            if len({*self._catching_up, node}) > self._promise.lossy:
                yield "as many brokers as may have lost something"
            if self._is_recent(self._clock_stepped_s):
                yield "a clock has stepped, which may cost any replica its place in the ISR"
            if set(_in_isr(view, node)) != set(_held(view, node)) or not view.partitions:
                yield f"node {node} is not in sync everywhere"
            exposed |= set(_held(view, node))
        elif fault.traits.moves_clock and exposed:
            yield "a broker that has lost something is not dropped from every ISR yet"
        for name in sorted(exposed):
            if not [node for node in self._sound(name, view) if node not in away]:
                yield f"{name} would have no sound member of the ISR left"

    def _sound(self, name: TopicPartition, view: ClusterView) -> list[str]:
        """The members of the ISR that have everything, and that no fault touches or has touched lately.

        None while a fault touches a controller, which then fences no broker, and afterwards starts every session anew.
        """
        seen = view.partitions.get(name)
        touched = {node for one in self._in_force.values() if not one.traits.moves_clock for node in one.nodes()}
        touched |= {node for node, ended_s in self._touched_s.items() if self._is_recent(ended_s)}
        if not all(map(is_broker, touched)):
            return []
        lost = {node for node, names in self._electable.items() if name in names}
        members = map(node_name, seen.isr) if seen is not None else ()
        return [node for node in members if node not in touched | lost and self._is_running(node)]

    def _is_running(self, node: str) -> bool:
        """As far as the target can tell."""
        return not supports(self._target, NodeStates) or self._target.is_running(node).holds

    def _is_recent(self, ended_s: float) -> bool:
        return self._now_s() - ended_s <= self._promise.noticed_s

    def _note_clock(self, fault: Fault) -> None:
        if fault.traits.moves_clock:
            self._clock_stepped_s = self._now_s()

    def _is_controller_away(self) -> bool:
        """Whether a broker that starts now would wait for a controller that a fault has taken away."""
        return any(map(self._holds_up_starts, self._in_force.values()))

    def _holds_up_starts(self, fault: Fault) -> bool:
        """Whether a broker that starts while ``fault`` is in force waits for a controller, as a real one does."""
        takes_controller = fault.traits.affects_process and not all(map(is_broker, fault.nodes()))
        return takes_controller and not self._promise.starts_cut_off

    def _touched_by_process_fault(self, node: str) -> bool:
        return any(node in one.nodes() for one in self._in_force.values() if one.traits.affects_process)


def _needs_refusal(fault: Fault) -> bool:
    """Whether only a write of the broker's own proves the fault, which has to meet it: the leader's load must go on."""
    return bool(getattr(fault, "must_refuse", False))


def _of_processes(faults: Sequence[Fault]) -> bool:
    return any(one.traits.affects_process for one in faults)


def _share(one: Fault, other: Fault) -> bool:
    return not set(one.nodes()).isdisjoint(other.nodes())


def _held(view: ClusterView, node: str) -> Iterator[TopicPartition]:
    return _where(view.partitions, node, in_sync=False)


def _in_isr(view: ClusterView, node: str) -> Iterator[TopicPartition]:
    return _where(view.partitions, node, in_sync=True)


def _where(partitions: Mapping[TopicPartition, PartitionView], node: str, *, in_sync: bool) -> Iterator[TopicPartition]:
    if is_broker(node):
        yield from (
            name
            for name, seen in sorted(partitions.items())
            if NodeId(int(node)) in (seen.isr if in_sync else seen.replicas)
        )
