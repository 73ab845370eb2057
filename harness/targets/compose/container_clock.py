"""Moves the wall clocks of brokers in containers by the shim, which is mounted there and preloaded.

The harness controls the shim through a file that the containers and this process both map, so the engine has to run on
this machine. The probe runs in the container: the broker's processes have to have the file mapped (:mod:`.shimmed`),
and a program started like them reads the clock once with the shim, and before and after that without. The shim also
keeps the ledger of flushed writes.
"""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import docker
from docker.errors import DockerException
from docker.models.containers import Container

from harness.errors import EnvironmentFault
from harness.targets.compose.containers import run_in, said_in
from harness.targets.compose.project import Project
from harness.targets.compose.shimmed import CONTROL, MOUNTED, Look, seen_in, user_to_look
from harness.targets.kafka import shim
from harness.targets.kafka.shim import Shim

_LIBRARY, _LEDGER = "shim.so", "ledger"
_NS_PER_MS = 1_000_000
_TRIED_MS, _TOLERANCE_MS = 3_600_000, 60_000

_TELL = r"""now=$(date +%s%N); [ ${#now} -eq 19 ] || now=$(bash -c 'echo ${EPOCHREALTIME/[.,]/}000'); echo $now"""
"""The wall clock in nanoseconds; the ``date`` of Alpine knows no fractions of a second, but bash does."""

_WITHOUT_AND_WITH = f"""\
tell={shlex.quote(_TELL)}
LD_PRELOAD= sh -c "$tell"; sh -c "$tell"; LD_PRELOAD= sh -c "$tell"
"""


class Clocks:
    """The clocks of a project's nodes.

    Args:
        directories: of each node with a movable clock: the arguments of :meth:`additions`, one for each container.
        look: by a node's name, at its processes that have to have the shim.
    """

    def __init__(self, project: Project, directories: Mapping[str, Path], look: Callable[[str], Look]) -> None:
        self._project = project
        self._directories = directories
        self._look = look

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
        (directory / CONTROL).chmod(0o666)  # the broker's user writes the shim's counters to it
        shutil.copyfile(shim.library(), directory / _LIBRARY)
        environment = {
            "LD_PRELOAD": f"{MOUNTED}/{_LIBRARY}",
            "SEAWALL_CONTROL": f"{MOUNTED}/{CONTROL}",
            "SEAWALL_DISK": f"{MOUNTED}/no-disk",
            "SEAWALL_LEDGER": "/dev/null",
        }
        if disk is not None:
            (directory / _LEDGER).touch()
            (directory / _LEDGER).chmod(0o666)
            known = {"SEAWALL_DISK": disk, "SEAWALL_LEDGER": f"{MOUNTED}/{_LEDGER}", "SEAWALL_KEPT": kept}
            environment |= known
        return environment, [f"{directory.resolve()}:{MOUNTED}"]

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
            EnvironmentFault: one of them is not running, or one of those processes has no shim.
        """
        wanted = self.wanted_ms(node)
        seen = [_offset_ms(one, self._look(node)) for one in self._project.containers(node)]
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


def _offset_ms(container: Container, look: Look) -> int:
    status, said = looked(container, look, _WITHOUT_AND_WITH)
    before, bent, after = ["", "", "", *said.split()][-3:] if status == 0 else [""] * 3
    if not (before.isdecimal() and bent.isdecimal() and after.isdecimal()):
        raise EnvironmentFault(f"container {container.name} does not tell the time: it says {said.strip()!r}.")
    seen = seen_in(said)
    if not seen or not all(one.is_bent for one in seen):
        which = "".join(f", {one}," for one in seen if not one.is_bent)
        raise EnvironmentFault(
            f"the clock of container {container.name} cannot be bent: its {look.called}{which} has no shim."
        )
    return _between(before, bent, after)


def looked(container: Container, look: Look, more: str = "") -> tuple[int, str]:
    """Run the script of a look in a container, and ``more`` after it: the exit code and the output.

    Raises:
        EnvironmentFault: the container is not running, or the engine does not do it.
    """
    words = ("sh", "-c", look.script + more)
    status, said = run_in(container, *words)
    if user := user_to_look(said):  # the program has become another user than its container's
        status, said = run_in(container, *words, user=user)
    return status, said


def _between(before: str, bent: str, after: str) -> int:
    """How far the middle one of three readings, in nanoseconds, is off the other two, in milliseconds."""
    return round((int(bent) - (int(before) + int(after)) / 2) / _NS_PER_MS)
