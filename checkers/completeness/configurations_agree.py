"""The parts of ``run.json`` agree: scenario, resolved configuration, predictions and the acks of its sends.

A run's configuration holds the scenario, and what became of it: settings and the parameters of the workload.
Predictions follow from the scenario and the generation, and the acks of each send from the workload and the schedule.
Each of them decides how grave a finding is. Where two of them contradict each other the run is ``INVALID``.

Runs without a target have no such scenario and are not checked. Real Kafka has its own names for settings; of these the
minimum ISR and unclean elections are compared. Whether producers are idempotent is compared on clusters that support
it, from 0.11 on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from checkers.registry import KINDS
from checkers.views.generations import since
from checkers.views.recorded_load import recorded_load, unreadable_load
from checkers.views.recorded_target import unknown_target, was_real_kafka
from harness.anomaly import predicted
from harness.history.run_directory import Manifest
from harness.orders import ALL_ACKS
from harness.replication.knobs import GENERATIONS
from harness.workload import WorkloadParameters

_OF_REAL_KAFKA = frozenset({"min.insync.replicas", "unclean.leader.election.enable"})

_ACKS = {"all": "acks_all", "1": "acks_leader", "0": "acks_none"}
"""By the acks of a send: the count of such sends in the history."""


def disagreements(manifest: Manifest) -> Iterator[str]:
    """One sentence for each thing that ``run.json`` states in two ways, or predicts without its scenario."""
    configuration = manifest.configuration
    if "target" not in configuration:
        return
    if unknown := unknown_target(configuration):
        yield unknown
        return
    scenario, real = configuration.get("scenario") or {}, was_real_kafka(configuration)
    written, settings = (scenario.get("cluster") or {}).get("settings") or {}, configuration.get("settings") or {}
    compared = set(written) & _OF_REAL_KAFKA if real else set(written)
    yield from _different("setting", compared, written, settings)
    if unreadable := unreadable_load(configuration):
        yield unreadable
    loaded, workload = scenario.get("workload") or {}, configuration.get("workload") or {}
    numbers = not real and since(manifest.generation, "0.11")
    numbering = set() if numbers else _numbering(recorded_load({"workload": loaded}))
    yield from _different("workload's", set(loaded) - numbering, loaded, workload)
    foreseen = [_plain(one) for one in _predicted(scenario, manifest.generation)] if manifest.predictions else []
    for one in manifest.predictions:
        if _plain(one) not in foreseen:
            yield f"run.json predicts {one['kind']!r}, and its scenario does not, on generation {manifest.generation}."


def unasked(manifest: Manifest, numbers: Mapping[str, int]) -> Iterator[str]:
    """A sentence about sends with acks that nothing in the configuration asks for; ``numbers`` as in ``COUNTS``.

    After a background load seawall itself sends each partition a record with acks=all, whatever the load asked for.
    """
    configuration = manifest.configuration
    if "target" not in configuration:
        return
    load = recorded_load(configuration)
    steps = (configuration.get("scenario") or {}).get("schedule") or ()
    asked = {str(step["send"].get("acks", "all")) for step in steps if step.get("send")}
    if load is not None and load.has_background_load:
        asked |= {"all", *("all" if acks == ALL_ACKS else str(acks) for acks in load.asked_acks)}
    strange = [acks for acks, name in _ACKS.items() if numbers[name] and acks not in asked]
    if strange:
        wanted = ", ".join(sorted(asked)) or "no sends"
        yield f"The history has sends with acks={', '.join(strange)}, and run.json's configuration asks for {wanted}."


def _numbering(load: WorkloadParameters | None) -> set[str]:
    """The parameters that decide whether producers number their records."""
    if load is None:
        return set()
    plain, without = load.model_dump(), load.without_numbers().model_dump()
    return {name for name, value in plain.items() if value != without[name]}


def _different(what: str, names: set[str], written: Mapping[str, Any], resolved: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(names & set(resolved)):
        if _text(written[name]) != _text(resolved[name]):
            yield (
                f"run.json's scenario has the {what} {name} {_text(written[name])}, "
                f"and its configuration {_text(resolved[name])}."
            )


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_text, value))}]"
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


def _predicted(scenario: Mapping[str, Any], generation: str) -> Iterator[Mapping[str, Any]]:
    """What the scenario predicts on a generation, as the runner has it."""
    expectation = next(
        (outcome for names, outcome in (scenario.get("outcomes") or {}).items() if generation in _generations(names)),
        None,
    )
    if expectation is None:
        yield from (scenario.get("predictions") or {}).get(generation, ())
        return
    exact = expectation.get("anomalies") or ()
    yield from exact
    yield from ({"kind": kind} for kind in predicted(KINDS, expectation["outcome"], (one["kind"] for one in exact)))


def _generations(names: str) -> Iterator[str]:
    known = list(GENERATIONS)
    for ends in (one.strip().split("-") for one in names.split(",")):
        yield from known[known.index(ends[0]) : known.index(ends[-1]) + 1]


def _plain(prediction: Mapping[str, Any]) -> tuple[Any, ...]:
    where = (prediction.get(name) for name in ("topic", "partition", "offset"))
    return prediction.get("kind"), *where, prediction.get("verdict", "VIOLATION")
