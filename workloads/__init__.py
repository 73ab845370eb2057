"""The workloads. To add one: one file with a ``KIND``, and its module in ``_OWN`` here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.errors import UsageError
from harness.plugins import Registry, takes
from harness.spelling import closest
from harness.validation import validated
from harness.workload import WorkloadKind, WorkloadParameters
from workloads import (
    command,
    compacted_keys,
    consume_transform_produce,
    consumer_groups,
    deleted_records,
    pipelined_sends,
    several_workloads,
    share_groups,
    transactions,
    unique_sends,
)


def _flaw(name: str, loaded: Any) -> str:
    """What is wrong with a plugin's workload."""
    if not isinstance(loaded, WorkloadKind):
        return f"{loaded!r} is no WorkloadKind."
    if loaded.name != name:
        return f"its name is {loaded.name!r}, not {name!r}."
    if not (isinstance(loaded.parameters, type) and issubclass(loaded.parameters, WorkloadParameters)):
        return f"its parameters are {loaded.parameters!r}, and no class of WorkloadParameters."
    if missing := sorted(loaded.parameters.__abstractmethods__):
        return f"its parameters do not define {missing[0]!r}, see harness/workload.py."
    if not takes(loaded.make, 2):
        return "its 'make' takes other arguments, see harness/workload.py."
    validated(loaded.parameters, loaded.example, "its example")
    return ""


_OWN = (
    unique_sends,
    pipelined_sends,
    consumer_groups,
    transactions,
    consume_transform_produce,
    compacted_keys,
    deleted_records,
    share_groups,
    command,
    several_workloads,
)

KINDS: Registry[WorkloadKind[Any]] = Registry(
    "seawall.workloads", {module.KIND.name: module.KIND for module in _OWN}, _flaw
)
"""Every workload by its name, those of installed plugins included."""

several_workloads.SeveralWorkloadsParameters.kinds = KINDS


def parse(name: str, parameters: Mapping[str, Any]) -> WorkloadParameters:
    """The parameters of the workload ``name`` as a scenario writes them.

    Raises:
        UsageError: an unknown workload, key or value.
    """
    if name not in KINDS:
        raise UsageError(f"workload: unknown workload {name!r}; {closest(name, KINDS)}")
    parsed: WorkloadParameters = validated(KINDS[name].parameters, parameters, "workload")
    return parsed
