"""Compares observed with predicted outcomes: every scenario of the catalogue on every generation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from harness.errors import UsageError
from harness.outcome import LETTERS, Word
from harness.runner.expectation import expectations, generations
from harness.runner.known_differences import why_it_differs
from harness.runner.observation import Observed, differences, shortened
from harness.runner.plan import Plan
from harness.scenario import Scenario
from harness.spelling import closest


@dataclass(frozen=True, slots=True)
class Cell:
    """One scenario on one generation.

    Attributes:
        origin: the scenario's name or its file, to run it again.
        release: of Kafka, on real Kafka.
        observed: in words; empty when the run proves nothing.
        differences: from the prediction, one sentence each.
        logs: by partition and broker, the final log in short.
    """

    scenario: str
    origin: str
    catalogue: str
    generation: str
    release: str | None
    predicted: tuple[Word, ...]
    observed: tuple[Word, ...]
    differences: tuple[str, ...]
    logs: tuple[tuple[str, int, str], ...]

    @property
    def agrees(self) -> bool:
        """Whether what was observed is what was predicted."""
        return not self.differences

    @property
    def known(self) -> str | None:
        """Why it differs, if that is a known difference of the release; if it agrees, why it was known to differ."""
        return why_it_differs(self.scenario, self.release, self.observed, self.differences)

    @property
    def is_news(self) -> bool:
        """Whether it differs, or proves nothing, and that is no known difference of the release."""
        return not self.agrees and self.known is None

    @property
    def proves_nothing(self) -> bool:
        """Whether the schedule could not be executed, or the evidence has gaps: no prediction is met or missed."""
        return not self.observed

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        logs: dict[str, dict[str, str]] = {}
        for partition, node, log in self.logs:
            logs.setdefault(partition, {})[str(node)] = log
        return {
            "scenario": self.scenario,
            "catalogue": self.catalogue,
            "generation": self.generation,
            "release": self.release,
            "predicted": [word.value for word in self.predicted],
            "observed": [word.value for word in self.observed],
            "agrees": self.agrees,
            "differences": list(self.differences),
            "known": self.known,
            "final_logs": logs,
        }


def cell(plan: Plan, observed: Observed) -> Cell:
    """``observed`` compared with the expectation of the plan's generation, whatever was overridden."""
    return compared(plan.scenario, plan.generation, observed, plan.system.release)


def unplayed(plan: Plan, why: str) -> Cell:
    """The cell of a run that the machine or the target ended: it proves nothing; ``why`` is the reason."""
    return cell(plan, Observed(words=(), logs={}, replicas={}, invalid=(why,), unexpected=(), unmet=()))


def compared(scenario: Scenario, generation: str, observed: Observed, release: str | None) -> Cell:
    """``observed``, on a ``release`` of Kafka or none, compared with what ``scenario`` expects of ``generation``.

    The scenario names the generation.
    """
    expected = expectations(scenario)[generation]
    return Cell(
        scenario=scenario.id,
        origin=scenario.origin,
        catalogue=scenario.catalogue or scenario.id,
        generation=generation,
        release=release,
        predicted=expected.outcome,
        observed=() if observed.invalid else observed.words,
        differences=tuple(differences(expected, observed)),
        logs=tuple(
            (str(name), int(node), shortened(log)) for name, logs in observed.logs.items() for node, log in logs.items()
        ),
    )


def chosen(scenarios: Iterable[Scenario], wanted: Sequence[str]) -> list[Scenario]:
    """The scenarios that have outcomes and that ``wanted`` names, in the order of the catalogue; all when it is empty.

    The name is a scenario's id, that of its catalogue entry, ``A01``, or of its variant, ``A01/unclean``.

    Raises:
        UsageError: no scenario has one of the names.
    """
    known = sorted((one for one in scenarios if one.outcomes), key=lambda one: (one.catalogue or "~", one.id))
    for name in wanted:
        if not any(name in one.names for one in known):
            names = sorted({name for one in known for name in one.names})
            raise UsageError(f"no scenario with outcomes goes by {name!r}; {closest(name, names)}")
    return [one for one in known if not wanted or one.names.intersection(wanted)]


def rows(scenarios: Iterable[Scenario], wanted: Sequence[str]) -> Iterator[tuple[Scenario, list[str]]]:
    """Each scenario with its generations, oldest first; only those in ``wanted``, unless it is empty."""
    meant = generations(wanted, "--generations")
    for scenario in scenarios:
        names = [name for name in expectations(scenario) if not meant or name in meant]
        if names:
            yield scenario, names


def impossible(scenario: Scenario, generation: str) -> str | None:
    """Why the schedule of ``scenario`` cannot be executed on real releases of ``generation``; None: it can."""
    for ranges, why in scenario.not_on_real_kafka.items():
        if generation in generations(ranges.split(","), "not_on_real_kafka"):
            return why
    return None


def abbreviated(words: Iterable[Word]) -> str:
    """``L+D``; a question mark for a run that proves nothing."""
    return "+".join(LETTERS[word] for word in words) or "?"
