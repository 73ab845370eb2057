"""The rows that findings cite as evidence, and what each shows in words.

An engine returns at least the rows that a finding's evidence cites: the reference all rows, Spark what
``spark_analysis.witnesses`` selects. This module chooses the rows to cite, for both.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from checkers.views.frames import Frames
from checkers.views.row import Row, detail, where
from faults import traits_of
from harness.checker import Evidence
from harness.fault_losses import taken
from harness.findings import Finding
from harness.model import TopicPartition


class Cut(NamedTuple):
    """A truncation: ``node`` removed the offsets from ``start`` to ``end`` (exclusive)."""

    row: Row
    node: int
    start: int
    end: int
    reason: str


class Witnesses:
    """The rows of one run that its findings may cite; of ``replica_logs`` None: no log was read.

    Attributes:
        frames: those of a wire tap; None: the run had none.
    """

    def __init__(
        self,
        history: Sequence[Row],
        timeline: Sequence[Row],
        replica_logs: Sequence[Row] | None,
        faults: Sequence[Row],
        frames: Frames | None = None,
    ) -> None:
        self.frames = frames
        self._sends: dict[TopicPartition, list[Row]] = defaultdict(list)
        self._reads: dict[tuple[TopicPartition, int], list[Row]] = defaultdict(list)
        self._commits: dict[tuple[TopicPartition, int | None], list[Row]] = defaultdict(list)
        self._led: dict[TopicPartition, list[Row]] = defaultdict(list)
        self._cuts: dict[TopicPartition, list[Cut]] = defaultdict(list)
        self._decided: dict[TopicPartition, list[Row]] = defaultdict(list)
        self._logged: dict[TopicPartition, list[Row]] = defaultdict(list)
        self._faults = sorted(faults, key=lambda r: (r["injected_ns"] or 0, str(r["fault"])))
        self._take_history(history)
        self._take_timeline(timeline)
        self._has_logs = replica_logs is not None
        for row in sorted(replica_logs or (), key=_place_in_log):
            self._logged[where(row)].append(row)

    def _take_history(self, rows: Sequence[Row]) -> None:
        for row in sorted(rows, key=lambda r: int(r["index"])):
            if row["topic"] is not None and row["type"] != "invoke":
                match row["f"]:
                    case "send":
                        self._sends[where(row)].append(row)
                    case "poll":
                        self._reads[where(row), row["offset"]].append(row)
                    case "commit" | "committed":
                        self._commits[where(row), row["offset"]].append(row)

    def _take_timeline(self, rows: Sequence[Row]) -> None:
        for row in sorted(rows, key=lambda r: (r["time_ns"], r["node"], r["incarnation"], r["sequence"])):
            if row["kind"] == "state" and row["role"] == "leader":
                self._led[where(row)].append(row)
            elif row["kind"] == "truncation" and row["topic"] is not None:
                self._cuts[where(row)].append(_cut(row))
            elif row["kind"] in ("election", "isr") and row["topic"] is not None:
                self._decided[where(row)].append(row)

    # ----------------------------------------------------------------------------------------------- the history

    def send(self, finding: Finding) -> Iterator[Evidence]:
        """How the send of the finding's value ended."""
        for row in self._sends[place(finding)]:
            if row["value"] == finding.value:
                at = "" if row["offset"] is None else f" at offset {row['offset']}"
                error = f": {row['error']}" if row["error"] else ""
                words = f"process {row['process']}: the send of value {row['value']} ended {row['type']}{at}{error}"
                yield Evidence("history", {"index": row["index"]}, f"{words} ({_acks(row['acks'])})")

    def reads(self, finding: Finding, offset: int | None, value: int | None, most: int = 1) -> Iterator[Evidence]:
        """The first polls that delivered ``value`` (None: anything) at ``offset``."""
        rows = [] if offset is None else self._reads[place(finding), offset]
        chosen = [row for row in rows if value is None or row["value"] == value]
        for row in chosen[:most]:
            yield _read(row)

    def read_by(self, finding: Finding, offset: int | None, before: int | None) -> Iterator[Evidence]:
        """The finding's process's last delivery of ``offset`` up to the history's row ``before``."""
        rows = [] if offset is None else self._reads[place(finding), offset]
        known = [r for r in rows if r["process"] == finding.process and (before is None or r["index"] <= before)]
        for row in known[-1:]:
            yield _read(row)

    def commits(self, finding: Finding, offset: int | None) -> Iterator[Evidence]:
        """The last commit of ``offset`` up to the finding's row, and the offset that a group was given in that row."""
        known = [r for r in self._commits[place(finding), offset] if r["index"] <= (finding.row or 0)]
        stored = [r for r in known if r["f"] == "commit"][-1:]
        for row in [*stored, *(r for r in known if r["f"] == "committed" and r["index"] == finding.row)]:
            did = "committed" if row["f"] == "commit" else "was given committed"
            of = "" if row["generation"] is None else f" in generation {row['generation']}"
            words = f"process {row['process']} {did} offset {offset} for group {row['group']!r}{of}: {row['type']}"
            yield Evidence("history", {"index": row["index"]}, words)

    def values_at(self, finding: Finding) -> Iterator[Evidence]:
        """For each value that an acknowledgement or a poll names at the finding's offset, the first that does."""
        acks = [r for r in self._sends[place(finding)] if r["type"] == "ok" and r["offset"] == finding.offset]
        reads = [] if finding.offset is None else self._reads[place(finding), finding.offset]
        named: dict[int | None, Row] = {}
        for row in sorted([*acks, *reads], key=lambda r: int(r["index"])):
            named.setdefault(row["value"], row)
        for row in named.values():
            yield _read(row) if row["f"] == "poll" else _acked(row)

    # ------------------------------------------------------------------------------------------------ the brokers

    def leader(self, finding: Finding, epoch: int | None) -> Iterator[Evidence]:
        """The brokers that led the partition in ``epoch``, by the first such row of each."""
        seen: set[int] = set()
        for row in self._led[place(finding)]:
            if row["leader_epoch"] == epoch and row["node"] not in seen:
                seen.add(row["node"])
                yield _state(row, f"led {_name(row)} in epoch {epoch} from here on")

    def decision(self, finding: Finding) -> Iterator[Evidence]:
        """The controller's ISR at the finding's time."""
        known = [row for row in self._decided[place(finding)] if row["time_ns"] <= (finding.time_ns or 0)]
        for row in known[-1:]:
            yield _state(row, f"the controller had ISR {row['isr'] or []} of {_name(row)} from here on")

    def committed(self, finding: Finding, epoch: int | None) -> Iterator[Evidence]:
        """The first row in which the leader of ``epoch`` (None: any) has a high watermark above the offset."""
        for row in self._led[place(finding)]:
            above = finding.offset is not None and (row["high_watermark"] or 0) > finding.offset
            if above and epoch in (None, row["leader_epoch"]):
                yield _state(row, f"led {_name(row)} in epoch {row['leader_epoch']} and had committed up to there")
                return

    def cuts(self, finding: Finding) -> Iterator[Evidence]:
        """The truncations that removed the finding's offset from a log."""
        for cut in self._covering(finding):
            words = f"node {cut.node} cut offsets {cut.start} to {cut.end - 1} off its log of {_name(cut.row)}"
            yield Evidence("timeline", _timeline_id(cut.row), f"{words} ({cut.reason})")

    def holders(self, finding: Finding) -> Iterator[Evidence]:
        """Which replicas' logs hold the finding's value, if it has one, and what they hold at its offset."""
        logged, value = self._logged[place(finding)], finding.value
        if self._has_logs and value is not None and not any(row["value"] == value for row in logged):
            sought: dict[str, int | str] = {"topic": finding.topic, "partition": finding.partition, "value": value}
            yield Evidence("replica_logs", sought, f"no replica's log holds value {value}")
        sides = [r for r in logged if r["offset"] == finding.offset or (value is not None and r["value"] == value)]
        found = [_logged(row) for row in sides]
        yield from (one for at, one in enumerate(found) if one not in found[:at])

    def fault(self, finding: Finding) -> Iterator[Evidence]:
        """The last fault that was injected before the finding's offset was first cut off a log.

        Where no row records a cut, the faults whose proofs name data that they took from such a log, after the missing
        record's send had begun: any other fault is not known to be the cause.
        """
        cuts = self._covering(finding)
        if not cuts:
            yield from self._robberies(finding)
            return
        before = min(cut.row["time_ns"] for cut in cuts)
        known = [f for f in self._faults if f["injected_ns"] is not None and f["injected_ns"] <= before]
        for row in known[-1:]:
            when = f"{(before - row['injected_ns']) / 1e9:.3f} s before the first of these cuts"
            yield _harm(row, f"was injected {when}")

    def _robberies(self, finding: Finding) -> Iterator[Evidence]:
        """The proofs of faults that name data taken from the partition's logs, or from a whole disk."""
        for row in self._faults:
            what = taken(traits_of(row["kind"]).disk, row["proof"], place(finding))
            if what is not None and (row["proven_ns"] or 0) >= (finding.since_ns or 0):
                yield _harm(row, what)

    def _covering(self, finding: Finding) -> list[Cut]:
        offset = finding.offset
        return [c for c in self._cuts[place(finding)] if offset is not None and c.start <= offset < c.end]


