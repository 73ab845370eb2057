"""Refuses a schedule that waits for a decision while too few combined brokers run for a quorum.

A KRaft quorum decides while one controller reaches a majority, itself included. In combined mode a schedule that takes
two of three brokers away and waits for a new leader waits in vain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from harness.errors import UsageError
from harness.fault import Fault
from harness.schedule import Step

_DECIDED = ("leader", "leader_epoch", "isr", "elr", "live")
"""The conditions of a step that the active controller decides."""

_PROCESS = re.compile(r"the process of node (?P<node>\d+)")
_LINK = re.compile(r"link (?P<source>\d+)->(?P<destination>\d+)")


@dataclass(frozen=True, slots=True)
class Coming:
    """A fault of a schedule.

    Attributes:
        fault: the fault.
        claims: what it has to itself, see :meth:`harness.fault.Fault.claims`; None: its nodes are only known during the
            run.
    """

    fault: Fault
    claims: Sequence[str] | None


@dataclass(slots=True)
class _Force:
    """The faults in force, by their names, and what the last step waited for."""

    brokers: int
    faults: dict[str, Coming] = field(default_factory=dict)
    known: dict[str, object] = field(default_factory=dict)

    def most_that_hear_each_other(self) -> int:
        """The most brokers that one of them can reach, itself included."""
        claims = [claim for one in self.faults.values() for claim in one.claims or () if _takes_away(one.fault, claim)]
        down = {int(found["node"]) for claim in claims if (found := _PROCESS.fullmatch(claim))}
        cut = {(int(found[1]), int(found[2])) for claim in claims if (found := _LINK.fullmatch(claim))}
        up = [node for node in range(self.brokers) if node not in down]
        heard = [sum((a, b) not in cut and (b, a) not in cut for b in up) for a in up]
        unnamed = sum(one.claims is None and one.fault.traits.stops_process for one in self.faults.values())
        return min(max(heard, default=0), len(up) - unnamed)

    def is_new(self, step: Step) -> bool:
        """Whether a step waits for a decision other than the last one that a step waited for."""
        if step.elect is not None:
            return step.elect.expect == "ok"
        if step.until is None:
            return False
        wanted = {name: value for name in _DECIDED if (value := getattr(step.until, name)) is not None}
        is_new = any(name in self.known and self.known[name] != value for name, value in wanted.items())
        self.known |= wanted
        return is_new


def undecided(brokers: int, steps: Mapping[int, Step], coming: Mapping[int, Coming]) -> Iterator[tuple[int, int]]:
    """The steps that wait in vain, by their index, each with the number of connected brokers then.

    Args:
        brokers: their number; all are controllers.
        steps: of the schedule.
        coming: the fault of each step that injects one, by the step's index.
    """
    force = _Force(brokers)
    for index, step in steps.items():
        for name in (step.heal, step.release):
            force.faults.pop(name or "", None)
        if index in coming:
            force.faults[step.name or ""] = coming[index]
        hear = force.most_that_hear_each_other()
        if force.is_new(step) and 2 * hear <= brokers:
            yield index, hear


def without_quorum(path: str, target: str, hear: int, brokers: int) -> UsageError:
    """The error for a step that waits in vain."""
    return UsageError(
        f"{path}: in {target!r} brokers are the controllers, and at this step no more than {hear} of {brokers} hear "
        "each other, so that no controller decides what it waits for.",
        "Choose a target whose controllers are nodes of their own, as process:RELEASE and process:RELEASE#quorum.",
    )


def _takes_away(fault: Fault, claim: str) -> bool:
    return fault.traits.stops_process or claim.startswith("link ")
