"""What a test asks of its cluster, by its marker ``seawall``, and the scenario that this makes."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from harness.errors import UsageError
from harness.runner.plan import Plan, plan
from harness.scenario import Scenario, Setting
from harness.targets.kinds import BUILTIN
from harness.validation import validated
from workloads import KINDS

_SLUG = re.compile(r"[^a-z0-9]+")
_LONGEST_SLUG = 80
_NO_LOAD = next(iter(KINDS))
"""The first workload is seawall's own, which sends nothing by itself unless a scenario asks for a rate."""
_UNUSED = {"name": "unused"}
"""A scenario has a topic at least, and a test may create its own later."""


class Wanted(BaseModel):
    """The arguments of ``@pytest.mark.seawall``.

    Attributes:
        generation: of the built-in brokers' protocol; None: the current one.
        release: of real Kafka, as local processes, ``3.9.1``; None: the built-in brokers.
        brokers: how many.
        settings: of every broker, by Kafka's names.
        topics: by name, the number of partitions; every broker has a replica, up to three.
        replication: knobs of the built-in brokers' protocol, a bug among them: ``{"bugs": "ack_on_append"}``.
        seed: what faults that choose a node aim with; None: from the test's name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    generation: str | None = None
    release: str | None = None
    brokers: int = Field(default=3, ge=1, le=9)
    settings: Mapping[str, Setting] = {}
    topics: Mapping[str, int] = {}
    replication: Mapping[str, str | bool] = {}
    seed: int | None = None

    @property
    def target(self) -> str:
        """As ``--target`` spells it."""
        return BUILTIN if self.release is None else f"process:{self.release}"


def wanted(arguments: Mapping[str, Any]) -> Wanted:
    """The marker's arguments, validated.

    Raises:
        UsageError: one is not known, or has a wrong value.
    """
    return validated(Wanted, dict(arguments), "@pytest.mark.seawall")


def slug(test: str) -> str:
    """A test's name as a name of a scenario, and of a directory."""
    return _SLUG.sub("-", test.lower()).strip("-")[-_LONGEST_SLUG:].strip("-") or "test"


def planned(asked: Wanted, test: str, topics: Sequence[Mapping[str, Any]], steps: Sequence[Mapping[str, Any]]) -> Plan:
    """The plan of a test: its topics, and what its clients and faults have done so far, as steps of a schedule.

    Raises:
        UsageError: the target lacks what it asks for.
        EnvironmentFault: there is no such release of Kafka on this machine.
    """
    settings = {"min.insync.replicas": min(2, asked.brokers), **asked.settings}
    document = {
        "id": slug(test),
        "title": f"The test {test}",
        "source": "its own clients and faults",
        "cluster": {"brokers": asked.brokers, "settings": settings},
        "topics": list(topics) or [{**_UNUSED, "replication_factor": 1}],
        "workload": {"name": _NO_LOAD},
        "replication": dict(asked.replication),
        "schedule": list(steps) or [{"wait_s": 1.0}],
    }
    scenario = validated(Scenario, document, test)
    seed = zlib.crc32(test.encode()) if asked.seed is None else asked.seed
    made = plan(scenario, asked.target, asked.generation, seed)
    if not made.system.carried.headers:
        raise UsageError(
            f"{made.system.name} stores no headers of records, by which a test's own records are known.",
            "Take 0.11 or newer.",
        )
    return made
