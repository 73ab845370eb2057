"""Performing a schedule: its steps, one after the other, each awaited."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from harness.errors import InvalidRun
from harness.runner.conditions import unmet
from harness.runner.nemesis import Nemesis
from harness.runner.plan import Plan
from harness.runner.reporting import Reporter
from harness.schedule import Step
from harness.steps import Send, Until
from harness.target import Target
from harness.workload import Workload

_POLL_S = 0.03
_SEND_GRACE_S = 6.0
_ACKS = {"all": -1, 0: 0, 1: 1}


@dataclass(slots=True)
class _Sending:
    """A ``send`` under way in a thread of its own; ``acknowledged`` is None until every answer has come."""

    path: str
    send: Send
    partitions: int
    acknowledged: int | None = None
    failure: BaseException | None = None
    done: threading.Event = field(default_factory=threading.Event)

    def missing(self) -> list[str]:
        """What is not yet as it should be, one phrase each.

        Raises:
            InvalidRun: every answer has come, and they are not what the schedule needs.
        """
        if self.failure is not None:
            raise self.failure
        if not self.done.is_set():
            return [f"{self.path}: not every answer has come"]
        wanted = self.send.per_partition * self.partitions
        if self.send.expect == "ok" and self.acknowledged != wanted:
            raise InvalidRun(f"{self.path}: {self.acknowledged} of {wanted} records were acknowledged.")
        return []


class Performance:
    """Performs the schedule of one plan."""

    def __init__(self, plan: Plan, target: Target, workload: Workload, nemesis: Nemesis, report: Reporter) -> None:
        self._plan = plan
        self._target = target
        self._workload = workload
        self._nemesis = nemesis
        self._report = report
        self._sendings: dict[str, _Sending] = {}

    def perform(self) -> None:
        """Perform every step.

        Raises:
            InvalidRun: a step did not come true; says which, and what was seen instead.
        """
        for index, step in enumerate(self._plan.scenario.schedule or ()):
            self._perform(index, step, f"schedule[{index}]")
        for sending in self._sendings.values():
            self._await(sending.path, sending.send.within_s + _SEND_GRACE_S, sending.missing)

    def _perform(self, index: int, step: Step, path: str) -> None:
        match step:
            case Step(send=Send() as send):
                self._send(send, f"{path}.send")
            case Step(inject={"as": str(name)}):
                record = self._nemesis.inject(name, self._plan.steps_faults[index])
                if record.proven_ns is None:
                    raise InvalidRun(f"{path}: fault {name} was not proven: {record.proof}.")
            case Step(heal=str(name)):
                record = self._nemesis.heal(name)
                if record.proven_ns is None:
                    raise InvalidRun(f"{path}: fault {name} was not proven: {record.proof}.")
                if record.heal_proven_ns is None:
                    raise InvalidRun(f"{path}: fault {name} was not proven healed: {record.heal_proof}.")
            case Step(until=Until() as until):
                self._report(f"waiting until {_in_words(until)}")
                self._await(f"{path}.until", until.within_s, lambda: self._unmet(until))
            case Step(wait_s=float(wait_s)):
                time.sleep(wait_s)

    def _send(self, send: Send, path: str) -> None:
        self._report(f"sending {send.per_partition} to each partition with acks={send.acks}")
        sending = _Sending(path, send, len(self._plan.partitions))
        threading.Thread(target=self._answer, args=(sending,), daemon=True).start()
        if send.name is not None:
            self._sendings[send.name] = sending
        else:
            self._await(path, send.within_s + _SEND_GRACE_S, sending.missing)

    def _answer(self, sending: _Sending) -> None:
        send = sending.send
        try:
            sending.acknowledged = self._workload.send(send.per_partition, _ACKS[send.acks], send.within_s)
        except BaseException as failure:  # noqa: BLE001 (raised again where it is awaited)
            sending.failure = failure
        sending.done.set()

    def _unmet(self, until: Until) -> Sequence[str]:
        phrases = [] if until.sent is None else self._sendings[until.sent].missing()
        return phrases + unmet(until, self._target, self._plan.partitions, self._workload.polled())

    def _await(self, path: str, within_s: float, look: Callable[[], Sequence[str]]) -> None:
        deadline = time.monotonic() + within_s
        while missing := look():
            if time.monotonic() >= deadline:
                raise InvalidRun(f"{path}: did not come true within {within_s:g} s: {'; '.join(missing)}.")
            time.sleep(_POLL_S)


def _in_words(until: Until) -> str:
    written = until.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    written.pop("within_s", None)
    for replica in written.pop("replicas", ()):
        node = replica.pop("node")
        written[f"broker {node}"] = ", ".join(f"{name} {value}" for name, value in replica.items())
    return "; ".join(f"{name} {value}" for name, value in written.items())
