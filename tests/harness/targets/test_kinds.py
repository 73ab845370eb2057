"""A kind of target answers for itself: no other module asks of which class it is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.cli.origin import PACKAGES
from harness.targets.kinds import KINDS

ROOT = Path(__file__).parents[3]


def test_no_module_branches_on_the_class_of_a_kind() -> None:
    modules = [path for package in PACKAGES for path in (ROOT / package).rglob("*.py")]
    branches = re.compile(r"isinstance\([^()]*(?:\([^()]*\)[^()]*)*\b(?:ClusterKind|SourceKind|BootstrapKind)\b")
    found = [str(path.relative_to(ROOT)) for path in modules if branches.search(path.read_text())]
    assert found == ["harness/targets/kinds.py"]


@pytest.mark.parametrize(
    ("name", "releases", "loopback", "leaves"),
    [
        ("builtin", False, True, ""),
        ("simulated", False, False, ""),
        ("process", True, False, ""),
        ("compose", True, False, "containers"),
        ("bootstrap", True, False, "topics"),
    ],
)
def test_what_a_kind_runs_and_needs(name: str, *, releases: bool, loopback: bool, leaves: str) -> None:
    kind = KINDS[name]
    assert (kind.runs_releases, kind.needs_loopback) == (releases, loopback)
    assert (kind.leftovers.plural if kind.leftovers else "") == leaves
    assert bool(kind.argument) == releases
    assert kind.spelling == (f"{name}:{kind.argument}" if releases else name)


@pytest.mark.parametrize("name", ["builtin", "simulated"])
def test_a_kind_that_runs_a_generation_has_no_source_and_a_controller_of_its_own(name: str) -> None:
    kind = KINDS[name]
    assert kind.source("").generation is None
    assert not kind.may_combine("")
    assert kind.with_pattern is None


@pytest.mark.parametrize(
    ("name", "timeline"),
    [
        ("builtin", "whole"),
        ("simulated", "whole"),
        ("process", "sampled"),
        ("compose", "sampled"),
        ("bootstrap", "none"),
    ],
)
def test_what_the_runs_of_a_kind_know_of_brokers(name: str, timeline: str) -> None:
    assert KINDS[name].timeline({}) == timeline


@pytest.mark.parametrize("name", ["bootstrap", "cluster"])
def test_a_run_that_asks_a_running_cluster_for_its_metadata_says_so(name: str) -> None:
    assert KINDS[name].timeline({"seen_by": "metadata"}) == "metadata"
