"""The guarantees in ``run.json`` follow from its configuration.

The guarantees decide how grave a finding is, so a wrong one makes a wrong verdict. Where a guarantee follows from the
configuration, both must agree; so must the generation and its knobs, except those that were overridden. Where they do
not, or where the configuration of a run that seawall has made lacks what they follow from, the run is ``INVALID``, and
no finding is a ``VIOLATION``.

``settles`` is not compared for a run that broke off, which may have had no time to come to rest, and for one with
``outcomes``, which may be expected not to. Imported histories, and runs of the bare core, name no target; the settings
that they have are compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from checkers.completeness.configurations_agree import disagreements
from checkers.views.recorded_load import recorded_load
from checkers.views.recorded_target import recorded_timeline, was_in_virtual_time, was_real_kafka
from harness.history.run_directory import Manifest
from harness.replication.isr import laggards_leave_ms
from harness.replication.knobs import GENERATIONS
from harness.validation import shortened
from harness.workload import WorkloadParameters

MISSTATED = "guarantees"
"""The name, beside those of tables, of what a run lacks whose configuration contradicts its guarantees or its rows."""

_OVERRIDDEN = re.compile(r"replication\.(\w+)=")
"""Matches an override of a knob in a command, and its name."""

_ALWAYS = frozenset(
    {"laggards_leave_ms", "min_insync_replicas", "retention", "settles", "timeline", "unclean_election"}
)
"""The guarantees that are compared in every run; a missing one counts as None."""

_SETTINGS = ("min.insync.replicas", "unclean.leader.election.enable", "replica.lag.time.max.ms")
"""The settings that every target records; the built-in brokers also:"""
_BUILTIN_SETTINGS = ("broker.session.timeout.ms", "log.retention.ms")

_AGE_LIMITS = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
_LIMITS = (*_AGE_LIMITS, "log.retention.bytes")
_NO_LIMIT = "-1"
_WEEK_MS, _DAY_MS = 7 * 24 * 3_600_000, 24 * 3_600_000
"""Kafka's own limit, and what a run lasts at the most."""


def misstated(manifest: Manifest) -> list[str]:
    """One sentence for each guarantee that the configuration contradicts, or for why this cannot be checked."""
    try:
        lacking = [*_lacking(manifest.configuration), *_other(manifest)]
        configured = {} if lacking else dict(_configured(manifest))
        lacking += disagreements(manifest)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = f"{type(error).__name__}: {shortened(str(error))}"
        return [f"What run.json guarantees cannot be derived from its configuration ({why})."]
    return [
        *lacking,
        *(
            f"run.json guarantees {name} {_words(manifest.guarantees.get(name))}, and its configuration comes to "
            f"{_words(derived)}."
            for name, derived in configured.items()
            if manifest.guarantees.get(name) != derived and (name in manifest.guarantees or name in _ALWAYS)
        ),
    ]


def _lacking(configuration: Mapping[str, Any]) -> Iterator[str]:
    if "target" not in configuration:
        return
    wanted = _SETTINGS if was_real_kafka(configuration) else (*_SETTINGS, *_BUILTIN_SETTINGS)
    missing = [name for name in wanted if name not in (configuration.get("settings") or {})]
    if missing:
        yield f"run.json's configuration names a target and no setting {', '.join(missing)}."


def _other(manifest: Manifest) -> Iterator[str]:
    """What ``run.json`` contradicts itself in: another generation than its knobs', or two origins."""
    configuration = manifest.configuration
    if "target" in configuration and "imported" in configuration:
        yield "run.json says that the history was imported, and has a target, which no import has."
    spoken = _spoken(configuration)
    if spoken and manifest.generation not in spoken:
        yield f"run.json says generation {manifest.generation!r}, and its knobs are those of {spoken[0]}."


def _spoken(configuration: Mapping[str, Any]) -> list[str]:
    """The generations that have a built-in cluster's knobs, apart from bugs and overrides; empty: not known."""
    if "target" not in configuration or was_real_kafka(configuration):
        return []
    own = {"bugs", *((configuration.get("scenario") or {}).get("replication") or {})}
    own |= set(_OVERRIDDEN.findall(configuration.get("reproduce", "")))
    knobs = _without(own, configuration.get("knobs") or {})
    return [name for name, known in GENERATIONS.items() if knobs and knobs == _without(own, asdict(known))]


