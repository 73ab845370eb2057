"""What the museum keeps of a run on real Kafka, and of all of them: a file of JSON."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from harness import documents
from harness.documents import Unfit
from harness.errors import InvalidRun, UsageError
from harness.history.run_directory import Manifest, RunDirectory
from harness.runner.expectation import expectations, performed, predictions
from harness.runner.matrix import compared
from harness.runner.observation import Gathered, observe
from harness.scenario import Scenario, load
from harness.targets.awaiting import WHAT_NODES_SAID
from harness.targets.kafka.process_source import KIND
from harness.targets.kafka.releases import numbers
from harness.validation import validated

_WHAT_IS_PLAYED = ("cluster", "topics", "workload", "schedule")
_HOW_LONG_IS_WAITED = "within_s"


@dataclass(frozen=True, slots=True)
class Entry:
    """One recorded run of a shipped scenario on a release of Kafka.

    Attributes:
        run: its id: the scenario's name, when it was started, the seed.
        catalogue: the entry of the catalogue of losses, and which variant.
        release: of Kafka, ``4.1.0``.
        target: what was run, ``process:4.1.0``.
        generation: the protocol generation whose prediction it is held against.
        schedule: the fingerprint of what was played: see :func:`fingerprint`.
        prediction: the fingerprint of what it was held against: see :func:`foretold`.
        predicted, observed: the words of :mod:`harness.outcome`; nothing is observed where the run proves nothing.
        differences: how they differ, or why the run proves nothing, a sentence each.
        logs: by partition and broker, what was on the disks in the end.
        acknowledged: how many records were.
        run_s: how long the run took, from the start of the first process to the last row.
        detected_s: from the first fault, or where there was none the start of the load, to the verdict: until the
            evidence was complete, and checked.
    """

    run: str
    scenario: str
    catalogue: str
    release: str
    target: str
    generation: str
    seed: int
    schedule: str
    started: str
    prediction: str
    predicted: tuple[str, ...]
    observed: tuple[str, ...]
    differences: tuple[str, ...]
    logs: Mapping[str, Mapping[str, str]]
    acknowledged: int
    run_s: float
    detected_s: float

    @property
    def agrees(self) -> bool:
        """Whether what was observed is what was predicted."""
        return not self.differences

    @property
    def broke_off(self) -> bool:
        """Whether the run proves nothing."""
        return not self.observed


def entry(path: Path) -> Entry:
    """The entry of the run that was recorded in the directory ``path``, held against today's prediction.

    Raises:
        InvalidRun: it is no run directory, or a table of it is broken.
        UsageError: it is no run of a release of Kafka, or of no shipped scenario that has outcomes.
    """
    gathered = Gathered.recorded(path)
    manifest = gathered.manifest
    scenario = load(manifest.scenario)
    if not _is_a_release(manifest) or manifest.generation not in expectations(scenario):
        raise UsageError(f"run {manifest.run} is none of a release of Kafka, of a scenario with outcomes for it.")
    lacking = [name for name in _WHAT_IS_PLAYED if name not in manifest.configuration.get("scenario", {})]
    if lacking:
        raise InvalidRun(f"{path}/run.json: configuration.scenario has no {', '.join(lacking)}.")
    expected = [one.model_dump(mode="json") for one in predictions(scenario, manifest.generation)]
    started_s = time.monotonic()
    observed = observe(replace(gathered, predictions=expected))
    checked_s = time.monotonic() - started_s
    cell = compared(scenario, manifest.generation, observed, manifest.versions["kafka"]).to_json()
    return Entry(
        run=manifest.run,
        scenario=scenario.id,
        catalogue=cell["catalogue"],
        release=cell["release"],
        target=manifest.configuration["target"],
        generation=manifest.generation,
        seed=manifest.seed,
        schedule=_digest(_played(manifest.configuration["scenario"])),
        started=manifest.started_wall[:19],
        prediction=foretold(scenario, manifest.generation),
        predicted=tuple(cell["predicted"]),
        observed=tuple(cell["observed"]),
        differences=tuple(one.partition(WHAT_NODES_SAID)[0] for one in cell["differences"]),
        logs=cell["final_logs"],
        acknowledged=sum(row["f"] == "send" and row["type"] == "ok" for row in gathered.history),
        run_s=round(manifest.duration_s or 0.0, 1),
        detected_s=round(_evident_s(gathered) + checked_s, 1),
    )


def found(places: Iterable[Path]) -> list[Path]:
    """The run directories among ``places`` and below them.

    Raises:
        UsageError: there is none in one of the places.
    """
    paths: list[Path] = []
    for place in places:
        below = sorted(one.parent for one in place.rglob("run.json") if not one.parent.is_symlink())
        if not below:
            raise UsageError(f"there is no run in {place}.", "Name a run directory, or a directory of such.")
        paths += below
    return sorted(set(paths))


def is_of_the_museum(path: Path) -> bool:
    """Whether the run in ``path`` has come to an end, and was one of a release of Kafka.

    Raises:
        InvalidRun: it is no run directory.
    """
    manifest: Manifest = RunDirectory.open(path).manifest()
    return manifest.state in ("complete", "abandoned") and _is_a_release(manifest)


def _is_a_release(manifest: Manifest) -> bool:
    """Whether Kafka ran as it was fetched: a directory or an image may hold anything."""
    return manifest.configuration.get("target") == f"{KIND.name}:{manifest.versions.get('kafka')}"


def fingerprint(scenario: Scenario, generation: str) -> str:
    """What is played of ``scenario`` on ``generation``, in twelve letters.

    It is the same for two texts of a scenario as long as the cluster, the topics, the load and the steps are; how long
    a step may take does not matter.
    """
    written = scenario.model_dump(mode="json", by_alias=True, exclude_none=True)
    written["schedule"] = [
        written["schedule"][index] for index, _ in performed(scenario.schedule or (), generation)
    ]  # as a run's manifest has it
    return _digest(_played(written))


def foretold(scenario: Scenario, generation: str) -> str:
    """What ``scenario`` predicts of ``generation``, in twelve letters; none where it predicts nothing.

    What is written for people, why it is so, does not matter.
    """
    expected = expectations(scenario).get(generation)
    return (
        "" if expected is None else _digest(expected.model_dump(mode="json", exclude_defaults=True, exclude={"note"}))
    )


def _digest(written: Any) -> str:
    return hashlib.sha256(json.dumps(written, sort_keys=True).encode()).hexdigest()[:12]


def _played(written: Mapping[str, Any]) -> Any:
    return _without_patience({name: written[name] for name in _WHAT_IS_PLAYED})


def _without_patience(value: Any) -> Any:
    match value:
        case dict():
            return {name: _without_patience(one) for name, one in value.items() if name != _HOW_LONG_IS_WAITED}
        case list() | tuple():
            return [_without_patience(one) for one in value]
        case _:
            return value


def _evident_s(run: Gathered) -> float:
    """From the first fault, or else the first row of the history, to its last one."""
    rows = [row["time_ns"] for row in run.history]
    if not rows:
        return 0.0
    injected = [row["injected_ns"] for row in run.faults if row["injected_ns"] is not None]
    return float(max(rows) - min(injected, default=min(rows))) / 1e9


# -------------------------------------------------------------------------------------------------------- the file


def read(path: Path) -> list[Entry]:
    """The entries in the file ``path``; none when there is no such file.

    Raises:
        UsageError: it is not a file of entries.
    """
    try:
        return validated(_File, documents.json_file(path), "").runs
    except FileNotFoundError:
        return []
    except (OSError, Unfit) as error:
        raise UsageError(f"{path} cannot be read: {error}.") from None
    except UsageError as error:
        raise UsageError(f"{path} is no file of the museum's: {error.sentence}") from None


class _File(BaseModel):
    runs: list[Entry]


def write(path: Path, entries: Iterable[Entry]) -> None:
    """Write ``entries`` into the file ``path``, by scenario and release, an older one of the same run replaced."""
    runs = {one.run: one for one in entries}
    ordered = sorted(runs.values(), key=lambda one: (one.catalogue, numbers(one.release), one.started, one.run))
    path.write_text(json.dumps({"runs": [asdict(one) for one in ordered]}, indent=1) + "\n", encoding="utf-8")
