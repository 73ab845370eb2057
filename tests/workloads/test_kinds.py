"""A workload that the project does not have: one ``KIND`` makes it known to scenarios, plans and manifests."""

from __future__ import annotations

from types import MappingProxyType
from typing import Self

import pytest
from pydantic import Field

import workloads
from harness import scenario
from harness.errors import UsageError
from harness.runner import plan
from harness.runner.rehearsal import rehearse
from harness.simulation.stack.cluster import SimulatedCluster
from harness.simulation.stack.sends import SimulatedSends
from harness.workload import Workload, WorkloadParameters
from workloads.unique_sends import UniqueSends, UniqueSendsParameters
from workloads.workload_context import WorkloadContext
from workloads.workload_kind import WorkloadKind

TEXT = """
id: a-trickle
title: a workload of the test's own sends by itself while nothing happens
source: this test
cluster: {brokers: 3}
topics: [{name: ledger, partitions: 1, replication_factor: 3}]
workload: {name: trickle, per_second: 20}
schedule: [{wait_s: 2}]
"""


class TrickleParameters(WorkloadParameters):
    """``per_second`` records, numbered where the cluster knows that."""

    per_second: int = Field(ge=1)
    numbered: bool = True

    @property
    def has_background_load(self) -> bool:
        return True

    @property
    def answered_within_s(self) -> float:
        return 1.0

    @property
    def numbers_records(self) -> bool:
        return self.numbered

    @property
    def appends_once(self) -> bool:
        return self.numbered

    def without_numbers(self) -> Self:
        return self.model_copy(update={"numbered": False})

    def as_sends(self) -> UniqueSendsParameters:
        return UniqueSendsParameters(rate=self.per_second, producers=1, idempotent=self.numbered)


def in_real_time(parameters: TrickleParameters, around: WorkloadContext) -> Workload:
    return UniqueSends(parameters.as_sends(), around)


def in_virtual_time(parameters: TrickleParameters, around: WorkloadContext, cluster: SimulatedCluster) -> Workload:
    return SimulatedSends(parameters.as_sends(), around, cluster)


@pytest.fixture
def _trickle(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = WorkloadKind("trickle", TrickleParameters, in_real_time, in_virtual_time)
    monkeypatch.setattr(workloads, "KINDS", MappingProxyType({**workloads.KINDS, kind.name: kind}))


@pytest.mark.usefixtures("_trickle")
@pytest.mark.parametrize(("generation", "numbered"), [("0.10", False), ("4.1", True)])
def test_a_workload_runs_by_its_name_and_its_promises_are_its_own(generation: str, numbered: bool) -> None:
    made = rehearse(plan(scenario.parse(TEXT, "trickle.yaml"), "simulated", generation, seed=1))
    sent = [row for row in made.archive.history if row["f"] == "send" and row["type"] == "ok"]
    assert len(sent) > 20
    assert made.manifest.guarantees["idempotent_producers"] is numbered
    assert made.manifest.configuration["workload"] == {"name": "trickle", "per_second": 20, "numbered": numbered}


@pytest.mark.usefixtures("_trickle")
def test_a_parameter_of_another_workload_is_refused() -> None:
    with pytest.raises(UsageError, match="producers"):
        plan(scenario.parse(TEXT.replace("per_second: 20", "per_second: 20, producers: 3"), "trickle.yaml"))


def test_a_workload_that_is_not_there_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError, match=r"'trickle'.*unique_sends"):
        plan(scenario.parse(TEXT, "trickle.yaml"))
