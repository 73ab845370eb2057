"""What a loss may be put down to when machines lost what they had not flushed.

Kafka's replication assumes that fewer than ``min.insync.replicas`` replicas fail *lossily* (power cut, disk swapped) at
a time; with its default of never flushing, a record that only page caches hold is gone when every machine that holds it
loses power. So what was lost is DOCUMENTED when at one time at least that many replicas of its partition were down by
such a failure, and among them **everybody that an acknowledgement relies on**: who was in the ISR, by the words of the
controller or of a leader, when the record was acknowledged or committed, or at any time since. One of them that was not
down is enough to make it a violation: it had the record, and had to be asked for it; and failures one after the other
leave time to copy it. Nothing is excused where the configuration flushes every write
(``log.flush.interval.messages=1``). Where nobody says who was in the ISR, every replica counts.

A log directory that fails and comes back as a new, empty disk is such a failure where a broker has no other directory:
with several, nobody knows in which of them the replica was.

Of a group's commit nobody knows which brokers hold the groups' own topic, so all of them must have been down.

Replicas that disagree are never excused: whatever was lost, what is left must become the same everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from checkers.conclusion import RunFacts
from checkers.copies import robs
from checkers.rows import Row
from harness.history import Manifest
from harness.model import CONTROLLER_ID, TopicPartition
from spark_analysis.answer import Finding

LOSSY_FAULTS = frozenset({"power_loss", "wipe_disk"})
"""The kinds of faults after which a node's disk holds less than the node had written."""

_KNOWN_BEFORE = frozenset(
    {"lost-write", "vanished-read", "inconsistent-offsets", "commit-beyond-end", "duplicate", "torn-transaction"}
)
_POLLS = frozenset({"nonmonotonic-poll", "int-nonmonotonic-poll", "poll-skip", "int-poll-skip"})
_SEEN_AFTERWARDS = frozenset({"committed-cut", "hw-regression"}) | _POLLS

FOLLOWING = frozenset({"inconsistent-offsets", "nonmonotonic-send", "G0-realtime", "G1c-realtime", "commit-beyond-end"})
"""The kinds that clients show, of which nobody may know the epoch or the time: given away is what they follow from."""


def may_excuse(kind: str, manifest: Manifest) -> bool:
    """Whether lossy failures can explain findings of that kind, or what they follow from."""
    return kind in _KNOWN_BEFORE | _SEEN_AFTERWARDS | FOLLOWING | {"lost-commit"} and not _flushes_every_write(manifest)


def documented(run: RunFacts, manifest: Manifest, finding: Finding) -> bool:
    """Whether lossy failures of all that mattered explain ``finding``.

    A record must have been acknowledged, or delivered, before each of these failures was proven, and of a transaction
    of which nobody knows how it ended have been sent; what a later row shows, after it was injected. A consumer that
    skips a record had its position before, which is of no use afterwards.
    """
    place = TopicPartition(finding.topic, finding.partition)
    replicas = _brokers(run) if finding.kind == "lost-commit" else _replicas(run, place)
    if not replicas or finding.time_ns is None or _flushes_every_write(manifest):
        return False
    lossy = [f for f in run.faults if _is_lossy(f, manifest) and f["proven_ns"] is not None]
    if finding.kind == "lost-commit":
        return finding.since_ns is not None and _all_failed(replicas, lossy, finding.since_ns, finding.time_ns)
    if finding.kind in _KNOWN_BEFORE:
        begun_ns = finding.since_ns if finding.kind == "torn-transaction" else None
        since_ns = finding.time_ns if begun_ns is None else begun_ns
        lossy = [fault for fault in lossy if fault["proven_ns"] >= since_ns]
    elif finding.kind in _SEEN_AFTERWARDS:
        since_ns = _committed_ns(run, place, _lowest_missing(finding))
        lossy = [fault for fault in lossy if fault["injected_ns"] <= finding.time_ns]
        before_ns = finding.since_ns if finding.kind in ("poll-skip", "int-poll-skip") else None
        lossy = [fault for fault in lossy if fault["proven_ns"] >= (before_ns or 0)]
    else:
        return False
    least = run.least_isr(place) or len(replicas)
    for at_ns in sorted({fault["injected_ns"] for fault in lossy}):
        down = {node for node in replicas if _is_down(str(node), lossy, at_ns)}
        if len(down) >= least and (_relied_on(run, place, min(since_ns, at_ns), at_ns) or replicas) <= down:
            return True
    return False


def _brokers(run: RunFacts) -> set[int]:
    """Every broker, for any of them may hold the groups' own topic; empty: the configuration does not say."""
    return set() if run.wanted is None else set(run.wanted.nodes) - {CONTROLLER_ID}


def _all_failed(nodes: set[int], lossy: Sequence[Row], since_ns: int, until_ns: int) -> bool:
    """Whether all of them were down by such failures at one time in between."""
    between = [fault for fault in lossy if fault["proven_ns"] >= since_ns and fault["injected_ns"] <= until_ns]
    times = sorted({fault["injected_ns"] for fault in between})
    return any(all(_is_down(str(node), between, at_ns) for node in nodes) for at_ns in times)


def _replicas(run: RunFacts, place: TopicPartition) -> set[int]:
    """The nodes that hold the partition, by the configuration or by how they ended; empty: nobody knows all of them."""
    demanded = None if run.wanted is None else run.wanted.partitions.get(place)
    if demanded is None:
        return set()
    found = set(run.ended.get(place, ()) if demanded.nodes is None else demanded.nodes)
    return found if len(found) >= demanded.number else set()


def _lowest_missing(finding: Finding) -> int:
    """A record that a row which was written afterwards misses: where a consumer had been, or the first that is gone."""
    lowest = finding.other_offset if finding.kind in _POLLS else finding.offset
    return lowest or 0


def _committed_ns(run: RunFacts, place: TopicPartition, offset: int) -> int:
    """When a leader first said that it had committed the offset; 0: nobody did."""
    led = [one for ours in run.told.get(place, {}).values() for one in ours if one.role == "leader"]
    passed = [one for one in led if (one.high_watermark or 0) > offset]
    return min((x.begin_ns if (x.first_high_watermark or 0) > offset else x.end_ns for x in passed), default=0)


def _relied_on(run: RunFacts, place: TopicPartition, since_ns: int, until_ns: int) -> set[int]:
    """Who was in the ISR at any time in between, by the words of the controller or of a leader; empty: nobody says."""
    found: set[int] = set()
    for chain in (run.decided.get(place, []), *run.told.get(place, {}).values()):
        for one, after in zip_longest(chain, chain[1:]):
            stood = one.begin_ns <= until_ns and (after is None or after.begin_ns > since_ns)
            if stood and (one.role == "leader" or one.kind in ("election", "isr")):
                found.update(one.isr or ())
    return found


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
