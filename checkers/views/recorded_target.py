"""The kind of the target on which a run was recorded, by its configuration in ``run.json``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.errors import SeawallError
from harness.targets.kinds import kind_of
from harness.targets.target_kind import TargetKind, Timeline


def was_real_kafka(configuration: Mapping[str, Any]) -> bool:
    """Whether it was a release of Kafka; False where :func:`unknown_target` gives a reason."""
    kind = _kind(configuration)
    return kind is not None and kind.runs_releases


def was_in_virtual_time(configuration: Mapping[str, Any]) -> bool:
    """Whether it was simulated; False where :func:`unknown_target` gives a reason."""
    kind = _kind(configuration)
    return kind is not None and kind.in_virtual_time


def recorded_timeline(configuration: Mapping[str, Any]) -> Timeline:
    """What the run knows of its brokers' states; ``whole`` where :func:`unknown_target` gives a reason."""
    kind = _kind(configuration)
    return "whole" if kind is None else kind.timeline(configuration)


def may_be_combined(configuration: Mapping[str, Any]) -> bool:
    """Whether its brokers may have been its controllers, too."""
    kind = _kind(configuration)
    return kind is not None and kind.may_combine(str(configuration["target"]).partition(":")[2])


def unknown_target(configuration: Mapping[str, Any]) -> str:
    """Why the target's guarantees are not known, in a sentence; empty: they are, or the configuration names none.

    A plugin's target that is not installed here is not known.
    """
    try:
        if "target" in configuration:
            kind_of(str(configuration["target"]))
    except SeawallError as error:
        return f"run.json's {error.sentence}"
    return ""


def _kind(configuration: Mapping[str, Any]) -> TargetKind | None:
    if "target" not in configuration or unknown_target(configuration):
        return None
    return kind_of(str(configuration["target"]))
