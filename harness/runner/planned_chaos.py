"""Plans the random faults of a run: the mix that the target supports and the budget may ever allow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import faults
from harness.errors import UsageError
from harness.fault import Fault
from harness.runner.fault_budget import Promise
from harness.scenario import Scenario
from harness.schedule import Chaos
from harness.steps import LONGEST_S
from harness.targets.system import System


@dataclass(frozen=True, slots=True)
class ChaosFault:
    """A fault of a random mix: how often it comes up in a round, and how long it lasts (shortest, longest)."""

    fault: Fault
    weight: int
    for_s: tuple[float, float]


@dataclass(frozen=True, slots=True)
class PlannedChaos:
    """The random faults of a run.

    Attributes:
        rules: as the scenario has them: how far apart they are, how many at once, within which budget.
        duration_s: how long they go on at least.
        seed: draws them.
        faults: the mix, by the index that each has in the scenario.
        left_out: why one of the scenario's mix does not come up, by its index: containers support fewer faults, and not
            every cluster promises to survive every fault.
        promise: what the cluster promises to survive.
    """

    rules: Chaos
    duration_s: float
    seed: int
    faults: Mapping[int, ChaosFault]
    left_out: Mapping[int, str]
    promise: Promise


def planned_chaos(scenario: Scenario, asked_s: float | None, seed: int, system: System) -> PlannedChaos | None:
    """The random faults of ``scenario``; None: it has a schedule.

    Args:
        scenario: of a run.
        asked_s: how long they are to go on; None: as in the scenario.
        seed: of the run.
        system: what runs.

    Raises:
        UsageError: a fault is malformed, the duration is out of range, or the budget allows none of the faults.
    """
    if scenario.chaos is None:
        return None
    promise = Promise.of(system.known_settings(), system.protocol.knobs, starts_cut_off=system.starts_cut_off)
    chosen, left_out = _possible(dict(enumerate(chaos_faults(scenario.chaos))), system)
    if scenario.chaos.at_once > 1 and scenario.chaos.budget != "any":
        chosen, refused = _within_the_budget(chosen, promise)
        left_out = {**left_out, **refused}
    return PlannedChaos(scenario.chaos, _duration_s(scenario, asked_s), seed, chosen, left_out, promise)


def path_of(index: int) -> str:
    """Where the scenario has a fault of its mix."""
    return f"chaos.faults[{index}]"


def chaos_faults(rules: Chaos) -> Iterable[ChaosFault]:
    """The whole mix of a scenario, in its order.

    Raises:
        UsageError: a fault is malformed.
    """
    for index, mapping in enumerate(rules.faults):
        path = path_of(index)
        written = dict(mapping)
        weight = written.pop("weight", 1)
        if not isinstance(weight, int) or isinstance(weight, bool) or not 1 <= weight <= 100:
            raise UsageError(f"{path}.weight: {weight!r} is not a whole number from 1 to 100.")
        for_s = _span(written.pop("for_s", rules.for_s), f"{path}.for_s")
        yield ChaosFault(faults.parse(written, path), weight, for_s)


def refusal(path: str, fault: Fault, system: System) -> UsageError | None:
    """Why the system does not support that fault; None: it does."""
    unsupported = system.unsupported(fault)
    return None if unsupported is None else UsageError(f"{path}: {unsupported.what}", unsupported.remedy)


def _duration_s(scenario: Scenario, asked_s: float | None) -> float:
    duration_s = scenario.duration_s if asked_s is None else asked_s
    if not 0 < duration_s <= LONGEST_S:
        raise UsageError(
            f"duration {duration_s:g} s is out of range.", f"Durations are greater than 0 and at most {LONGEST_S}."
        )
    return duration_s


def _span(written: Any, path: str) -> tuple[float, float]:
    match written:
        case [int() | float() as shortest, int() | float() as longest] if (
            0 <= shortest <= longest <= LONGEST_S and not isinstance(shortest, bool) and not isinstance(longest, bool)
        ):
            return float(shortest), float(longest)
        case _:
            raise UsageError(f"{path}: {written!r} is not [shortest, longest] in seconds.")


def _possible(mix: Mapping[int, ChaosFault], system: System) -> tuple[Mapping[int, ChaosFault], Mapping[int, str]]:
    """The faults of a mix that the system supports, if it leaves others out, and why it does.

    If none would be left, all are kept, to be refused, unless the system supports no fault whatsoever.
    """
    if not system.leaves_faults_out:
        return mix, {}
    left_out = {
        index: str(refused)
        for index, one in mix.items()
        if (refused := refusal(path_of(index), one.fault, system)) is not None
    }
    return _without(mix, left_out) if len(left_out) < len(mix) or not system.controls else (mix, {})


def _within_the_budget(
    mix: Mapping[int, ChaosFault], promise: Promise
) -> tuple[Mapping[int, ChaosFault], Mapping[int, str]]:
    """The faults of a mix that the promised budget may ever allow, and why not the others.

    Raises:
        UsageError: none would be left.
    """
    refused = {
        index: f"{path_of(index)}: {one.fault.kind!r} is not within budget 'promised': {why}."
        for index, one in mix.items()
        if (why := promise.never_affords(one.fault))
    }
    if mix and len(refused) == len(mix):
        raise UsageError(next(iter(refused.values())), "Set chaos.budget=any to have it all the same.")
    return _without(mix, refused)


def _without(
    mix: Mapping[int, ChaosFault], left_out: Mapping[int, str]
) -> tuple[Mapping[int, ChaosFault], Mapping[int, str]]:
    return {index: one for index, one in mix.items() if index not in left_out}, left_out
