"""The modules that docs/plugins.md calls public: what the tests' plugins import, and what a checker may be given."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from checkers import registry
from harness.cli.origin import PACKAGES

ROOT = Path(__file__).parents[2]
FOR_TESTS = {"harness.testing.scripted_target"}
"""Plugins' own tests use it; ``test_broken_plugins`` does."""


def imported(path: Path) -> set[str]:
    """The modules of seawall that a file imports."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    found = {str(node.module) for node in nodes if isinstance(node, ast.ImportFrom)}
    found |= {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    return {module for module in found if module.partition(".")[0] in PACKAGES}


def test_the_public_modules_are_those_that_plugins_need() -> None:
    section = (ROOT / "docs/plugins.md").read_text().partition("\n## Public modules\n")[2].partition("\n## ")[0]
    listed = set(re.findall(r"`([a-z_]+(?:\.[a-z_]+)+)`", section))
    used = {module for path in (ROOT / "tests/plugins/toy").rglob("*.py") for module in imported(path)}
    given = {kind.__module__ for kind in registry._GIVEN}
    assert used | given | FOR_TESTS == listed
    assert imported(ROOT / "tests/plugins/test_broken_plugins.py") >= FOR_TESTS
