"""What the registry of workloads knows of each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from harness.simulation.stack.cluster import SimulatedCluster
from harness.workload import Workload, WorkloadParameters
from workloads.workload_context import WorkloadContext

ParametersT = TypeVar("ParametersT", bound=WorkloadParameters)


@dataclass(frozen=True, slots=True)
class WorkloadKind(Generic[ParametersT]):
    """A workload that scenarios can name.

    Attributes:
        name: as scenarios write it.
        parameters: the model of what they may write about it.
        in_real_time: makes its clients against a cluster of processes or containers.
        in_virtual_time: makes its clients inside a simulated cluster.
    """

    name: str
    parameters: type[ParametersT]
    in_real_time: Callable[[ParametersT, WorkloadContext], Workload]
    in_virtual_time: Callable[[ParametersT, WorkloadContext, SimulatedCluster], Workload]
