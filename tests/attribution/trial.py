"""A run in virtual time with a wire tap, with a client that lies or a broker that is broken, and its verdict."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from checkers.verdicts.memory import decided
from harness.checker import RunVerdict, Side
from harness.detection.mixes import stack_scenario
from harness.runner import plan
from harness.runner.rehearsal import Rehearsal, rehearse
from harness.scenario import Scenario
from harness.simulation.stack.simulated_clients import SimulatedClients
from harness.targets import simulated
from tests.attribution.liars import Liar


@contextmanager
def lying(monkeypatch: pytest.MonkeyPatch, lie: str) -> Iterator[None]:
    """Meanwhile clients in virtual time tell that lie; empty: none."""
    with monkeypatch.context() as patch:
        if lie:
            patch.setattr(simulated, "SimulatedClients", lambda *of: Liar(SimulatedClients(*of), lie))
        yield


def rehearsed(
    monkeypatch: pytest.MonkeyPatch,
    *,
    lie: str = "",
    bugs: str = "",
    load: str = "single",
    harm: str = "none",
    seed: int = 1,
    tap: bool = True,
    scenario: Scenario | None = None,
    duration_s: float | None = None,
    protocol: str = "4.1",
) -> Rehearsal:
    """The run: of a cell of the detection matrix, unless a scenario is given."""
    overrides = {"replication.bugs": bugs} if bugs else {}
    what = scenario or stack_scenario(load, harm)
    with lying(monkeypatch, lie):
        return rehearse(plan(what, "simulated", protocol, seed, overrides=overrides, tap=tap, duration_s=duration_s))


def verdict(monkeypatch: pytest.MonkeyPatch, **asked: Any) -> RunVerdict:
    """The verdict on it; see :func:`rehearsed`."""
    kept = rehearsed(monkeypatch, **asked)
    tables = kept.archive.tables
    evidence = (kept.archive.history, tables["timeline"], tables["replica_logs"])
    return decided(kept.manifest, evidence, tables["faults"], tables.get("wire"))


def sides(found: RunVerdict) -> Mapping[str, set[Side]]:
    """Whose the anomalies of each kind are; without those of kinds that are not about clients."""
    known: dict[str, set[Side]] = defaultdict(set)
    for anomaly in found.anomalies:
        if anomaly.attribution is not None:
            known[anomaly.kind].add(anomaly.attribution.side)
    return known
