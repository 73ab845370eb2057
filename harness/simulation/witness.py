"""The omniscient witness: it sees every log, and asserts what replication promises as things happen.

It keeps the *truth*: for every offset below the true high watermark, the record that some leader committed there. Each
event changes little, so each check looks only at what has just changed; in the end everything is looked at once more.
What a protocol generation does not promise is not held against it: see :mod:`harness.simulation.promises`.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from harness.checker import Verdict
from harness.model import NO_LEADER, NodeId, Offset
from harness.replication.controller_messages import Elected, IsrChanged, PartitionState
from harness.replication.messages import (
    NO_ERROR,
    BatchSpan,
    EpochEntry,
    ErrorCode,
    ProposeIsr,
    RaiseLogStart,
    ReplicaFailed,
    StartLogAt,
    Truncate,
)
from harness.simulation.core.disk import Record
from harness.simulation.forks import Forks
from harness.simulation.promises import promises
from harness.simulation.verdict import examine
from harness.simulation.violations import DANGER, EXITED, REGRESSED, STUCK, UNJUSTIFIED, Violation
from harness.simulation.witnessed import vouched_for

if TYPE_CHECKING:
    from harness.simulation.core.disk import Batch
    from harness.simulation.witnessed import Broker, Cluster, Produce, ProduceRequest, Wanted

ACKS_ALL = -1


class Acknowledged(NamedTuple):
    """A record whose producer was told that it is in the log, or with acks=0 that it may think so.

    ``offset`` is -1 where it was not told.
    """

    value: int
    offset: Offset
    acks: int


class Witness:
    """See the module.

    Attributes:
        violations: what it has seen, in the order in which it happened.
        truth: by offset, below the true high watermark.
        committed_in: likewise, the epoch of the leader whose watermark passed it, or of the last one that was elected
            although it might have lacked it, and had it.
        dangers: how often a promise was broken that this generation does not make.
        acknowledged_records: what producers were told, in their order.
        delivered: what the consumer was given: (offset, value).
        ever_committed: (offset, value) of everything that was ever below a leader's high watermark.
        forks: what such elections gave up, and what they did not.
        given_up: the newest leader epoch that began with an election that the configuration allows to lose records;
            -1: none did. What leaders of older epochs wrote may be lost, even what they acknowledge before they hear
            that they lead no more.
        deleted: below this offset records have been deleted on purpose, on some broker at least; what any log holds
            there is nobody's business any more, but a log that ends there lacks what was committed.
    """

    def __init__(self, cluster: Cluster, tell: Callable[[Violation], None] = lambda _: None) -> None:
        self._world = cluster
        self._tell = tell
        self._knobs = cluster.knobs
        self._promised = promises(cluster.knobs)
        self.violations: list[Violation] = []
        self.truth: list[Record] = []
        self.committed_in: list[int] = []
        self.dangers = 0
        self.acknowledged_records: list[Acknowledged] = []
        self.delivered: dict[tuple[Offset, int], None] = {}
        self.ever_committed: set[tuple[Offset, int]] = set()
        self.given_up = -1
        self.forks = Forks()
        self.deleted: Offset = 0
        self._unclean_epochs: set[int] = set()
        self._leaders: dict[int, NodeId] = {}
        self._lineage: dict[tuple[int, Offset], tuple[tuple[Record, ...], tuple[int, Offset] | None]] = {}
        self._seen: dict[NodeId, Offset] = {}
        self._proposed: dict[NodeId, tuple[NodeId, ...]] = {}
        self._known: set[tuple[str, str, tuple[int, ...], Verdict]] = set()
        self._elected = (-1, -1)
        self._newest_acknowledged = -1
        self._filled = True

    # -------------------------------------------------------------------------------------------------- what it says

    def accuse(
        self,
        invariant: str,
        kind: str,
        why: str,
        *,
        offset: Offset | None = None,
        value: int | None = None,
        nodes: tuple[int, ...] = (),
        verdict: Verdict = Verdict.VIOLATION,
        once: bool = True,
    ) -> None:
        """Note a breach; ``once``: that the same replicas break the same invariant again is no news.

        One that is excused hides none that is not.
        """
        key = (invariant, kind, nodes, verdict)
        if once and key in self._known:
            return
        self._known.add(key)
        world = self._world
        self.violations.append(
            Violation(invariant, kind, offset, value, nodes, world.now_ns, world.events, verdict, why)
        )
        self._tell(self.violations[-1])

    def written_in(self) -> dict[int, int]:
        """In which leader epoch each value was written."""
        return {record.value: record.leader_epoch for records, _ in self._lineage.values() for record in records}

    def heard_of(self, value: int) -> bool:
        """Whether ``value``, or one sent later, has been acknowledged by all."""
        return self._newest_acknowledged >= value

    def finish(self, *, converged: bool) -> None:
        """Look at everything once more, now that the run is over."""
        if not converged:
            kind = EXITED if any(one.kind == EXITED for one in self.violations) else STUCK
            self.accuse("T13", kind, "all faults are over, and the cluster does not come to rest")
        examine(self._world, self)

    # --------------------------------------------------------------------------------------------------------- logs

    def appended(self, broker: Broker, batches: list[Batch]) -> None:
        """R5, R6 and R1b: batches continue a log, and come after what they came after where they were written."""
        log = broker.disk.batches
        at = len(log) - len(batches)
        before = log[at - 1].span if at else None
        for span, records in batches:
            end, epoch = (before.end_offset, before.leader_epoch) if before is not None else (span.base_offset, -1)
            if span.base_offset != end or span.end_offset != end + len(records):
                self.accuse("R5", DANGER, f"a batch {span} follows offset {end}", offset=end, nodes=(broker.node,))
            if span.leader_epoch < epoch:
                self.accuse(
                    "R6", DANGER, f"epoch {span.leader_epoch} follows {epoch}", offset=end, nodes=(broker.node,)
                )
            self._check_lineage(broker, span, records, before)
            before = span

    def _check_lineage(
        self, broker: Broker, span: BatchSpan, records: tuple[Record, ...], before: BatchSpan | None
    ) -> None:
        key = (span.leader_epoch, span.base_offset)
        parent = None if before is None else (before.leader_epoch, before.base_offset)
        known = self._lineage.get(key)
        if known is None:
            self._lineage[key] = (records, parent)
        elif broker.replica is not None and broker.replica.role == "leader":
            self.accuse(
                "R1b", DANGER, f"epoch {span.leader_epoch} is used again for offset {span.base_offset}",
                offset=span.base_offset, nodes=(broker.node,),
            )  # fmt: skip
        elif known[0] != records or (known[1] != parent and span.base_offset > self.deleted):
            self.accuse(
                "R1b", DANGER,
                f"the batch of epoch {span.leader_epoch} is put after {parent}, which its leader had after {known[1]}",
                offset=span.base_offset, nodes=(broker.node,),
            )  # fmt: skip

    def truncated(self, broker: Broker, effect: Truncate, cut: list[Batch]) -> None:
        """R10: only what was not committed is cut."""
        end = broker.disk.end
        self._seen[broker.node] = min(self._seen.get(broker.node, 0), end)
        if end < len(self.truth) and cut:
            self._cut(broker, cut, effect.reason)

    def wiped(self, broker: Broker, effect: StartLogAt) -> None:
        """R8 and R10 for a whole log, which is going to begin anew."""
        self._seen[broker.node] = effect.offset
        self._check_start(broker, effect.offset, self.deleted)
        self._cut(broker, broker.disk.batches, "wiped")

    def log_start_raised(self, broker: Broker, effect: RaiseLogStart) -> None:
        """R8: what is deleted on purpose is committed; and followers delete nothing else."""
        if effect.reason == "leader":
            self._check_start(broker, effect.to_offset, self.deleted)
            return
        outdated = broker.replica is not None and broker.replica.leader_epoch < self.given_up
        self._check_start(broker, effect.to_offset, effect.to_offset if outdated else len(self.truth))
        self.deleted = max(self.deleted, effect.to_offset)

    def _check_start(self, broker: Broker, to_offset: Offset, most: Offset) -> None:
        if to_offset > most:
            self.accuse(
                "R8", DANGER, f"deletes up to {to_offset}, where {most} is allowed", offset=most, nodes=(broker.node,),
                verdict=self._excused(self.given_up >= 0),
            )  # fmt: skip

    def _cut(self, broker: Broker, cut: list[Batch], reason: str) -> None:
        offset = next(iter(self._committed_of(cut)), None)
        if offset is None:
            return
        if not self._promised.no_committed_cut:
            self.dangers += 1
            return
        self.accuse(
            "R10", DANGER, f"a committed record is cut ({reason})", offset=offset, nodes=(broker.node,),
            verdict=self._excused(self._may_differ(broker, offset)),
        )  # fmt: skip

    def _committed_of(self, batches: list[Batch]) -> list[Offset]:
        truth = self.truth
        return [
            offset
            for span, records in batches
            for offset, record in enumerate(records, span.base_offset)
            if self.deleted <= offset < len(truth) and truth[offset] == record
        ]

    def power_lost(self, broker: Broker, lost: list[Batch]) -> None:
        """What was not flushed is gone, as it must be expected to be."""
        if lost:
            self._seen[broker.node] = min(self._seen.get(broker.node, 0), broker.disk.end)

    def epochs_changed(self, broker: Broker, entries: tuple[EpochEntry, ...]) -> None:
        """R7: leader epochs rise, with their offsets, within the log."""
        ordered = all(a.leader_epoch < b.leader_epoch and a.start_offset < b.start_offset
                      for a, b in pairwise(entries))  # fmt: skip
        if not ordered or (entries and entries[-1].start_offset > broker.disk.end):
            self.accuse("R7", DANGER, f"epochs {entries}, log end {broker.disk.end}", nodes=(broker.node,))

    def missing(self, broker: Broker, before_epoch: int | None = None) -> Offset | None:
        """The first committed offset at which a replica's log does not hold the truth; None: it is complete.

        Args:
            broker: whose log.
            before_epoch: look only at what leaders of earlier epochs committed; None: at everything.
        """
        for offset in self._lacking(broker, min(self.deleted, broker.disk.end), len(self.truth)):
            if before_epoch is None or self.committed_in[offset] < before_epoch:
                return offset
        return None

    def _lacking(self, broker: Broker, first: Offset, end: Offset) -> list[Offset]:
        """The offsets from ``first`` up to ``end`` (exclusive) at which a replica's log does not hold the truth."""
        records, start = broker.disk.records, broker.disk.start
        if first >= start and records[first - start : end - start] == self.truth[first:end]:
            return []
        held = dict(enumerate(records, start))
        return [offset for offset in range(first, end) if held.get(offset) != self.truth[offset]]

    # -------------------------------------------------------------------------------------------------- watermarks

    def watermark_advanced(self, broker: Broker, high_watermark: Offset) -> None:
        """T8, R1, R4 and T7: what is committed, by whom, and who else has it."""
        replica = broker.replica
        assert replica is not None
        seen = self._seen.get(broker.node, 0)
        self._seen[broker.node] = max(seen, high_watermark)
        self._compare(broker, seen, min(high_watermark, len(self.truth)))
        if replica.role != "leader":
            return
        if self._promised.frozen and len(replica.isr) < self._least_isr:
            self.accuse("T8", DANGER, f"the watermark rises with an ISR of {replica.isr}", nodes=(broker.node,))
        if high_watermark > len(self.truth):
            self._commit(broker, replica.leader_epoch, high_watermark)

    def _compare(self, broker: Broker, first: Offset, end: Offset) -> None:
        for offset in self._lacking(broker, max(first, broker.disk.start, self.deleted), end)[:1]:
            held, truth = broker.disk.records[offset - broker.disk.start], self.truth[offset]
            self.accuse(
                "R1", DANGER, f"holds {held} below its watermark where {tuple(truth)} was committed",
                offset=offset, nodes=(broker.node,), verdict=self._excused(self._may_differ(broker, offset)),
            )  # fmt: skip

    def _may_differ(self, broker: Broker, offset: Offset) -> bool:
        """Whether ``offset`` was committed before records were given up, or the replica has not heard of that yet."""
        older = broker.replica is not None and broker.replica.leader_epoch < self.given_up
        return older or self.committed_in[offset] < self.given_up

    def _commit(self, broker: Broker, epoch: int, high_watermark: Offset) -> None:
        truth, disk = self.truth, broker.disk
        if disk.start > len(truth):
            self.committed_in += [epoch] * (disk.start - len(truth))
            truth += [Record(-1, -1)] * (disk.start - len(truth))
            self.deleted = max(self.deleted, disk.start)
        first = max(len(truth), disk.start)
        records = disk.records[first - disk.start : high_watermark - disk.start]
        self.ever_committed.update((offset, record.value) for offset, record in enumerate(records, first))
        if epoch >= self.given_up:
            truth += records
            self.committed_in += [epoch] * len(records)
        partition = self._world.controller.partition
        if self._promised.no_committed_cut and partition is not None and partition.leader_epoch == epoch:
            for node in (*partition.isr, *partition.elr):
                if not self._world.brokers[node].lossy:
                    self._check_holder(node, first, "T7")

    def _check_holder(self, node: NodeId, first: Offset, invariant: str) -> None:
        """Whether one who may be elected has everything from ``first`` on."""
        broker = self._world.brokers[node]
        for offset in self._lacking(broker, max(first, min(self.deleted, broker.disk.end)), len(self.truth)):
            if self.committed_in[offset] >= self.given_up:
                why = "may be elected, and lacks a committed record"
                self.accuse(invariant, DANGER, why, offset=offset, nodes=(node,))
                return

    def acknowledged(self, broker: Broker, produce: ProduceRequest, base_offset: Offset) -> None:
        """T9: what is acknowledged by all is below the watermark, and enough brokers have it."""
        if produce.acks != ACKS_ALL:
            return
        assert broker.replica is not None
        end = base_offset + len(produce.values)
        held = broker.disk.records[base_offset - broker.disk.start : end - broker.disk.start]
        if broker.replica.high_watermark < end or [record.value for record in held] != list(produce.values):
            self.accuse("T9", UNJUSTIFIED, "acknowledged above the watermark", offset=base_offset, nodes=(broker.node,))
        if not self._promised.no_committed_cut or broker.replica.leader_epoch < self.given_up:
            return
        copies = 0
        for other in self._world.brokers:
            start, records = other.disk.start, other.disk.records
            gone = other.lossy or base_offset < min(start, self.deleted)
            copies += gone or records[max(base_offset - start, 0) : end - start] == held
        if copies < self._least_isr:
            self.accuse("T9", DANGER, f"acknowledged with {copies} copies", offset=base_offset, nodes=(broker.node,))

    def fetch_served(self, broker: Broker, wanted: Wanted) -> None:
        """T11: whoever is fenced serves nobody of another epoch."""
        replica = broker.replica
        if self._promised.fenced and replica is not None and wanted.leader_epoch != replica.leader_epoch:
            self.accuse(
                "T11", DANGER, f"epoch {replica.leader_epoch} serves a follower of {wanted.leader_epoch}",
                nodes=(broker.node,),
            )  # fmt: skip

    def lookup_served(self, broker: Broker, wanted: Wanted) -> None:
        """T11 for a follower that asks where an epoch ends."""
        replica = broker.replica
        if self._knobs.lookup_fencing and replica is not None and wanted.leader_epoch != replica.leader_epoch:
            self.accuse(
                "T11", DANGER, f"epoch {replica.leader_epoch} tells a follower of {wanted.leader_epoch} an epoch's end",
                nodes=(broker.node,),
            )  # fmt: skip

    @property
    def _least_isr(self) -> int:
        configuration = self._world.configuration
        return min(configuration.min_insync_replicas, configuration.nodes)

    # ------------------------------------------------------------------------------------------- leaders and the ISR

    def state_applied(self, broker: Broker, before: tuple[int, int]) -> None:
        """T3, T4 and R3: one leader per epoch, epochs rise, and whoever leads has everything."""
        replica = broker.replica
        assert replica is not None
        epoch = replica.leader_epoch
        if epoch < before[0] or (epoch == before[0] and replica.partition_epoch < before[1]):
            self.accuse("T4", DANGER, f"epochs fall from {before}", nodes=(broker.node,))
        self._proposed.pop(broker.node, None)
        if replica.role != "leader" or epoch == before[0]:
            return
        known = self._leaders.setdefault(epoch, broker.node)
        if known != broker.node:
            self.accuse("T3", DANGER, f"both lead in epoch {epoch}", nodes=(known, broker.node))
        self._check_leader(broker, epoch)
        if self.forks.took_office(epoch, broker.disk):
            lacking = self.missing(broker)
            end = len(self.truth) if lacking is None else lacking
            self.committed_in[:end] = [epoch] * end

    def _check_leader(self, broker: Broker, epoch: int) -> None:
        current = epoch >= self._elected[0]
        offset = self.missing(broker, None if current else epoch)
        if offset is None:
            return
        self.accuse(
            "R3", REGRESSED, f"leads in epoch {epoch} without value {self.truth[offset].value}, which was committed",
            offset=offset, nodes=(broker.node,), verdict=self._excused(self._first_since_given_up(epoch)),
        )  # fmt: skip
        if current:
            del self.truth[offset:], self.committed_in[offset:]
            self.deleted = min(self.deleted, offset)
            for node, seen in self._seen.items():
                self._seen[node] = min(seen, offset)

    def _first_since_given_up(self, epoch: int) -> bool:
        """Whether this leader was elected uncleanly, or is the first since to take office: that one may have failed."""
        if epoch in self._unclean_epochs:
            return True
        return epoch > self.given_up >= 0 and all(led < self.given_up or led == epoch for led in self._leaders)

    def elected(self, effect: Elected) -> None:
        """T4, T5, T12: what the controller decides."""
        state = effect.partition
        if state.leader_epoch < self._elected[0] or state.partition_epoch < self._elected[1]:
            self.accuse("T4", DANGER, f"the controller falls back from {self._elected} to {state}")
        self._elected = (state.leader_epoch, state.partition_epoch)
        if not effect.clean and state.leader != NO_LEADER:
            self._filled = False
            if self._may_give_up:
                self.given_up = state.leader_epoch
                self.forks.elected(state.leader_epoch)
                self._unclean_epochs.add(state.leader_epoch)
        self._check_isr(state)

    @property
    def _may_give_up(self) -> bool:
        """Whether an election that is not clean may lose what was committed.

        Where unclean elections are disabled, one that is not clean elects the last known leader (KIP-966), and that one
        has everything, as long as no more brokers lose power than the fault budget says.
        """
        configuration = self._world.configuration
        return configuration.unclean_leader_election_enable or configuration.lossy_budget >= self._least_isr

    def isr_changed(self, effect: IsrChanged) -> None:
        """T5, T6, T10: who is in sync, as the controller has it."""
        state = effect.partition
        self._elected = (state.leader_epoch, state.partition_epoch)
        self._check_isr(state)
        if self._promised.no_committed_cut:
            for node in state.isr:
                broker = self._world.brokers[node]
                powerless = broker.lossy and not vouched_for(self._world.controller, broker)
                if node not in effect.previous_isr and not powerless:
                    self._check_holder(node, 0, "T10")
        self._check_superset(state)

    def _check_isr(self, state: PartitionState) -> None:
        outside = (state.leader != NO_LEADER and state.leader not in state.isr) or not state.isr
        knobs, unclean = self._knobs, self._world.configuration.unclean_leader_election_enable
        may_leave_all = knobs.elections == "elr" or (unclean and knobs.last_isr_member == "leaves_if_unclean")
        allowed_empty = may_leave_all and state.leader == NO_LEADER
        both = set(state.isr) & set(state.elr)
        if (outside and not (not state.isr and allowed_empty)) or both or not set(state.isr) <= set(state.replicas):
            self.accuse("T5", DANGER, f"the controller has {state}")
        if self._knobs.elections != "elr":
            return
        full = len(state.isr) >= self._least_isr
        if state.elr and full:
            self.accuse("T5", DANGER, f"eligible leader replicas beside a full ISR: {state}")
        self._filled = self._filled or full
        if self._filled and len({*state.isr, *state.elr, *state.last_known_elr}) < self._least_isr:
            self.accuse("T5", DANGER, f"fewer may be elected, or were, than the minimal ISR: {state}")
        controller = self._world.controller.core
        passed = controller is None or state not in controller.partitions
        fenced = set(state.isr) - set(state.isr if passed or controller is None else controller.live_brokers)
        if fenced:
            self.accuse("T5", DANGER, f"brokers without a session are in sync: {state}", nodes=tuple(sorted(fenced)))

    def _check_superset(self, state: PartitionState) -> None:
        """T6: whom the leader waits for includes whoever may be elected."""
        if state.leader == NO_LEADER or self._knobs.isr_update == "naive":
            return
        replica = self._world.brokers[state.leader].replica
        if replica is None or replica.leader_epoch != state.leader_epoch or replica.role != "leader":
            return
        if not set(state.isr) <= {*replica.isr, *self._proposed.get(state.leader, ())}:
            self.accuse("T6", DANGER, f"waits for {replica.isr}, the controller has {state.isr}", nodes=(state.leader,))

    def proposed(self, broker: Broker, proposal: ProposeIsr) -> None:
        """A leader proposes an ISR, and must wait for everybody in it from now on."""
        self._proposed[broker.node] = proposal.isr

    def failed(self, broker: Broker, effect: ReplicaFailed) -> None:
        """The protocol makes a broker exit, or its disk does."""
        if not effect.errno:
            self.accuse("T13", EXITED, effect.reason, nodes=(broker.node,))

    # ------------------------------------------------------------------------------------------------------- clients

    def sent(self, produce: Produce, error: ErrorCode, base_offset: Offset) -> None:
        """A producer was told that its records are in the log."""
        if error is not NO_ERROR:
            return
        for at, value in enumerate(produce.values):
            offset = base_offset + at if base_offset >= 0 else base_offset
            self.acknowledged_records.append(Acknowledged(value, offset, produce.acks))
            if produce.acks == ACKS_ALL:
                self._newest_acknowledged = max(self._newest_acknowledged, value)

    def polled(self, found: list[tuple[Offset, int, int]]) -> None:
        """The consumer was given records."""
        for offset, value, _ in found:
            self.delivered[offset, value] = None

    @staticmethod
    def _excused(excused: bool) -> Verdict:
        return Verdict.DOCUMENTED if excused else Verdict.VIOLATION
