"""How long ``seawall check`` takes over large runs, as a whole process, and how much memory it needs.

Run it with ``make bench``, on a machine that does nothing else, or ``python tests/bench/checker.py [OPERATIONS ...]``.
The runs are written below ``--directory`` (60 MB per million operations), and kept when one is named.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, NamedTuple

import psutil
import typer

HOT = 0.9
"""Which share of the records the hot partition holds, where there is one."""

_SAMPLE_S = 0.1


class Measured(NamedTuple):
    """What a whole process took, its children included; ``cpu_s`` is user and system time."""

    exit_code: int
    wall_s: float
    cpu_s: float
    peak_mb: float


def measure(command: list[str]) -> Measured:
    """Run ``command`` to its end."""
    begun = time.monotonic()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        root, cpu, peak = psutil.Process(process.pid), dict[int, float](), 0
        while process.poll() is None:
            resident = 0
            for one in _tree(root):
                try:
                    times, memory = one.cpu_times(), one.memory_info()
                except psutil.NoSuchProcess:
                    continue
                # A child that has not become its own program yet shares its parent's memory: it counts when it stays.
                resident += memory.rss if one.pid in cpu else 0
                cpu[one.pid] = times.user + times.system
            peak = max(peak, resident)
            time.sleep(_SAMPLE_S)
        return Measured(process.returncode, time.monotonic() - begun, sum(cpu.values()), peak / 2**20)


def _tree(root: psutil.Process) -> list[psutil.Process]:
    try:
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _written(operations: int, directory: Path, hot: float) -> Path:
    path = directory / f"{operations}{'-hot' if hot else ''}"
    if not path.exists():
        writer = str(Path(__file__).with_name("histories.py"))
        command = [sys.executable, writer, str(operations), str(path), *(["--hot", str(hot)] if hot else [])]
        subprocess.run(command, check=True)
    return path


def _row(operations: int, path: Path, options: list[str]) -> Measured:
    found = measure([str(Path(sys.executable).with_name("seawall")), "check", str(path), *options])
    if found.exit_code:
        raise SystemExit(f"checking {path} ended with {found.exit_code}: it is a run in which nothing went wrong")
    name = f"{operations:,}".replace(",", " ") + (", hot" if path.name.endswith("-hot") else "")
    typer.echo(f"{name:>20}{found.wall_s:>10.1f}{found.cpu_s:>10.1f}{found.peak_mb:>12.0f}")
    return found


def main(
    operations: Annotated[list[int] | None, typer.Argument(help="Default: 1000000.")] = None,
    directory: Annotated[Path | None, typer.Option(help="Where the runs are written, and kept.")] = None,
    hot: Annotated[bool, typer.Option(help="Also with one partition that holds nine tenths of the records.")] = True,
    master: Annotated[str | None, typer.Option(help="A Spark master, as seawall check's.")] = None,
) -> None:
    """Write runs of so many operations, check each, and print a table."""
    options = ["--master", master] if master else []
    typer.echo(f"{'operations':>20}{'wall s':>10}{'CPU s':>10}{'peak MiB':>12}")
    with tempfile.TemporaryDirectory() as temporary:
        for number in operations or [1_000_000]:
            even = _row(number, _written(number, directory or Path(temporary), 0.0), options)
            if hot:
                skewed = _row(number, _written(number, directory or Path(temporary), HOT), options)
                ratios = (skewed.wall_s / even.wall_s, skewed.cpu_s / even.cpu_s)
                typer.echo(f"{'hot : even':>20}{ratios[0]:>10.2f}{ratios[1]:>10.2f}")


if __name__ == "__main__":
    typer.run(main)
