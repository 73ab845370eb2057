"""Builds and controls the shim: a C library in every process of a node that limits its disk and moves its wall clock.

It is compiled at first use with the machine's C compiler and cached; ``shim.h``, ``disk.c`` and ``clock.c`` describe
it. The harness controls it through a file that both map, so that a fault takes effect at once, even in paused
processes, and stays in effect across restarts.
"""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from harness import program
from harness.errors import EnvironmentFault
from harness.scratch import note_unfinished
from harness.targets.endings import SHIM_FAILED

MAX_LOG_DIRS = 8
_SOURCES = ("shim.h", "clock.c", "disk.c")
_FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-shared")
_UNLIMITED = 2**63 - 1
_CLOCK, _FIRST_BUDGET = 0, 1
_NUMBERS = _FIRST_BUDGET + 1 + MAX_LOG_DIRS
_NUMBER_BYTES = 8
_NS_PER_MS = 1_000_000
_PROBE_TIMEOUT_S = 10.0
_SEPARATORS = {" ", ":"}
_PROBE = """\
import os, sys
path = sys.argv[1]
try:
    file = os.open(path, os.O_CREAT | os.O_WRONLY)
    left = int(sys.argv[2])
    while left:
        left -= os.write(file, bytes(left))
except OSError as error:
    print(error.errno)
try:
    os.unlink(path)
except OSError:
    pass
"""


class Refusal(NamedTuple):
    """A write that the shim has refused for lack of space.

    Attributes:
        pid: the writing process.
        log_dir: the number of the log directory; None: another place on the disk.
        size: of the write, of which no byte was written.
        path: the file, relative to the disk.
    """

    pid: int
    log_dir: int | None
    size: int
    path: str


class Shim:
    """The shim of one node.

    Args:
        directory: the node's, which exists; the disk is ``data`` in there, and the shim's own files are beside it.
        log_dirs: the log directories, by their names in the disk; a single one is called ``""`` and is the disk.
        beside: another disk of the node, which never fills and loses power with the first; None: it has none.

    Raises:
        EnvironmentFault: there are more than :data:`MAX_LOG_DIRS`.
    """

    def __init__(self, directory: Path, log_dirs: Sequence[str] = ("",), beside: Path | None = None) -> None:
        if (count := len(log_dirs)) > MAX_LOG_DIRS:
            raise EnvironmentFault(f"{count} log directories are more than the {MAX_LOG_DIRS} of the disk shim.")
        root = directory.resolve()
        self.disk = root / "data"
        self.beside = beside
        self.ledger = root / "data.ledger"
        self._control = root / "shim.control"
        self._refusals = root / "data.refusals"
        self._log_dirs = list(log_dirs)
        if not self._control.exists():
            self._control.write_bytes(bytes(_NUMBERS * _NUMBER_BYTES))
            for number in range(_FIRST_BUDGET, _NUMBERS):
                self._set(number, _UNLIMITED)

    @property
    def disks(self) -> Sequence[Path]:
        """The disk, and the one beside it if there is one."""
        return [self.disk] if self.beside is None else [self.disk, self.beside]

    def environment(self) -> dict[str, str]:
        """The environment variables of the node's processes.

        Raises:
            EnvironmentFault: the shim cannot be built.
        """
        return self._probing() | {
            "SEAWALL_LEDGER": str(self.ledger),
            "SEAWALL_KEPT": str(kept(self.ledger)),
            "SEAWALL_REFUSALS": str(self._refusals),
        }

    def _probing(self) -> dict[str, str]:
        """The variables of a process whose writes do not count for budget and ledger."""
        beside = {} if self.beside is None else {"SEAWALL_BESIDE": str(self.beside)}
        return beside | {
            "LD_PRELOAD": str(library()),
            "SEAWALL_CONTROL": str(self._control),
            "SEAWALL_DISK": str(self.disk),
            "SEAWALL_LOG_DIRS": ":".join(filter(None, self._log_dirs)),
        }

    def is_loaded_by(self, pid: int) -> bool:
        """Whether the process has the shim, with this node's control file."""
        try:
            return f" {self._control}\n" in Path(f"/proc/{pid}/maps").read_text()
        except OSError:
            return False

    # ------------------------------------------------------------------------------------------------ clock

    @property
    def clock_offset_ms(self) -> int:
        """The offset of the node's wall clock from true time, in milliseconds."""
        return self._get(_CLOCK) // _NS_PER_MS

    @clock_offset_ms.setter
    def clock_offset_ms(self, offset_ms: int) -> None:
        self._set(_CLOCK, offset_ms * _NS_PER_MS)

    # ------------------------------------------------------------------------------------------------ space

    def limit(self, directory: str, free_bytes: int | None) -> None:
        """Leave ``free_bytes`` in a log directory (``""``: on the whole disk); None lifts the limit."""
        number = _FIRST_BUDGET + (1 + self._log_dirs.index(directory) if directory else 0)
        self._set(number, _UNLIMITED if free_bytes is None else free_bytes)

    def probe(self, directory: str, size: int) -> int | None:
        """The ``errno`` of a process with the shim that writes a file of ``size`` bytes; None: it works.

        Raises:
            EnvironmentFault: no such process could be run.
        """
        words = [sys.executable, "-I", "-S", "-c", _PROBE, str(self.disk / directory / ".probe"), str(size)]
        try:
            done = subprocess.run(
                words, env=self._probing(), capture_output=True, text=True, timeout=_PROBE_TIMEOUT_S, check=True
            )
        except (OSError, subprocess.SubprocessError) as problem:
            raise EnvironmentFault(f"the disk {self.disk} could not be tried: {problem}.") from None
        return int(done.stdout) if done.stdout else None

    def refusals(self) -> Iterator[Refusal]:
        """The refused writes of the node's own processes, in order, without a line torn by a crash."""
        if not self._refusals.exists():
            return
        for line in self._refusals.read_text().splitlines():
            words = line.split(" ", 3)
            if len(words) == 4:
                pid, log_dir, size = map(int, words[:3])
                yield Refusal(pid, None if log_dir < 0 else log_dir, size, words[3])

    # ------------------------------------------------------------------------------------------------ the file

    def _get(self, number: int) -> int:
        with self._mapped() as numbers:
            return numbers[number]

    def _set(self, number: int, value: int) -> None:
        with self._mapped() as numbers:
            numbers[number] = value  # one store of eight aligned bytes

    @contextmanager
    def _mapped(self) -> Iterator[memoryview[int]]:
        with (
            self._control.open("r+b") as file,
            mmap.mmap(file.fileno(), 0) as mapped,
            memoryview(mapped) as view,
            view.cast("q") as numbers,
        ):
            yield numbers


