"""The plan of a night, ``PLAN.yaml``: which scenarios, simulations and commands run, and on what."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator

from harness import documents
from harness.documents import BoundedLoader, Unfit, require_yaml, yaml_document
from harness.errors import UsageError
from harness.json_schema import given, published, schema_of
from harness.nightly.plan_values import Duration, Durations, Seeds, Settings, SomeSeeds, Text
from harness.replication.knobs import CURRENT_GENERATION
from harness.spelling import closest
from harness.targets.kinds import BUILTIN
from harness.validation import shortened, validated

SCHEMA = "nightly-plan-1.json"
"""The file below ``docs/schemas``."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Group(_Part):
    """What every entry of ``cells`` may have.

    Attributes:
        name: of the entry, for sums and patterns.
        weight: how much sooner its turn comes: the nights in which a series did not run count so many times.
        time_limit: of each try of a cell, after which it is ended; None: that of the plan.
        retries: how often a cell is tried again; None: as in the plan.
        expected: how long a cell takes, until past nights tell.
        needs: what the machine must have: the names of ``seawall doctor``'s probes.
    """

    name: Text | None = None
    weight: float = Field(default=1.0, gt=0, le=1000)
    time_limit: Duration | None = None
    retries: int | None = Field(default=None, ge=0, le=10)
    expected: Duration | None = None
    needs: tuple[Text, ...] = ()


class RunGroup(_Group):
    """Scenarios: a cell for each target, generation or release, scenario, settings, duration and seed.

    Attributes:
        kind: of the entry.
        targets: as ``--target`` has them. ``process`` without a release is combined with ``releases``.
        generations: for targets that run any; empty: the scenario's own, else the current one. Ranges are allowed.
        releases: of Kafka, for ``process``.
        scenarios: names, files, entries of the catalogue (``A02``), or patterns of names (``*-chaos``).
        durations: how long random faults go on; scenarios with a schedule take none.
    """

    kind: Literal["run"] = "run"
    targets: tuple[Text, ...] = Field(default=(BUILTIN,), min_length=1)
    generations: tuple[Text, ...] = ()
    releases: tuple[Text, ...] = ()
    scenarios: tuple[Text, ...] = Field(min_length=1)
    seeds: SomeSeeds = Seeds(draw=1)
    settings: Settings = ({},)
    durations: Durations | None = None


class SimulateGroup(_Group):
    """Explorations in virtual time: a cell for each generation, settings and first seed.

    Attributes:
        kind: of the entry.
        generations: of the replication protocol.
        depth: the replicas and the controller alone (``core``), or the whole broker (``stack``).
        count: how many seeds a cell explores, or
        minutes: for how long it does.
        seeds: the first seed of each cell.
        processes: of each cell.
    """

    model_config = ConfigDict(
        json_schema_extra={"not": {"allOf": [given("count"), given("minutes")]}},
    )

    kind: Literal["simulate"]
    generations: tuple[Text, ...] = Field(default=(CURRENT_GENERATION,), min_length=1)
    depth: Literal["core", "stack"] = "core"
    count: int | None = Field(default=None, ge=1, le=2**31)
    minutes: float | None = Field(default=None, ge=0.01, le=10_000)
    seeds: SomeSeeds = Seeds(draw=1)
    settings: Settings = ({},)
    processes: int = Field(default=1, ge=1, le=1024)

    @model_validator(mode="after")
    def _is_bounded_once(self) -> Self:
        if self.count is not None and self.minutes is not None:
            raise ValueError("count and minutes exclude each other.")
        return self


class CommandGroup(_Group):
    """A command, judged by its exit code as seawall's own commands are.

    Attributes:
        kind: of the entry.
        argv: its words; ``{seed}``, ``{night}`` and ``{out}``, a directory of the cell, are replaced. The first word
            ``seawall`` is this seawall, and ``python`` its interpreter.
        seeds: a cell for each; None: one cell.
    """

    kind: Literal["command"]
    name: Text
    argv: tuple[Text, ...] = Field(min_length=1)
    seeds: SomeSeeds | None = None

    @model_validator(mode="after")
    def _takes_its_seeds(self) -> Self:
        if (self.seeds is not None) != any("{seed}" in word for word in self.argv):
            raise ValueError("seeds and a {seed} in argv need each other.")
        return self


def _kind(entry: Any) -> str:
    found = entry.get("kind", "run") if isinstance(entry, Mapping) else getattr(entry, "kind", "run")
    return str(found)


Group = Annotated[
    Annotated[RunGroup, Tag("run")]
    | Annotated[SimulateGroup, Tag("simulate")]
    | Annotated[CommandGroup, Tag("command")],
    Discriminator(_kind),
]
_KINDS: Mapping[str, type[_Group]] = {"run": RunGroup, "simulate": SimulateGroup, "command": CommandGroup}


