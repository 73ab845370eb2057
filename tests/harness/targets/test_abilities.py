from __future__ import annotations

import pytest

import faults
from harness.controls import DiskContents
from harness.targets.simulated import SimulatedTarget
from tests.faults.cases import CASES
from tests.harness.targets.abilities_table import FILES, FOREIGN, PAGE, ROOT, TARGETS, TESTS, can, with_table


def test_the_table_of_targets_is_that_of_their_code(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--rewrite"):
        PAGE.write_text(with_table(PAGE.read_text()))
    assert PAGE.read_text() == with_table(PAGE.read_text())


def test_a_target_that_can_do_something_has_a_test_of_it() -> None:
    assert {kind for kind in faults.KINDS if can("cluster", kind)} == set(TESTS)
    there = "".join(path.read_text() for path in (ROOT / FILES["cluster"]).parent.glob("test_*.py"))
    assert [name for name in TESTS.values() if f"def {name}(" not in there] == []
    foreign = (ROOT / FILES[FOREIGN]).read_text()
    assert [kind for kind in faults.KINDS if can(FOREIGN, kind) != (f'"fault": "{kind}"' in foreign)] == []
    damaged = {kind for kind, fault in faults.KINDS.items() if fault.needs is DiskContents and not CASES[kind].asked}
    assert damaged == {"corrupt_log"}
    assert "def damage_is_seen(" in (ROOT / FILES["builtin"]).read_text()
    assert [kind for kind in faults.KINDS if kind not in damaged and not CASES[kind].asked] == []


def test_the_table_knows_what_a_target_can_do() -> None:
    assert [can("simulated", kind) for kind in faults.KINDS] == [
        fault.needs in SimulatedTarget.controls or fault.needs.__name__ in ("Kills", "Pauses", "Shutdowns")
        for fault in faults.KINDS.values()
    ]
    assert not any(can("bootstrap", kind) for kind in faults.KINDS)
    assert set(TARGETS) == {*FILES}
