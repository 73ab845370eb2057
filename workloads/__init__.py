"""The workloads. To add one: one file with a ``KIND``, and one line in ``KINDS`` here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from harness.errors import UsageError
from harness.validation import closest, validated
from harness.workload import WorkloadParameters
from workloads import unique_sends
from workloads.workload_kind import WorkloadKind

KINDS: Mapping[str, WorkloadKind[Any]] = MappingProxyType({kind.name: kind for kind in (unique_sends.KIND,)})
"""Every workload by its name."""


def parse(name: str, parameters: Mapping[str, Any]) -> WorkloadParameters:
    """The parameters of the workload ``name`` as a scenario writes them.

    Raises:
        UsageError: an unknown workload, key or value.
    """
    if name not in KINDS:
        raise UsageError(f"workload: unknown workload {name!r}; {closest(name, KINDS)}")
    parsed: WorkloadParameters = validated(KINDS[name].parameters, parameters, "workload")
    return parsed
