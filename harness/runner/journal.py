"""The journal: what a harness has to undo, recorded before it is done, so that the next one can clean up.

Every running harness keeps one file in a directory that only its user may enter: its process, its run directory, its
node processes, what else its target leaves when it is killed, such as containers, and the faults in force. The next
harness finds the files of harnesses that died, and undoes what they left.
"""

from __future__ import annotations

import errno
import json
import os
import platform
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Protocol, Self

import psutil
from pydantic import Field

from harness import documents
from harness.births import boot, start_time
from harness.documents import Unfit
from harness.errors import EnvironmentFault, InvalidRun, UsageError
from harness.history.run_directory import RunDirectory
from harness.scratch import outside
from harness.targets import left_outside, log_dirs
from harness.targets.node_evidence import left_behind, taps_left_behind
from harness.targets.node_logs import copy_logs
from harness.validation import Document, validated

_KILL_TIMEOUT_S = 5.0
_COMMANDS_TIMEOUT_S = 60.0
_POLL_S = 0.02
_PARTIAL = ".partial"
TEMPORARY = "seawall-cluster-"
"""The prefix of the temporary directory of a cluster, which the harness removes at the end."""
_KILLED = "seawall itself was killed, or could write no more, before it said how the run ended."


@dataclass(frozen=True, slots=True)
class ProcessMark:
    """Identifies a process: its id may be reused, but not with the same start time."""

    pid: Annotated[int, Field(gt=0, lt=1 << 31)]
    start_time: str
    boot: str

    @classmethod
    def of(cls, pid: int) -> Self:
        """The present process with the id ``pid``.

        Raises:
            psutil.NoSuchProcess: there is none.
        """
        started = start_time(pid)
        if not started:
            raise psutil.NoSuchProcess(pid)
        return cls(pid, started, boot())

    def process(self) -> psutil.Process | None:
        """The process while it is alive, else None."""
        if (self.start_time, self.boot) != (start_time(self.pid), boot()):
            return None
        with suppress(psutil.NoSuchProcess):
            return psutil.Process(self.pid)
        return None


@dataclass(frozen=True, slots=True)
class FaultMark:
    """A fault that is in force, or about to be."""

    kind: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Leftover:
    """Something of a target that does not end with the harness and its nodes.

    Attributes:
        kind: the kind of target that removes it.
        what: names it for that kind.
    """

    kind: str
    what: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Entries:
    """The content of a journal file.

    Attributes:
        owner: the harness.
        run_directory: of the run; for a cluster by itself, the directory of its files.
        is_temporary: whether the harness would remove that directory at its end; its name then begins with
            :data:`TEMPORARY`.
        nodes: its node processes by name.
        faults: each fault in force by name.
        leftovers: what may be left besides, in the order in which it came.
        commands: by name, the last process that did or undid what a leftover tells of; it may be under way.
    """

    owner: ProcessMark
    run_directory: Annotated[str, Field(pattern=r"^/[^\x00]*$")]
    is_temporary: bool = False
    nodes: Mapping[str, ProcessMark] = field(default_factory=dict)
    faults: Mapping[str, FaultMark] = field(default_factory=dict)
    leftovers: Sequence[Leftover] = ()
    commands: Mapping[str, ProcessMark] = field(default_factory=dict)


class Undo(Protocol):
    """Records, before a fault is injected, what would have to be undone, and forgets it when it is undone."""

    def fault_coming(self, name: str, kind: str, parameters: Mapping[str, Any]) -> None:
        """See :meth:`Journal.fault_coming`."""
        ...

    def fault_gone(self, name: str) -> None:
        """See :meth:`Journal.fault_gone`."""
        ...


class NothingToUndo:
    """Implements :class:`Undo` for a run whose cluster ends with this process."""

    def fault_coming(self, name: str, kind: str, parameters: Mapping[str, Any]) -> None:
        """See :class:`Undo`."""

    def fault_gone(self, name: str) -> None:
        """See :class:`Undo`."""

    def node_started(self, name: str, pid: int) -> None:
        """See :class:`harness.targets.leftovers.StartJournal`."""

    def leftover_coming(self, kind: str, what: Mapping[str, Any]) -> None:
        """See :class:`harness.targets.leftovers.StartJournal`."""

    def leftover_gone(self, kind: str, what: Mapping[str, Any]) -> None:
        """See :class:`harness.targets.leftovers.StartJournal`."""

    def command_started(self, name: str, pid: int) -> None:
        """See :class:`harness.targets.leftovers.StartJournal`."""


