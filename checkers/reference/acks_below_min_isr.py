"""Reference: finds acknowledgements below min.insync.replicas (see :class:`harness.facts.AcksBelowMinIsr`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from checkers.views.history import History
from checkers.views.replica_logs import ReplicaLogs
from checkers.views.row import ALL, Row, where
from checkers.views.run_demands import RunDemands
from checkers.views.timeline import Timeline
from harness.facts import AcksBelowMinIsr
from harness.model import TopicPartition

_VERSION = ("node", "incarnation", "leader_epoch", "partition_epoch")


def acks_below_min_isr(
    history: History, timeline: Timeline, logs: ReplicaLogs, demands: RunDemands
) -> Iterator[AcksBelowMinIsr]:
    """Those of a run that states how large an ISR has to be."""
    if demands.min_isr is None:
        return
    acks: dict[TopicPartition, list[Row]] = defaultdict(list)
    for row in history.operations:
        if row["f"] == "send" and row["type"] == "ok" and row["acks"] == ALL and row["offset"] is not None:
            acks[where(row)].append(row)
    versions: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in filter(_leads, timeline.rows):
        if len(row["isr"]) < demands.min_isr:
            versions[where(row), *(row[name] for name in _VERSION), tuple(row["isr"])].append(row)
    for version_rows in versions.values():
        yield from _of_version(logs, version_rows, acks.get(where(version_rows[0]), []))


def _leads(row: Row) -> bool:
    leads = row["kind"] == "state" and row["role"] == "leader" and row["topic"] is not None
    return leads and None not in (row["isr"], row["leader_epoch"], row["log_end_offset"])


def _of_version(logs: ReplicaLogs, version_rows: list[Row], acks: Sequence[Row]) -> Iterator[AcksBelowMinIsr]:
    version_rows.sort(key=lambda r: (r["time_ns"], r["sequence"]))
    first, last = version_rows[0], version_rows[-1]
    appended = [row for row in acks if first["log_end_offset"] <= row["offset"] < last["log_end_offset"]]
    logged = [row for row in appended if _is_logged(logs, row, first["leader_epoch"])]
    others = [row for row in appended if row not in logged and first["time_ns"] <= row["time_ns"] <= last["time_ns"]]
    for group, in_log in ((logged, True), (others, False)):
        if group:
            begin = min(group, key=lambda r: (r["offset"], r["index"]))
            yield AcksBelowMinIsr(
                logs.run, *where(first), first["node"], first["incarnation"], first["leader_epoch"], len(first["isr"]),
                first["sequence"], first["time_ns"], last["sequence"], last["time_ns"],
                begin["offset"], max(row["offset"] for row in group), begin["value"], begin["index"], begin["time_ns"],
                in_log,
            )  # fmt: skip


def _is_logged(logs: ReplicaLogs, ack: Row, leader_epoch: int) -> bool:
    """Whether a replica's log holds what was acknowledged as a record of that leader epoch."""
    held = logs.logged.get(where(ack), {}).get(ack["offset"], [])
    return any((row["value"], row["leader_epoch"]) == (ack["value"], leader_epoch) for row in held)
