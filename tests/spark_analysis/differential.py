"""Both engines on random runs: what one of them says and the other does not.

Spark judges each run as what it is, and as a large run in tiny blocks and words, whose chunks are tiny, or whole.

Run it with ``make nightly``, or ``python tests/spark_analysis/differential.py [runs] [first seed]``.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

import typer
from pyspark.sql import SparkSession

from checkers import check
from checkers.registry import KINDS
from checkers.verdicts.sources import LocalRun, Opened
from harness.checker import RunVerdict, differing_parts, to_json
from spark_analysis import blocks, digesting, disorder, session, sizing
from tests.checkers.dealing import deal
from tests.checkers.randomness import manifest_of, random_story

AT_ONCE = 1000
"""How many runs are one job."""

CHUNKS = (3, 1 << 16)
"""How many rows are looked at together: more than one chunk for what is in one, and one chunk for all."""

_PLANNED_ONCE = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.constraintPropagation.enabled": "false",
    "spark.sql.optimizer.disableHints": "true",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
}
"""Planning takes longer than judging runs of a few rows. What is one chunk is planned as large runs are."""

Verdicts = list[tuple[RunVerdict, RunVerdict]]
"""What Spark and the reference say of each run."""


def random_runs(seeds: Iterable[int], root: Path) -> list[Path]:
    """The runs of these seeds, written below ``root``; every other one in several files whose rows come in turns."""
    runs = {seed: random_story(seed).write(root / f"{seed}", **manifest_of(seed)) for seed in seeds}
    return [deal(path, seed) if seed % 2 else path for seed, path in runs.items()]


@contextmanager
def tiny_blocks(chunk: int = 3) -> Iterator[None]:
    """Every run is large, a block is three rows, a word two numbers, as is an octet, and ``chunk`` rows are a chunk."""
    with (
        patch.object(sizing, "LARGE", 0),
        # What compiling takes is more than so few rows give back.
        patch.dict("spark_analysis.sizing._OF_LARGE", {"spark.sql.codegen.factoryMode": "NO_CODEGEN"}),
        patch.dict("spark_analysis.sizing._OF_LARGE", _PLANNED_ONCE if chunk < max(CHUNKS) else {}),
        patch.multiple(blocks, BLOCK=3, WORD_SHIFT=1, OCTET_SHIFT=1),
        patch.object(disorder, "BLOCK", 3),
        patch.object(digesting, "CHUNK", chunk),
    ):
        yield


@contextmanager
def opened_once(known: dict[str, Opened]) -> Iterator[None]:
    """The files of a run are looked through once, whichever engines are asked about it, and however often.

    ``known``: the runs that have been looked through, by their paths.
    """
    look: Callable[[LocalRun], Opened] = LocalRun.opened

    def opened(run: LocalRun) -> Opened:
        if run.where not in known:
            known[run.where] = look(run)
        return known[run.where]

    with patch.object(LocalRun, "opened", opened):
        yield


def verdicts_on(runs: Sequence[Path], spark: SparkSession) -> Verdicts:
    """What both engines say of ``runs``."""
    return list(zip(check(runs, engine="spark", session=spark), check(runs, engine="reference"), strict=True))


def verdicts_in_blocks(
    runs: Sequence[Path], spark: SparkSession, told: Sequence[RunVerdict], chunks: Iterable[int] = CHUNKS
) -> Verdicts:
    """What Spark says of ``runs`` as large ones, in chunks of each size, beside what the reference ``told``."""
    verdicts: Verdicts = []
    for chunk in chunks:
        with tiny_blocks(chunk):
            verdicts += zip(check(runs, engine="spark", session=spark), told, strict=True)
    return verdicts


def disagreements(verdicts: Verdicts) -> Iterator[str]:
    """By run, which parts of its verdict differ."""
    for spark_says, reference_says in verdicts:
        assert spark_says.engine != reference_says.engine
        for part in differing_parts(spark_says, reference_says):
            mine, theirs = to_json(spark_says)[part], to_json(reference_says)[part]
            yield f"{spark_says.run}: {part}: Spark {mine}, the reference {theirs}"


def runs_by_kind(verdicts: Verdicts) -> Counter[str]:
    """In how many runs each kind of anomaly is found."""
    return Counter(kind for verdict, _ in verdicts for kind in {anomaly.kind for anomaly in verdict.anomalies})


def every_kind() -> set[str]:
    """All kinds there are."""
    return set(KINDS)


def main(runs: int = 10_000, first: int = 1_000_000) -> int:
    """Compare; returns how many runs the engines disagree about."""
    found: Counter[str] = Counter()
    wrong = 0
    begin = time.monotonic()
    for at in range(first, first + runs, AT_ONCE):
        with tempfile.TemporaryDirectory() as root, opened_once({}):
            seeds = range(at, min(at + AT_ONCE, first + runs))
            stories, spark = random_runs(seeds, Path(root)), session.session("local[2]")
            verdicts = verdicts_on(stories, spark)
            in_blocks = verdicts_in_blocks(stories, spark, [told for _, told in verdicts])
        found += runs_by_kind(verdicts)
        differing = [*disagreements(verdicts), *(f"{said}, in blocks" for said in disagreements(in_blocks))]
        wrong += len({sentence.split(":")[0] for sentence in differing})
        for sentence in differing:
            typer.echo(sentence[:2000])
        typer.echo(f"{seeds.stop - first} runs, {wrong} disagreements, {time.monotonic() - begin:.0f} s")
        session.stop()  # one that had judged eight thousand ran out of memory
    typer.echo("runs with each kind: " + ", ".join(f"{kind} {found[kind]}" for kind in sorted(every_kind())))
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
