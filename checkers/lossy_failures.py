"""What a loss may be put down to when machines lost what they had not flushed.

Kafka's replication assumes that no more than some replicas fail *lossily* (power cut, disk swapped) at a time; with its
default of never flushing, a record that only page caches hold is gone when every machine that holds it loses power. So
what was lost when **every** replica of its partition was down by such a failure **at the same time** is DOCUMENTED. One
replica that was not is enough to make it a violation: it had the record, or should have had it; and failures one after
the other leave time to copy it. Nothing is excused where the configuration flushes every write
(``log.flush.interval.messages=1``).

A log directory that fails and comes back as a new, empty disk is such a failure where a broker has no other directory:
with several, nobody knows in which of them the replica was.

Replicas that disagree are never excused: whatever was lost, what is left must become the same everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from checkers.copies import robs
from checkers.expected import Expected
from checkers.rows import Row
from harness.history import Manifest
from harness.model import TopicPartition
from spark_analysis.answer import Finding

LOSSY_FAULTS = frozenset({"power_loss", "wipe_disk"})
"""The kinds of faults after which a node's disk holds less than the node had written."""

_KNOWN_BEFORE = frozenset({"lost-write", "vanished-read", "inconsistent-offsets"})
_SEEN_AFTERWARDS = frozenset({"committed-cut", "hw-regression", "nonmonotonic-poll", "int-nonmonotonic-poll"})

FROM_ACKS = frozenset({"inconsistent-offsets", "nonmonotonic-send", "G0-realtime"})
"""The kinds that acknowledgements show, of which nobody may know the epoch: given away is what they follow from."""


def may_excuse(kind: str, manifest: Manifest) -> bool:
    """Whether lossy failures can explain findings of that kind, or what they follow from."""
    return kind in _KNOWN_BEFORE | _SEEN_AFTERWARDS | FROM_ACKS and not _flushes_every_write(manifest)


def documented(finding: Finding, manifest: Manifest, faults: Sequence[Row], wanted: Expected | None) -> bool:
    """Whether lossy failures of every replica explain ``finding``.

    A record must have been acknowledged, or delivered, before each of these failures; what a later row shows, after.
    """
    if wanted is None or finding.time_ns is None or _flushes_every_write(manifest):
        return False
    replicas = wanted.partitions.get(TopicPartition(finding.topic, finding.partition))
    if replicas is None or replicas.nodes is None:
        return False
    lossy = [f for f in faults if _is_lossy(f, manifest) and f["proven_ns"] is not None]
    if finding.kind in _KNOWN_BEFORE:
        lossy = [fault for fault in lossy if fault["injected_ns"] >= finding.time_ns]
    elif finding.kind in _SEEN_AFTERWARDS:
        lossy = [fault for fault in lossy if fault["injected_ns"] <= finding.time_ns]
    else:
        return False
    nodes = [str(node) for node in replicas.nodes]
    return any(all(_is_down(node, lossy, fault["injected_ns"]) for node in nodes) for fault in lossy)


def _is_lossy(fault: Row, manifest: Manifest) -> bool:
    one_directory = manifest.configuration.get("settings", {}).get("log.dirs.count", 1) == 1
    return robs(fault, LOSSY_FAULTS) and (fault["kind"] != "log_dir_failure" or one_directory)


def _is_down(node: str, lossy: Sequence[Row], time_ns: int) -> bool:
    """Whether one of these failures had ``node`` down at that time; one that was never healed still has."""
    return any(
        node in fault["nodes"] and fault["injected_ns"] <= time_ns < (fault["healed_ns"] or time_ns + 1)
        for fault in lossy
    )


def _flushes_every_write(manifest: Manifest) -> bool:
    settings = manifest.configuration.get("settings", {})
    return bool(settings.get("log.flush.interval.messages") == 1)
