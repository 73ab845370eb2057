"""trickle: one producer that sends a few records a second by itself."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from harness.simulation.stack.cluster import SimulatedCluster
from harness.simulation.stack.sends import SimulatedSends
from harness.workload import ALL_ACKS, Workload, WorkloadParameters
from workloads.unique_sends import UniqueSends, UniqueSendsParameters
from workloads.workload_context import WorkloadContext
from workloads.workload_kind import WorkloadKind


class TrickleParameters(WorkloadParameters):
    """``per_second`` records, numbered where the cluster knows that."""

    per_second: int = Field(ge=1)
    numbered: bool = True

    @property
    def has_background_load(self) -> bool:
        """It sends by itself."""
        return True

    @property
    def answered_within_s(self) -> float:
        """A second."""
        return 1.0

    @property
    def numbers_records(self) -> bool:
        """Where the cluster knows that."""
        return self.numbered

    @property
    def asked_acks(self) -> frozenset[int]:
        """All."""
        return frozenset((ALL_ACKS,))

    def without_numbers(self) -> Self:
        """For clusters before 0.11."""
        return self.model_copy(update={"numbered": False})

    def as_sends(self) -> UniqueSendsParameters:
        """The same in the words of ``unique_sends``."""
        return UniqueSendsParameters(rate=self.per_second, producers=1, idempotent=self.numbered)


def in_real_time(parameters: TrickleParameters, around: WorkloadContext) -> Workload:
    """Producers of seawall, in threads."""
    return UniqueSends(parameters.as_sends(), around)


def in_virtual_time(parameters: TrickleParameters, around: WorkloadContext, cluster: SimulatedCluster) -> Workload:
    """The same inside the simulator."""
    return SimulatedSends(parameters.as_sends(), around, cluster)


KIND = WorkloadKind("trickle", TrickleParameters, in_real_time, in_virtual_time)
