"""A run as text: one line per transition, in fixed columns, the same bytes every time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import fields
from typing import Any

from harness.error_codes import ErrorCode
from harness.model import Offset
from harness.replication.messages import BatchSpan, Tick
from harness.simulation.core.drawn_kinds import DELETIONS
from harness.simulation.core.planned import Planned
from harness.simulation.violations import Violation
from harness.simulation.witnessed import Broker, Process, Produce

HEADER = f"{'ms':>12} {'who':4} {'what':24} {'role':9}{'epoch':>6}{'end':>6}{'hw':>6}  detail"

_OWN = frozenset({"token", "now_ns", "payload", "snapshot", "live_brokers"})
"""Fields that it omits: handles, times (the first column has them), contents."""


class Trace:
    """Writes the lines of one run.

    Args:
        write: takes a line, without its end.
    """

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self.now_ns: Callable[[], int] = lambda: 0

    def _line(self, who: str, what: str, state: str, detail: str) -> None:
        self._write(f"{self.now_ns() / 1e6:12.4f} {who:4} {what:24} {state:27}  {detail}".rstrip())

    # ---------------------------------------------------------------------------------------------------- the cores

    def replica(self, broker: Broker, event: object, effects: Iterable[object]) -> None:
        """A replica has taken in an event; each of its effects is a line of its own."""
        if isinstance(event, Tick) and not effects:
            return
        self._line(broker.name, type(event).__name__, _state(broker), _said(event))
        for effect in effects:
            self._line(broker.name, f"  {type(effect).__name__}", "", _said(effect))

    def controller(self, controller: Process, event: object, effects: Iterable[object]) -> None:
        """The same for the controller."""
        shown = [effect for effect in effects if type(effect).__name__ not in ("Persist", "SendMetadata")]
        if isinstance(event, Tick) and not shown:
            return
        self._line(controller.name, type(event).__name__, "", _said(event))
        for effect in shown:
            self._line(controller.name, f"  {type(effect).__name__}", "", _said(effect))

    def started(self, process: Process) -> None:
        """A process begins."""
        self._line(process.name, "started", "", f"life {process.life}")

    # -------------------------------------------------------------------------------------------- clients and faults

    def sending(self, produce: Produce) -> None:
        """A producer sends."""
        self._line(produce.producer.name, "send", "", f"{_listed(produce.values)} acks={produce.acks}")

    def sent(self, produce: Produce, error: ErrorCode, base_offset: Offset) -> None:
        """A producer's request has ended, as far as it is concerned."""
        how = f"ok at {base_offset}" if error is ErrorCode.NONE else error.name
        self._line(produce.producer.name, "sent", "", f"{_listed(produce.values)} {how}")

    def polled(self, found: list[tuple[Offset, int, int]]) -> None:
        """The consumer got records."""
        self._line("con", "polled", "", " ".join(f"{value}@{offset}" for offset, value, _ in found))

    def planned(self, what: str, planned: Planned) -> None:
        """A fault or a disturbance begins or ends."""
        self._line("!", f"{planned.kind} {what}", "", describe(planned))

    def violation(self, violation: Violation) -> None:
        """The witness has seen something."""
        self._line("!!", f"{violation.verdict} {violation.invariant}", "", f"{violation.kind}: {violation.why}")


def describe(planned: Planned) -> str:
    """Where a fault or disturbance happens, what it does there, and for how long."""
    where = "controller" if planned.on_controller else f"broker {planned.aim}"
    if planned.kind in DELETIONS:
        return f"{where}, {planned.amount} %"
    peer = f"from {planned.peer} ({planned.direction}, {'held' if planned.holds else 'dropped'}) " if (
        planned.peer != "") else ""  # fmt: skip
    amount = f"by {planned.amount} ms " if planned.amount else ""
    return f"{where} {peer}{amount}for {planned.for_ns / 1e6:.3f} ms"


def _state(broker: Broker) -> str:
    replica = broker.replica
    if replica is None:
        return "dead"
    return f"{replica.role:9}{replica.leader_epoch:6}{replica.log_end_offset:6}{replica.high_watermark:6}"


def _said(message: Any) -> str:
    shown = [field.name for field in fields(message) if field.name not in _OWN]
    return " ".join(f"{name}={_text(getattr(message, name))}" for name in shown)


def _text(value: object) -> str:
    match value:
        case ErrorCode():
            return value.name
        case BatchSpan():
            return "(" + " ".join(_text(getattr(value, field.name)) for field in fields(value)) + ")"
        case tuple() if hasattr(value, "_fields"):
            return "(" + " ".join(_text(part) for part in value) + ")"
        case tuple():
            return _listed(value)
    return "-" if value is None else str(value)


def _listed(values: Iterable[object]) -> str:
    return "[" + ",".join(map(_text, values)) + "]"
