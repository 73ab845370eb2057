"""What both engines say of a corpus of runs: recorded with one version of the code, compared with another.

A change that only moves code, or words, must not change a verdict. Record the corpus with the code before the change
(a worktree of its commit), and compare with the code after it::

    python -m tests.bench.corpus record DIR
    python -m tests.bench.corpus compare DIR

The corpus has every case of the checkers, random histories, each shipped scenario on the simulated target, and random
chaos on real processes, half of it with a broken broker. ``record`` judges all of it with both engines. ``compare``
judges it anew, and plays the simulated runs and the random loads of virtual time again. Verdicts are equal when nothing
differs but prose and the keys of :data:`RENAMED`; simulated runs when every row of every table is the same.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from checkers import check
from harness import runner
from harness.checker import to_json
from harness.errors import SeawallError, UsageError
from harness.history.run_directory import RunDirectory
from harness.history.schema import TABLES
from harness.replication.bugs import BUGS
from harness.replication.knobs import GENERATIONS
from harness.runner import BrokenOff, plan
from harness.scenario import shipped
from harness.scratch import scratch
from spark_analysis.session import session
from tests.bench import real_run
from tests.checkers.all_cases import CASES
from tests.checkers.sampled_stories import last_page_cache, two_failovers
from tests.mutation.trials import perform, trials
from tests.spark_analysis.differential import random_runs

RENAMED: Mapping[str, str] = {}
"""The keys of ``verdict.json`` that the change renames: new by old."""

PROSE = frozenset({"why", "because", "says", "words", "reasons", "limits", "reason"})
"""The keys under which ``verdict.json`` has sentences for people; how many there are is compared."""

ENGINES = ("reference", "spark")

_AT_ONCE = 500
"""How many runs are one Spark job."""

Verdicts = dict[str, Any]
"""What an engine says, by the name of the run's directory."""

app = typer.Typer(add_completion=False)


@app.command()
def record(
    directory: Path,
    *,
    random: Annotated[int, typer.Option(help="How many random histories.")] = 1_000,
    real: Annotated[int, typer.Option(help="How many runs on real processes.")] = 20,
    loads: Annotated[int, typer.Option(help="How many random loads of virtual time.")] = 300,
) -> None:
    """Make the runs, and write down what both engines say of each."""
    runs = directory / "runs"
    runs.mkdir(parents=True)
    for case in CASES:
        case.story(case.name).write(runs / f"case-{case.name}", **case.manifest)
    for story in (two_failovers(), last_page_cache()):
        story.kept(runs / f"case-{story.run}")
    random_runs(range(random), runs)
    _say(f"{_count(runs)} stories")
    _simulate(runs)
    _say(f"{_count(runs)} runs with the simulated ones")
    _run_really(runs, real)
    _say(f"{_count(runs)} runs with the real ones")
    for engine in ENGINES:
        _write(directory / f"{engine}.json", _judged(runs, engine))
        _say(f"{engine} has judged them")
    _write(directory / "loads.json", _loads(loads))


@app.command()
def compare(directory: Path) -> None:
    """Judge the runs anew, play the simulated ones again, and list what differs."""
    differences: list[str] = []
    with scratch(), TemporaryDirectory() as place:
        runs = Path(place, "runs")
        shutil.copytree(directory / "runs", runs)
        for engine in ENGINES:
            differences += differing(engine, _read(directory / f"{engine}.json"), _judged(runs, engine))
            _say(f"{engine}: {len(differences)} differences so far")
        again = Path(place, "again")
        again.mkdir()
        _simulate(again)
        for name in sorted({path.name for place in (runs, again) for path in place.glob("simulated-*")}):
            differences += _differing_tables(runs / name, again / name)
        _say(f"simulated runs: {len(differences)} differences so far")
    known = _read(directory / "loads.json")
    differences += differing("random loads", known, _loads(len(known)))
    for line in differences:
        typer.echo(line)
    _say(f"{len(differences)} differences")
    sys.exit(bool(differences))


def _simulate(runs: Path) -> None:
    """Every shipped scenario that the simulated target can play, in the generation that it is for."""
    for scenario in shipped():
        try:
            made = plan(scenario, "simulated", seed=1)
        except UsageError:
            continue
        with TemporaryDirectory() as place:
            try:
                path = runner.run(made, Path(place)).path
            except BrokenOff as broken:
                path = broken.directory
            shutil.move(path, runs / f"simulated-{scenario.id}")


