"""The wall clocks of brokers in containers: bent by the clock shim, which is mounted into them and loaded into Java.

The shim is steered through a file that the containers and this process both map, which takes an engine on this very
machine. What it does there is asked in the container: every Java process has to have the file mapped, and a program
that is started there as Java was tells the time once with the shim and, before and after that, without it.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from docker.models.containers import Container

from harness.errors import EnvironmentFault
from harness.targets.compose.containers import run_in
from harness.targets.compose.project import Project
from harness.targets.kafka import shim
from harness.targets.kafka.shim import Shim

_MOUNTED = "/seawall/shim"
_LIBRARY, _CONTROL = "shim.so", "shim.control"
_NS_PER_MS = 1_000_000

_ASK = f"""\
for process in /proc/[0-9]*; do
    case $(readlink $process/exe) in
    */java) grep -q ' {_MOUNTED}/{_CONTROL}$' $process/maps && echo bent || echo true ;;
    esac
done
LD_PRELOAD= date +%s%N; date +%s%N; LD_PRELOAD= date +%s%N
"""


class Clocks:
    """The clocks of a project's nodes.

    Args:
        directories: of each node whose clock can be bent: those that :meth:`additions` were asked with, one for each of
            its containers.
    """

    def __init__(self, project: Project, directories: Mapping[str, Path]) -> None:
        self._project = project
        self._directories = directories

    @staticmethod
    def additions(directory: Path) -> tuple[dict[str, str], list[str]]:
        """What a service is given so that its clock can be bent: variables, and volumes as Compose writes them.

        Args:
            directory: of this machine, for the shim's files; made when it is missing.

        Raises:
            EnvironmentFault: the shim cannot be built.
        """
        directory.mkdir(parents=True, exist_ok=True)
        Shim(directory)
        (directory / _CONTROL).chmod(0o666)  # whoever runs the broker writes to it what the shim counts
        shutil.copyfile(shim.library(), directory / _LIBRARY)
        environment = {
            "LD_PRELOAD": f"{_MOUNTED}/{_LIBRARY}",
            "SEAWALL_CONTROL": f"{_MOUNTED}/{_CONTROL}",
            "SEAWALL_DISK": f"{_MOUNTED}/no-disk",
            "SEAWALL_LEDGER": "/dev/null",
        }
        return environment, [f"{directory.resolve()}:{_MOUNTED}"]

    def offset(self, node: str, offset_ms: int) -> None:
        """Move the node's wall clock to true time + ``offset_ms``; 0 heals."""
        Shim(self._directories[node]).clock_offset_ms = offset_ms

    def wanted_ms(self, node: str) -> int:
        """What the node's clock was last set to."""
        return Shim(self._directories[node]).clock_offset_ms

    def offset_ms(self, node: str) -> int:
        """The node's wall clock minus the engine's, in milliseconds, as programs in its containers tell it.

        Of several containers that one whose clock is least as it should be.

        Raises:
            EnvironmentFault: one of them is not running, or its Java has no shim.
        """
        wanted = self.wanted_ms(node)
        return max(map(_offset_ms, self._project.containers(node)), key=lambda seen: abs(seen - wanted))


def _offset_ms(container: Container) -> int:
    status, said = run_in(container, "sh", "-c", _ASK)
    *processes, before, bent, after = said.split() if status == 0 else [""] * 3
    if not (before.isdecimal() and bent.isdecimal() and after.isdecimal()):
        raise EnvironmentFault(f"container {container.name} does not tell the time: it says {said.strip()!r}.")
    if not processes or "true" in processes:
        raise EnvironmentFault(f"the clock of container {container.name} cannot be bent: its Java has no shim.")
    return round((int(bent) - (int(before) + int(after)) / 2) / _NS_PER_MS)
