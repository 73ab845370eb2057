from __future__ import annotations

from typing import Any

import pytest

import faults
from harness.errors import UsageError
from harness.fault import Fault
from harness.testing.scripted_target import ScriptedTarget, cluster_view


def corrupt_log(**more: Any) -> Fault:
    written = {"fault": "corrupt_log", "node": 1, "topic": "ledger", "offset": 3, **more}
    return faults.parse(written, "faults[0]").aimed(cluster_view(3), seed=3)


@pytest.mark.parametrize("how", [{}, {"clean": True}, {"clean": True, "interrupted": True}], ids=str)
def test_is_in_effect_exactly_between_injection_and_healing(how: dict[str, Any]) -> None:
    target, fault = ScriptedTarget(), corrupt_log(**how)
    assert not fault.probe(target).holds
    fault.inject(target)
    assert fault.probe(target).holds
    assert not fault.probe_healed(target).holds
    fault.heal(target)
    assert not fault.probe(target).holds
    assert fault.probe_healed(target).holds


def test_a_start_that_was_not_interrupted_is_not_proven() -> None:
    target, fault = ScriptedTarget(ignored={"start_and_die"}), corrupt_log(clean=True, interrupted=True)
    fault.inject(target)
    assert not fault.probe(target).holds


def test_the_log_is_damaged_after_the_interrupted_start_so_that_this_one_cannot_have_seen_it() -> None:
    target = ScriptedTarget()
    corrupt_log(clean=True, interrupted=True).inject(target)
    assert [call[0] for call in target.calls] == ["shut_down", "start_and_die", "damage_log"]


def test_only_the_start_after_a_clean_shutdown_can_be_interrupted() -> None:
    with pytest.raises(UsageError, match="interrupted needs clean"):
        corrupt_log(interrupted=True)
