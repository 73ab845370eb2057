"""What an audit writes down as it goes, so that it goes on after ``kill -9``: its state, and every send.

::

    audit.json            what the audit is, and the topic that it has created
    audit.lock            held by the process that runs it
    sends/000012.jsonl    what happened to sends in window 12: each begins, ends, and may be judged for good
    events                what an operator has told, a line each
    audit.jsonl           a line for each window
    windows/000012/       run directories of windows in which something was found
    report.html           for people
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.audit.ledger import CanarySend, Ledger
from harness.errors import EnvironmentFault, InvalidRun, UsageError
from harness.history.sends import Answer
from harness.model import ProcessId
from harness.scratch import unfinished
from harness.unwritable import writing_below

_STATE, _LOCK, _SENDS, _EVENTS = "audit.json", "audit.lock", "sends", "events"


class State(BaseModel):
    """``audit.json``.

    Attributes:
        target: as ``--target`` spells it; a file of client properties is named by its whole path, its content is not
            here.
        prefix: of the names that the audit uses in the cluster.
        topic: the canary topic, which was written down before it was created.
        partitions: of the topic.
        replication_factor: of the topic.
        keep_s: for how many seconds each record is looked for again.
        began_ns: when it first began, nanoseconds since the Unix epoch.
        created: whether its topic is known to have been created.
        ended: whether its topic was deleted.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_version: Literal[1] = 1
    target: str
    prefix: str
    topic: str
    partitions: int
    replication_factor: int
    keep_s: float
    began_ns: int
    created: bool = False
    ended: bool = False


class Journal:
    """The files of one audit below ``directory``."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._file: IO[str] | None = None
        self._writing = threading.Lock()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from running the same audit, which would double its load.

        Raises:
            UsageError: one does.
        """
        with writing_below(self.directory):
            (self.directory / _SENDS).mkdir(parents=True, exist_ok=True)
            lock = (self.directory / _LOCK).open("w", encoding="utf-8")
        with lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(f"another process runs the audit in {self.directory}.", "End it first.") from None
            try:
                yield
            finally:
                if self._file is not None:
                    self._file.close()

    # ------------------------------------------------------------------------------------------------ state

    def state(self) -> State | None:
        """What the audit is; None: it has not begun.

        Raises:
            InvalidRun: the file is not what it should be.
        """
        path = self.directory / _STATE
        if not path.exists():
            return None
        try:
            return State.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            raise InvalidRun(f"{path} is no state of an audit: {type(error).__name__}.") from None

    def keep(self, state: State) -> None:
        """Replace ``audit.json``; it is on the disk when this returns."""
        with unfinished(self.directory / _STATE) as temporary, temporary.open("w", encoding="utf-8") as file:
            file.write(state.model_dump_json(indent=1) + "\n")
            file.flush()
            os.fsync(file.fileno())

    # ------------------------------------------------------------------------------------------------ sends

    def open_window(self, window: int) -> None:
        """From now on the sends that begin are of this window."""
        with self._writing, writing_below(self.directory):
            if self._file is not None:
                self._file.close()
            self._file = self._path(window).open("a", encoding="utf-8", buffering=1)

    def begun(self, send: CanarySend) -> None:
        """A send begins."""
        self._write(["b", send.value, send.partition, send.process, send.begun_ns, send.timestamp_ms])

    def ended(self, send: CanarySend) -> None:
        """A send has ended; the line is in the file of the present window."""
        self._write(["e", send.value, send.kind, send.offset, send.error, send.ended_ns])

    def judged(self, sends: Iterable[CanarySend], window: int) -> None:
        """They are judged for good with a window, and not carried any more from when ``audit.jsonl`` has its line on.

        So what a kill interrupts is reported once: the window is judged again with them, or was, and they are gone.
        """
        for send in sends:
            self._write(["j", send.value, window])

    def _write(self, line: Sequence[object]) -> None:
        with self._writing, writing_below(self.directory):
            assert self._file is not None, "a window is open"
            self._file.write(json.dumps(line, separators=(",", ":")) + "\n")

    def forget(self, ledger: Ledger) -> None:
        """Remove the files that are older than everything that is carried, but for the newest two."""
        oldest = min((send.window for send in list(ledger.sends.values())), default=None)
        for window in self.windows()[:-2]:
            if oldest is None or window < oldest:
                self._path(window).unlink(missing_ok=True)

    def windows(self) -> list[int]:
        """The windows that have a file, ascending."""
        return sorted(int(path.stem) for path in (self.directory / _SENDS).glob("*.jsonl"))

    def ledger(self, reported: Collection[int]) -> tuple[Ledger, int]:
        """The sends of all files, and the time of the last line; 0: there is none.

        A send that is still under way there has an unknown outcome.

        Args:
            reported: the windows that have a line in ``audit.jsonl``.
        """
        found, latest_ns = Ledger(), 0
        for window in self.windows():
            for line in self._lines(window):
                match line:
                    case ["j", int(value), int(judged)] if judged in reported:
                        found.sends.pop(value, None)
                    case ["b", int(value), int(partition), int(process), int(at_ns), int(timestamp_ms)]:
                        found.add(CanarySend(window, value, partition, ProcessId(process), at_ns, timestamp_ms))
                        latest_ns = max(latest_ns, at_ns)
                    case [
                        "e", int(value), "ok" | "fail" | "info" as kind, int() | None as offset, str() | None as error,
                        int(at_ns),
                    ]:  # fmt: skip
                        if (send := found.sends.get(value)) is not None:
                            send.end(Answer(kind, offset, error), at_ns)
                        latest_ns = max(latest_ns, at_ns)
        for send in found.sends.values():
            if send.kind is None:
                send.end(Answer("info", None, "AUDIT_ENDED"), max(send.begun_ns, latest_ns))
        return found, latest_ns

    def _lines(self, window: int) -> Iterator[object]:
        """The lines of a file; one that was not written to its end is left out, and it is the last one."""
        for line in self._path(window).read_text(encoding="utf-8").splitlines():
            try:
                yield json.loads(line)
            except ValueError:
                return

    def _path(self, window: int) -> Path:
        return self.directory / _SENDS / f"{window:06d}.jsonl"

    # ------------------------------------------------------------------------------------------------ events

    def tell(self, events: Sequence[str]) -> None:
        """Add lines to the events that operators have told."""
        path = self.directory / _EVENTS
        with writing_below(self.directory), path.open("a", encoding="utf-8", errors="backslashreplace") as file:
            file.writelines(f"{event}\n" for event in events)

    def told(self) -> list[str]:
        """All lines of it that are not blank; bytes that are no UTF-8 are escaped.

        Raises:
            EnvironmentFault: it cannot be read.
        """
        path = self.directory / _EVENTS
        try:
            text = path.read_text(encoding="utf-8", errors="backslashreplace") if path.exists() else ""
        except OSError as error:
            raise EnvironmentFault(f"{path} cannot be read: {error.strerror}.") from None
        return [line.strip() for line in text.splitlines() if line.strip()]
