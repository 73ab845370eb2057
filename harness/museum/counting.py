"""Which of the recorded runs count, and why those that went otherwise than predicted did."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

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
    for one in sorted(entries, key=lambda one: (one.started, one.run)):
        if counts(one, scenarios):
            found[one.scenario, one.release].append(one)
    return dict(found)


def counts(one: Entry, scenarios: Mapping[str, Scenario]) -> bool:
    """Whether its scenario is played, and predicts, as it did when the run was judged."""
    scenario = scenarios.get(one.scenario)
    if scenario is None:
        return False
    now = fingerprint(scenario, one.generation), foretold(scenario, one.generation)
    return (one.schedule, one.prediction) == now


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