class Journal:
    """The journal of this harness's run; a context manager that removes it at the end.

    A run that ends with an error before :meth:`all_is_undone` leaves it for :func:`heal_leftovers`.
    """

    def __init__(self, run_directory: Path, *, is_temporary: bool = False) -> None:
        owner = ProcessMark.of(os.getpid())
        self._path = journal_directory() / f"{owner.pid}-{run_directory.name}.json"
        self._entries = Entries(owner, str(run_directory.resolve()), is_temporary)
        self._undone = False
        self._change()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is None or self._undone:
            self._path.unlink(missing_ok=True)
            self._partial.unlink(missing_ok=True)

    def all_is_undone(self) -> None:
        """Record that nothing is left to undo, and that the run directory has the end of the run."""
        self._undone = True

    def node_started(self, name: str, pid: int) -> None:
        """Record that node ``name`` is process ``pid`` now."""
        with suppress(psutil.NoSuchProcess):
            self._change(nodes={**self._entries.nodes, name: ProcessMark.of(pid)})

    def leftover_coming(self, kind: str, what: Mapping[str, Any]) -> None:
        """Record what a target leaves if this process is killed; see :class:`~harness.targets.leftovers.Leftovers`.

        Raises:
            EnvironmentFault: a plugin's kind has none.
        """
        left_outside.require_removable(kind)
        self._change(leftovers=[*self._entries.leftovers, Leftover(kind, what)])

    def leftover_gone(self, kind: str, what: Mapping[str, Any]) -> None:
        """See :class:`harness.targets.leftovers.StartJournal`."""
        gone = Leftover(kind, what)
        self._change(leftovers=[one for one in self._entries.leftovers if one != gone])

    def command_started(self, name: str, pid: int) -> None:
        """See :class:`harness.targets.leftovers.StartJournal`."""
        with suppress(psutil.NoSuchProcess):
            self._change(commands={**self._entries.commands, name: ProcessMark.of(pid)})

    def fault_coming(self, name: str, kind: str, parameters: Mapping[str, Any]) -> None:
        """Record a fault before it is injected."""
        self._change(faults={**self._entries.faults, name: FaultMark(kind, parameters)})

    def fault_gone(self, name: str) -> None:
        """Record that a fault was healed."""
        self._change(faults={other: fault for other, fault in self._entries.faults.items() if other != name})

    def _change(self, **changes: Any) -> None:
        entries = replace(self._entries, **changes)
        text = json.dumps(asdict(entries))  # what is no JSON is refused before it is one of the entries
        self._entries = entries
        self._write(text)

    def _write(self, text: str) -> None:
        self._partial.write_text(text)
        self._partial.replace(self._path)

    @property
    def _partial(self) -> Path:
        return self._path.with_suffix(_PARTIAL)


def journal_directory() -> Path:
    """The directory of the journals of this machine; created for this user alone when missing.

    It outlasts logins and boots, as does what was done to the nodes of a running cluster. Only where there is no home
    to write to, it is in the temporary directory.

    Raises:
        EnvironmentFault: it belongs to another user, or others may enter it.
    """
    state = os.environ.get("XDG_STATE_HOME")
    directory = Path(state or Path("~/.local/state").expanduser(), "seawall", "journals", platform.node())
    try:
        found = _made(directory)
    except OSError:
        directory = outside() / f"seawall-{os.getuid()}"
        try:
            found = _made(directory)
        except OSError as error:
            raise EnvironmentFault(f"directory {directory} cannot be used: {error.strerror}.") from None
    if found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise EnvironmentFault(
            f"directory {directory} is not this user's alone.", "Remove it, or set XDG_STATE_HOME to a private one."
        )
    return directory


