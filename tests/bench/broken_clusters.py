"""Random chaos on real processes with every switchable bug in turn: a broken cluster is judged, and breaks no harness.

Run it with ``make broken-clusters``, or ``python tests/bench/broken_clusters.py --jobs 2``. Each bug goes once through
``seawall run random-chaos``. The table says how each run ended; the command fails when one of them ended otherwise than
with a verdict: in a traceback (exit 70), as the machine's fault (4), or without a ``verdict.json``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NamedTuple

import typer

from harness.errors import ExitCode
from harness.replication.bugs import BUGS

WITH_A_VERDICT = frozenset({ExitCode.PASS, ExitCode.VIOLATION, ExitCode.INCONCLUSIVE, ExitCode.INVALID})
_TIMEOUT_S = 900.0
_NO_JAVA = {"JAVA_HOME": "/nonexistent"}
"""Without a JVM the reference engine decides alone, in a second; that both engines agree is tested elsewhere."""


class Ended(NamedTuple):
    """How the run with a bug ended.

    Attributes:
        exit_code: of ``seawall run``; negative: the signal that ended it.
        outcome: that of its ``verdict.json``; empty: there is none.
        kinds: of the violations. ``why``: the reasons of a verdict without any, or the last lines that were printed.
    """

    bug: str
    exit_code: int
    outcome: str
    kinds: tuple[str, ...]
    why: str
    seconds: float

    @property
    def has_verdict(self) -> bool:
        """Whether the run was judged."""
        return self.exit_code in WITH_A_VERDICT and bool(self.outcome)


def run(bug: str, seed: int, duration_s: float, options: Sequence[str]) -> Ended:
    """Run random chaos with ``bug`` switched on, in a process of its own; its run directory is not kept."""
    begun = time.monotonic()
    with TemporaryDirectory(prefix="seawall-") as directory:
        command = [
            str(Path(sys.executable).with_name("seawall")), "run", "random-chaos", "--seed", str(seed),
            "--duration-s", f"{duration_s:g}", "--set", f"replication.bugs={bug}", "--out", directory, *options,
        ]  # fmt: skip
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, env={**os.environ, **_NO_JAVA}
        )
        verdicts = list(Path(directory).glob("random-chaos/*/verdict.json"))
        verdict: dict[str, Any] = {"outcome": "", "anomalies": [], "reasons": done.stderr.strip().splitlines()[-3:]}
        if verdicts:
            verdict = json.loads(verdicts[0].read_text())
    kinds = dict.fromkeys(one["kind"] for one in verdict["anomalies"] if one["verdict"] == "VIOLATION")
    why = "" if kinds else " ".join(verdict["reasons"])
    return Ended(bug, done.returncode, verdict["outcome"], tuple(kinds), why, time.monotonic() - begun)


def main(
    bugs: Annotated[str, typer.Option(help="With commas between; empty: all.")] = "",
    *,
    seed: Annotated[int, typer.Option(help="Of every run.")] = 1,
    duration_s: Annotated[float, typer.Option(help="How long chaos lasts.")] = 10.0,
    jobs: Annotated[int, typer.Option(help="Runs at one time.")] = 1,
    option: Annotated[list[str] | None, typer.Option(help="More --set KEY=VALUE for every run.")] = None,
) -> None:
    """Run every bug, and fail when one of the runs left no verdict."""
    chosen = [name for name in bugs.split(",") if name] or list(BUGS)
    more = [word for one in option or () for word in ("--set", one)]
    unjudged = []
    typer.echo("| bug | exit | outcome | found as | seconds |\n|---|---|---|---|---|")
    with ThreadPoolExecutor(jobs) as pool:
        for one in pool.map(lambda bug: run(bug, seed, duration_s, more), chosen):
            found = ", ".join(one.kinds) or one.why.replace("|", " ")
            typer.echo(f"| `{one.bug}` | {one.exit_code} | {one.outcome} | {found} | {one.seconds:.0f} |")
            unjudged += [] if one.has_verdict else [one.bug]
    if unjudged:
        typer.echo(f"no verdict: {', '.join(unjudged)}", err=True)
        raise typer.Exit(ExitCode.INTERNAL)


if __name__ == "__main__":
    typer.run(main)
