"""Runs one cell of ``seawall scenario matrix``, and prints cells and the matrix."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from rich.box import SIMPLE
from rich.console import Console
from rich.markup import escape
from rich.table import Column, Table

from harness.cli.terminal import Say, shown, stdout
from harness.errors import ExitCode, worst

if TYPE_CHECKING:
    from harness.runner import Plan
    from harness.runner.matrix import Cell


def played(plan: Plan, out: Path | None, say: Say) -> tuple[Cell, Path | None]:
    """Run ``plan`` and compare the outcome with the expected one.

    ``out`` is the directory for run directories, each with a verdict by the reference engine and a report; None: a
    simulated run that writes nothing.
    """
    from harness.cli.run import record
    from harness.cli.verdicts import Engine, judge
    from harness.runner.matrix import cell
    from harness.runner.observation import Gathered, observe

    if out is None:
        from harness.cli.run_view import RunView
        from harness.runner.rehearsal import rehearse

        view = RunView()
        with shown(view):
            rehearsal = rehearse(plan, say, view.watch)
        return cell(plan, observe(Gathered.kept(rehearsal.manifest, rehearsal.archive))), None
    directory = record(plan, out, say)
    judge([directory], Engine.REFERENCE)
    return cell(plan, observe(Gathered.recorded(directory))), directory


def in_short(cell: Cell) -> str:
    """The outcome of a cell in a line."""
    match cell.agrees, cell.known:
        case True, None:
            return "as predicted"
        case True, why:
            return f"as predicted, although {cell.release} is known to differ: {why}"
        case _, None:
            return f"DIFFERS: {cell.differences[0]}"
        case _, why:
            return f"differs as is known of {cell.release}: {why}"


def show_cell(cell: Cell, settings: Sequence[str] = (), console: Console | None = None) -> None:
    """Print one cell: words, and the logs on the disks; its predictions do not consider ``settings``."""
    from harness.runner.matrix import abbreviated

    console = console or stdout()
    colour = _colour(cell)
    if settings:
        console.print(
            f"Played with {escape(', '.join(settings))}; the prediction is that of {cell.generation} as it is.",
            highlight=False,
            soft_wrap=True,
        )
    console.print(
        f"{escape(cell.catalogue)} on {cell.generation}: predicted {', '.join(cell.predicted)} "
        f"({abbreviated(cell.predicted)}), observed [{colour}]{', '.join(cell.observed) or 'nothing that counts'}[/].",
        highlight=False,
        soft_wrap=True,
    )
    for partition, node, log in cell.logs:
        console.print(f"  {partition} on broker {node}: {escape(log)}", highlight=False, soft_wrap=True)
    for difference in cell.differences:
        console.print(f"  [{colour}]differs[/]: {escape(difference)}", highlight=False, soft_wrap=True)
    if cell.known:
        console.print(f"  {escape(in_short(cell))}", highlight=False, soft_wrap=True)


def show_table(cells: Sequence[Cell], generations: Sequence[str]) -> None:
    """Print the matrix: scenarios down, generations across, observed letters; where they differ, also the predicted."""
    table = Table("entry", *generations, Column("scenario", overflow="fold"), box=SIMPLE, padding=(0, 1, 0, 0))
    found = {(one.scenario, one.generation): one for one in cells}
    for scenario in dict.fromkeys(one.scenario for one in cells):
        mine = [found.get((scenario, generation)) for generation in generations]
        entry = next(one.catalogue for one in mine if one is not None)
        table.add_row(escape(entry), *map(_shown, mine), escape(scenario))
    console = stdout()
    console.print(table)
    for one in cells:
        if not one.agrees or one.known:
            show_cell(one)
    agree, known = sum(one.agrees for one in cells), sum(not one.agrees and not one.is_news for one in cells)
    nothing = sum(one.proves_nothing and one.is_news for one in cells)
    others = (f"; {known} differ as is known" if known else "") + (f"; {nothing} prove nothing" if nothing else "")
    console.print(f"{agree} of {len(cells)} cells are as predicted{others}.", highlight=False)


def show_json(cells: Sequence[Cell]) -> None:
    """Print the cells as one JSON document."""
    document = {"agrees": all(one.agrees for one in cells), "cells": [one.to_json() for one in cells]}
    typer.echo(json.dumps(document, indent=1))


def exit_code(cells: Iterable[Cell]) -> ExitCode:
    """1 when a cell differs, else 3 when one proves nothing; known differences of a release count as neither."""
    return worst(map(_exit_code, cells))


def _exit_code(cell: Cell) -> ExitCode:
    if not cell.is_news:
        return ExitCode.PASS
    return ExitCode.INVALID if cell.proves_nothing else ExitCode.VIOLATION


def _shown(cell: Cell | None) -> str:
    from harness.runner.matrix import abbreviated

    if cell is None:
        return "-"
    wanted = "" if cell.agrees else f" not {abbreviated(cell.predicted)}"
    return f"[{_colour(cell)}]{abbreviated(cell.observed)}{wanted}[/]"


def _colour(cell: Cell) -> str:
    if cell.is_news:
        return "bold red"
    return "green" if cell.agrees else "yellow"