def _made(directory: Path) -> os.stat_result:
    """Make the directory, if it is not there, in which this process can make files."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not os.access(directory, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return directory.lstat()


def abandoned() -> list[Path]:
    """The journals of harnesses that are no more, and files that are no journals, for :func:`heal_leftovers`."""
    return [path for path in sorted(journal_directory().glob("*.json")) if not _is_of_a_living_one(path)]


def _is_of_a_living_one(path: Path) -> bool:
    with suppress(OSError, Unfit, UsageError):
        return validated(_Document, documents.json_file(path), "").root.owner.process() is not None
    return False


def heal_leftovers(searched: Iterable[str] = (), *, forgets: bool = False) -> list[str]:
    """Clean up after every harness of this user that died: kill its nodes, remove what its target left, mark its run.

    Args:
        searched: the kinds of targets that search, besides, for what no journal names, such as containers.
        forgets: whether what a target left and what cannot be removed now is given up, instead of being tried again.

    Returns:
        One line for each; empty when there was nothing to do.
    """
    journals = sorted(journal_directory().glob("*.json"))
    lines = [line for path in journals if (line := _heal(path, forgets=forgets)) is not None]
    for path in journal_directory().glob(f"*{_PARTIAL}"):
        pid = path.name.partition("-")[0]
        if not (pid.isdecimal() and start_time(pid)):
            path.unlink(missing_ok=True)
    return [*lines, *(line for kind in searched for line in left_outside.remove_lost(kind))]


def _heal(path: Path, *, forgets: bool) -> str | None:
    try:
        document = documents.json_file(path)
        entries = validated(_Document, document, "").root
    except (OSError, Unfit, UsageError):
        return _removed(path)
    if entries.owner.process() is not None:
        return None
    if unknown := sorted(set(document) - {one.name for one in fields(Entries)}):
        return f"Left {path}, the journal of another version of seawall, which it takes to heal: it has {unknown[0]!r}."
    return _finished(path, entries, forgets=forgets)


def _removed(path: Path) -> str | None:
    try:
        path.unlink()
    except FileNotFoundError:
        return None  # its harness has just ended, or another one has cleaned up
    except OSError as problem:
        return f"Left {path}, which is no journal and cannot be removed: {problem.strerror}."
    return f"Removed the unreadable journal {path}."


def _finished(path: Path, entries: Entries, *, forgets: bool) -> str:
    """Clean up after the dead harness that wrote the journal; returns a line about it."""
    left = f"{_what(entries)} was abandoned by process {entries.owner.pid}"
    killed = [name for name, mark in entries.nodes.items() if _killed(mark)]
    if alive := [f"{name} (process {mark.pid})" for name, mark in entries.nodes.items() if mark.process() is not None]:
        return f"{left}, and its nodes still run: {', '.join(alive)}."
    _await_ends(entries.commands.values())
    mended = log_dirs.mend_all(Path(entries.run_directory))
    removed, problems = _removed_outside(entries.leftovers)
    if problems and not forgets:
        return f"{left}, and {' '.join(problems)}"
    gathered: list[str] = []
    if entries.is_temporary and Path(entries.run_directory).name.startswith(TEMPORARY):
        shutil.rmtree(entries.run_directory, ignore_errors=True)
    else:
        gathered += _mark_abandoned(Path(entries.run_directory))
    path.unlink(missing_ok=True)
    faults = ", ".join(f"{name} ({fault.kind})" for name, fault in entries.faults.items()) or "none"
    nodes = ", ".join(killed) or "none was left"
    put_back = f"; put back {', '.join(mended)}" if mended else ""
    put_back += f"; removed {', '.join(removed)}" if removed else ""
    put_back += f"; what its nodes left is in {', '.join(gathered)}" if gathered else ""
    put_back += f"; given up: {' '.join(problems).removesuffix('.')}" if problems else ""
    return f"{left}: killed its nodes ({nodes}); faults that were in force: {faults}{put_back}."


def _await_ends(commands: Iterable[ProcessMark]) -> None:
    """Wait for the commands of a dead harness, which would have killed those that do not end."""
    deadline = time.monotonic() + _COMMANDS_TIMEOUT_S
    for mark in commands:
        while mark.process() is not None and time.monotonic() < deadline:
            time.sleep(_POLL_S)
        _killed(mark)


def _removed_outside(leftovers: Sequence[Leftover]) -> tuple[list[str], list[str]]:
    """Remove what a target has left, the last first: what came earlier may be reached only then.

    Returns:
        What was removed, and a clause for each that is still there.
    """
    removed: list[str] = []
    problems: list[str] = []
    for one in reversed(leftovers):
        try:
            removed += left_outside.remove(one.kind, one.what)
        except EnvironmentFault as problem:
            problems.append(str(problem))
    return removed, problems


def _what(entries: Entries) -> str:
    if entries.is_temporary:
        return f"Temporary cluster {entries.run_directory}"
    directory = Path(entries.run_directory)
    if not directory.exists():
        return f"Run {directory}, whose directory is gone,"
    return f"{'Run' if (directory / 'run.json').exists() else 'Cluster'} {directory}"


def _killed(mark: ProcessMark) -> bool:
    process = mark.process()
    if process is None:
        return False
    with suppress(psutil.NoSuchProcess):
        process.kill()
    deadline = time.monotonic() + _KILL_TIMEOUT_S
    while mark.process() is not None and time.monotonic() < deadline:
        time.sleep(_POLL_S)
    return True


def _mark_abandoned(path: Path) -> list[str]:
    """Record the end of the run in its directory, and gather the nodes' evidence; returns the places.

    If there is no space for the evidence, it still records the end.
    """
    gathered: list[str] = []
    with suppress(InvalidRun):
        directory = RunDirectory.open(path)
        directory.make_room()
        directory.remove_partial()
        manifest = directory.manifest()
        if manifest.state == "running":
            directory.write_manifest(replace(manifest, state="abandoned", why=_KILLED))
            with suppress(OSError, EnvironmentFault):
                gathered.extend(_gathered(directory, manifest.run))
    return gathered


def _gathered(directory: RunDirectory, run: str) -> Iterator[str]:
    """Copy the nodes' logs, and write the tables that the harness had not written, as far as possible."""
    if copy_logs(directory.cluster, directory.broker_logs):
        yield "broker_logs/"
    found = left_behind(directory.cluster)
    if found is not None and not directory.has_table("timeline"):
        directory.write_table("timeline", ({"run": run, **row} for row in found.timeline))
        yield "timeline/"
    if found is not None and not directory.has_table("replica_logs"):
        directory.write_blocks("replica_logs", found.replica_logs)
        yield "replica_logs/"
    taps = taps_left_behind(directory.cluster)
    if taps is not None and not directory.has_table("wire"):
        directory.write_table("wire", ({"run": run, **row} for row in taps))
        yield "wire/"


class _Document(Document[Entries]):
    """The content of a journal file as JSON."""
