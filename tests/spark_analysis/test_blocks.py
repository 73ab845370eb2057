"""Blocks and words: the same answers as without them, also across their borders; see test_engines_agree.py, too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as f

from checkers import check
from harness.errors import EnvironmentFault
from spark_analysis import digests
from spark_analysis.blocks import Earlier, gaps, with_earlier, words
from tests.checkers.all_cases import CASES
from tests.checkers.dealing import deal
from tests.spark_analysis.differential import CHUNKS, disagreements, random_runs, tiny_blocks, verdicts_in_blocks


@pytest.fixture
def tiny() -> Iterator[None]:
    """See :func:`tests.spark_analysis.differential.tiny_blocks`."""
    with tiny_blocks():
        yield


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.usefixtures("tiny")
def test_what_a_block_leaves_reaches_the_rows_after_it(spark: SparkSession, *, descending: bool) -> None:
    numbers = [n for n in range(40) if n % 7 not in {2, 3} and n not in range(10, 25)]
    rows = spark.createDataFrame([(k, n, (n * 31) % 17) for k in "ab" for n in numbers], "k string, n bigint, v bigint")
    wanted = {
        "last": Earlier(f.when(f.col("v") % 3 == 0, f.struct("v", "n")), "last"),
        "least": Earlier(f.when(f.col("v") % 5 == 0, f.struct("v", "n")), "least"),
    }
    plain, cut = (
        with_earlier(rows, ["k"], "n", wanted, descending=descending, blocks=cut).orderBy("k", "n").collect()
        for cut in (False, True)
    )
    assert cut == plain
    assert len(cut) == 2 * len(numbers)


@pytest.mark.parametrize(
    ("present", "missing"),
    [
        (range(1000), []),
        ([*range(100), *range(101, 1000)], [(100, 101)]),
        ([5, 6, 6, 6, 63, 64, 700, 10**12], [(0, 5), (7, 63), (65, 700), (701, 10**12)]),
        ([0], []),
        ([], []),
    ],
)
@pytest.mark.usefixtures("tiny")
def test_gaps_are_found_wherever_they_begin(
    spark: SparkSession, present: list[int], missing: list[tuple[int, int]]
) -> None:
    rows = spark.createDataFrame([("r", n) for n in present], "run string, n bigint")
    found = gaps(words(rows, ["run"], "n"), ["run"]).orderBy("first").collect()
    assert found == [Row(run="r", first=first, end=end) for first, end in missing]


@pytest.mark.nightly("two jobs of Spark, each a minute; by day half the random runs, small ones, hold rows in turns")
def test_runs_whose_files_hold_rows_in_turns_are_judged_the_same_in_blocks(tmp_path: Path, spark: SparkSession) -> None:
    """All of them, whatever a chunk is. So a run may be when somebody has written its tables again.

    No file has all rows between its first and last.
    """
    cases = [deal(case.story(case.name).write(tmp_path / case.name, **case.manifest), case.name) for case in CASES]
    assert not list(disagreements(verdicts_in_blocks(cases, spark, check(cases, engine="reference"))))


@pytest.mark.nightly("two jobs of Spark; by day blocks alone are asked, not a whole run in them")
@pytest.mark.parametrize("chunk", CHUNKS)
def test_a_run_that_is_checked_alone_is_judged_the_same_in_blocks(
    tmp_path: Path, spark: SparkSession, chunk: int
) -> None:
    """Its name is a constant in every plan, which the optimizer folds, prunes by and drops."""
    paths = random_runs([14], tmp_path)
    told = check(paths, engine="reference")
    assert not list(disagreements(verdicts_in_blocks(paths, spark, told, [chunk])))


@pytest.mark.usefixtures("tiny")
def test_a_file_that_no_task_can_hold_is_named(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(digests, "MOST_BYTES", 1024)
    with pytest.raises(EnvironmentFault, match=r"history/part-00000\.parquet has 0 MiB: .* more files"):
        check(random_runs([14], tmp_path), session=spark)


@pytest.mark.usefixtures("tiny")
def test_a_worker_that_lacks_a_library_is_told_of(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_numpy(*_: object) -> None:
        raise ModuleNotFoundError("No module named 'numpy'")

    monkeypatch.setattr(digests, "digested", without_numpy)
    with pytest.raises(
        EnvironmentFault, match=r"workers failed: ModuleNotFoundError: No module named 'numpy'\."
    ) as said:
        check(random_runs([14], tmp_path), session=spark)
    assert "PYSPARK_PYTHON" in said.value.remedy
