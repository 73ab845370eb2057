"""The workloads. To add one: one file that implements ``harness.workload.Workload``, and one line here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from harness.errors import UsageError
from harness.validation import closest, validated
from workloads.unique_sends import UniqueSends, UniqueSendsParameters

NAMES: Mapping[str, tuple[type[UniqueSends], type[UniqueSendsParameters]]] = MappingProxyType(
    {UniqueSends.name: (UniqueSends, UniqueSendsParameters)}
)
"""The class of each workload, and the model of its parameters."""


def parse(name: str, parameters: Mapping[str, Any]) -> UniqueSendsParameters:
    """The parameters of the workload ``name`` as a scenario writes them.

    Raises:
        UsageError: an unknown workload, key or value.
    """
    if name not in NAMES:
        raise UsageError(f"workload: unknown workload {name!r}; {closest(name, NAMES)}")
    return validated(NAMES[name][1], parameters, "workload")
