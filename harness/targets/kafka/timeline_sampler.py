"""Samples the timeline of a real cluster: the state of every replica many times a second, and every decision.

A real broker reports no state changes. So a thread for each broker observes its replicas at a bounded rate, and writes
a row for each change (``guarantees.timeline`` is ``sampled``): the state of one instant
(:mod:`harness.targets.kafka.replica_probe`), which leaves out what happened between two observations. The ISR and the
partition epoch that a broker believes in are unknown: null. The leader of a row is the one elected in its epoch.
Elections, changes of ISRs and sessions are complete (:mod:`harness.targets.kafka.decisions`).

The sampler asks the dedicated controllers of a quorum, too: the leader's log end offset and high watermark are a row
about ``__cluster_metadata``. At the end there is such a row for each of them.

Observations go past every proxy, and a broker that does not answer delays no other. Where a broker that was up could
not be observed for more than :data:`~harness.targets.kafka.unobserved_time.UNSEEN_NS`, the ``detail`` of its next row
has the duration. If a thread fails, there is no timeline: :meth:`TimelineSampler.rows` raises its error.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from heapq import merge
from itertools import chain, groupby
from operator import itemgetter
from pathlib import Path
from typing import TextIO

from harness import compacted
from harness.errors import EnvironmentFault, NoAnswer
from harness.model import CONTROLLER, CONTROLLER_ID, NO_LEADER, NodeId, Offset, TopicPartition, node_id
from harness.target import Leadership
from harness.targets.kafka.decisions import Decision, PartitionDecision, Withdrawal, decision_row
from harness.targets.kafka.observation import ClusterObservation, Leaders
from harness.targets.kafka.quorum import QuorumObservation
from harness.targets.kafka.replica_probe import ReplicaObservation, ReplicaProbe
from harness.targets.kafka.unobserved_time import UnobservedTime
from harness.targets.replica_logs import STATE_COLUMNS, Row, epochs_of, final_rows, replicas
from harness.wire.messages.quorum import METADATA_TOPIC

LOOK_INTERVAL_S = 0.04
"""The least time between two observations of one broker's replicas."""

_QUORUM_INTERVAL_S = 0.1
_TIMEOUT_S = 0.5
_FINAL_TIMEOUT_S = 2.0
_SILENT_S = 0.1
_READ_INTERVAL_S = 0.02
_STOP_TIMEOUT_S = 30.0
_UNCHANGED_NS = 500_000_000
"""After how long an unchanged replica gets a row again, which records that it has not changed until then."""

_BELIEVED_LAG_NS = 2_000_000_000
"""The greatest delay of reading a decision; a controller's clock that implies more is not used."""

_INTERNAL = "__"
_MS = 1_000_000