def _run_really(runs: Path, number: int) -> None:
    """Random chaos on the built-in cluster, each second one with another bug."""
    generations, bugs = list(GENERATIONS), sorted(BUGS)

    def run(seed: int) -> None:
        sets = ["--set", f"replication.bugs={bugs[seed * len(bugs) // number]}"] if seed % 2 else []
        options = [
            "--generation",
            generations[seed % len(generations)],
            "--seed",
            str(seed),
            "--duration-s",
            "8",
            *sets,
        ]
        with TemporaryDirectory() as place:
            ended = real_run.run(options, Path(place))
            if ended.directory is None:
                raise SeawallError(f"the real run of seed {seed} left nothing: {ended.last_words}")
            shutil.rmtree(ended.directory / "cluster", ignore_errors=True)
            shutil.move(ended.directory, runs / f"real-{seed}")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(run, range(number)))


def _judged(runs: Path, engine: str) -> Verdicts:
    paths = sorted(runs.iterdir())
    found: Verdicts = {}
    for first in range(0, len(paths), _AT_ONCE):
        some = paths[first : first + _AT_ONCE]
        spark = session() if engine == "spark" else None
        verdicts = check(some, engine="spark", session=spark) if spark else check(some, engine="reference")
        found |= {path.name: to_json(verdict) for path, verdict in zip(some, verdicts, strict=True)}
    return _as_read(found)


def _loads(number: int) -> dict[str, Any]:
    """What random loads leave, as digests."""
    return _as_read({"/".join(map(str, trial)): perform(trial) for trial in islice(trials(), number)})


def differing(what: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """One line for each part of a verdict, or of another JSON object, that differs by more than prose."""
    for name in sorted(before.keys() | after.keys()):
        one, other = _normal(before.get(name), RENAMED), _normal(after.get(name), {})
        yield from (f"{what}: {name}: {line}" for line in _parts(one, other))


def _parts(one: Any, other: Any, path: str = "") -> Iterator[str]:
    """Where two JSON values differ, down to the smallest part."""
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from _parts(one.get(key), other.get(key), f"{path}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (mine, theirs) in enumerate(zip(one, other, strict=True)):
            yield from _parts(mine, theirs, f"{path}[{number}]")
    elif one != other:
        yield f"{path.removeprefix('.')}: {one!r} is {other!r} now"


def _normal(value: Any, renamed: Mapping[str, str]) -> Any:
    """The value without its prose, its keys renamed."""
    if isinstance(value, dict):
        return {renamed.get(k, k): _shape(v) if k in PROSE else _normal(v, renamed) for k, v in value.items()}
    return [_normal(one, renamed) for one in value] if isinstance(value, list) else value


def _shape(prose: Any) -> Any:
    return [bool(one) for one in prose] if isinstance(prose, list) else bool(prose)


def _differing_tables(before: Path, after: Path) -> Iterator[str]:
    """The first row of each table that differs."""
    for table in TABLES:
        one, other = (_rows(path, table) for path in (before, after))
        for number, (mine, theirs) in enumerate(zip(one, other, strict=False)):
            if mine != theirs:
                yield from islice(_parts(mine, theirs, f"{before.name}: {table}[{number}]"), 1)
                break
        if len(one) != len(other):
            yield f"{before.name}: {table} has {len(other)} rows, and had {len(one)}"


def _rows(path: Path, table: str) -> Sequence[Mapping[str, Any]]:
    """A table of a run, without the name of the run, which has the time of its start in it."""
    if not path.exists():
        return ()
    directory = RunDirectory.open(path)
    rows: Iterable[Mapping[str, Any]] = directory.read_table(table) if directory.has_table(table) else ()
    return [{key: value for key, value in row.items() if key != "run"} for row in rows]


def _read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def _as_read(value: Mapping[str, Any]) -> dict[str, Any]:
    """The value as it is after it was written and read."""
    found: dict[str, Any] = json.loads(json.dumps(value))
    return found


def _write(path: Path, value: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(value))


def _count(runs: Path) -> int:
    return len(list(runs.iterdir()))


def _say(line: str) -> None:
    typer.echo(line, err=True)


if __name__ == "__main__":
    app()
