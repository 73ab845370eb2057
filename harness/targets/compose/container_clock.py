"""Moves the wall clocks of brokers in containers by the shim, which is mounted there and preloaded.

The harness controls the shim through a file that the containers and this process both map, so the engine has to run on
this machine. The probe runs in the container: the broker's processes, for Kafka Java's, have to have the file mapped,
and a program started like them reads the clock once with the shim, and before and after that without. The shim also
keeps the ledger of flushed writes.
"""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import docker
from docker.errors import DockerException
from docker.models.containers import Container

from harness.errors import EnvironmentFault
from harness.targets.compose.containers import run_in, said_in
from harness.targets.compose.project import Project
from harness.targets.kafka import shim
from harness.targets.kafka.shim import Shim

_MOUNTED = "/seawall/shim"
_LIBRARY, _CONTROL, _LEDGER = "shim.so", "shim.control", "ledger"
_NS_PER_MS = 1_000_000
_TRIED_MS, _TOLERANCE_MS = 3_600_000, 60_000

_TELL = r"""now=$(date +%s%N); [ ${#now} -eq 19 ] || now=$(bash -c 'echo ${EPOCHREALTIME/[.,]/}000'); echo $now"""
"""The wall clock in nanoseconds; the ``date`` of Alpine knows no fractions of a second, but bash does."""

_WITHOUT_AND_WITH = f"""\
tell={shlex.quote(_TELL)}
LD_PRELOAD= sh -c "$tell"; sh -c "$tell"; LD_PRELOAD= sh -c "$tell"
"""


class Processes(NamedTuple):
    """The processes of a container that have to have the shim.

    Attributes:
        look: a shell script that prints ``bent`` for each that has it, and ``true`` for each that has not.
        called: what they are, in a word.
    """

    look: str
    called: str


JAVA = Processes(
    f"""\
for process in /proc/[0-9]*; do
    case $(readlink $process/exe) in
    */java) grep -q ' {_MOUNTED}/{_CONTROL}$' $process/maps && echo bent || echo true ;;
    esac
done
""",
    "Java",
)

EVERY = Processes(
    f"""\
for process in /proc/[0-9]*; do
    read -r name 2>/dev/null < $process/comm || continue
    case "$process $name" in /proc/$$\\ *|*\\ docker-init|*\\ tini) continue ;; esac
    found=true
    while read -r line; do
        case $line in *\\ {_MOUNTED}/{_CONTROL}) found=bent ;; esac
    done 2>/dev/null < $process/maps
    grep -q 'Go buildinf:' $process/exe 2>/dev/null && found=true
    echo $found
done
""",
    "program",
)
"""All of them but those that only wait for others, and the one that looks.

A program in Go asks the kernel for the time itself, so that a shim in it moves nothing.
"""


class Clocks:
    """The clocks of a project's nodes.

    Args:
        directories: of each node with a movable clock: the arguments of :meth:`additions`, one for each container.
        processes: those that have to have the shim.
    """

    def __init__(self, project: Project, directories: Mapping[str, Path], processes: Processes) -> None:
        self._project = project
        self._directories = directories
        self._processes = processes

    @staticmethod
    def additions(directory: Path, disk: str | None = None, kept: str = "") -> tuple[dict[str, str], list[str]]:
        """What a service needs for the shim: variables, and volumes as Compose writes them.

        Args:
            directory: of this machine, for the shim's files; created when missing.
            disk: the container's directory for which the shim keeps a ledger; None: none.
            kept: the directory for the earlier contents of replaced files.

        Raises:
            EnvironmentFault: the shim cannot be built.
        """
        directory.mkdir(parents=True, exist_ok=True)
        Shim(directory)
        (directory / _CONTROL).chmod(0o666)  # the broker's user writes the shim's counters to it
        shutil.copyfile(shim.library(), directory / _LIBRARY)
        environment = {
            "LD_PRELOAD": f"{_MOUNTED}/{_LIBRARY}",
            "SEAWALL_CONTROL": f"{_MOUNTED}/{_CONTROL}",
            "SEAWALL_DISK": f"{_MOUNTED}/no-disk",
            "SEAWALL_LEDGER": "/dev/null",
        }
        if disk is not None:
            (directory / _LEDGER).touch()
            (directory / _LEDGER).chmod(0o666)
            known = {"SEAWALL_DISK": disk, "SEAWALL_LEDGER": f"{_MOUNTED}/{_LEDGER}", "SEAWALL_KEPT": kept}
            environment |= known
        return environment, [f"{directory.resolve()}:{_MOUNTED}"]

    def ledger(self, node: str) -> Path:
        """The shim's ledger of what has reached the node's disk."""
        return self._directories[node] / _LEDGER

    def offset(self, node: str, offset_ms: int) -> None:
        """Move the node's wall clock to true time + ``offset_ms``; 0 heals."""
        Shim(self._directories[node]).clock_offset_ms = offset_ms

    def wanted_ms(self, node: str) -> int:
        """The last offset of the node's clock."""
        return Shim(self._directories[node]).clock_offset_ms

    def offset_ms(self, node: str) -> int:
        """The node's wall clock minus the engine's, in milliseconds, as programs in its containers read it.

        Of several containers the offset farthest from the wanted one.

        Raises:
            EnvironmentFault: one of them is not running, or one of its processes has no shim.
        """
        wanted = self.wanted_ms(node)
        seen = [_offset_ms(one, self._processes) for one in self._project.containers(node)]
        return max(seen, key=lambda offset_ms: abs(offset_ms - wanted))


def takes_shim(client: docker.DockerClient, image: str) -> bool:
    """Whether the shim moves the clock in a container of this image: it does where the C library can load it.

    Raises:
        EnvironmentFault: the shim cannot be built, or the engine does not answer.
    """
    with tempfile.TemporaryDirectory() as scratch:
        environment, volumes = Clocks.additions(Path(scratch))
        Path(scratch).chmod(0o755)  # the image's user reads it
        Shim(Path(scratch)).clock_offset_ms = _TRIED_MS
        try:
            said = said_in(client, image, _WITHOUT_AND_WITH, environment=environment, volumes=volumes).split()
        except (DockerException, OSError):
            return False  # there is no shell in it
    return len(said) == 3 and all(map(str.isdecimal, said)) and abs(_between(*said) - _TRIED_MS) < _TOLERANCE_MS


def _offset_ms(container: Container, which: Processes) -> int:
    status, said = run_in(container, "sh", "-c", which.look + _WITHOUT_AND_WITH)
    *processes, before, bent, after = ["", "", "", *said.split()] if status == 0 else [""] * 3
    if not (before.isdecimal() and bent.isdecimal() and after.isdecimal()):
        raise EnvironmentFault(f"container {container.name} does not tell the time: it says {said.strip()!r}.")
    if "bent" not in processes or "true" in processes:
        raise EnvironmentFault(
            f"the clock of container {container.name} cannot be bent: its {which.called} has no shim."
        )
    return _between(before, bent, after)


def _between(before: str, bent: str, after: str) -> int:
    """How far the middle one of three readings, in nanoseconds, is off the other two, in milliseconds."""
    return round((int(bent) - (int(before) + int(after)) / 2) / _NS_PER_MS)
