"""Expands a plan into cells, each with an identity that is the same every night, on every machine and in any shard."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from itertools import product
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict

from harness.errors import UsageError
from harness.nightly.plan import CommandGroup, NightPlan, RunGroup, SimulateGroup
from harness.nightly.plan_values import Seeds
from harness.replication.knobs import CURRENT_GENERATION
from harness.runner.expectation import expectations, generations
from harness.scenario import Scenario, find, load, looks_like_a_path, shipped, shipped_names
from harness.simulation.core.configuration import setup
from harness.spelling import closest
from harness.targets.kafka.releases import release
from harness.targets.kinds import KINDS, kind_of

MOST_CELLS = 100_000
OUT = "{out}"
"""Stands for the directory of a try in the words of a cell."""

_SEEDS = 1_000
_VIRTUAL_S, _BUILTIN_S, _KAFKA_S, _SCHEDULE_S, _COMMAND_S, _START_S = 6.0, 15.0, 45.0, 20.0, 60.0, 5.0
_SEED_S = {"core": 0.02, "stack": 0.5}
"""How long things take where neither the plan nor past nights tell."""


class Cell(BaseModel):
    """One cell of a night.

    Attributes:
        cell: its identity; ``series`` is the same without the seed.
        group: the name of its entry in the plan.
        entry: the index of its entry; None: it comes from the seed bank only.
        is_named: whether the plan names its scenario, and not a pattern that it matches.
        argv: the command line; ``seawall`` is this seawall, and :data:`OUT` the directory of a try.
        reproduce: the command that runs it again by itself.
        turn: its position among the cells of its series.
        expected_s: how long it takes, until past nights tell.
    """

    model_config = ConfigDict(frozen=True)

    cell: str
    series: str
    kind: Literal["run", "simulate", "command"]
    group: str
    entry: int | None = None
    is_named: bool = True
    target: str
    generation: str | None = None
    scenario: str | None = None
    seed: int | None = None
    settings: Mapping[str, str] = {}
    duration_s: float | None = None
    argv: tuple[str, ...]
    reproduce: str
    needs: tuple[str, ...] = ()
    time_limit_s: float
    retries: int
    weight: float = 1.0
    turn: int = 0
    expected_s: float
    bank: bool = False

    def matches(self, pattern: str) -> bool:
        """Whether ``pattern``, of ``require`` or ``allow``, means this cell."""
        names = (self.target, self.kind, self.group, self.scenario, self.series, self.cell)
        return any(name is not None and fnmatchcase(name, pattern) for name in names)


class BankedSeed(Protocol):
    """An entry of the seed bank, as far as it says what to run."""

    @property
    def kind(self) -> str: ...  # noqa: D102
    @property
    def target(self) -> str: ...  # noqa: D102
    @property
    def generation(self) -> str | None: ...  # noqa: D102
    @property
    def scenario(self) -> str | None: ...  # noqa: D102
    @property
    def seed(self) -> int | None: ...  # noqa: D102
    @property
    def settings(self) -> Mapping[str, str]: ...  # noqa: D102
    @property
    def duration_s(self) -> float | None: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class _Entry:
    """What all cells of an entry have."""

    group: str
    index: int | None
    needs: tuple[str, ...]
    time_limit_s: float
    retries: int
    weight: float
    expected_s: float | None

    def common(self, series: str, seed: int | None, turn: int, expected_s: float) -> dict[str, Any]:
        """What a cell has of its entry and its seed."""
        return {
            "cell": series if seed is None else f"{series} seed {seed}",
            "series": series,
            "seed": seed,
            "turn": turn,
            "group": self.group,
            "entry": self.index,
            "needs": self.needs,
            "time_limit_s": self.time_limit_s,
            "retries": self.retries,
            "weight": self.weight,
            "expected_s": self.expected_s or expected_s,
        }


def expand(plan: NightPlan, night: str, bank: Iterable[BankedSeed] = ()) -> list[Cell]:
    """Every cell of the plan, in its order, and those of the bank that the plan does not have.

    Args:
        plan: the plan.
        night: the identifier of the night, from which seeds are drawn.
        bank: seeds that have found something.

    Raises:
        UsageError: the plan names something that does not exist; names the entry.
    """
    found: dict[str, Cell] = {}
    for index, group in enumerate(plan.cells):
        path = f"cells[{index}]"
        entry = _Entry(
            group=group.name or f"{group.kind}-{index}",
            index=index,
            needs=group.needs,
            time_limit_s=group.time_limit or plan.time_limit,
            retries=plan.retries if group.retries is None else group.retries,
            weight=group.weight,
            expected_s=group.expected,
        )
        for cell in _cells(group, entry, night, path):
            if (same := found.setdefault(cell.cell, cell)) is not cell and cell.kind == "command":
                raise UsageError(f"{path}.name: {same.group!r} is the name of cells[{same.entry}], too.")
            if len(found) > MOST_CELLS:
                raise UsageError(f"{path}: the plan has more than {MOST_CELLS:,} cells.", "Draw fewer seeds.")
    for seed in bank:
        cell = _banked(seed, plan)
        found[cell.cell] = found.get(cell.cell, cell).model_copy(update={"bank": True})
    return list(found.values())


def _cells(group: RunGroup | SimulateGroup | CommandGroup, entry: _Entry, night: str, path: str) -> Iterator[Cell]:
    match group:
        case RunGroup():
            return _runs(group, entry, night, path)
        case SimulateGroup():
            return _simulations(group, entry, night, path)
        case CommandGroup():
            return _commands(group, entry, night)


def _banked(seed: BankedSeed, plan: NightPlan) -> Cell:
    entry = _Entry("bank", None, (), plan.time_limit, plan.retries, 1.0, None)
    if seed.kind == "run" and seed.scenario is not None and seed.seed is not None:
        generation = None if kind_of(seed.target).runs_releases else seed.generation
        return _Run(load(seed.scenario), seed.target, generation, seed.settings, seed.duration_s).cell(entry, seed.seed)
    if seed.kind == "simulate" and seed.generation is not None and seed.seed is not None:
        one = _Simulation(seed.target, seed.generation, seed.settings, ("--seeds", "1"), 1)
        return one.cell(entry, seed.seed, _SEED_S["stack"])
    raise UsageError(f"the seed bank has an entry of kind {seed.kind!r} that cannot be run again.", "Retire it.")


# ------------------------------------------------------------------------------------------------------------ scenarios


def _runs(group: RunGroup, entry: _Entry, night: str, path: str) -> Iterator[Cell]:
    targets = list(_targets(group, path))
    wanted = generations(group.generations, f"{path}.generations")
    for scenario, is_named in _scenarios(group, path):
        durations = group.durations if group.durations and scenario.chaos is not None else (None,)
        _require_time(entry, durations, path)
        systems = [(target, one) for target in targets for one in _generations(scenario, target, wanted)]
        if not systems and is_named:
            known = ", ".join(expectations(scenario))
            raise UsageError(
                f"{path}: scenario {scenario.id!r} says nothing of these generations.", f"It is about {known}."
            )
        for (target, generation), settings, duration_s in product(systems, group.settings, durations):
            run = _Run(scenario, target, generation, settings, duration_s)
            for turn, seed in enumerate(_drawn(group.seeds, night, run.series)):
                yield run.cell(entry, seed, turn).model_copy(update={"is_named": is_named})


def _targets(group: RunGroup, path: str) -> Iterator[str]:
    """The targets as ``--target`` spells them, with their releases."""
    for target in group.targets:
        name, colon, _ = target.partition(":")
        plain, mark, control = name.partition("#")
        if colon or (plain in KINDS and not KINDS[plain].runs_releases):
            _require_target(target, path)
            yield target
        elif plain not in KINDS:
            raise UsageError(f"{path}.targets: target {target!r} is not known; {closest(plain, list(KINDS))}")
        elif not group.releases:
            raise UsageError(f"{path}.targets: {target!r} names no release.", f"Write {plain}:RELEASE, or releases.")
        else:
            yield from (f"{plain}:{version}{mark}{control}" for version in group.releases)
    for version in group.releases:
        _require_release(version, path)


def _require_target(target: str, path: str) -> None:
    try:
        kind_of(target)
        _generation_of(target)
    except UsageError as error:
        raise UsageError(f"{path}.targets: {error.sentence}", error.remedy) from None


def _require_release(version: str, path: str) -> None:
    try:
        release(version)
    except UsageError as error:
        raise UsageError(f"{path}.releases: {error.sentence}", error.remedy) from None


def _generation_of(target: str) -> str | None:
    """The generation of the release that a target names; None: it names none, or only the machine could tell."""
    version = target.partition(":")[2].partition("#")[0]
    return release(version).generation if version and version.replace(".", "").isdecimal() else None


def _generations(scenario: Scenario, target: str, wanted: Sequence[str]) -> Iterator[str | None]:
    """The generations to run a scenario in, without those of which it says nothing; None: the target has its own."""
    known = expectations(scenario)
    if kind_of(target).runs_releases:
        spoken = _generation_of(target)
        if not known or spoken is None or spoken in known:
            yield None
    else:
        names = wanted or [scenario.generation or CURRENT_GENERATION]
        yield from (name for name in names if not known or name in known)


def _scenarios(group: RunGroup, path: str) -> Iterator[tuple[Scenario, bool]]:
    """The scenarios, each once, and whether each is named."""
    found: dict[str, tuple[Scenario, bool]] = {}
    for name in group.scenarios:
        is_pattern = any(sign in name for sign in "*?[") and not looks_like_a_path(name)
        try:
            meant = _matching(name) if is_pattern else _named(name)
        except UsageError as error:
            raise UsageError(f"{path}.scenarios: {error.sentence}", error.remedy) from None
        for one in meant:
            known = found.get(one.origin)
            found[one.origin] = (one, not is_pattern or (known is not None and known[1]))
    return iter(found.values())


def _named(name: str) -> list[Scenario]:
    """The scenario of that name or file, or else those of an entry of the catalogue, for which all have to be read."""
    is_file = looks_like_a_path(name)
    return [load(name)] if is_file or name in shipped_names() else find(name)


def _matching(pattern: str) -> list[Scenario]:
    found = [one for one in _shipped() if any(fnmatchcase(name, pattern) for name in one.names)]
    if not found:
        raise UsageError(f"no scenario matches {pattern!r}.", "See `seawall scenario list`.")
    return found


@cache
def _shipped() -> tuple[Scenario, ...]:
    return tuple(shipped())


def _require_time(entry: _Entry, durations: Iterable[float | None], path: str) -> None:
    longest = max((one for one in durations if one is not None), default=0.0)
    if longest >= entry.time_limit_s:
        raise UsageError(
            f"{path}: {longest:g} s is not below the time limit of a cell, {entry.time_limit_s:g} s.",
            "Raise time_limit.",
        )


@dataclass(frozen=True, slots=True)
class _Run:
    """A run of a scenario but its seed; ``generation`` is None where the target has its own."""

    scenario: Scenario
    target: str
    generation: str | None
    settings: Mapping[str, str]
    duration_s: float | None

    @property
    def series(self) -> str:
        system = [self.target] if self.generation is None else [self.target, self.generation]
        lasting = [] if self.duration_s is None else [f"{self.duration_s:g}s"]
        return " ".join(("run", *system, self.scenario.origin, *_assignments(self.settings), *lasting))

    def words(self, seed: int) -> list[str]:
        words = ["seawall", "run", self.scenario.origin, "--seed", str(seed), "--target", self.target]
        words += [] if self.generation is None else ["--generation", self.generation]
        words += [] if self.duration_s is None else ["--duration-s", f"{self.duration_s:g}"]
        return [*words, *_overriding(self.settings)]

    def expected_s(self) -> float:
        kind = kind_of(self.target)
        load_s = (self.duration_s or self.scenario.duration_s) if self.scenario.chaos is not None else _SCHEDULE_S
        if kind.in_virtual_time:
            return _VIRTUAL_S + (load_s if self.scenario.chaos is not None else 0)
        return load_s + (_KAFKA_S if kind.runs_releases else _BUILTIN_S)

    def cell(self, entry: _Entry, seed: int, turn: int = 0) -> Cell:
        words = self.words(seed)
        return Cell(
            **entry.common(self.series, seed, turn, self.expected_s()),
            kind="run",
            target=self.target,
            generation=self.generation or self.target.partition(":")[2].partition("#")[0] or None,
            scenario=self.scenario.origin,
            settings=dict(self.settings),
            duration_s=self.duration_s,
            argv=(*words, "--engine", "reference", "--out", OUT),
            reproduce=shlex.join(words),
        )


# ---------------------------------------------------------------------------------------------- simulations, commands


@dataclass(frozen=True, slots=True)
class _Simulation:
    """An exploration but its first seed; ``bound`` is how many seeds, or how long."""

    depth: str
    generation: str
    settings: Mapping[str, str]
    bound: tuple[str, str]
    processes: int

    @property
    def series(self) -> str:
        return " ".join(("simulate", self.depth, self.generation, *_assignments(self.settings), *self.bound))

    def cell(self, entry: _Entry, seed: int, expected_s: float, turn: int = 0) -> Cell:
        words = ["seawall", "simulate", *self.bound, "--first-seed", str(seed), "--generation", self.generation]
        words += ["--depth", self.depth, "--jobs", str(self.processes), *_overriding(self.settings)]
        return Cell(
            **entry.common(self.series, seed, turn, expected_s),
            kind="simulate",
            target=self.depth,
            generation=self.generation,
            settings=dict(self.settings),
            argv=tuple(words),
            reproduce=shlex.join(words),
        )


def _simulations(group: SimulateGroup, entry: _Entry, night: str, path: str) -> Iterator[Cell]:
    count, duration_s = group.count or _SEEDS, None if group.minutes is None else group.minutes * 60
    bound = ("--seeds", str(count)) if group.minutes is None else ("--minutes", f"{group.minutes:g}")
    expected_s = _START_S + (count * _SEED_S[group.depth] / group.processes if duration_s is None else duration_s)
    _require_time(entry, [duration_s], path)
    for generation, settings in product(generations(group.generations, f"{path}.generations"), group.settings):
        try:
            setup(generation, settings, group.depth)
        except UsageError as error:
            raise UsageError(f"{path}.settings: {error.sentence}", error.remedy) from None
        one = _Simulation(group.depth, generation, settings, bound, group.processes)
        for turn, seed in enumerate(_drawn(group.seeds, night, one.series)):
            yield one.cell(entry, seed, expected_s, turn)


def _commands(group: CommandGroup, entry: _Entry, night: str) -> Iterator[Cell]:
    for turn, seed in enumerate([None] if group.seeds is None else _drawn(group.seeds, night, group.name)):
        words = [word.replace("{seed}", str(seed)).replace("{night}", night) for word in group.argv]
        yield Cell(
            **entry.common(f"command {group.name}", seed, turn, _COMMAND_S),
            kind="command",
            target="command",
            scenario=group.name,
            argv=tuple(words),
            reproduce=shlex.join(words),
        )


def _overriding(settings: Mapping[str, str]) -> list[str]:
    return [word for one in _assignments(settings) for word in ("--set", one)]


def _assignments(settings: Mapping[str, str]) -> list[str]:
    return [f"{key}={value}" for key, value in sorted(settings.items())]


def _drawn(seeds: Seeds, night: str, series: str) -> Iterator[int]:
    """The given seeds, and those that the night draws for the series: the same wherever they are drawn."""
    yield from seeds.given
    for number in range(seeds.draw):
        digest = hashlib.sha256(f"{night}\0{series}\0{number}".encode()).digest()
        yield int.from_bytes(digest[:4]) >> 1
