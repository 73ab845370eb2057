"""Builds ``run.json`` before a run: its configuration, its guarantees, and how to repeat it."""

from __future__ import annotations

import platform
import shlex
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import confluent_kafka

from harness.broker.settings import NO_LIMIT
from harness.fault import ClockFault
from harness.history.run_directory import Manifest
from harness.replication.isr import laggards_leave_ms
from harness.runner.plan import Plan
from harness.runner.planned_chaos import PlannedChaos
from harness.runner.planned_schedule import PlannedSchedule
from harness.targets.kinds import BUILTIN
from harness.workload import WorkloadParameters

_AGE_LIMITS = ("log.retention.ms", "log.retention.minutes", "log.retention.hours")
_SIZE_LIMIT = "log.retention.bytes"
_A_RUN_MS = 24 * 3_600_000
"""The longest duration of a run."""

_PACKAGES = ("seawall", "confluent-kafka", "pyspark", "pyarrow", "pydantic")


def manifest(plan: Plan, run: str, started: datetime) -> Manifest:
    """The manifest of the run called ``run``."""
    return Manifest(
        run=run,
        scenario=plan.scenario.id,
        seed=plan.seed,
        started_wall=started.isoformat(timespec="milliseconds"),
        versions=_versions(plan),
        generation=plan.generation,
        configuration={**plan.resolved(), "reproduce": _command(plan)},
        predictions=[prediction.model_dump(mode="json") for prediction in plan.forecast.predictions],
        guarantees=_guarantees(plan),
    )


def now() -> datetime:
    """The wall clock time."""
    return datetime.now(UTC)


def _versions(plan: Plan) -> dict[str, str]:
    found = {name: known for name in _PACKAGES if (known := _version(name)) is not None}
    return {
        **plan.system.versions(),
        **found,
        "librdkafka": confluent_kafka.libversion()[0],
        "python": platform.python_version(),
        "kernel": platform.release(),
    }


@cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _command(plan: Plan) -> str:
    words = ["seawall", "run", plan.scenario.origin, "--seed", str(plan.seed)]
    words += ["--target", plan.target] if plan.target != BUILTIN else []
    words += plan.system.arguments()
    words += ["--tap"] if plan.scenario.tap else []
    if plan.chaos is not None:
        words += ["--duration-s", f"{plan.chaos.duration_s:g}"]
    for key, value in plan.overrides.items():
        words += ["--set", f"{key}={value}"]
    return shlex.join(words)


def restless(made: Manifest) -> Manifest:
    """``made`` of a run whose cluster had no time to come to rest, so that no checker expects it to."""
    return replace(made, guarantees={**made.guarantees, "settles": False})


def _guarantees(plan: Plan) -> dict[str, Any]:
    return {
        **plan.system.evidence(),
        "min_insync_replicas": plan.system.known_settings().min_insync_replicas,
        "replication_factor": min(topic.replication_factor for topic in plan.topics),
        "unclean_election": _unclean_election(plan),
        "retention": _retention(plan),
        "idempotent_producers": _idempotent(plan.schedule, plan.workload),
        "eligible_replicas": plan.system.protocol.knobs.elections == "elr",
        # A run without an expected outcome is abandoned when it does not settle; see ``RunLifecycle.settle``.
        "settles": plan.forecast.expectation is None and not plan.system.is_sampled,
        **_laggards(plan),
        **plan.workload.guarantees,
    }


def _laggards(plan: Plan) -> dict[str, int]:
    """How long a lagging replica may stay in the ISR, unless the timeline is sampled or a client fetches for it."""
    if plan.system.is_sampled or any(step.spoof_fetch is not None for step in plan.schedule.steps.values()):
        return {}
    known = plan.system.known_settings()
    return {"laggards_leave_ms": laggards_leave_ms(known.replica_lag_time_max_ms, known.broker_session_timeout_ms)}


def _unclean_election(plan: Plan) -> bool:
    """Whether a replica outside the ISR may lead: by configuration, or by an operator's request."""
    asked = any(step.elect is not None and step.elect.unclean for step in plan.schedule.steps.values())
    return asked or plan.system.known_settings().unclean_leader_election_enable


def _retention(plan: Plan) -> bool:
    """Whether records may be deleted: by an operator, or at a limit, be it Kafka's own.

    Kafka's default limit is seven days; no run lasts that long, but clocks or timestamps may be off by enough. A topic
    that the user gives keeps records for a day or longer, so that half a day is enough there.
    """
    if plan.workload.deletes_records or any(step.delete_records is not None for step in plan.schedule.steps.values()):
        return True
    settings = plan.system.properties()
    limits = {name: str(settings[name]) for name in (*_AGE_LIMITS, _SIZE_LIMIT) if name in settings}
    if any(limit != NO_LIMIT for limit in limits.values()):
        return True
    off_ms = _off_ms(plan.schedule, plan.chaos)
    if plan.system.given_topics and off_ms >= _A_RUN_MS / 2:
        return True
    kafkas_own = limits.keys().isdisjoint(_AGE_LIMITS)
    return kafkas_own and off_ms + _A_RUN_MS >= plan.system.known_settings().log_retention_ms


def _off_ms(schedule: PlannedSchedule, chaos: PlannedChaos | None) -> float:
    """The largest difference between a record's timestamp and the clock of a broker that holds it."""
    mix = () if chaos is None else chaos.faults.values()
    faults = (*schedule.faults.values(), *(one.fault for one in mix))
    clocks = (fault.clock_error_ms for fault in faults if isinstance(fault, ClockFault))
    ages = (send.age_s * 1000 for send in schedule.sends())
    return max(clocks, default=0) + max((0.0, *ages))


def _idempotent(schedule: PlannedSchedule, workload: WorkloadParameters) -> bool:
    """Whether every producer is idempotent, as a transactional one always is (KIP-98).

    Or sends each record only once, as a background producer may.
    """
    numbered = [send.idempotent or send.transaction is not None for send in schedule.sends()]
    numbered += [workload.appends_once] if workload.has_background_load else []
    return bool(numbered) and all(numbered)