def _without(own: set[str], knobs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in knobs.items() if name not in own}


def _configured(manifest: Manifest) -> Iterator[tuple[str, Any]]:
    configuration = manifest.configuration
    scenario, settings = configuration.get("scenario") or {}, configuration.get("settings") or {}
    steps: Sequence[Mapping[str, Any]] = scenario.get("schedule") or ()
    if "min.insync.replicas" in settings:
        yield "min_insync_replicas", int(settings["min.insync.replicas"])
    if scenario.get("topics"):
        yield "replication_factor", min(int(topic["replication_factor"]) for topic in scenario["topics"])
    asked = any((step.get("elect") or {}).get("unclean") for step in steps)
    if asked or "unclean.leader.election.enable" in settings:
        yield "unclean_election", asked or str(settings["unclean.leader.election.enable"]).lower() == "true"
    if "workload" in configuration:
        load = recorded_load(configuration)
        yield "idempotent_producers", _idempotent(load, steps)
        yield from (load.guarantees if load is not None else {}).items()
    if "elections" in (configuration.get("knobs") or {}):
        yield "eligible_replicas", configuration["knobs"]["elections"] == "elr"
    if "target" in configuration:
        yield from _of_target(manifest, scenario, settings, steps)
    elif any(step.get("delete_records") for step in steps):
        yield "retention", True


def _of_target(
    manifest: Manifest, scenario: Mapping[str, Any], settings: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, Any]]:
    """The guarantees that depend on which target made the run."""
    real = was_real_kafka(manifest.configuration)
    timeline = recorded_timeline(manifest.configuration)
    yield "timeline", None if timeline == "whole" else timeline
    yield "time", "virtual" if was_in_virtual_time(manifest.configuration) else None
    load = recorded_load(manifest.configuration)
    deletes = load is not None and load.deletes_records
    yield "retention", deletes or _may_delete(scenario, settings, steps, real=real)
    if real:
        yield "settles", False
    elif manifest.state == "complete" and not scenario.get("outcomes"):
        yield "settles", True
    if real or any(step.get("spoof_fetch") is not None for step in steps):
        yield "laggards_leave_ms", None
    else:
        lag_ms, session_ms = int(settings["replica.lag.time.max.ms"]), int(settings["broker.session.timeout.ms"])
        yield "laggards_leave_ms", laggards_leave_ms(lag_ms, session_ms)


def _may_delete(
    scenario: Mapping[str, Any], settings: Mapping[str, Any], steps: Sequence[Mapping[str, Any]], *, real: bool
) -> bool:
    """Whether a step asks for it, a limit is set, or clocks and timestamps are off by as much as Kafka's default."""
    if any(step.get("delete_records") for step in steps):
        return True
    written = settings if real else (scenario.get("cluster") or {}).get("settings") or {}
    limits = {name: str(written[name]) for name in _LIMITS if name in written}
    if any(limit != _NO_LIMIT for limit in limits.values()):
        return True
    faults = [*(step.get(how) or {} for step in steps for how in ("inject", "hold"))]
    faults += (scenario.get("chaos") or {}).get("faults") or []
    off_ms = max((abs(int(fault.get("offset_ms", 0))) for fault in faults), default=0)
    off_ms += max((round(float((step.get("send") or {}).get("age_s", 0)) * 1000) for step in steps), default=0)
    return limits.keys().isdisjoint(_AGE_LIMITS) and off_ms + _DAY_MS >= _WEEK_MS


def _idempotent(load: WorkloadParameters | None, steps: Sequence[Mapping[str, Any]]) -> bool:
    """As :func:`harness.runner.manifest` has it."""
    sends = [step["send"] for step in steps if step.get("send")]
    numbered = [send.get("idempotent") is True or send.get("transaction") is not None for send in sends]
    if load is not None and load.has_background_load:
        numbered.append(load.appends_once)
    return bool(numbered) and all(numbered)


def _words(value: object) -> str:
    return "nothing" if value is None else repr(value)
