"""What kind of target a run was recorded on, by the target that its configuration in ``run.json`` names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.errors import SeawallError
from harness.targets.kafka.source import SourceKind
from harness.targets.kinds import is_in_virtual_time, is_real_kafka, kind_of


def was_real_kafka(configuration: Mapping[str, Any]) -> bool:
    """Whether it was a release of Kafka; not where :func:`unknown_target` says what is wrong."""
    return not unknown_target(configuration) and is_real_kafka(str(configuration["target"]))


def was_in_virtual_time(configuration: Mapping[str, Any]) -> bool:
    """Whether it was simulated; not where :func:`unknown_target` says what is wrong."""
    return not unknown_target(configuration) and is_in_virtual_time(str(configuration["target"]))


def may_be_combined(configuration: Mapping[str, Any]) -> bool:
    """Whether its brokers may have been its controllers, too."""
    if "target" not in configuration or not was_real_kafka(configuration):
        return False
    target = str(configuration["target"])
    kind = kind_of(target)
    return isinstance(kind, SourceKind) and kind.may_combine(target.partition(":")[2])


def unknown_target(configuration: Mapping[str, Any]) -> str:
    """Why what the target promises is not known, in a sentence; empty: it is, or the configuration names none.

    A plugin's target that is not installed here is not known.
    """
    try:
        if "target" in configuration:
            kind_of(str(configuration["target"]))
    except SeawallError as error:
        return f"run.json's {error.sentence}"
    return ""
