"""How soon each partition was whole and in service again after the last fault was healed: numbers, not verdicts (T13).

Kafka promises that a cluster recovers, and not when; the user decides whether it was soon enough.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from checkers.views.configured import Configured
from checkers.views.fault_journal import FaultJournal
from checkers.views.row import Row
from checkers.views.states import States
from harness.checker import Outage, Recovery
from harness.facts import ClientFacts
from harness.model import TopicPartition

LEAST_LOOKS = 11
"""How often a runner looks at least before it calls a cluster stuck: first, and after each tenth of the time."""


def healed_ns(faults: Sequence[Row]) -> int | None:
    """When the last fault was proven to be healed; None: there was none, or not all have a proof."""
    times = [fault["heal_proven_ns"] for fault in faults if _was_injected(fault)]
    return None if not times or None in times else int(max(times))


def all_healed(faults: Sequence[Row]) -> bool:
    """Whether a probe has seen every fault healed that was injected; one that found nothing to aim at never was."""
    return all(fault["heal_proven_ns"] is not None for fault in faults if _was_injected(fault))


def comes_to_rest(guarantees: Mapping[str, Any], faults: Sequence[Row], unrest: Mapping[str, Any]) -> bool:
    """Whether a run promises to settle, every fault was healed, and the runner did not find it stuck (``unrest``)."""
    return guarantees.get("settles") is True and all_healed(faults) and not stood_still(unrest)


def stood_still(unrest: Mapping[str, Any]) -> bool:
    """Whether the runner found the cluster stuck, and recorded everything that shows it."""
    return bool(unrest) and not broken_unrest(unrest)


def broken_unrest(unrest: Mapping[str, Any]) -> list[str]:
    """One sentence for each thing that ``unrest``, where there is one, lacks to show that a cluster stood still."""
    if not unrest:
        return []
    lacks = []
    if not unrest.get("missing") or not all(unrest["missing"].values()):
        lacks.append("does not name what each partition is missing")
    if not unrest.get("still_s"):
        lacks.append("does not say for how long nothing got nearer to recovery")
    if unrest.get("looks", 0) < LEAST_LOOKS:
        lacks.append(f"has {unrest.get('looks', 0)} looks, and a runner takes at least {LEAST_LOOKS}")
    if not unrest.get("probes"):
        lacks.append("names no probe that found the environment sound")
    return [f"run.json's unrest {one}: it does not show that the cluster stood still." for one in lacks]


def _was_injected(fault: Row) -> bool:
    return fault["injected_ns"] is not None


def recovery(
    states: States, configured: Configured, journal: FaultJournal, client_facts: ClientFacts
) -> Iterator[Recovery]:
    """The numbers of every partition that is configured, or of which anything is known."""
    outages: dict[TopicPartition, list[Outage]] = {}
    for one in sorted(client_facts.silences):
        outages.setdefault(TopicPartition(one.topic, one.partition), []).append(Outage(one.begin_ns, one.end_ns))
    acks = {TopicPartition(one.topic, one.partition): one.time_ns for one in client_facts.first_acks}
    demanded = configured.wanted.partitions if configured.wanted is not None else {}
    healed = healed_ns(journal.faults)
    for place in sorted({*demanded, *states.decided, *outages, *acks}):
        found = tuple(outages.get(place, ()))
        yield Recovery(*place, healed, _isr_full_ns(states, configured, place), acks.get(place), found)


def _isr_full_ns(states: States, configured: Configured, place: TopicPartition) -> int | None:
    """Since when the controller has had every replica in the ISR, until the end."""
    replicas, since_ns = configured.replication(place), None
    for one in states.decided.get(place, ()):
        full = replicas is not None and len(one.isr or ()) >= replicas
        since_ns = (one.begin_ns if since_ns is None else since_ns) if full else None
    return since_ns