class Allowed(_Part):
    """What does not fail a night.

    Attributes:
        cells: a pattern of cells, as in ``require``.
        kinds: of anomalies: a violation of no other kinds counts as predicted.
        skip: whether a required cell may be skipped all the same.
        because: the reason, which the result shows.
    """

    cells: Text = "*"
    kinds: tuple[Text, ...] = ()
    skip: bool = False
    because: Text

    @model_validator(mode="after")
    def _allows_something(self) -> Self:
        if not self.kinds and not self.skip:
            raise ValueError("it allows nothing; write kinds: [...] or skip: true.")
        return self


class NightPlan(_Part):
    """The whole plan.

    Attributes:
        version: of this format.
        budget: for the whole night, or each shard of it.
        time_limit: of each try of a cell, unless its entry has one.
        retries: how often a cell that ended inconclusive, invalid or for the environment's sake is tried again.
        require: patterns of targets, scenarios, entries' names, kinds or series: a cell whose capability is missing is
            then a failure of the environment, and not skipped.
        allow: exceptions.
        cells: what runs.
    """

    version: Literal[1] = 1
    budget: Duration | None = None
    time_limit: Duration = 900.0
    retries: int = Field(default=1, ge=0, le=10)
    require: tuple[Text, ...] = ()
    allow: tuple[Allowed, ...] = ()
    cells: tuple[Group, ...] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class LoadedPlan:
    """A plan and its file.

    Attributes:
        digest: SHA-256 of the text.
    """

    plan: NightPlan
    path: str
    text: str

    @property
    def digest(self) -> str:
        """SHA-256 of the plan's text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def load(path: Path) -> LoadedPlan:
    """The plan in the file ``path``.

    Raises:
        UsageError: it cannot be read or is wrong; names the key, the value and the line.
    """
    try:
        text = documents.text(path)
    except (OSError, Unfit) as error:
        reason = (error.strerror or "it cannot be read") if isinstance(error, OSError) else error
        raise UsageError(f"plan {path} cannot be read: {reason}.") from None
    return LoadedPlan(parse(text, str(path)), str(path), text)


def parse(text: str, origin: str) -> NightPlan:
    """The plan that ``text`` describes; ``origin`` names its file.

    Raises:
        UsageError: see :func:`load`.
    """
    require_yaml(text, origin)
    root = yaml.compose(text, BoundedLoader)
    _refuse_odd_keys(root, origin)
    document = yaml_document(text, origin)
    if not isinstance(document, dict):
        raise UsageError(f"{origin}: {shortened(document)} is no plan.", "A plan is a mapping with the key 'cells'.")
    try:
        return _validated(document)
    except UsageError as error:
        line = _line(root, error.sentence)
        raise UsageError(f"{origin}, line {line}: {error.sentence}", error.remedy) from None


def _validated(document: Mapping[str, Any]) -> NightPlan:
    """Each entry by the model of its kind, so that errors name no alternatives, and then the rest."""
    entries = document.get("cells")
    groups: list[dict[str, Any]] = []
    for index, entry in enumerate(entries if isinstance(entries, list) else ()):
        path = f"cells[{index}]"
        if not isinstance(entry, dict):
            raise UsageError(f"{path}: {shortened(entry)} is no mapping.")
        kind = _kind(entry)
        if kind not in _KINDS:
            raise UsageError(f"{path}.kind: {kind!r} is not known; {closest(kind, _KINDS)}")
        validated(_KINDS[kind], entry, path)
        groups.append({"kind": "run", **entry})
    cells = {"cells": groups} if groups else {}
    return validated(NightPlan, {**document, **cells}, "", whole="the plan")


def schema() -> str:
    """The JSON Schema of a plan, for editors."""
    return published(SCHEMA, "A plan of seawall nightly", schema_of(NightPlan))


# -------------------------------------------------------------------------------------------------- places in the file


def _refuse_odd_keys(node: yaml.Node | None, origin: str) -> None:
    """Refuse what PyYAML accepts silently: a key that is written twice, or is no text."""
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            where = f"{origin}, line {key.start_mark.line + 1}"
            if key.tag != "tag:yaml.org,2002:str":
                raise UsageError(f"{where}: key {shortened(getattr(key, 'value', key))} is no text; put it in quotes.")
            if key.value in seen:
                raise UsageError(f"{where}: key {key.value!r} is written twice.")
            seen.add(key.value)
            _refuse_odd_keys(value, origin)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _refuse_odd_keys(value, origin)


def _line(root: yaml.Node | None, sentence: str) -> int:
    """The line of the place that an error's sentence begins with, as far as there is one."""
    node, line = root, 1
    unknown = re.search(r"unknown key '([^']+)'", sentence)
    path, colon, _ = sentence.partition(": ")
    steps = [*(_steps(path) if colon else ()), *([unknown[1]] if unknown else [])]
    for step in steps:
        found = _child(node, step)
        if found is None:
            break
        node, line = found
    return line


def _steps(path: str) -> Iterator[str | int]:
    for name, index in re.findall(r"([^.\[\]]+)|\[(\d+)\]", path):
        yield int(index) if index else name


def _child(node: yaml.Node | None, step: str | int) -> tuple[yaml.Node, int] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == step:
                return value, key.start_mark.line + 1
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step].start_mark.line + 1
    return None
