"""The rows that a report draws, one frozen class per kind, made from the tables of a run directory."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

Row = Mapping[str, Any]
"""A row as plain data; the keys are the columns of its table in ``harness.history.schema``."""

ACKNOWLEDGED: Final = "ok"
"""The type of a completion that the cluster acknowledged."""


@dataclass(frozen=True, slots=True)
class Send:
    """A send and its completion. ``type`` is ok, fail or info; a send without a completion is info.

    Attributes:
        index: of the completing row in the history (of the invocation where there is none).
        invoked_ns: None where the history lacks the invocation.
    """

    index: int
    op: int
    process: int
    type: str
    invoked_ns: int | None
    time_ns: int
    offset: int | None
    value: int | None
    acks: int | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Poll:
    """A record as a consumer got it. ``final``: whether the poll belongs to the final read."""

    index: int
    process: int
    time_ns: int
    offset: int
    value: int | None
    final: bool


@dataclass(frozen=True, slots=True)
class State:
    """A replica as its own broker reported it. ``kind`` is state, final or storage_failed; ``isr`` as it knew it.

    Of kind metadata it is a partition, as the cluster told a client of it; the role is None where there was no answer.

    Attributes:
        incarnation: the broker's life, from 0.
        source: of final: ``live``, or ``disk`` where the broker did not answer and its checkpoints were read.
    """

    node: int
    sequence: int
    time_ns: int
    kind: str
    role: str | None
    leader: int | None
    leader_epoch: int | None
    high_watermark: int | None
    log_end_offset: int | None
    log_start_offset: int | None
    isr: tuple[int, ...] | None
    incarnation: int = 0
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Truncation:
    """A replica cut its log from ``from_offset`` (its old end) back to ``to_offset`` (its new end), both exclusive."""

    node: int
    sequence: int
    time_ns: int
    from_offset: int
    to_offset: int
    reason: str

    def removes(self, offset: int) -> bool:
        """Whether the record at ``offset`` was cut off."""
        return self.to_offset <= offset < self.from_offset


@dataclass(frozen=True, slots=True)
class Change:
    """The controller changed a partition: ``kind`` is election or isr; ``cause`` is the reason that it recorded."""

    kind: str
    sequence: int
    time_ns: int
    leader: int
    leader_epoch: int | None
    isr: tuple[int, ...]
    clean: bool | None
    cause: str


@dataclass(frozen=True, slots=True)
class Fault:
    """A row of the faults table. Times are None where the step never happened; ``end_ns`` is never None."""

    name: str
    kind: str
    nodes: tuple[str, ...]
    parameters: str
    aimed_ns: int
    aim: str
    injected_ns: int | None
    proven_ns: int | None
    proof: str | None
    healed_ns: int | None
    heal_proven_ns: int | None
    heal_proof: str | None

    @property
    def proven(self) -> bool:
        """Whether a probe proved that it took effect."""
        return self.proven_ns is not None

    @property
    def heal_proven(self) -> bool:
        """Whether a probe proved that it was healed."""
        return self.heal_proven_ns is not None

    @property
    def last_ns(self) -> int:
        """The last time the row knows."""
        return max(t for t in (self.aimed_ns, self.injected_ns, self.healed_ns, self.heal_proven_ns) if t is not None)

    def aims_at(self, node: int) -> bool:
        """Whether ``node`` is one of its nodes."""
        return str(node) in self.nodes


@dataclass(frozen=True, slots=True)
class LogEntry:
    """A record as it lies on a broker's disk; ``value`` is None where it is not one of the workload's."""

    node: int
    offset: int
    leader_epoch: int
    value: int | None
    intact: bool


def sends(rows: Sequence[Row]) -> list[Send]:
    """The sends among ``rows`` (any history rows in the order of their index), by time of completion."""
    invoked = {(row["op"], row["mop"]): row for row in rows if row["f"] == "send" and row["type"] == "invoke"}
    completed = [row for row in rows if row["f"] == "send" and row["type"] != "invoke"]
    done = {(row["op"], row["mop"]) for row in completed}
    finished = [_send(row, row["type"], row["error"], invoked.get((row["op"], row["mop"]))) for row in completed]
    open_ended = [_send(row, "info", "never completed", row) for step, row in invoked.items() if step not in done]
    return sorted([*finished, *open_ended], key=lambda send: (send.time_ns, send.index))


def poll(row: Row) -> Poll:
    """A polled record from its history row."""
    return Poll(row["index"], row["process"], row["time_ns"], row["offset"], row["value"], bool(row["final"]))


def state(row: Row) -> State:
    """A replica's state from its timeline row."""
    isr = None if row["isr"] is None else tuple(row["isr"])
    named = {key: row[key] for key in State.__slots__ if key not in ("isr", "source")}
    return State(**named, isr=isr, source=details(row).get("source"))


def told(row: Row) -> State:
    """A partition's state as the cluster told it a client, from its timeline row."""
    return replace(state(row), role="leader" if row["leader_epoch"] is not None else None)


def truncation(row: Row) -> Truncation:
    """A truncation from its timeline row."""
    detail = details(row)
    ends = (int(detail.get("from_offset", 0)), int(detail.get("to_offset", 0)))
    reason = str(detail.get("reason", "not stated"))
    return Truncation(row["node"], row["sequence"], row["time_ns"], max(ends), min(ends), reason)


def change(row: Row) -> Change:
    """An election or an ISR change from the controller's timeline row."""
    detail = details(row)
    leader = -1 if row["leader"] is None else row["leader"]
    isr = tuple(row["isr"] or ())
    clean, cause = detail.get("clean"), str(detail.get("cause", ""))
    return Change(row["kind"], row["sequence"], row["time_ns"], leader, row["leader_epoch"], isr, clean, cause)


def fault(row: Row) -> Fault:
    """A fault from its row of the faults table."""
    renamed = {("name" if key == "fault" else key): value for key, value in row.items() if key != "run"}
    return Fault(**{**renamed, "nodes": tuple(row["nodes"])})


def details(row: Row) -> Mapping[str, Any]:
    """The row's ``detail`` as data; empty where it is null or not a JSON object."""
    if not row["detail"]:
        return {}
    try:
        detail = json.loads(row["detail"])
    except ValueError:
        return {}
    return detail if isinstance(detail, dict) else {}


def _send(row: Row, type_: str, error: str | None, invocation: Row | None) -> Send:
    invoked_ns = None if invocation is None else invocation["time_ns"]
    return Send(
        index=row["index"],
        op=row["op"],
        process=row["process"],
        type=type_,
        invoked_ns=invoked_ns,
        time_ns=row["time_ns"],
        offset=row["offset"],
        value=row["value"] if row["value"] is not None or invocation is None else invocation["value"],
        acks=row["acks"] if row["acks"] is not None or invocation is None else invocation["acks"],
        error=error,
    )
