"""The names of faults, anomalies, workloads and targets stand in their own files: adding one touches few others.

A module that names a kind of another file treats it differently from all others, and a developer who adds a kind might
have to change that module, too. Those that do so still are listed here with what for; no module is added to the list.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import faults
import workloads
from checkers.registry import CONCLUSIONS, KINDS, PROMISES
from harness.targets import kinds

ROOT = Path(__file__).parent.parent
PACKAGES = ("harness", "faults", "workloads", "checkers", "reports", "spark_analysis")

OTHER_MEANINGS = {
    "bootstrap",
    "clock",
    "cluster",
    "command",
    "kill",
    "partition",
    "pause",
    "stop",
    "process",
    "compose",
    "duplicate",
    "stall",
    "transactions",
}
"""Names that are words of other things, too: of columns, of signals, of settings, of loads."""

LISTED: Mapping[str, Collection[str]] = {
    # The command line's default, and commands that are about simulated runs.
    "harness/cli/run.py": ["builtin"],
    "harness/cli/scenario.py": ["builtin"],
    "harness/cli/shrink.py": ["simulated"],
    "harness/detection/trial.py": ["simulated"],
    "harness/simulation/core/recording.py": ["simulated"],  # the proof of a fault, in a word
    # Settings of Kafka's and of a test target, that are called as the fault.
    "harness/targets/kafka/releases.py": ["disk_full"],
    "harness/testing/scripted_target.py": ["wipe_disk"],
    # Scenarios of the detection matrix, and what its page says of single kinds.
    "harness/detection/mixes.py": [
        "compacted_keys",
        "corrupt_log",
        "deleted_records",
        "disk_full",
        "power_loss",
        "unique_sends",
    ],
    "harness/detection/document.py": ["G0", "group-repeat", "unseen"],
    # The example of a workload that is made of others.
    "workloads/several_workloads.py": ["consumer_groups", "unique_sends"],
    # What a replayed scenario is to come to, in the words of its file.
    "harness/outcome.py": ["stuck"],
    "harness/runner/known_differences.py": ["lost-write", "vanished-read"],
    # Loads of the simulator, and of the detection matrix.
    "harness/exploration/loads.py": ["consume_transform_produce", "consumer_groups", "pipelined_sends"],
    # The simulator writes scenarios.
    "harness/exploration/scenario_text.py": ["unique_sends"],
    "harness/simulation/violations.py": [
        *("hw-regression", "lost-write", "replica-divergence", "stuck", "unjustified-ack", "vanished-read"),
    ],
    # Losses are what a run is about: they are counted, and have stories.
    "harness/anomaly.py": ["lost-write"],
    "checkers/verdicts/weak_acks.py": ["lost-write"],
    "checkers/verdicts/accounts.py": ["lost-write"],
    "checkers/verdicts/stories.py": ["unseen"],
    "checkers/views/seen_copies.py": ["unseen"],
    # Single kinds of which a chapter of the report has something of its own to say.
    "reports/power.py": ["stuck"],
    "reports/story.py": ["wrong-marker"],
}


def named(names: Collection[str]) -> Mapping[str, set[str]]:
    """By module, as a path from the root, which of ``names`` its code has as texts."""
    found: dict[str, set[str]] = defaultdict(set)
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            texts = {node.value for node in _constants(ast.parse(path.read_text())) if isinstance(node.value, str)}
            if texts & set(names):
                found[str(path.relative_to(ROOT))] = texts & set(names)
    return found


def _constants(node: ast.AST) -> Iterator[ast.Constant]:
    """The constants in a tree, but for the kinds that a kind follows from: it knows them, they do not know it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Constant):
            yield child
        if not (isinstance(child, ast.keyword) and child.arg == "follows_from"):
            yield from _constants(child)


def own_files() -> Mapping[str, set[str]]:
    """By name, the files that are about that kind: its module, and Spark's of the same file name."""
    own: dict[str, set[str]] = {name: {f"faults/{name}.py"} for name in faults.KINDS.own}
    own |= {name: {f"workloads/{name}.py"} for name in workloads.KINDS.own}
    own |= {name: {f"harness/targets/{name}.py", "harness/targets/kinds.py"} for name in kinds.KINDS.own}
    modules: list[Any] = [*PROMISES, *CONCLUSIONS]
    for module in modules:
        file = f"{module.__name__.rpartition('.')[2]}.py"
        own |= {kind.name: {f"checkers/{file}", f"spark_analysis/{file}"} for kind in module.KINDS}
    assert set(KINDS) <= set(own)
    return {name: files for name, files in own.items() if name not in OTHER_MEANINGS}


def test_a_kind_is_named_in_its_own_files_alone() -> None:
    own = own_files()
    elsewhere = {
        module: foreign
        for module, names in named(own).items()
        if (foreign := {name for name in names if module not in own[name]})
    }
    assert elsewhere == {module: set(names) for module, names in LISTED.items()}
