"""Formats cells and their results as text, for all outputs of a night."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from harness.nightly.conclusion import GRAVEST_FIRST
from harness.nightly.result import CellResult, Incident

MOST_INCIDENTS = 4
"""How many incidents a line names."""


def system(result: CellResult) -> str:
    """The target, and the generation unless the target names it: ``builtin 0.10``, ``process:4.3.0``."""
    generation = result.generation
    return result.target if not generation or generation in result.target else f"{result.target} {generation}"


def settings(result: CellResult) -> str:
    """What ``--set`` overrode, in one line: ``min.insync.replicas=1, topic.partitions=3``."""
    return ", ".join(f"{key}={value}" for key, value in sorted(result.settings.items()))


def what_ran(result: CellResult) -> str:
    """The scenario, or what kind of cell it is, with its settings."""
    name = result.scenario or result.kind
    return f"{name} ({settings(result)})" if result.settings else name


def named(result: CellResult) -> str:
    """A cell in a few words: ``random-chaos on builtin 4.1, seed 7``."""
    seed = "" if result.seed is None else f", seed {result.seed}"
    return f"{what_ran(result)} on {system(result)}{seed}"


def headline(result: CellResult) -> str:
    """What happened, in one line: the outcome, and the incidents or else the reason."""
    detail = incidents(result.incidents) or result.reason
    return f"{result.outcome}: {detail}" if detail else result.outcome.value


def incidents(found: Iterable[Incident]) -> str:
    """``3 lost-write in ledger/0, 1 hw-regression in ledger/0``; the gravest four."""
    words = [f"{one.count:,} {one.kind}" + (f" in {one.place}" if one.place else "") for one in found]
    more = f" and {len(words) - MOST_INCIDENTS} more" if len(words) > MOST_INCIDENTS else ""
    return ", ".join(words[:MOST_INCIDENTS]) + more


def counts(results: Iterable[CellResult]) -> str:
    """``1 violation, 2 skipped, 40 pass``, gravest first."""
    number = Counter(one.outcome for one in results)
    return ", ".join(f"{number[outcome]:,} {outcome}" for outcome in GRAVEST_FIRST if number[outcome]) or "no cell"


def cells(number: int) -> str:
    """``1 cell``, ``1,328 cells``."""
    return f"{number:,} cell{'' if number == 1 else 's'}"


def seconds(duration_s: float) -> str:
    """``45 s``, ``12 min``, ``3 h 20 min``."""
    if duration_s < 90:
        return f"{duration_s:.0f} s"
    minutes = round(duration_s / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def shortened(text: str, most: int) -> str:
    """At most so many characters, the last of them an ellipsis where something is left out."""
    return text if len(text) <= most else text[: most - 1] + "…"