def place(finding: Finding) -> TopicPartition:
    """The finding's partition."""
    return TopicPartition(finding.topic, finding.partition)


def _harm(row: Row, did: str) -> Evidence:
    words = f"fault {row['fault']!r} ({row['kind']} of {', '.join(row['nodes'])}) {did}"
    return Evidence("faults", {"fault": row["fault"]}, words)


def _cut(row: Row) -> Cut:
    found = detail(row)
    ends = sorted((int(found.get("from_offset", 0)), int(found.get("to_offset", 0))))
    return Cut(row, row["node"], ends[0], ends[1], str(found.get("reason", "no reason given")))


def _read(row: Row) -> Evidence:
    what = f"value {row['value']}" if row["value"] is not None else "a record that is none of the workload's"
    damaged = "" if row["intact"] is not False else ", not intact"
    final = "the final read's process" if row["final"] else "process"
    words = f"{final} {row['process']} was delivered {what} at offset {row['offset']}{damaged}"
    return Evidence("history", {"index": row["index"]}, words)


def _acked(row: Row) -> Evidence:
    words = f"process {row['process']} was acknowledged value {row['value']} at offset {row['offset']}"
    return Evidence("history", {"index": row["index"]}, f"{words} ({_acks(row['acks'])})")


def _acks(acks: int) -> str:
    return "acks=all" if acks == -1 else f"acks={acks}"


def _state(row: Row, words: str) -> Evidence:
    bounds = f"high watermark {row['high_watermark']}, log end {row['log_end_offset']}"
    return Evidence("timeline", _timeline_id(row), f"node {row['node']} {words} ({bounds})")


def _logged(row: Row) -> Evidence:
    what = f"value {row['value']}" if row["value"] is not None else "a record that is none of the workload's"
    words = f"node {row['node']}'s log holds {what} of epoch {row['leader_epoch']} at offset {row['offset']}"
    identity = {name: row[name] for name in ("node", "topic", "partition", "offset")}
    return Evidence("replica_logs", identity, words)


def _timeline_id(row: Row) -> dict[str, int | str]:
    return {name: row[name] for name in ("node", "incarnation", "sequence")}


def _name(row: Row) -> str:
    return str(where(row))


def _place_in_log(row: Row) -> tuple[int, ...]:
    """The order of replicas' logs for both engines; a log may have several rows of one offset."""
    value = (0, 0) if row["value"] is None else (1, row["value"])
    return row["offset"], row["node"], row["leader_epoch"], *value, row["batch_crc"]
