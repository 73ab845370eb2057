"""Style as a test: what a reviewer would otherwise have to say again and again."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import grimp
import pytest
import typer

from harness.cli.application import app
from harness.cli.origin import PACKAGES

ROOT = Path(__file__).resolve().parents[1]
GENERATED = {"requirements.lock", "requirements-uv.lock"}
SHIPPED = (*PACKAGES, "seawall_entry", "seawall_origin", "seawall_pytest")
NAMES_WITHOUT_A_NOUN = {"utils", "util", "helpers", "helper", "common", "core", "base", "manager", "misc"}
UNFINISHED = re.compile("TO" + r"DO|FIX" + r"ME|\bXX" + r"X\b")
SOMEBODYS_MACHINE = re.compile(r"(?<![\w.:/-])/(work|root|home|Users)/")


def python_files() -> list[Path]:
    below = (path for folder in (*SHIPPED, "tests") for path in (ROOT / folder).rglob("*.py"))
    return sorted([*ROOT.glob("*.py"), *below])


def documents() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "compose").rglob("*.md")])


def written_files() -> list[Path]:
    """Everything in the tree that a person wrote."""
    listed = subprocess.run(
        ("git", "ls-files", "--cached", "--others", "--exclude-standard"),
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    paths = (ROOT / line for line in listed.stdout.splitlines() if line not in GENERATED)
    return [path for path in paths if path.is_file() and path.suffix not in {".png", ".parquet", ".log"}]


def relative(paths: Iterator[Path] | list[Path]) -> list[str]:
    return [str(path.relative_to(ROOT)) for path in paths]


@cache
def tree(path: Path) -> ast.Module:
    """What a file of Python says; parsing all of them takes seconds."""
    return ast.parse(path.read_text())


def functions() -> Iterator[tuple[str, int]]:
    """Every function with its length in lines, docstring and decorators not counted."""
    for path in python_files():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
                first = node.body[1] if ast.get_docstring(node, clean=False) and len(node.body) > 1 else node.body[0]
                yield f"{path.relative_to(ROOT)}:{node.lineno} {node.name}", node.end_lineno - first.lineno + 1


def test_no_file_is_longer_than_500_lines() -> None:
    assert not [str(path) for path in python_files() if len(path.read_text().splitlines()) > 500]


def test_nine_functions_in_ten_are_shorter_than_40_lines_and_none_is_a_page_long() -> None:
    lengths = dict(functions())
    assert sum(length < 40 for length in lengths.values()) >= 0.9 * len(lengths)
    assert not {name: length for name, length in lengths.items() if length > 80}


MANY_PARAMETERS = {
    "harness/history/schema.py _c": "a column: its fields are options",
    "harness/in_pytest/clients.py produce": "it stands in for confluent-kafka's",
    "harness/in_pytest/recording.py sent": "what confluent-kafka's produce was called with",
    "harness/simulation/findings.py accuse": "a violation: its fields are options",
    "harness/wire/batches/record.py build": "a batch: its fields are options",
    "harness/wire/declaration.py _field": "a field of a message: what Kafka's JSON says of one",
}
"""Functions with more than seven parameters, and why; those of a command are its options."""


def test_no_function_takes_more_than_seven_parameters() -> None:
    found = {
        f"{path.relative_to(ROOT)} {node.name}"
        for path in shipped_files()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and len(parameters(node)) > 7
    }
    assert {name for name in found if not name.startswith("harness/cli/")} == set(MANY_PARAMETERS)


LARGE_CONTEXTS = {
    "harness/client_ports.py ClientContext": "what all clients of a run share; plugins' workloads are given it",
    "harness/coordination/member.py Member": "a row of a group's table, with the member's timer and pending answer",
    "harness/runner/observation.py Gathered": "the record of what a run has left",
    "harness/runner/plan.py Plan": "the record of what is to be run",
    "harness/targets/compose/observed_containers.py ObservedContainers": "an implementation of a port, passed as that",
    "reports/run.py Run": "the record of a finished run, which caches the names of its nodes",
}
"""Classes that hold services, or cache what they compute, and have more than six fields all the same, and why."""


def test_no_object_that_is_passed_about_holds_everything() -> None:
    """A context is a dataclass or named tuple that has a service among its fields, or caches what it computes.

    A service is a callable, a table of Spark, or an object that does something: of a class with public methods that is
    no record. A record of data alone may have as many fields as what it describes.
    """
    classes = [
        (f"{path.relative_to(ROOT)} {node.name}", node)
        for path in shipped_files()
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef)
    ]
    named: dict[str, list[ast.ClassDef]] = {}
    for _, node in classes:
        named.setdefault(node.name, []).append(node)
    services = {name for name, nodes in named.items() if all(is_service(node, named) for node in nodes)}
    services |= {"Callable", "DataFrame", "SparkSession"}
    large = {name: node for name, node in classes if is_record(node) and len(fields(node)) > 6}
    assert {name for name, node in large.items() if is_context(node, services)} == set(LARGE_CONTEXTS)


def shipped_files() -> list[Path]:
    return [path for path in python_files() if path.relative_to(ROOT).parts[0] in SHIPPED]


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    given = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return [one.arg for one in given if one.arg not in ("self", "cls")]


def fields(node: ast.ClassDef) -> list[ast.expr]:
    """The annotations of a class's fields."""
    return [
        one.annotation
        for one in node.body
        if isinstance(one, ast.AnnAssign) and "ClassVar" not in ast.unparse(one.annotation)
    ]


