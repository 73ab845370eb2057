"""``seawall detection``: measures which broker bugs the checkers find, under which load and faults."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from harness.cli.terminal import progress, stdout
from harness.errors import UsageError

if TYPE_CHECKING:
    from harness.detection.figures import Figures
    from harness.detection.matrix import Matrix, Score

_SEEDS = 40
_SEEDS_OF_TIERS = 20


def detection(
    seeds: Annotated[
        int, typer.Option(metavar="N", help="Seeds of a cell on the bare core; the whole broker gets a fifth.", min=1)
    ] = _SEEDS,
    bugs: Annotated[str, typer.Option(metavar="A,B", help="Only these bugs; without it, all.")] = "",
    jobs: Annotated[int | None, typer.Option(metavar="J", help="Processes (default: one per core).", min=1)] = None,
    json_: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Where to write the figures; other bugs' stay there.")
    ] = None,
    docs: Annotated[Path | None, typer.Option(metavar="FILE", help="Where to write them as a page.")] = None,
    tiers: Annotated[
        bool,
        typer.Option("--tiers", help="By tier of evidence alone, in the best cells of the file of --json."),
    ] = False,
) -> None:
    """Measure the detection matrix: every switchable bug in every mix of load and faults, against runs without it.

    Then each bug is tried again where it is found most, and judged with evidence withheld, tier by tier. All of it
    takes an hour and a half or so on two cores. With --bugs, the others' figures in the file of --json are kept.
    """
    from harness.detection.by_tier import measure_tiers
    from harness.detection.document import document
    from harness.detection.figures import Figures, figures_from_json, figures_to_json, joined
    from harness.detection.matrix import Matrix, measure
    from harness.detection.table import chosen

    known = _known(json_) if (bugs or tiers) and json_ is not None else None
    if tiers and known is None:
        raise UsageError("--tiers needs the figures of the matrix.", "Name their file with --json.")
    say, processes, wanted = progress(), jobs or os.cpu_count() or 1, chosen(bugs)

    def seen(done: int, of: int) -> None:
        say(f"{done} of {of} tasks")

    figures = known or Figures(Matrix({}, {}), {})
    if not tiers:
        matrix = measure(wanted, seeds, processes, seen)
        _show(matrix)
        figures = joined(figures, Figures(matrix, {}))
    by_tier = measure_tiers(wanted, figures.matrix, min(seeds, _SEEDS_OF_TIERS), processes, seen)
    figures = joined(figures, Figures(Matrix({}, {}), by_tier))
    written = json.dumps(figures_to_json(figures), indent=1, sort_keys=True) + "\n"
    if json_ is not None:
        json_.write_text(written)
    if docs is not None:  # the page has the file's figures, rounded as there
        docs.write_text(document(figures_from_json(json.loads(written))))


def _known(path: Path) -> Figures | None:
    """The figures in a file, read before the hours of measuring; None: there is no such file.

    Raises:
        UsageError: it holds something else.
    """
    from harness.detection.figures import figures_from_json
    from harness.documents import Unfit, json_file

    try:
        return figures_from_json(json_file(path))
    except FileNotFoundError:
        return None
    except (OSError, Unfit) as error:
        raise UsageError(f"{path} cannot be read: {error}.") from None
    except (KeyError, TypeError, ValueError, AttributeError):
        raise UsageError(f"{path} is no file of this matrix.", "Name another with --json.") from None


def _show(matrix: Matrix) -> None:
    """Print one row per bug: in how many random runs it was found, in which mix most often, and by which schedules."""
    from harness.detection.trial import SCENARIO

    table = Table("bug", "found", "best in", "there", "schedules", "as")
    for name, scores in matrix.scores.items():
        drawn = {cell: score for cell, score in scores.items() if cell.workload != SCENARIO}
        cell, best = max(drawn.items(), key=lambda item: (item[1].interval.low, item[1].found))
        found, tried = sum(s.found for s in drawn.values()), sum(s.tried for s in drawn.values())
        place = f"{cell.workload}, {cell.faults}" if best.found else ""
        kinds = dict.fromkeys(kind for score in (best, *scores.values()) for kind in score.kinds)
        schedules = [cell.faults for cell, score in scores.items() if cell.workload == SCENARIO and score.found]
        table.add_row(name, f"{found}/{tried}", place, _share(best), "\n".join(schedules), "\n".join(kinds))
    stdout().print(table)
    for cell, control in matrix.controls.items():
        for kind, number in sorted(control.alarms.items()):
            stdout().print(f"false alarm: {number} {kind} in {', '.join(cell)}", highlight=False)


def _share(score: Score) -> str:
    interval = score.interval
    return f"{score.found}/{score.tried}, {interval.low:.0%} to {interval.high:.0%}" if score.found else ""
