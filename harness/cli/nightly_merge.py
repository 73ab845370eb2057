"""``seawall nightly merge``, ``retire`` and ``keep``: the outputs of a night, and its seed bank."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from harness.cli.spark import decides_alone
from harness.cli.terminal import progress
from harness.cli.verdicts import Engine
from harness.errors import UsageError
from harness.nightly.keeping import Keep

if TYPE_CHECKING:
    from harness.nightly.result import CellResult

app = typer.Typer(help="What comes after a night's cells.", no_args_is_help=True)

BANK = Path("seeds.yaml")
NIGHTS = Path("nights")


@app.command()
def merge(
    directories: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="The directories of a night's shards, or of a whole night.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the outputs go; default: DIR if one, else nights/ID."),
    ] = None,
    history: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The results of past nights, to which this one is added.")
    ] = None,
    bank: Annotated[Path, typer.Option(metavar="FILE", help="The seed bank, to which violations are added.")] = BANK,
    engine: Annotated[
        Engine, typer.Option(help="reference: keep what the reference engine said, and do not ask Spark.")
    ] = Engine.SPARK,
    master: Annotated[
        str | None, typer.Option(metavar="URL", help="A Spark master, see docs/scale.md; default: this machine.")
    ] = None,
    copied_to: Annotated[
        str | None,
        typer.Option(
            "--runs",
            metavar="URI",
            help="Where a Spark master finds a copy of what is in DIR, of all shards in one place.",
        ),
    ] = None,
    keep: Annotated[
        Keep,
        typer.Option(help="failing, none: what Spark has agreed about keeps its verdict, report and manifest alone."),
    ] = Keep.ALL,
    partial: Annotated[bool, typer.Option("--partial", help="Merge although shards are missing.")] = False,
) -> int:
    """Merge a night: ask Spark about all its runs in one job, and write its outputs, history, index and seed bank.

    Ends with the exit code of the night: 1 before 70 before 3 before 2 before 4, and 0 when every cell passed and no
    shard is missing.
    """
    from harness.nightly import bank as seeds
    from harness.nightly import history_file, index, outputs, prose, results_file, second_opinion, summary
    from harness.nightly.conclusion import exit_code
    from harness.nightly.merging import copies, merged, shards

    known = seeds.read(bank)
    past = history_file.read(history) if history else []
    say = progress()
    by_directory, missing = shards(directories, partial=partial)
    notes = list(missing)
    place = out or _place(by_directory)
    results = merged(by_directory, place)
    if engine is Engine.SPARK and ((master or copied_to) is not None or not decides_alone()):
        elsewhere = copies(by_directory, copied_to) if copied_to else {}
        results, said = second_opinion.compared(results, place, master, say, copies=elsewhere, keep=keep)
        notes += said
    grown = seeds.updated(known, results)
    found = outputs.write(place, results, past, grown, notes=notes, missing=missing)
    seeds.write(bank, grown)
    every = history_file.updated(past, results)
    if history:
        results_file.write(history, every)
    written = index.write(place, index.Nights.of_one(results, every), grown)
    code = exit_code(results, is_partial=bool(missing))
    _tell_github(results, lambda left: summary.markdown(results, found, notes, left, is_partial=bool(missing)))
    for line in (f"{prose.counts(results)}", *notes, f"summary: {place / 'summary.md'}", f"index: {written}"):
        typer.echo(line)
    return code


@app.command()
def retire(
    entry: Annotated[str, typer.Argument(metavar="ENTRY", help="The name of an entry of the seed bank.")],
    bank: Annotated[Path, typer.Option(metavar="FILE", help="The seed bank.")] = BANK,
) -> None:
    """Remove an entry from the seed bank; the next nights do not run it any more."""
    from harness.nightly import bank as seeds

    left = seeds.retired(seeds.read(bank), entry, bank)
    seeds.write(bank, left)
    typer.echo(f"{bank}: {entry} is retired, {len(left)} entries are left")


@app.command()
def keep(
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="What CI keeps between nights: seeds.yaml, committed.yaml, now.yaml.")
    ],
) -> None:
    """Add to the seed bank that CI keeps what the repository's has, and remove what was retired there.

    now.yaml is the repository's bank of this night; committed.yaml is that of the last night, and becomes a copy of it.
    """
    from harness.nightly import bank as seeds

    path, new, committed = (directory / name for name in (seeds.NAME, seeds.NOW, seeds.COMMITTED))
    now, before = seeds.read(new), seeds.read(committed)
    if before and not (new.exists() and new.read_bytes().strip()):
        raise UsageError(
            f"the repository's seed bank had {before[0].entry!r} in the last night, and {new} is empty.",
            "Name the bank's file as it is called now, or retire its entries with `seawall nightly retire`.",
        )
    kept = seeds.kept(seeds.read(path), now, before)
    seeds.write(path, kept)
    seeds.write(committed, now)
    typer.echo(f"{path}: {len(kept)} entries are kept")


def _place(by_directory: Mapping[Path, Sequence[CellResult]]) -> Path:
    """The only directory, or one named for the night."""
    if len(by_directory) == 1:
        return next(iter(by_directory))
    [night] = {one.night for cells in by_directory.values() for one in cells}
    place = NIGHTS / night
    if len(place.parts) != 2 or place in by_directory:
        raise UsageError(f"the night {night!r} gives no directory to merge into.", "Name one with --out DIR.")
    return place


def _tell_github(results: Sequence[CellResult], markdown: Callable[[int], str]) -> None:
    """Print annotations and append the summary, ``markdown`` of so many bytes, in a job of GitHub Actions."""
    from harness.nightly import github, summary

    if github.is_here():
        for command in github.commands(results):
            typer.echo(command)
        github.append_summary(lambda left: markdown(min(left, summary.MOST_BYTES)))
