"""The witness's last look: what is lost, what differs, now that the run is over."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.checker import Verdict
from harness.model import NO_LEADER
from harness.replication.epochs import LeaderEpochCache
from harness.simulation.violations import DANGER, DIVERGED, LOST, VANISHED

if TYPE_CHECKING:
    from harness.simulation.witness import Acknowledged, Witness
    from harness.simulation.witnessed import Broker, Cluster


def examine(cluster: Cluster, witness: Witness) -> None:
    """Accuse of everything that can be seen in the end: C1 and C8 by the final leader's log, R1, R2 and R7 by all.

    If nobody leads, only what no log has any more counts as lost or vanished: whoever leads next could not have it.
    """
    partition = cluster.controller.partition
    leader = None if partition is None or partition.leader == NO_LEADER else cluster.brokers[partition.leader]
    logs = cluster.brokers if leader is None else [leader]
    disks = [broker.disk for broker in logs]
    held = {(offset, record.value) for disk in disks for offset, record in enumerate(disk.records, disk.start)}
    _lost(cluster, witness, logs, held)
    _vanished(witness, logs, held)
    for broker in cluster.brokers:
        if leader is not None and broker is not leader:
            _diverged(witness, leader, broker)
        _epochs(witness, broker)


def _holds(broker: Broker, offset: int, value: int) -> bool:
    at = offset - broker.disk.start
    return 0 <= at < len(broker.disk.records) and broker.disk.records[at].value == value


def _alone(logs: Sequence[Broker]) -> tuple[int, ...]:
    """Whose log it is that lacks something; nobody's in particular if it is missing everywhere."""
    return (logs[0].node,) if len(logs) == 1 else ()


def _lost(cluster: Cluster, witness: Witness, logs: Sequence[Broker], held: set[tuple[int, int]]) -> None:
    anywhere = {value for _, value in held}
    epochs, deleted = witness.written_in(), _deleted(witness, logs)
    for one in witness.acknowledged_records:
        survives = one.value in anywhere if one.offset < 0 else (one.offset, one.value) in held
        if survives or 0 <= one.offset < deleted:
            continue
        holders = tuple(b.node for b in cluster.brokers if _holds(b, one.offset, one.value))
        found = f"is still on broker {', '.join(map(str, holders))} (R9)" if holders else "is nowhere (R9)"
        witness.accuse(
            "C1",
            LOST,
            f"value {one.value} was acknowledged (acks={one.acks}), and {found}",
            offset=None if one.offset < 0 else one.offset,
            value=one.value,
            nodes=_alone(logs),
            verdict=_excuse(witness, one, epochs),
            once=False,
        )


def _deleted(witness: Witness, logs: Sequence[Broker]) -> int:
    """Below this offset nothing is lost that is missing: the log begins there, and rightly so."""
    return min(witness.deleted, max(broker.disk.start for broker in logs))


def _excuse(witness: Witness, one: Acknowledged, epochs: dict[int, int]) -> Verdict:
    known = (one.offset, one.value)
    if one.acks != -1 and known not in witness.ever_committed and known not in witness.delivered:
        return Verdict.WEAK
    excused = witness.forks.gave_up(epochs.get(one.value, -1), one.offset, one.value)
    return Verdict.DOCUMENTED if excused else Verdict.VIOLATION


def _vanished(witness: Witness, logs: Sequence[Broker], held: set[tuple[int, int]]) -> None:
    """What an unclean election gave up, a leader that has not heard of it may still deliver: that is excused, too."""
    epochs, deleted = witness.written_in(), _deleted(witness, logs)
    for offset, value in witness.delivered:
        if offset >= deleted and (offset, value) not in held:
            excused = witness.forks.gave_up(epochs.get(value, -1), offset, value)
            witness.accuse(
                "C8", VANISHED, f"value {value} was delivered, and the final leader does not have it",
                offset=offset, value=value, nodes=_alone(logs),
                verdict=Verdict.DOCUMENTED if excused else Verdict.VIOLATION, once=False,
            )  # fmt: skip


def _diverged(witness: Witness, leader: Broker, broker: Broker) -> None:
    """R1, in the end: below both watermarks the logs are equal, whatever happened before."""
    if broker.replica is None or leader.replica is None:
        return
    first = max(leader.disk.start, broker.disk.start)
    bound = min(leader.replica.high_watermark, broker.replica.high_watermark)
    for offset in range(first, bound):
        ours, theirs = leader.disk.records[offset - leader.disk.start], broker.disk.records[offset - broker.disk.start]
        if ours != theirs:
            witness.accuse(
                "R1", DIVERGED, f"broker {leader.node} holds {ours}, broker {broker.node} {theirs}",
                offset=offset, value=ours.value, nodes=(leader.node, broker.node), once=False,
            )  # fmt: skip


def _epochs(witness: Witness, broker: Broker) -> None:
    """R7, in the end: the epoch cache says what the log says, but for epochs without records."""
    if broker.replica is None:
        return
    cache = LeaderEpochCache()
    for batch in broker.disk.batches:
        if batch.span.leader_epoch != cache.latest:
            cache.assign(batch.span.leader_epoch, max(batch.span.base_offset, broker.disk.start))
    said = {entry.leader_epoch: entry.start_offset for entry in broker.replica.epoch_entries}
    wrong = [entry for entry in cache.entries if said.get(entry.leader_epoch) != entry.start_offset]
    if wrong:
        why = f"the log has {cache.entries}, the cache {broker.replica.epoch_entries}"
        witness.accuse("R7", DANGER, why, offset=wrong[0].start_offset, nodes=(broker.node,))
