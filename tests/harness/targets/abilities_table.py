"""The table in ``docs/targets.md`` of what can be done to each target, with what evidence, and which test shows it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path

import faults
from harness.checker import EvidenceTier
from harness.controls import DiskSpace, Power, WallClocks
from harness.target import Target
from harness.targets.bootstrap.target import BootstrapTarget
from harness.targets.builtin import BuiltinTarget
from harness.targets.cluster.commanded_node import NEEDED
from harness.targets.cluster.kind import WHY_NOT
from harness.targets.cluster.target import ClusterTarget
from harness.targets.compose.foreign_target import ForeignTarget
from harness.targets.compose.target import ComposeTarget
from harness.targets.kafka.disks import NEEDS_SHIM
from harness.targets.kafka.process import ProcessTarget
from harness.targets.simulated import SimulatedTarget

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "targets.md"
BEGIN, END = "<!-- abilities -->\n", "<!-- /abilities -->"

FOREIGN = "compose, another make"
"""``compose:FILE`` with brokers that are not Apache Kafka's."""

TARGETS: Mapping[str, tuple[type[Target], EvidenceTier]] = {
    "builtin": (BuiltinTarget, EvidenceTier.BROKERS),
    "simulated": (SimulatedTarget, EvidenceTier.BROKERS),
    "process": (ProcessTarget, EvidenceTier.SAMPLES),
    "compose": (ComposeTarget, EvidenceTier.SAMPLES),
    FOREIGN: (ForeignTarget, EvidenceTier.METADATA),
    "cluster": (ClusterTarget, EvidenceTier.LOGS),
    "bootstrap": (BootstrapTarget, EvidenceTier.METADATA),
}

_SHARED = "tests/harness/targets/test_contract.py"
_BY_SHIM = {WallClocks, Power}
"""What ``compose:`` can do where its image takes the shim."""

TESTS: Mapping[str, str] = {
    "kill": "test_every_fault_of_random_chaos_that_has_commands_is_proven_on_a_sound_cluster",
    "stop": "test_a_node_that_is_asked_to_shut_down_and_started_again_costs_nothing",
    "pause": "test_every_fault_of_random_chaos_that_has_commands_is_proven_on_a_sound_cluster",
    "partition": "test_every_fault_of_random_chaos_that_has_commands_is_proven_on_a_sound_cluster",
    "disk_full": "test_a_full_disk_is_proven_and_undone_and_costs_nothing",
    "clock": "test_a_skewed_clock_is_proven_and_undone_and_costs_nothing",
}
"""By fault, the test in the directory of ``cluster``; the first four targets have the shared suite."""

FILES = {
    **dict.fromkeys(("builtin", "simulated", "process", "compose"), _SHARED),
    FOREIGN: "tests/harness/targets/compose/test_foreign_target.py",
    "cluster": "tests/harness/targets/cluster/test_commanded_cluster.py",
    "bootstrap": "tests/harness/targets/bootstrap/test_running_cluster.py",
}

ON = {
    "builtin": "itself, by day",
    "simulated": "itself, by day",
    "process": "Kafka 2.8.1 and 4.1.0 (also `#quorum`, `#combined`), at night",
    "compose": "Kafka 4.1.0 in images that are built here, at night",
    FOREIGN: (
        "[disguised Kafka 4.1.0, also with TLS and SASL, and kfake](containers.md#brokers-of-another-make), at night; "
        "no image of Redpanda"
    ),
    "cluster": (
        "built-in brokers as plain processes, by day; Kafka 4.3.0 by ssh, and with TLS and SASL, at night; "
        "[Kroxylicious, Tansu and kfake](other-systems.md) by hand"
    ),
    "bootstrap": (
        "built-in brokers by day; Kafka 4.3.0 with TLS, SASL and ACLs at night; "
        "[Kroxylicious, Tansu and kfake](other-systems.md) by hand"
    ),
}


def can(target: str, kind: str) -> bool:
    """Whether a target has all that a fault of that kind calls."""
    made, needed = TARGETS[target][0], faults.KINDS[kind].needs
    if target == "cluster":
        return needed in NEEDED
    return all(hasattr(made, name) for name, _ in inspect.getmembers(needed, inspect.isfunction) if name[0] != "_")


def with_table(page: str) -> str:
    """``page`` with the present table between its markers."""
    before, _, rest = page.partition(BEGIN)
    lines = "".join(f"{line}\n" for line in ("", *_rows(), "", *_notes(), ""))
    return f"{before}{BEGIN}{lines}{END}{rest.partition(END)[2]}"


def _rows() -> Iterator[str]:
    yield _row("fault", TARGETS)
    yield "|---" * (1 + len(TARGETS)) + "|"
    for kind in faults.KINDS:
        yield _row(f"`{kind}`", [_cell(target, kind) for target in TARGETS])
    yield _row("**evidence**", map(_evidence, TARGETS))
    yield _row("**tested on**", ON.values())
    yield _row("**tested by**", [f"[{Path(FILES[name]).stem}](../{FILES[name]})" for name in TARGETS])


def _row(head: str, cells: object) -> str:
    return f"| {head} | {' | '.join(map(str, cells))} |"  # type: ignore[call-overload]


def _cell(target: str, kind: str) -> str:
    if not can(target, kind):
        return "no"
    needs = faults.KINDS[kind].needs
    if target == "process" and needs in NEEDS_SHIM:
        return "yes, with a C compiler"
    if target in ("compose", FOREIGN) and needs in _BY_SHIM:
        return "yes, if the image takes the [shim](containers.md)"
    if target == FOREIGN and needs is DiskSpace:
        return "yes, with one volume"
    return "with commands" if target == "cluster" else "yes"


def _evidence(target: str) -> str:
    tier = str(TARGETS[target][1])
    return f"{tier}, these with the command `logs`" if target == "cluster" else tier


def _notes() -> Iterator[str]:
    yield (
        "A relay of `compose` cuts a link in all its connections, so that it has no `stall`, and a volume cannot lose "
        "its name, so that it has no `log_dir_failure`; of [another make](containers.md#brokers-of-another-make) it is "
        "not known what a program has flushed, and keeps. Why `cluster` lacks the others:"
    )
    yield ""
    for kind, fault in faults.KINDS.items():
        if not can("cluster", kind):
            yield f"* `{kind}`: {WHY_NOT.get(fault.needs, 'it takes nodes that seawall starts itself')}."
