"""Every kind of fault states its traits, and what treats kinds differently reads them and compares no names."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from faults import KINDS, traits_of
from harness.fault import DiskEffect, FaultTraits, ProcessEffect

ROOT = Path(__file__).parents[2]
FOLDERS = (
    "checkers",
    "spark_analysis",
    "reports",
    *(f"harness/{x}" for x in ("runner", "cli", "museum", "detection", "simulation")),
)
NO_COMPARISONS = {"harness/detection/synthetic.py", "harness/detection/mixes.py"}
"""Made-up histories write the faults that they are about, and columns of the detection matrix are called like kinds."""


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_states_its_traits_itself(kind: str) -> None:
    assert isinstance(vars(KINDS[kind]).get("traits"), FaultTraits)
    assert traits_of(kind) is KINDS[kind].traits


def test_a_kind_that_is_not_known_has_no_trait() -> None:
    traits = traits_of("meteorite")
    assert not traits.affects_process
    assert traits.disk is DiskEffect.NOTHING
    assert not traits.cuts_links
    assert not traits.moves_clock


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_of_links_or_of_a_clock_leaves_processes_and_disks_alone(kind: str) -> None:
    traits = traits_of(kind)
    if traits.cuts_links or traits.moves_clock:
        assert (traits.process, traits.disk) == (ProcessEffect.NONE, DiskEffect.NOTHING)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_whose_traits_say_that_it_ends_the_process_is_healed_by_a_start(kind: str) -> None:
    (down,) = (base for base in KINDS["kill"].__bases__ if base.__name__ == "Down")
    assert issubclass(KINDS[kind], down) == (traits_of(kind).process is ProcessEffect.ENDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_fault_of_clocks_says_by_how_much_they_are_off(kind: str) -> None:
    assert traits_of(kind).moves_clock == hasattr(KINDS[kind], "clock_error_ms")
    assert traits_of("clock").moves_clock


@pytest.mark.parametrize("folder", ["harness/runner", "checkers", "reports"])
def test_no_module_that_treats_faults_imports_the_class_of_one(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {ast.unparse(node)}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if any(module.startswith("faults.") for module in _imported(node))
    ]
    assert found == []


def test_an_import_is_found_however_it_is_written() -> None:
    for code in ("from faults.kill import Kill", "import faults.kill", "from faults import kill"):
        assert any(module.startswith("faults.") for module in _imported(ast.parse(code).body[0])), code
    assert _imported(ast.parse("from faults import traits_of").body[0]) == ["faults"]


def _imported(node: ast.AST) -> list[str]:
    """The modules that a statement imports."""
    match node:
        case ast.Import(names):
            return [name.name for name in names]
        case ast.ImportFrom("faults", names):
            return [f"faults.{x.name}" if (ROOT / f"faults/{x.name}.py").exists() else "faults" for x in names]
        case ast.ImportFrom(str(module)):
            return [module]
    return []


def test_no_module_compares_a_fault_with_the_name_of_a_kind() -> None:
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in files
        if str(path.relative_to(ROOT)) not in NO_COMPARISONS
        for line in _comparisons(ast.parse(path.read_text()))
    ]
    assert found == []


ALSO_COLUMNS = {"partition", "stall"}
"""Names of kinds that tables and answers have, too; in a collection they count only beside another kind."""


@pytest.mark.parametrize(
    "code",
    [
        'kind == "kill"',
        'kind in {"kill"}',
        'kind in ("kill", "stop")',
        'kind in ["partition", "pause"]',
        'KINDS = frozenset(("kill",))',
        '{"kill": 1}[kind]',
        'match kind:\n    case "kill" | "stop":\n        pass',
    ],
)
def test_a_comparison_is_found_however_it_is_written(code: str) -> None:
    assert list(_comparisons(ast.parse(code)))


def _comparisons(tree: ast.AST) -> Iterator[int]:
    """The lines that compare something with the name of a kind, or collect such names, also as keys."""
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left, _, others) if any(map(_is_name, [left, *others])):
                yield node.lineno
            case ast.Set(names) | ast.Tuple(names) | ast.List(names) | ast.Dict(names) if _has_kinds(names):
                yield node.lineno
            case ast.MatchValue(name) if _is_name(name):
                yield node.lineno


def _has_kinds(names: Sequence[ast.AST | None]) -> bool:
    return any(_is_name(name) and getattr(name, "value", None) not in ALSO_COLUMNS for name in names)


def _is_name(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Constant) and node.value in KINDS
