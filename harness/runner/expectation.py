"""Resolves a scenario for one generation: its steps, its expected outcome, and the predictions for the checkers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from checkers.registry import KINDS
from harness.anomaly import predicted
from harness.errors import UsageError
from harness.replication.knobs import GENERATIONS
from harness.scenario import Expectation, Prediction, Scenario
from harness.schedule import Step
from harness.spelling import closest


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is expected of a run on a generation.

    Attributes:
        predictions: the anomalies.
        expectation: the outcome; None: the scenario names none.
    """

    predictions: tuple[Prediction, ...] = ()
    expectation: Expectation | None = None


NO_FORECAST = Forecast()
"""Of a generation with a knob that was overridden, because then it is not that generation any more."""


def forecast(scenario: Scenario, generation: str) -> Forecast:
    """What ``scenario`` expects on ``generation``. Raises as :func:`expectations` and :func:`predictions`."""
    return Forecast(predictions(scenario, generation), expectations(scenario).get(generation))


def generations(ranges: Iterable[str], path: str) -> list[str]:
    """The generations that ``ranges`` name, oldest first: ``["0.10", "2.0.0-2.1"]``, both ends included.

    Raises:
        UsageError: one is unknown, or a range runs backwards; the message begins with ``path``.
    """
    known = list(GENERATIONS)
    found: set[str] = set()
    for text in ranges:
        ends = text.strip().split("-")
        for end in ends:
            if end not in known:
                raise UsageError(f"{path}: generation {end!r} is not known; {closest(end, known)}")
        first, last = known.index(ends[0]), known.index(ends[-1])
        if last < first:
            raise UsageError(f"{path}: {text!r} runs backwards; generations, oldest first: {', '.join(known)}.")
        found.update(known[first : last + 1])
    return [name for name in known if name in found]


def expectations(scenario: Scenario) -> dict[str, Expectation]:
    """The expected outcome on each generation that the scenario names, oldest first.

    Raises:
        UsageError: a generation is unknown, or is named twice.
    """
    found: dict[str, Expectation] = {}
    for key, expectation in scenario.outcomes.items():
        for name in generations(key.split(","), "outcomes"):
            if name in found:
                raise UsageError(f"outcomes: generation {name!r} is named twice.")
            found[name] = expectation
    return {name: found[name] for name in GENERATIONS if name in found}


def predictions(scenario: Scenario, generation: str) -> tuple[Prediction, ...]:
    """The anomalies that the checkers are to expect.

    For an outcome in words that is every anomaly of the word's kind, unless ``anomalies`` names them.
    """
    for name in scenario.predictions:
        if name not in GENERATIONS:
            raise UsageError(f"predictions: generation {name!r} is not known; {closest(name, GENERATIONS)}")
    expectation = expectations(scenario).get(generation)
    if expectation is None:
        return scenario.predictions.get(generation, ())
    meant = predicted(KINDS, expectation.outcome, (prediction.kind for prediction in expectation.anomalies))
    return (*expectation.anomalies, *(Prediction(kind=kind) for kind in meant))


def performed(steps: Iterable[Step], generation: str) -> Iterator[tuple[int, Step]]:
    """The steps of a schedule that are performed on ``generation``, with their indexes."""
    for index, step in enumerate(steps):
        if step.generations is None or generation in generations(step.generations, f"schedule[{index}].generations"):
            yield index, step
