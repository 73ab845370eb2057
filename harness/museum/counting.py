"""Which of the recorded runs count, and why those that went otherwise than predicted did."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache

from harness.museum.entry import Entry, fingerprint, foretold
from harness.museum.exhibits import BUSY, MISTAKEN
from harness.runner.known_differences import why_it_differs
from harness.runner.matrix import impossible
from harness.scenario import Scenario
from harness.targets.kafka.releases import numbers

Runs = Mapping[tuple[str, str], Sequence[Entry]]
"""By scenario and release, the runs that count, oldest first."""


def counted(entries: Iterable[Entry], scenarios: Mapping[str, Scenario]) -> dict[tuple[str, str], list[Entry]]:
    """By scenario and release, the runs that count, oldest first."""
    found: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    counts = counting(scenarios)
    for one in sorted(entries, key=lambda one: (one.started, one.run)):
        if counts(one):
            found[one.scenario, one.release].append(one)
    return dict(found)


def counting(scenarios: Mapping[str, Scenario]) -> Callable[[Entry], bool]:
    """Whether the scenario of an entry is played, and predicts, as it did when the run was judged."""

    @cache
    def now(name: str, generation: str) -> tuple[str, str] | None:
        scenario = scenarios.get(name)
        return None if scenario is None else (fingerprint(scenario, generation), foretold(scenario, generation))

    return lambda one: (one.schedule, one.prediction) == now(one.scenario, one.generation)


def releases(runs: Runs) -> list[str]:
    """Those that there are runs of, oldest first."""
    return sorted({version for _, version in runs}, key=numbers)


def proves(one: Entry) -> bool:
    """Whether a run counts as evidence: it came to its end, and the harness made no known mistake."""
    return not one.broke_off and one.run not in MISTAKEN


def explanation(one: Entry, known: Mapping[str, Scenario]) -> str | None:
    """Why a run did not go as predicted: what went amiss in it, or else in general; None: unknown."""
    return (
        BUSY.get(one.run)
        or MISTAKEN.get(one.run)
        or why_it_differs(one.scenario, one.release, one.observed, one.differences)
        or impossible(known[one.scenario], one.generation)
    )
