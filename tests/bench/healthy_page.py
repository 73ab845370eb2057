"""``docs/healthy-runs.md``: what random chaos found on healthy clusters, as a page with a section for each target."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from harness.checker import Outcome

CRASH = "crash"
"""The outcome of a run that seawall could not end."""

_TITLES: Mapping[str, str] = {"builtin": "Real processes", "simulated": "Virtual time"}

_INTRODUCTION = """# Healthy runs

`random-chaos` on clusters without a bug, with up to three faults in force at one time, as far as the configuration
promises to survive them: every violation here is a false alarm. Seeds are dealt out over generations,
minima of the ISR, and acks: all producers ask for `all`, or two of four do, one for `1` and one for `0`. In virtual
time every time of the scenario is about a fifth of what it is. The reference engine decides; that Spark says the same
is what the differential tests are for. `make healthy-runs` runs all of it again, and writes this page.

An *alarm* is a violation, or a run that seawall could not end. *Not judged* are runs that ended as inconclusive or
invalid. Each of both is listed below its table; `--first SEED --runs 1` runs it again.
"""


class Judged(NamedTuple):
    """What came of a run.

    Attributes:
        minimum: ``min.insync.replicas``.
        options: of ``seawall run random-chaos``.
        anomalies: by verdict and kind.
        why: it broke off, or was not judged.
        kept: where its run directory is, which a real run leaves that does not pass.
    """

    seed: int
    generation: str
    minimum: int
    options: Sequence[str]
    outcome: str
    anomalies: Sequence[tuple[str, str]]
    why: str
    faults: int
    sends: int
    acknowledged: int
    kept: str = ""

    @property
    def is_alarm(self) -> bool:
        """Whether it says that something is broken, which it is not."""
        return self.outcome in {Outcome.VIOLATION, Outcome.NOT_REPRODUCED, CRASH}

    @property
    def is_undecided(self) -> bool:
        """Whether it says nothing."""
        return not self.is_alarm and self.outcome != Outcome.PASS

    @property
    def found(self) -> str:
        """The violations, or why it was not judged."""
        return ", ".join(kind for verdict, kind in self.anomalies if verdict == "VIOLATION") or self.why


def document(before: str, target: str, done: Sequence[Judged], about: str) -> str:
    """The page with the section of one target written again; ``before``: the page as it is, or nothing."""
    sections = dict(part.split("\n", 1) for part in before.split("\n## ")[1:])
    sections[_TITLES[target]] = "\n" + "\n".join(_section(done, about)) + "\n"
    return "\n".join(
        [_INTRODUCTION, *(f"## {title}\n{sections[title]}" for title in _TITLES.values() if title in sections)]
    )


def machine() -> str:
    """What this ran on."""
    return f"{os.cpu_count()} processors ({platform.machine()}), CPython {platform.python_version()}"


def _section(done: Sequence[Judged], about: str) -> Iterator[str]:
    yield f"{about}\n"
    yield "| generation | `min.insync.replicas` | runs | faults | sends | acknowledged | alarms | not judged |"
    yield "|---|---|---|---|---|---|---|---|"
    for (generation, minimum), ours in groupby(sorted(done, key=_cell), key=_cell):
        yield _row(generation, str(minimum), list(ours))
    yield _row("all", "", done)
    for one in sorted(done, key=lambda one: one.seed):
        if one.outcome != Outcome.PASS:
            where = f"seed {one.seed} ({one.generation}, `min.insync.replicas={one.minimum}`)"
            yield f"\n{one.outcome}, {where}: {one.found}"


def _cell(one: Judged) -> tuple[str, int]:
    return one.generation, one.minimum


def _row(generation: str, minimum: str, ours: Sequence[Judged]) -> str:
    numbers = (
        len(ours), sum(one.faults for one in ours), sum(one.sends for one in ours),
        sum(one.acknowledged for one in ours), sum(one.is_alarm for one in ours),
        sum(one.is_undecided for one in ours),
    )  # fmt: skip
    return f"| {generation} | {minimum} | " + " | ".join(f"{number:,}" for number in numbers) + " |"
