"""The recipes of CONTRIBUTING.md name the files of an example, and the example is in these files alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.replication.bugs import BUGS

ROOT = Path(__file__).parent.parent
PACKAGES = ("harness", "faults", "workloads", "checkers", "reports", "spark_analysis")

MOST: Mapping[str, int] = {
    "A fault": 4,
    "A target": 3,
    "A workload": 2,
    "A knob of a generation": 4,
    "A Kafka API": 5,
    "An anomaly": 6,
}
"""How many files adding one may touch; of a target beside its own modules, of an anomaly with the bug that it finds."""

BESIDE = {"A target": "harness/targets/"}
"""Where a kind's own modules are that its recipe does not list."""


class Example(NamedTuple):
    """A worked example.

    Attributes:
        name: in code; ``aliases``: what else it is called, in text and in tests.
    """

    recipe: str
    name: str
    aliases: tuple[str, ...]
    files: tuple[str, ...]


def _examples() -> Iterator[Example]:
    for section in (ROOT / "CONTRIBUTING.md").read_text().split("\n### ")[1:]:
        for what, files in re.findall(r"^Worked example, (.*?): (.*)$", section, re.MULTILINE):
            name, *aliases = re.findall(r"`([^`]+)`", what)
            yield Example(section.splitlines()[0], name, tuple(aliases), tuple(re.findall(r"\]\(([^)]+)\)", files)))


EXAMPLES = tuple(_examples())


def names(path: str, *words: str) -> bool:
    """Whether a file names one of ``words``."""
    return re.search(rf"\b(?:{'|'.join(map(re.escape, words))})\b", (ROOT / path).read_text()) is not None


def test_every_recipe_has_an_example_of_no_more_files_than_it_may_take() -> None:
    assert {example.recipe for example in EXAMPLES} == MOST.keys()
    counted = {example.name: len(set(example.files)) for example in EXAMPLES}
    assert [example.name for example in EXAMPLES if counted[example.name] > MOST[example.recipe]] == []


def test_an_anomaly_has_an_example_with_a_question_to_spark_and_one_without() -> None:
    of_anomalies = [example for example in EXAMPLES if example.recipe == "An anomaly"]
    assert {f"spark_analysis/{one.name}.py" in one.files for one in of_anomalies} == {True, False}
    assert all({f"checkers/{one.name}.py", "harness/replication/bugs.py"} <= {*one.files} for one in of_anomalies)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_each_file_of_an_example_names_it(example: Example) -> None:
    assert [file for file in example.files if not names(file, example.name, *example.aliases)] == []


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_no_other_module_names_an_example_or_its_bug(example: Example) -> None:
    modules = [str(path.relative_to(ROOT)) for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    beside = BESIDE.get(example.recipe, "/")
    others = [file for file in modules if file not in example.files and not file.startswith(beside)]
    words = (example.name, *BUGS.keys() & {*example.aliases})
    assert [file for file in others if names(file, *words)] == []
