"""Exploring seeds: many runs, on several processor cores, and what they found."""

from __future__ import annotations

import gc
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, fields, replace
from itertools import count, islice
from typing import NamedTuple

from harness.checker import Verdict
from harness.exploration.depth import run_of
from harness.model import CORE, STACK
from harness.replication.knobs import REMEDIES, Knobs, written
from harness.signals import die_with_parent, ignore, withheld
from harness.simulation.core.configuration import Setup
from harness.simulation.violations import BROKEN_CORE, Violation, gravest
from harness.workers import workers

_CHUNKS = {CORE: 25, STACK: 1}
"""Seeds per task, by depth: enough that handing them over costs nothing, few enough that Ctrl-C is answered."""


class Explored(NamedTuple):
    """What one seed came to.

    Attributes:
        violation: the gravest that nothing excuses; None: there is none.
        excused: how many breaches the configuration gave away, by kind.
    """

    seed: int
    events: int
    virtual_ns: int
    violation: Violation | None
    excused: tuple[tuple[str, int], ...]


@dataclass(slots=True)
class Tally:
    """What an exploration has found so far.

    Attributes:
        seeds: how many were run; ``events`` and ``virtual_ns`` of all of them together.
        found: by invariant and kind: how many seeds, and the first of them (by number) with its violation.
        excused: how many seeds show something of a kind that the configuration gave away.
    """

    seeds: int = 0
    events: int = 0
    virtual_ns: int = 0
    seconds: float = 0.0
    found: dict[tuple[str, str], tuple[int, int, Violation]] | None = None
    excused: Counter[str] | None = None

    def add(self, one: Explored) -> None:
        """Count one more."""
        self.found = {} if self.found is None else self.found
        self.excused = Counter() if self.excused is None else self.excused
        self.seeds += 1
        self.events += one.events
        self.virtual_ns += one.virtual_ns
        self.excused.update({kind for kind, _ in one.excused})
        if one.violation is not None:
            key = (one.violation.invariant, one.violation.kind)
            number, first, violation = self.found.get(key, (0, one.seed, one.violation))
            if one.seed <= first:
                first, violation = one.seed, one.violation
            self.found[key] = (number + 1, first, violation)

    @property
    def flawed(self) -> int:
        """How many seeds showed a violation."""
        return sum(number for number, _, _ in (self.found or {}).values())

    @property
    def first_flawed(self) -> int | None:
        """The first seed that did, by number."""
        return min((first for _, first, _ in (self.found or {}).values()), default=None)


def run_seed(seed: int, setup: Setup) -> Explored:
    """Run one seed. An assertion of the core's own that fails is a violation, too: it tells which seed to replay."""
    world = run_of(seed, setup)
    try:
        violations = world.run().violations
    except AssertionError as broken:
        why = str(broken) or "an assertion without words"
        found = Violation("R8", BROKEN_CORE, None, None, (), world.now_ns, world.events, Verdict.VIOLATION, why)
        violations = (found,)
    excused = Counter(one.kind for one in violations if one.verdict is not Verdict.VIOLATION)
    return Explored(seed, world.events, world.now_ns, gravest(violations), tuple(sorted(excused.items())))


def explore(
    setup: Setup, seeds: Iterator[int], jobs: int, seen: Callable[[Explored], None], *, until_s: float | None = None
) -> float:
    """Run ``seeds`` in ``jobs`` processes until there are none left, or the time is up.

    Args:
        setup: the protocol and what is not drawn.
        seeds: which; may be endless when ``until_s`` is given.
        jobs: 1: in this process.
        seen: called with each seed, in no particular order.
        until_s: how long to go on; None: until there are no seeds left.

    Returns:
        how many seconds it took.
    """
    begun = time.monotonic()
    deadline = None if until_s is None else begun + until_s
    if jobs == 1:
        gc.freeze()
        for seed in seeds:
            seen(run_seed(seed, setup))
            if deadline is not None and time.monotonic() >= deadline:
                break
    else:
        _explore_apart(setup, seeds, jobs, seen, deadline)
    return time.monotonic() - begun


def _explore_apart(
    setup: Setup, seeds: Iterator[int], jobs: int, seen: Callable[[Explored], None], deadline: float | None
) -> None:
    running: set[Future[list[Explored]]] = set()
    with workers(jobs, _prepare) as pool:
        while True:
            on_time = deadline is None or time.monotonic() < deadline
            while on_time and len(running) < 2 * jobs and (chunk := tuple(islice(seeds, _CHUNKS[setup.depth]))):
                with withheld():
                    running.add(pool.submit(_run_chunk, chunk, setup))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                for one in future.result():
                    seen(one)


def _run_chunk(seeds: Sequence[int], setup: Setup) -> list[Explored]:
    return [run_seed(seed, setup) for seed in seeds]


def _prepare() -> None:
    """Leave signals to the parent, end with it, and let the garbage collector look at worlds only."""
    ignore()
    die_with_parent()
    gc.freeze()


def numbers(first: int, how_many: int | None) -> Iterator[int]:
    """Seeds from ``first`` on; None: without end."""
    return iter(range(first, first + how_many)) if how_many is not None else count(first)


def remedies(seed: int, setup: Setup, violation: Violation) -> list[str]:
    """Which single rules would have prevented ``violation``, as ``--set`` writes them.

    Found by experiment: the same seed runs again with one knob turned to what it is in the newest generation, or to a
    remedy that no generation has, and does not show a violation of that kind. It is a hint and no proof, for a run
    takes another course from the first difference on.
    """
    newest = Knobs()
    better = {**{f.name: getattr(newest, f.name) for f in fields(Knobs)}, **REMEDIES}
    changed = {name: value for name, value in better.items() if getattr(setup.knobs, name) != value}
    found = []
    for name, value in changed.items():
        again = run_seed(seed, replace(setup, knobs=replace(setup.knobs, **{name: value})))
        if again.violation is None or again.violation.kind != violation.kind:
            found.append(f"replication.{name}={written(value)}")
    return found