class TimelineSampler:
    """Samples from :meth:`start` to :meth:`stop`.

    Args:
        observation: of the cluster, past every proxy.
        directory: for the rows; created when missing.
        disks: the data directory of each broker, by its name.
        clock_offset_ms: how far the wall clock of a node is ahead of this process's because of a fault.
        is_up: whether a node runs and is not paused.
    """

    def __init__(
        self,
        observation: ClusterObservation,
        directory: Path,
        disks: Mapping[str, Path],
        clock_offset_ms: Callable[[str], int],
        is_up: Callable[[str], bool],
    ) -> None:
        self._observation = observation
        self._directory = directory
        self._disks = disks
        self._clock_offset_ms = clock_offset_ms
        self._is_up = is_up
        self._silences = {name: UnobservedTime() for name in disks}
        self._lives: dict[str, list[Row]] = {name: [] for name in (*observation.cluster.nodes, CONTROLLER)}
        self._quorum = [name for name in self._lives if name not in (*disks, CONTROLLER)]
        self._log = observation.controller_log()
        self._decided: list[Decision] = []
        self._times_ns: dict[Decision, int] = {}
        self._undecided_ns = 0
        self._held: Mapping[str, list[TopicPartition]] = {}
        self._leaders = Leaders()
        self._finals: dict[str, list[Row]] = {}
        self._problems: list[BaseException] = []
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []

    # ------------------------------------------------------------------------------------------------ life

    def started(self, node: str, incarnation: int, time_ns: int) -> None:
        """A node was started at ``time_ns``: adds a row; later observations belong to this incarnation.

        Call it right after every start, in order, also for starts before this sampler existed.
        """
        row = {"kind": "started", "time_ns": time_ns, "wall_ms": self._wall_ms(node, time_ns)}
        self._lives[node].append({**row, "incarnation": incarnation})

    def start(self) -> None:
        """Start the threads."""
        self._directory.mkdir(parents=True, exist_ok=True)
        watches = {name: partial(self._watch, name) for name in self._disks} | {"decisions": self._read_decisions}
        if self._quorum:
            watches["quorum"] = self._watch_quorum
        self._threads = [
            threading.Thread(target=self._to_its_end, args=(watch,), name=f"sampling {name}", daemon=True)
            for name, watch in watches.items()
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop the threads and observe everything a last time, while the nodes still run; idempotent."""
        if self._over.is_set():
            return
        self._over.set()
        for thread in self._threads:
            thread.join(_STOP_TIMEOUT_S)
            if thread.is_alive():
                self._problems.append(TimeoutError(f"{thread.name} has not ended in {_STOP_TIMEOUT_S:g} s"))
        if self._threads:
            self._finals = dict(self._last_looks())

    def _to_its_end(self, watch: Callable[[], None]) -> None:
        """The body of a thread; keeps its exception for :meth:`rows`."""
        try:
            watch()
        except BaseException as problem:  # noqa: BLE001 - rows() raises it
            self._problems.append(problem)

    # ------------------------------------------------------------------------------------------------ replicas

    def _watch(self, name: str) -> None:
        probe = self._observation.replica_probe(name, _TIMEOUT_S)
        last: dict[TopicPartition, Row] = {}
        with self._seen(name).open("a") as file:
            while not self._over.is_set():
                begun = time.monotonic()
                answers = self._look(name, probe, file, last)
                self._silences[name].note(answers or not self._is_up(name), time.monotonic_ns())
                pause = LOOK_INTERVAL_S if answers else _SILENT_S
                self._over.wait(max(pause / 2, pause - (time.monotonic() - begun)))
        probe.close()

    def _look(self, name: str, probe: ReplicaProbe, file: TextIO, last: dict[TopicPartition, Row]) -> bool:
        """Observe a broker's replicas once; False: it does not answer."""
        incarnation = self._incarnation(name)
        try:
            observed = probe.look(self._held.get(name, ()))
        except NoAnswer:
            probe.close()
            return False
        if incarnation is not None and incarnation == self._incarnation(name):
            for partition, seen in observed.items():
                row = {"incarnation": incarnation, **self._state(name, partition, seen)}
                if _is_news(last.get(partition), row):
                    last[partition] = row
                    file.write(json.dumps(self._silences[name].annotated(row)) + "\n")
        return True

    def _state(self, name: str, partition: TopicPartition, seen: ReplicaObservation) -> Row:
        return {
            "kind": "state",
            "topic": partition.topic,
            "partition": partition.partition,
            "wall_ms": self._wall_ms(name, seen.time_ns),
            **seen._asdict(),
        }

    def _incarnation(self, name: str) -> int | None:
        lives = self._lives[name]
        return lives[-1]["incarnation"] if lives else None

    def _wall_ms(self, node: str, at_ns: int) -> int:
        ago_ns = time.monotonic_ns() - at_ns
        return (time.time_ns() - ago_ns) // _MS + self._clock_offset_ms(node)

    def _seen(self, name: str) -> Path:
        return self._directory / (f"broker-{name}.jsonl" if name in self._disks else f"{name}.jsonl")

    # ------------------------------------------------------------------------------------------------ the quorum

    def _watch_quorum(self) -> None:
        probe = self._observation.quorum_probe(self._quorum, _TIMEOUT_S)
        last: Row | None = None
        while not self._over.is_set():
            lives = {name: self._incarnation(name) for name in self._quorum}
            seen = probe.look()
            if seen is not None and lives[seen.leader] == self._incarnation(seen.leader):
                row = {"incarnation": lives[seen.leader], **self._state_of_quorum(seen)}
                if _is_news(last, row):
                    last = row
                    with self._seen(seen.leader).open("a") as file:
                        file.write(json.dumps(row) + "\n")
            self._over.wait(_QUORUM_INTERVAL_S)
        probe.close()

    def _state_of_quorum(self, seen: QuorumObservation) -> Row:
        """The row of the leader's own log."""
        leader, quorum = node_id(seen.leader), seen.quorum
        ends = {voter.replica_id: voter.log_end_offset for voter in quorum.current_voters}
        return {
            **_METADATA,
            "kind": "state",
            "time_ns": seen.time_ns,
            "wall_ms": self._wall_ms(seen.leader, seen.time_ns),
            "role": "leader",
            "leader": leader,
            "leader_epoch": quorum.leader_epoch,
            "high_watermark": quorum.high_watermark,
            "log_end_offset": ends.get(leader, quorum.high_watermark),
        }

    def _last_look_at_quorum(self) -> Iterator[tuple[str, list[Row]]]:
        """Up to where each controller's log is committed: as far as it has followed the leader.

        The controllers write until they are killed, so their log end offsets are unknown.
        """
        probe = self._observation.quorum_probe(self._quorum, _FINAL_TIMEOUT_S)
        seen = probe.look()
        probe.close()
        for voter in seen.quorum.current_voters if seen is not None else ():
            name = self._observation.cluster.controller_named(NodeId(voter.replica_id))
            if seen is not None and name in self._quorum and self._is_up(name) and voter.log_end_offset >= 0:
                known = self._state_of_quorum(seen)
                committed = min(seen.quorum.high_watermark, voter.log_end_offset)
                role = "leader" if name == seen.leader else "follower"
                final = {"role": role, "high_watermark": committed, "log_end_offset": None}
                yield name, [{**known, **final, "detail": json.dumps({"source": "live"})}]

    # ------------------------------------------------------------------------------------------------ decisions

    def _read_decisions(self) -> None:
        while not self._over.is_set():
            self._read_on()
            self._over.wait(_READ_INTERVAL_S)

    def _read_on(self) -> None:
        """Apply new decisions."""
        begun_ns = time.monotonic_ns()
        decisions = self._log.read_on()
        now_ns = time.monotonic_ns()
        for decision in decisions:
            if isinstance(decision, Withdrawal):
                del self._decided[-len(decision.decisions) :]
            else:
                self._decided.append(decision)
                self._times_ns.setdefault(decision, self._when(decision, now_ns))
        self._undecided_ns = begun_ns
        if decisions:
            self._leaders.note(decisions)
            self._held = {name: list(self._replicas_of(node_id(name))) for name in self._disks}

    def _when(self, decision: Decision, read_ns: int) -> int:
        """The time by the controller's clock, unless it differs from this one by more than reading can have taken.

        With several controllers whose clocks have different offsets, it is the time of reading. A decision is never
        earlier than the read before, which did not find it: a controller may write it later than the first one.
        """
        offset_ms, *others = {self._clock_offset_ms(name) for name in self._observation.cluster.controllers}
        if others:
            return read_ns
        true_ms = decision.wall_ms - offset_ms
        lag_ns = time.time_ns() - (time.monotonic_ns() - read_ns) - true_ms * _MS
        told_ns = read_ns - lag_ns if 0 <= lag_ns <= _BELIEVED_LAG_NS else read_ns
        return max(told_ns, self._undecided_ns)

    def _replicas_of(self, broker: NodeId) -> Iterator[TopicPartition]:
        for name, state in self._log.partitions.items():
            if broker in state.replicas and not name.topic.startswith(_INTERNAL):
                yield name

    # ------------------------------------------------------------------------------------------------ the end

    def _last_looks(self) -> Iterator[tuple[str, list[Row]]]:
        for name in self._disks:
            probe = self._observation.replica_probe(name, _FINAL_TIMEOUT_S)
            try:
                observed = probe.look(self._held.get(name, ()))
            except NoAnswer:
                continue
            finally:
                probe.close()
            yield name, [self._state(name, partition, seen) for partition, seen in observed.items()]
        if self._observation.view().partitions:
            yield CONTROLLER, []
        if self._quorum:
            yield from self._last_look_at_quorum()

    def known_leaders(self) -> Mapping[TopicPartition, Leadership]:
        """See :class:`harness.observations.KnowsLeaders`: by the decisions that have been read."""
        decided = dict(self._log.partitions)
        own = ((name, state) for name, state in decided.items() if not name.topic.startswith(_INTERNAL))
        return {name: Leadership(state.leader, tuple(state.isr)) for name, state in own}

    def last_log_starts(self, name: str) -> Mapping[TopicPartition, Offset]:
        """The log start offsets in a broker's last answer; empty if it did not answer at the end."""
        finals = self._finals.get(name, ())
        return {TopicPartition(row["topic"], row["partition"]): row["log_start_offset"] or 0 for row in finals}

    def rows(self, run: str) -> Iterator[Row]:
        """Rows of ``schema.TIMELINE`` of every node. Call when the nodes have ended, after :meth:`stop`.

        Raises:
            EnvironmentFault: the decisions could not be read to their end, or a thread failed: the timeline is not
                complete.
        """
        if not self._problems:
            self._to_its_end(self._read_on)
        for problem in self._problems:
            if isinstance(problem, EnvironmentFault | AssertionError):
                raise problem
            raise EnvironmentFault(f"the cluster was not watched to the end: {problem!r}.") from problem
        alone = map(self._rows_of_member, self._quorum)
        for row in chain(*map(self._rows_of_broker, self._disks), *alone, self._rows_of_controllers()):
            yield {**_NOTHING, "run": run, **row}

    def _rows_of_broker(self, name: str) -> Iterator[Row]:
        rows = merge(self._lives[name], map(self._with_leader, self._looks(name)), key=itemgetter("incarnation"))
        finals = self._finals.get(name)
        last = list(self._final_live(name, finals) if finals is not None else final_rows(self._disks[name]))
        ours = (self._silences[name].annotated(row) for row in last if not row["topic"].startswith(_INTERNAL))
        yield from _numbered(node_id(name), rows, ours)

    def _rows_of_member(self, name: str) -> Iterator[Row]:
        rows = merge(self._lives[name], self._looks(name), key=itemgetter("incarnation"))
        yield from _numbered(node_id(name), rows, self._finals.get(name, ()))

    def _looks(self, name: str) -> Iterator[Row]:
        if self._threads and self._seen(name).exists():
            with self._seen(name).open() as lines:
                yield from map(json.loads, lines)

    def _with_leader(self, row: Row) -> Row:
        leader = self._leaders.of(TopicPartition(row["topic"], row["partition"]), row["leader_epoch"])
        return {**row, "leader": None if leader == NO_LEADER else leader}

    def _final_live(self, name: str, states: Iterable[Row]) -> Iterator[Row]:
        directories = dict(replicas(self._disks[name]))
        for row in states:
            if row["topic"] == compacted.TOPIC:
                continue
            epochs = epochs_of(directories.get(TopicPartition(row["topic"], row["partition"])))
            yield {**self._with_leader(row), "detail": json.dumps({"source": "live"} | epochs)}

    def _rows_of_controllers(self) -> Iterator[Row]:
        """Decisions belong to the incarnation of the node ``controller`` during which they were read.

        Those of a quorum have this node, too, with a single incarnation.
        """
        name = CONTROLLER
        lives, incarnation, rows, now_ns = list(self._lives[name]), 0, [], 0
        for decision in self._decided:
            if _is_internal(decision):
                continue
            now_ns = max(now_ns, self._times_ns[decision])
            while lives and lives[0]["time_ns"] <= now_ns:
                rows.append(lives.pop(0))
                incarnation = rows[-1]["incarnation"]
            rows.append({**decision_row(decision), "incarnation": incarnation, "time_ns": now_ns})
        source = {"detail": json.dumps({"source": "live" if name in self._finals else "disk"})}
        finals = [
            {
                **{column: getattr(state, column) for column in _DECIDED},
                "isr": list(state.isr),
                "topic": state.topic_partition.topic,
                "partition": state.topic_partition.partition,
                **source,
            }
            for state in self._log.partitions.values()
            if not state.topic_partition.topic.startswith(_INTERNAL)
        ]
        yield from _numbered(CONTROLLER_ID, [*rows, *lives], finals)


_METADATA: Row = {"topic": METADATA_TOPIC, "partition": 0}
_DECIDED = ("leader", "leader_epoch", "partition_epoch")
_NOTHING: Mapping[str, None] = dict.fromkeys(("topic", "partition", *STATE_COLUMNS, "detail"))
_TIMES = ("time_ns", "wall_ms")


def _is_news(last: Row | None, row: Row) -> bool:
    """Whether something has changed, or an unchanged row is due."""
    if last is None or row["time_ns"] - last["time_ns"] >= _UNCHANGED_NS:
        return True
    return any(row[key] != last[key] for key in row if key not in _TIMES)


def _is_internal(decision: Decision) -> bool:
    return isinstance(decision, PartitionDecision) and decision.after.topic_partition.topic.startswith(_INTERNAL)


def _numbered(node: NodeId, rows: Iterable[Row], finals: Iterable[Row]) -> Iterator[Row]:
    """The rows of one node, numbered in each of its lives; the ``final`` ones follow the last."""
    last: Row = {"incarnation": 0, "sequence": -1, "time_ns": 0, "wall_ms": 0}
    for _, life in groupby(rows, itemgetter("incarnation")):
        for sequence, row in enumerate(life):
            last = {**row, "node": node, "sequence": sequence}
            yield last
    for sequence, final in enumerate(finals, last["sequence"] + 1):
        times = {key: final.get(key, last[key]) for key in _TIMES}
        yield {
            **final,
            **times,
            "node": node,
            "incarnation": last["incarnation"],
            "sequence": sequence,
            "kind": "final",
        }
