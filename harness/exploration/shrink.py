"""Shrinks a schedule that shows a violation, by delta debugging."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from harness.exploration.depth import Run, run_of
from harness.simulation.core.configuration import MS, Configuration, Setup
from harness.simulation.core.drawn_loads import PLAIN
from harness.simulation.core.planned import Planned
from harness.simulation.finished import Finished
from harness.simulation.violations import Violation, gravest

Part = TypeVar("Part")

_ROUNDS = 4
"""After so many there is nothing left that a plainer cluster would still make superfluous."""


def fewest(parts: Sequence[Part], shows: Callable[[tuple[Part, ...]], bool]) -> tuple[Part, ...]:
    """A subset of ``parts``, in their order, that still ``shows`` it and of which no single part can be left out.

    Zeller's ddmin: ever smaller pieces are left out, as long as what remains shows it. ``shows`` must hold for all of
    ``parts``.
    """
    kept, pieces = tuple(parts), 2
    while kept:
        size = max(1, -(-len(kept) // pieces))
        for start in range(0, len(kept), size):
            rest = kept[:start] + kept[start + size :]
            if shows(rest):
                kept, pieces = rest, max(pieces - 1, 2)
                break
        else:
            if size == 1:
                return kept
            pieces = min(2 * pieces, len(kept))
    return kept


@dataclass(frozen=True, slots=True)
class Shrunk:
    """A minimal schedule.

    Attributes:
        violation: what it shows, of the same kind as the original.
        runs: how many schedules were tried.
        world: its last run, recorded.
    """

    seed: int
    setup: Setup
    configuration: Configuration
    faults: tuple[Planned, ...]
    violation: Violation
    runs: int
    world: Run


class NothingToShrink(Exception):
    """The seed breaks no promise."""


class _Shrinking:
    """Looks for a smaller schedule that shows a violation of the same kind."""

    def __init__(self, seed: int, setup: Setup) -> None:
        self._seed = seed
        self._setup = setup
        self.runs = 0
        self.kind = ""

    def run(self, configuration: Configuration, faults: Sequence[Planned]) -> tuple[Run, Finished | None]:
        """One schedule; None: the core broke on it."""
        self.runs += 1
        world = run_of(self._seed, self._setup, configuration=configuration, faults=faults, recorded=True)
        try:
            return world, world.run()
        except AssertionError:
            return world, None

    def shows(self, configuration: Configuration, faults: Sequence[Planned]) -> bool:
        """Whether this schedule shows it, too."""
        finished = self.run(configuration, faults)[1]
        found = None if finished is None else gravest(finished.violations)
        return found is not None and found.kind == self.kind

    def simplest(self, configuration: Configuration, faults: tuple[Planned, ...]) -> Configuration:
        """Make the cluster and its load as plain as they can be, one thing after the other."""
        for change in _simpler(configuration, faults):
            candidate = replace(configuration, **change)
            if candidate != configuration and self.shows(candidate, faults):
                configuration = candidate
        return configuration

    def rounded(self, configuration: Configuration, faults: tuple[Planned, ...]) -> tuple[Planned, ...]:
        """Move each fault to a round time, if it does not matter."""
        for at, fault in enumerate(faults):
            for unit_ns in (10 * MS, MS):
                plain = fault._replace(
                    at_ns=fault.at_ns // unit_ns * unit_ns, for_ns=-(-fault.for_ns // unit_ns) * unit_ns
                )
                candidate = (*faults[:at], plain, *faults[at + 1 :])
                if plain != fault and self.shows(configuration, candidate):
                    faults = candidate
                    break
        return faults


def _simpler(configuration: Configuration, faults: Sequence[Planned]) -> Iterator[dict[str, Any]]:
    """Changes of a configuration worth trying, the most telling first."""
    yield {"load": PLAIN}
    yield {"loss": 0.0, "duplicate": 0.0, "late": 0.0}
    yield {"duplicate": 0.0}
    yield {"late": 0.0}
    yield {"loss": 0.0}
    yield {"producers": 1, "acks": (-1,)}
    yield {"producers": 1}
    yield {"records_per_send": 1}
    yield {"fetch_batches": 1_000}
    yield {"unclean_leader_election_enable": False}
    yield {"checkpoints_flushed": True}
    yield {"flush_messages": 0, "flush_ms": 0}
    yield {"spread_us": 50}
    last_ns = max((fault.at_ns for fault in faults), default=0)
    for horizon_ms in (last_ns // MS + 10, last_ns // MS + 100):
        yield {"horizon_ms": min(configuration.horizon_ms, horizon_ms)}
    for send_every_ms in (100, 50, 25):
        yield {"send_every_ms": max(configuration.send_every_ms, send_every_ms)}


def shrink_seed(seed: int, setup: Setup, say: Callable[[str], None] = lambda _: None) -> Shrunk:
    """The smallest schedule that can be found for what ``seed`` shows.

    Raises:
        NothingToShrink: it shows nothing.
    """
    world = run_of(seed, setup)
    configuration = world.configuration
    finished = world.run()
    violation = gravest(finished.violations)
    if violation is None:
        raise NothingToShrink(f"seed {seed} breaks no promise.")
    shrinking = _Shrinking(seed, setup)
    shrinking.kind = violation.kind
    faults = finished.happened
    say(f"{violation.kind} after {len(faults)} faults; leaving out what is not needed")
    for _ in range(_ROUNDS):
        before = (configuration, faults)
        faults = fewest(faults, lambda some, plain=configuration: shrinking.shows(plain, some))  # type: ignore[misc]
        configuration = shrinking.simplest(configuration, faults)
        faults = shrinking.rounded(configuration, faults)
        say(f"{len(faults)} faults are left after {shrinking.runs} runs")
        if (configuration, faults) == before:
            break
    last, ended = shrinking.run(configuration, faults)
    found = gravest(ended.violations) if ended is not None else None
    assert found is not None
    return Shrunk(seed, setup, configuration, faults, found, shrinking.runs, last)