def refuse_failure(node: str, statuses: Iterable[int | None]) -> None:
    """Check by the exit statuses that the shim has ended none of a node's processes, which is no exit of the broker.

    Raises:
        EnvironmentFault: it has.
    """
    if SHIM_FAILED in statuses:
        raise EnvironmentFault(
            f"node {node} was ended by its disk shim, which could not write what it keeps of the disk in the run "
            "directory.",
            "Make room on the file system of the run directory, or choose another one with --out.",
        )


def kept(ledger: Path) -> Path:
    """The directory of earlier contents of files whose replacements have not reached the disk by the ledger."""
    return ledger.with_name(f"{ledger.name}.kept")


def library(environment: Mapping[str, str] = os.environ) -> Path:
    """The compiled shim, from the cache or else from the C compiler: ``CC``, or ``cc``.

    Raises:
        EnvironmentFault: there is no compiler, it does not compile the shim, or LD_PRELOAD cannot name the cache.
    """
    sources = [Path(__file__).with_name(name) for name in _SOURCES]
    content = b"\0".join([" ".join(_FLAGS).encode(), *(source.read_bytes() for source in sources)])
    place = _cache(environment) / f"shim-{sha256(content).hexdigest()[:16]}.so"
    if set(str(place)) & _SEPARATORS:
        raise EnvironmentFault(
            f"LD_PRELOAD cannot name {place}, which has a space or a colon in it.",
            "Set XDG_CACHE_HOME to another path.",
        )
    if not place.exists():
        _compile([source for source in sources if source.suffix == ".c"], place, environment)
    return place


def compiler_name(environment: Mapping[str, str]) -> str:
    """The C compiler of the environment: ``CC``, or else ``cc``."""
    return environment.get("CC") or "cc"


def is_available() -> bool:
    """Whether the shim is built, or can be."""
    try:
        library()
    except EnvironmentFault:
        return False
    return True


def _cache(environment: Mapping[str, str]) -> Path:
    return Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache", "seawall").resolve()


def _compile(sources: Sequence[Path], place: Path, environment: Mapping[str, str]) -> None:
    wanted = compiler_name(environment)
    compiler = shutil.which(wanted, path=environment.get("PATH"))
    if compiler is None:
        raise EnvironmentFault(
            f"the disk and the clock of a Kafka process cannot be bent: there is no C compiler {wanted!r} on the PATH.",
            "Install one (Debian: apt install gcc libc6-dev), or name one in CC.",
        )
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place.parent) as unfinished:
        note_unfinished(Path(unfinished))
        built = Path(unfinished, place.name)
        done = program.run((compiler, *_FLAGS, "-o", str(built), *map(str, sources)))
        if done.returncode != 0:
            reason = next((line for line in done.stderr.splitlines() if "error" in line), f"exit {done.returncode}")
            raise EnvironmentFault(f"{compiler} does not compile the disk and clock shim: {reason}.")
        built.rename(place)
