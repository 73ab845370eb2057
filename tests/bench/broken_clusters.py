"""Random chaos on real processes with every switchable bug in turn: a broken cluster is judged, and breaks no harness.

Run it with ``make broken-clusters``, or ``python -m tests.bench.broken_clusters --jobs 2``. Each bug goes once through
``seawall run random-chaos``, which the reference engine judges; then Spark is asked about all runs at once, and must
agree. The table says how each run ended; the command fails when one of them ended otherwise than with a verdict: in a
traceback (exit 70), as the machine's fault (4), or without a ``verdict.json``, or when the engines disagree.
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from checkers import check
from harness.errors import ExitCode
from harness.replication.bugs import BUGS
from tests.bench import real_run
from tests.bench.healthy_page import machine

WITH_A_VERDICT = frozenset({ExitCode.PASS, ExitCode.VIOLATION, ExitCode.INCONCLUSIVE, ExitCode.INVALID})

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "broken-clusters.md"
KEPT = ROOT / "runs" / "broken"
"""Where the run directories go, by bug; those of an earlier measurement are removed."""


class Ended(NamedTuple):
    """How the run with a bug ended.

    Attributes:
        exit_code: of ``seawall run``; negative: the signal that ended it.
        outcome: that of its ``verdict.json``; empty: there is none.
        found: the kinds of the violations; without any the reasons of the verdict, or the last lines that were printed.
        directory: of the run; None: it left none.
    """

    bug: str
    exit_code: int
    outcome: str
    found: str
    directory: Path | None

    @property
    def has_verdict(self) -> bool:
        """Whether the run was judged."""
        return self.exit_code in WITH_A_VERDICT and bool(self.outcome)

    def row(self) -> str:
        """A row of the table."""
        return f"| `{self.bug}` | {self.exit_code} | {self.outcome} | {self.found.replace('|', ' ')} |"


def run(bug: str, seed: int, options: Sequence[str]) -> Ended:
    """Run random chaos with ``bug`` switched on, in a process of its own."""
    out = KEPT / bug
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    ended = real_run.run(["--set", f"replication.bugs={bug}", "--seed", str(seed), *options], out)
    if ended.verdict is None:
        return Ended(bug, ended.exit_code, "", ended.last_words, ended.directory)
    kinds = dict.fromkeys(one["kind"] for one in ended.verdict["anomalies"] if one["verdict"] == "VIOLATION")
    found = ", ".join(f"`{kind}`" for kind in kinds) or " ".join(ended.verdict["reasons"])
    return Ended(bug, ended.exit_code, ended.verdict["outcome"], found, ended.directory)


def disagreements(judged: Sequence[Path]) -> list[str]:
    """Ask Spark about all of these runs at once: what it says otherwise than the reference engine did, by run."""
    before = [_verdict(path) for path in judged]
    check(judged, engine="spark")
    pairs = ((path, one, _verdict(path)) for path, one in zip(judged, before, strict=True))
    differing = ((path, [part for part in one if one[part] != other.get(part)]) for path, one, other in pairs)
    return [f"{path}: {', '.join(parts)}" for path, parts in differing if parts]


def _verdict(path: Path) -> dict[str, Any]:
    """What engines must agree on."""
    written: dict[str, Any] = json.loads((path / "verdict.json").read_text())
    return {part: value for part, value in written.items() if part not in ("engine", "digest")}


def main(
    bugs: Annotated[str, typer.Option(help="With commas between; empty: all.")] = "",
    *,
    first: Annotated[int, typer.Option(help="The first seed; each bug has its own, and so each run its name.")] = 0,
    duration_s: Annotated[float, typer.Option(help="How long chaos lasts.")] = 10.0,
    jobs: Annotated[int, typer.Option(help="Runs at one time.")] = 1,
    option: Annotated[list[str] | None, typer.Option(help="More --set KEY=VALUE for every run.")] = None,
    docs: Annotated[bool, typer.Option(help=f"Write what came of it into {PAGE.name}.")] = False,
) -> None:
    """Run every bug, and fail when one of the runs left no verdict, or the engines disagree about one."""
    chosen = [name for name in bugs.split(",") if name] or list(BUGS)
    more = [word for one in option or () for word in ("--set", one)]
    options = ["--duration-s", f"{duration_s:g}", *more]
    done: list[Ended] = []
    with ThreadPoolExecutor(jobs) as pool:
        for one in pool.map(lambda bug, seed: run(bug, seed, options), chosen, count(first)):
            typer.echo(one.row())
            done.append(one)
    unjudged = [one.bug for one in done if not one.has_verdict]
    differing = disagreements([one.directory for one in done if one.has_verdict and one.directory])
    if docs:
        PAGE.write_text("\n".join(_page(done, options, differing)) + "\n")
    for sentence in (*(f"no verdict: {bug}" for bug in unjudged), *(f"engines differ: {one}" for one in differing)):
        typer.echo(sentence, err=True)
    if unjudged or differing:
        raise typer.Exit(ExitCode.INTERNAL)


def _page(done: Sequence[Ended], options: Sequence[str], differing: Sequence[str]) -> Iterator[str]:
    judged = sum(one.has_verdict for one in done)
    detected = sum(one.exit_code == ExitCode.VIOLATION for one in done)
    agreement = f"not about {len(differing)} of them" if differing else "about all of them"
    yield f"""# Broken clusters

`random-chaos` on real processes, once with each [bug](detection.md) that brokers and controller can be given. Whatever
a broken cluster does, the run ends with a verdict. One short run does not show every bug: how well each is found under
loads and faults that suit it is measured in [detection](detection.md). `make broken-clusters` runs all of it again, and
writes this page.

{len(done)} runs, {judged} with a verdict, {detected} detected. Spark, asked about all runs at once, and the reference
engine agree {agreement}.

`{shlex.join(["python", "-m", "tests.bench.broken_clusters", *sys.argv[1:]])}`, each of which is
`seawall run random-chaos --seed N --set replication.bugs=BUG {shlex.join(options)}`, on {machine()}.

| bug | exit code | outcome | detected as |
|---|---|---|---|"""
    yield from (one.row() for one in done)


if __name__ == "__main__":
    typer.run(main)
