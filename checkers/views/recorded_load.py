"""The parameters of a recorded run's workload, as ``run.json`` has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import workloads
from harness.errors import SeawallError
from harness.workload import WorkloadParameters


def recorded_load(configuration: Mapping[str, Any]) -> WorkloadParameters | None:
    """The parameters in a run's configuration; None: there are none, or :func:`unreadable_load` gives a reason."""
    try:
        return _parsed(configuration["workload"]) if configuration.get("workload") else None
    except SeawallError:
        return None


def unreadable_load(configuration: Mapping[str, Any]) -> str:
    """Why the parameters cannot be understood, in a sentence; empty: they can, or there is no workload.

    A plugin's workload that is not installed here cannot: its clients' sends are not known then.
    """
    try:
        if configuration.get("workload"):
            _parsed(configuration["workload"])
    except SeawallError as error:
        return f"run.json's workload cannot be understood: {error.sentence}"
    return ""


def _parsed(written: Mapping[str, Any]) -> WorkloadParameters:
    parameters = dict(written)
    return workloads.parse(str(parameters.pop("name", "")), parameters)
