"""Makes a run directory of a window: its sends and polls, what was read after it, and what is amiss of earlier ones.

The history is written by the recorder of every other run, on a clock that shows the times of what is written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from harness.audit.clock import as_text
from harness.audit.ledger import CanarySend, Ledger, Poll, Reading
from harness.client_tasks.polling import end_poll
from harness.history.recorder import PolledRecord, Recorder, Sending
from harness.history.run_directory import Manifest, RunDirectory
from harness.history.schema import HISTORY
from harness.model import Offset

_LONGEST_S = 1e9
"""A part of the history is written when it is full, however much time it spans."""


class Accused(NamedTuple):
    """What the history of a window is about.

    Attributes:
        sends: its own, and those of earlier windows that are not sound, in the order in which they began.
        carried: the latter.
        witnesses: sends whose records were the last ones of their partitions, for all that was before them was read;
            where nothing is amiss, only of partitions to which the window has sent nothing.
    """

    sends: Sequence[CanarySend]
    carried: Sequence[CanarySend]
    witnesses: Sequence[CanarySend]


def accused(window: int, ledger: Ledger, reading: Reading) -> Accused:
    """What is to be judged with a window, after everything was read."""
    own = ledger.of_window(window)
    carried = [one for one in ledger.before(window) if reading.is_amiss(one)]
    sound = {send.partition for send in own} - {send.partition for send in carried}
    sound -= {send.partition for send in own if not reading.is_sound(send)}
    values = [record.value for partition, record in sorted(reading.last.items()) if partition not in sound]
    found = (ledger.sends.get(value) for value in values if value is not None)
    known = {id(one) for one in (*own, *carried)}
    witnesses = [one for one in found if one is not None and id(one) not in known]
    return Accused(sorted([*own, *carried], key=lambda one: one.begun_ns), carried, witnesses)


class Foreign:
    """The records that the audit does not know, and which of them were judged already, so that each is judged once."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._judged: set[tuple[int, Offset]] = set()

    def is_new(self, record: PolledRecord) -> bool:
        """Whether a record is none of the audit's, or altered, and no earlier window has judged it.

        One that is whole and unknown was sent so long ago that it is not carried any more.
        """
        strange = record.value is None or not record.intact
        return strange and (record.partition, record.offset) not in self._judged

    def note(self, polls: Sequence[Poll]) -> None:
        """These were judged."""
        for record in (record for poll in polls for record in poll.polled.records):
            if self.is_new(record):
                self._judged.add((record.partition, record.offset))


class _ShownClock:
    """Shows the time of what is being written."""

    def __init__(self) -> None:
        self.now_ns = 0

    def monotonic_ns(self) -> int:
        """The latest time that was shown."""
        return self.now_ns

    def wall_ms(self) -> int:
        """The same in milliseconds."""
        return self.now_ns // 1_000_000


class _Step(NamedTuple):
    """Something to write, in the order of ``at_ns``; ``begins`` before ends."""

    at_ns: int
    ends: bool
    write: Callable[[], object]


def write_window(
    path: Path, manifest: Manifest, judged: Accused, polls: Sequence[Poll], *, topic: str, foreign: Foreign
) -> RunDirectory:
    """Write the run directory of a window into ``path``.

    Raises:
        EnvironmentFault: it cannot be written.
    """
    directory = RunDirectory.create(path, manifest)
    clock = _ShownClock()
    recorder = Recorder(manifest.run, directory.path / HISTORY.path, clock, part_seconds=_LONGEST_S)
    sends = [*judged.sends, *judged.witnesses]
    values = {one.value for one in sends}
    steps = [step for one in sends for step in _send_steps(recorder, topic, one)]
    for poll in polls:
        kept = [one for one in poll.polled.records if one.value in values or foreign.is_new(one)]
        if kept or poll.final or poll.polled.error is not None:
            steps += _poll_steps(recorder, poll._replace(polled=poll.polled._replace(records=kept)))
    for step in sorted(steps, key=lambda one: (one.at_ns, one.ends)):
        clock.now_ns = max(clock.now_ns, step.at_ns)
        step.write()
    recorder.close()
    for table in ("timeline", "replica_logs", "faults"):
        directory.write_table(table, [])
    began_ns = min((one.at_ns for one in steps), default=clock.now_ns)
    directory.finish("complete", (clock.now_ns - began_ns) / 1e9)
    return directory


def manifest_of(window: int, configuration: dict[str, Any], guarantees: dict[str, Any], began_ns: int) -> Manifest:
    """The ``run.json`` of a window."""
    return Manifest(
        f"audit/window-{window:06d}",
        "audit",
        0,
        as_text(began_ns),
        configuration=configuration,
        guarantees=guarantees,
    )


def _send_steps(recorder: Recorder, topic: str, send: CanarySend) -> Iterator[_Step]:
    op = -1

    def begin() -> None:
        nonlocal op
        sending = Sending(topic, send.partition, send.value, timestamp_ms=send.timestamp_ms)
        op = recorder.invoke_send(send.process, sending)

    yield _Step(send.begun_ns, False, begin)
    if send.kind is not None and send.ended_ns is not None:
        kind = send.kind
        yield _Step(send.ended_ns, True, lambda: recorder.complete_send(op, kind, send.offset, send.error))


def _poll_steps(recorder: Recorder, poll: Poll) -> Iterator[_Step]:
    op = -1

    def begin() -> None:
        nonlocal op
        op = recorder.invoke_poll(poll.process, poll.final, None, "read_uncommitted")

    yield _Step(poll.begun_ns, False, begin)
    yield _Step(poll.ended_ns, True, lambda: end_poll(recorder, op, poll.polled))


def partitions_beyond(sends: Collection[CanarySend], reading: Reading) -> list[int]:
    """The partitions of which consumers were given records behind the end of what was read now, and that was some."""
    behind = {one.partition for one in sends if one.read_ns is not None and reading.is_behind_the_end(one)}
    return sorted(number for number in behind if reading.reached(number) > 0)
