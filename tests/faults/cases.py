"""What the tests ask of every kind of fault: how a scenario may write it, and which call puts it into effect.

``test_faults.py`` asks a target in memory, ``tests/harness/targets/test_contract.py`` every target that supports what
the fault needs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.testing.scripted_target import ScriptedTarget

Written = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """One kind of fault.

    Attributes:
        does_it: the method of a target that puts the fault into effect.
        scripted: parameters, with all selectors that aim it, for the target in memory.
        asked: parameters, with nodes by name, for every target; none for a log's damage, which takes a record first, in
            a test of its own.
        target: the target in memory. If the fault brings a protocol of its own, this is a class of ScriptedTarget with
            the methods of that protocol, which also lists it in ``controls``.
    """

    does_it: str
    scripted: tuple[Written, ...] = ()
    asked: tuple[Written, ...] = ()
    target: type[ScriptedTarget] = ScriptedTarget


_NODES: tuple[Written, ...] = ({"node": 2}, {"node": "controller"})

CASES: Mapping[str, Case] = {
    "kill": Case("kill", ({"node": "leader"}, {"node": "controller"}), _NODES),
    "stop": Case("shut_down", ({"node": "leader"},), _NODES),
    "power_loss": Case("lose_power", ({"node": "follower"},), _NODES),
    "pause": Case("pause", ({"node": "follower", "topic": "ledger", "partition": 0},), _NODES),
    "wipe_disk": Case(
        "wipe_disk", ({"node": "any"}, {"node": 0, "clean": True}), ({"node": 2}, {"node": 2, "clean": True})
    ),
    "partition": Case(
        "cut",
        (
            {"links": [[2, 1]]},
            {"links": [["clients", "leader"]]},
            {"isolate": "any"},
            {"between": ["leader", "follower"], "direction": "out"},
        ),
        (
            {"links": [[2, 1]]},
            {"isolate": 2},
            {"links": [["clients", 2]]},
            {"links": [[2, "clients"]]},
            {"links": [["clients", 2], [2, "clients"]]},
        ),
    ),
    "stall": Case(
        "stall",
        ({"links": [["clients", "leader"]]},),
        ({"links": [["clients", 2]]}, {"links": [[2, "clients"]]}, {"links": [[2, 1]]}),
    ),
    "disk_full": Case(
        "limit_disk",
        ({"node": "any", "free_bytes": 100},),
        ({"node": 2, "free_bytes": 0}, {"node": 2, "free_bytes": 0, "log_dir": 0}),
    ),
    "log_dir_failure": Case(
        "fail_log_dir",
        ({"node": "any", "log_dir": 0, "must_notice": False},),
        ({"node": 2, "log_dir": 0}, {"node": 2, "log_dir": 0, "replaced": True}),
    ),
    "clock": Case(
        "offset_clock",
        ({"node": 0, "offset_ms": -5000},),
        ({"node": 2, "offset_ms": -60000}, {"node": "controller", "offset_ms": 60000}),
    ),
    "corrupt_log": Case(
        "damage_log",
        (
            {"node": "leader", "topic": "ledger", "offset": 3},
            {"node": 2, "topic": "ledger", "partition": 1, "offset": 0, "how": "cut", "clean": True},
        ),
    ),
}
