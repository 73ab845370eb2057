"""What ``run.json`` guarantees is what its own configuration comes to.

What is promised decides how grave a finding is, so a wrong guarantee convicts the innocent or acquits the guilty. As
far as a guarantee follows from one place of the configuration, both must agree; where they do not, the run is
``INVALID``, and no finding is a ``VIOLATION``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from harness.history import Manifest

MISSTATED = "guarantees"
"""What a run lacks whose guarantees are not those of its configuration: a name beside those of its tables."""

_SAMPLED = ("process:", "compose:")
"""How the names of targets begin that run real Kafka, whose timelines are sampled."""


def misstated(manifest: Manifest) -> list[str]:
    """One sentence for each guarantee that the configuration contradicts."""
    try:
        configured = dict(_configured(manifest.configuration))
    except (KeyError, TypeError, ValueError, AttributeError):
        return []
    return [
        f"run.json guarantees {name} {_words(manifest.guarantees.get(name))}, and its configuration comes to "
        f"{_words(told)}."
        for name, told in configured.items()
        if manifest.guarantees.get(name) != told and (name in manifest.guarantees or name in _ALWAYS)
    ]


_ALWAYS = frozenset({"min_insync_replicas", "timeline", "unclean_election"})
"""The guarantees of which every run says something (of ``timeline`` that it is complete by saying nothing)."""


def _configured(configuration: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    scenario, settings = configuration.get("scenario") or {}, configuration.get("settings") or {}
    steps: Sequence[Mapping[str, Any]] = scenario.get("schedule") or ()
    if "min.insync.replicas" in settings:
        yield "min_insync_replicas", int(settings["min.insync.replicas"])
    if "target" in configuration:
        yield "timeline", "sampled" if str(configuration["target"]).startswith(_SAMPLED) else None
    if scenario.get("topics"):
        yield "replication_factor", min(int(topic["replication_factor"]) for topic in scenario["topics"])
    asked = any((step.get("elect") or {}).get("unclean") for step in steps)
    if asked or "unclean.leader.election.enable" in settings:
        yield "unclean_election", asked or str(settings["unclean.leader.election.enable"]).lower() == "true"
    if any(step.get("delete_records") for step in steps):
        yield "retention", True
    if "workload" in configuration:
        yield "idempotent_producers", _idempotent(configuration["workload"], steps)
    if "elections" in (configuration.get("knobs") or {}):
        yield "eligible_replicas", configuration["knobs"]["elections"] == "elr"


def _idempotent(workload: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> bool:
    sends = [step["send"] for step in steps if step.get("send")]
    numbered = [send.get("idempotent") is True or send.get("transaction") is not None for send in sends]
    numbered += [workload.get("idempotent") is True] if workload.get("rate") else []
    return bool(numbered) and all(numbered)


def _words(value: object) -> str:
    return "nothing" if value is None else repr(value)