def decorators(node: ast.ClassDef | ast.FunctionDef) -> set[str]:
    return {ast.unparse(one).partition("(")[0] for one in node.decorator_list}


def is_record(node: ast.ClassDef) -> bool:
    return "dataclass" in decorators(node) or "NamedTuple" in {ast.unparse(base) for base in node.bases}


def is_service(node: ast.ClassDef, named: dict[str, list[ast.ClassDef]]) -> bool:
    bases = {ast.unparse(base) for base in node.bases}
    is_data = is_record(node) or bool(bases & {"Enum", "StrEnum", "IntEnum", "BaseModel", "TypedDict"})
    is_data = is_data or bool({"message", "struct", "stored"} & decorators(node))
    is_data = is_data or any(is_record(one) for base in bases for one in named.get(base, ()))
    methods = [one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    return not is_data and any(not name.startswith("_") for name in methods)


def is_context(node: ast.ClassDef, services: set[str]) -> bool:
    held = {one.id for annotation in fields(node) for one in ast.walk(annotation) if isinstance(one, ast.Name)}
    methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
    return bool(held & services) or any("cached_property" in decorators(one) for one in methods)


def test_every_module_is_named_for_a_thing() -> None:
    assert not relative([path for path in python_files() if path.stem.strip("_") in NAMES_WITHOUT_A_NOUN])


def test_every_module_says_what_it_is() -> None:
    silent = [path for path in python_files() if not ast.get_docstring(tree(path))]
    assert not [name for name in relative(silent) if not name.startswith("tests/")]


def test_every_package_has_an_init_file_and_tests_have_none() -> None:
    folders = {path.parent for path in python_files()}
    bare = {folder for folder in folders if not (folder / "__init__.py").exists()}
    assert relative(sorted(folder for folder in folders - bare if "tests" in folder.parts)) == []
    assert relative(sorted(folder for folder in bare - {ROOT} if "tests" not in folder.relative_to(ROOT).parts)) == []


def test_the_storeys_hold() -> None:
    command = (sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()")
    linted = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert linted.returncode == 0, linted.stdout + linted.stderr


def test_no_module_is_in_a_circle_of_imports_those_of_types_included() -> None:
    graph = grimp.build_graph(*SHIPPED)
    importers = {module: graph.find_downstream_modules(module) for module in graph.modules}
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    found = {module for module in graph.modules if not importers[module].isdisjoint(imported[module])}
    assert not found


def test_the_layers_name_every_module() -> None:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = linter["contracts"][0]["layers"]
    assert sorted(linter["root_packages"]) == sorted(SHIPPED)
    named = {module.strip() for layer in layers for module in re.split(r"[|:]", layer)}
    of_harness = {f"harness.{path.stem}" for path in (ROOT / "harness").iterdir() if path.stem[0] not in "_."}
    packages = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"harness"}
    assert named == {name for name in of_harness if name != "harness.scenarios"} | packages


@pytest.mark.parametrize("document", documents(), ids=lambda path: str(path.relative_to(ROOT)))
class TestDocuments:
    def test_links_lead_somewhere(self, document: Path) -> None:
        targets = re.findall(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"", document.read_text())
        local = [target for pair in targets for target in pair if target and "://" not in target]
        assert not [target for target in local if not leads_somewhere(document, target)]

    def test_seawall_commands_exist_with_their_options(self, document: Path) -> None:
        lines = re.findall(r"(?:^|`|\s)seawall ([a-z][^`\n|#]*)", code(document.read_text()))
        assert not [complaint for line in lines for complaint in complaints(line.split())]

    def test_make_targets_exist(self, document: Path) -> None:
        known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
        assert set(re.findall(r"\bmake ([a-z][a-z-]*)", code(document.read_text()))) <= known


def leads_somewhere(document: Path, target: str) -> bool:
    place, _, anchor = target.partition("#")
    file = (document.parent / place).resolve() if place else document
    if not file.exists():
        return False
    return not anchor or file.suffix != ".md" or anchor in anchors(file.read_text())


def anchors(text: str) -> set[str]:
    """The anchors a forge makes of a document's headings."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def code(text: str) -> str:
    """The code of a document: its fenced blocks and what stands between backticks, one piece per line."""
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    inline = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL))
    return "\n".join([*fenced, *inline])


@cache
def command_line() -> Any:
    """The command ``seawall``; making it takes ten times as long as looking a line up in it."""
    return typer.main.get_command(app)


def complaints(words: list[str]) -> list[str]:
    """What is wrong with a command line of a document, given without its first word."""
    command = command_line()
    while words and words[0] in (commands := getattr(command, "commands", {})):
        command = commands[words.pop(0)]
    command = getattr(command, "commands", {}).get(getattr(command, "default", ""), command)
    if getattr(command, "commands", None):
        return [f"no command {' '.join(words)!r}"]
    known = {option for parameter in command.params for option in parameter.opts} | {"--help"}
    used = {word.strip("[].,").split("=")[0] for word in words if word.strip("[]").startswith("--")}
    return sorted(used - known)


def test_nothing_is_left_unfinished_and_nothing_depends_on_one_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for path in written_files()
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if UNFINISHED.search(line) or SOMEBODYS_MACHINE.search(line)
    ]
    assert not found


def test_the_lock_file_pins_everything_with_hashes_and_names_no_registry() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    pins = re.findall(r"^[a-z0-9][\w.\[\]-]*", lock, re.MULTILINE)
    assert len(pins) == len(re.findall(r"^\S+==\S+.*\\\n +--hash=sha256:", lock, re.MULTILINE)) > 40
    assert "://" not in lock


def test_the_tool_that_installs_the_rest_is_pinned_with_the_hashes_of_every_platform() -> None:
    makefile, lock = (ROOT / "Makefile").read_text(), (ROOT / "requirements-uv.lock").read_text()
    [wanted] = re.findall(r"^UV := (uv==\S+)$", makefile, re.MULTILINE)
    assert re.findall(r"^[a-z]\S+", lock, re.MULTILINE) == [wanted]
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}", lock)) >= 10  # Linux, macOS and Windows on several processors
    installs = re.findall(r"-m (?:uv )?pip install .*", makefile)
    unpinned = [line for line in installs if "--require-hashes" not in line and "--no-deps" not in line]
    assert len(installs) >= 3
    assert not unpinned


def test_every_dependency_is_pinned_and_has_its_reason_written_down() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = [one for extra in project["project"]["optional-dependencies"].values() for one in extra]
    needed = [*project["project"]["dependencies"], *extras, *project["dependency-groups"]["dev"]]
    names = {re.split(r"[\[<>=]", requirement)[0] for requirement in needed}
    pinned = set(re.findall(r"^([a-z0-9][a-z0-9-]*)==", (ROOT / "requirements.lock").read_text(), re.MULTILINE))
    reasons = (ROOT / "docs" / "adr" / "0008-libraries.md").read_text()
    assert not names - pinned
    assert not [name for name in names if name not in reasons]


def test_every_test_that_a_document_names_is_there() -> None:
    there = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"def (test_\w+)\(", path.read_text())
    }
    named = {name for path in documents() for name in re.findall(r"`(test_\w+)`", path.read_text())}
    assert named
    assert not named - there
