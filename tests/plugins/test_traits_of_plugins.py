"""What the runner asks of a fault, it asks of a plugin's as well: by its traits, and not by its class."""

from __future__ import annotations

import pytest

import faults
from harness.fault import Fault
from harness.runner import settle
from harness.runner.manifest import manifest, now
from harness.runner.nemesis import FaultRecord
from harness.runner.plan import plan
from harness.runner.quorum import Coming, undecided
from harness.scenario import parse
from harness.schedule import Step
from harness.testing.scripted_target import ScriptedTarget
from tests.plugins.distributions import Install, install

__all__ = ["install"]

PLUGINS = '''
from typing import ClassVar

from faults.clock import Clock
from faults.node_fault import NodeFault
from faults.pause import Pause


class Hiccup(NodeFault):
    """Pauses a node, and is no Pause."""

    kind: ClassVar = "hiccup"
    needs: ClassVar = Pause.needs
    traits: ClassVar = Pause.traits
    inject, probe, heal, probe_healed = Pause.inject, Pause.probe, Pause.heal, Pause.probe_healed


class Leap(NodeFault):
    """Moves a clock, and is no Clock."""

    kind: ClassVar = "leap"
    needs: ClassVar = Clock.needs
    traits: ClassVar = Clock.traits
    days: int
    inject = probe = heal = probe_healed = lambda self, target: None

    @property
    def clock_error_ms(self):
        return self.days * 24 * 3_600_000
'''

SCENARIO = """
id: leaping
title: a clock that a plugin moves
source: this test
cluster: {brokers: 3}
topics: [{name: ledger, partitions: 1, replication_factor: 3}]
workload: {name: unique_sends}
schedule:
  - inject: {as: leap, fault: leap, node: 1, days: DAYS}
  - heal: leap
"""


@pytest.fixture(autouse=True)
def _installed(install: Install) -> None:
    install("mine", {"seawall.faults": {"hiccup": "mine:Hiccup", "leap": "mine:Leap"}}, mine=PLUGINS)


def test_two_of_three_combined_brokers_that_a_plugin_pauses_elect_no_leader() -> None:
    written = ({"until": {"leader": 1}}, _inject("a"), _inject("b"), {"until": {"leader": 2}})
    steps = {index: Step.model_validate(one) for index, one in enumerate(written)}
    for claims in (["the process of node 0"], None):
        coming = {
            1: Coming(_hiccup(0), claims),
            2: Coming(_hiccup(1), claims and ["the process of node 1"]),
        }
        assert list(undecided(3, steps, coming)) == [(3, 1)]


def _inject(name: str) -> dict[str, object]:
    return {"inject": {"fault": "hiccup", "node": 0, "as": name}}


@pytest.mark.parametrize(("days", "permitted"), [(3, False), (9, True)])
def test_a_clock_that_a_plugin_moves_far_enough_permits_deletions(days: int, *, permitted: bool) -> None:
    made = plan(parse(SCENARIO.replace("DAYS", str(days))), "simulated", None, 1)
    assert manifest(made, "r", now()).guarantees["retention"] is permitted


def test_a_node_whose_clock_a_plugin_has_moved_is_misled() -> None:
    faulty = [faults.parse({"fault": "leap", "node": 1, "days": 1}, ""), _hiccup(2)]
    view = ScriptedTarget(3).view()
    records = [FaultRecord(one.kind, one.kind, one, view, 0, injected_ns=1) for one in faulty]
    assert settle.misled(records) == ["1"]


def _hiccup(node: int) -> Fault:
    return faults.parse({"fault": "hiccup", "node": node}, "")
