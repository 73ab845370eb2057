"""Disk faults of brokers in containers: disks are volumes of limited size, mounted by a holder that outlives brokers.

A *balloon*, a file beside the log directory, takes all the space except the wanted rest. The harness accesses the files
through the holder, whether the broker runs or not.
"""

from __future__ import annotations

import io
import re
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from docker.models.containers import Container

from harness.errors import EnvironmentFault
from harness.target import LogDamage, Receipt
from harness.targets import node_disk
from harness.targets.compose.containers import asked, is_living, run_in, told_by
from harness.targets.compose.held_disk import HeldDisk
from harness.targets.compose.project import DATA, HELD, HOLDER, KEPT, Project

_PROBE_BYTES = 65_536
_NO_SPACE = "No space left on device"
_APPENDING = re.compile(r"appending records to (\S+)")
_REPLACEMENT = "/tmp/replacement"  # noqa: S108 (in the holder)

_INFLATE = """\
set -e
cd "$1"
balloon=.seawall-balloon
touch "$balloon"
for attempt in 1 2 3 4 5; do
    set -- "$1" "$2" $(stat -f -c '%a %S' .)
    missing=$(( $3 * $4 - $2 / $4 * $4 ))
    if [ $missing -eq 0 ] || { [ $missing -lt 0 ] && [ ! -s "$balloon" ]; }; then exit; fi
    if [ $missing -gt 0 ]; then head -c $missing /dev/zero >> "$balloon" || true
    else
        size=$(( $(stat -c %s "$balloon") + missing ))
        truncate -s $(( size > 0 ? size : 0 )) "$balloon"
    fi
done
"""
_BURST = 'rm -f "$1/.seawall-balloon"'
_TRY = 'head -c "$2" /dev/zero > "$1/.seawall-probe"; status=$?; rm -f "$1/.seawall-probe"; exit $status'
_WIPE = '[ ! -e "$1" ] || find "$1" -mindepth 1 -delete'
_LIST_OTHERS = 'find "$1" -mindepth 1 ! -name ".seawall-*" -print -quit'
_LIST = '[ ! -e "$1" ] || find "$1" -mindepth 1 -print -quit'


class Volumes:
    """The disks of the project's brokers; a broker has one log directory, in a volume of its own."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._refused_before: dict[str, tuple[str, int]] = {}

    # ------------------------------------------------------------------------------------------------ space

    def limit(self, node: str, free_bytes: int | None) -> None:
        """Leave ``free_bytes`` on the node's disk, rounded down to whole pages; None lifts the limit."""
        if free_bytes is None:
            self._shell(_BURST, self._volume(node))
        else:
            life, lines = self._told(node)
            self._refused_before[node] = life, sum(_NO_SPACE in line for line in lines)
            self._shell(_INFLATE, self._volume(node), str(free_bytes))

    def is_full(self, node: str) -> Receipt:
        """Whether a file of 64 KiB does not fit on the node's disk now; the probe writes and removes one."""
        refusal = self._refusal(node)
        return Receipt(_NO_SPACE in refusal, f"node {node}: a file of {_PROBE_BYTES} bytes: {refusal or 'was written'}")

    def is_unused(self, node: str) -> Receipt:
        """Whether nothing but the harness's own files is in the node's volume."""
        found = self._shell(_LIST_OTHERS, self._volume(node)).strip()
        return Receipt(not found, f"node {node}: its volume has {found or 'nothing in it'}")

    def takes_writes(self, node: str) -> Receipt:
        """Whether a file of 64 KiB fits on the node's disk now."""
        refusal = self._refusal(node)
        return Receipt(not refusal, f"node {node}: a file of {_PROBE_BYTES} bytes: {refusal or 'was written'}")

    def has_refused_write(self, node: str) -> Receipt:
        """Whether the broker has logged, since its disk was last limited, that a write of its own met ``ENOSPC``."""
        life, lines = self._told(node)
        limited_in, before = self._refused_before.get(node, ("", 0))
        refused = [number for number, line in enumerate(lines) if _NO_SPACE in line]
        new = refused[before if life == limited_in else 0 :]
        if not new:
            return Receipt(False, f"node {node}: no write of its own was refused")
        found = new[0]
        what = next((f"append {one[1]}" for line in lines[found::-1] if (one := _APPENDING.search(line))), "write")
        return Receipt(True, f"node {node}: a write of its own ({what}) was refused: {lines[found].strip()}")

    def _told(self, node: str) -> tuple[str, list[str]]:
        """When the broker was last started, and its output since."""
        [container] = self._project.containers(node)
        life = str(container.attrs["State"]["StartedAt"])
        since = datetime.fromisoformat(life).timestamp()
        return life, asked(lambda: container.logs(since=since)).decode(errors="replace").splitlines()

    def _refusal(self, node: str) -> str:
        status, said = run_in(self._holder, "bash", "-c", _TRY, "try", self._volume(node), str(_PROBE_BYTES))
        return (said.strip() or f"exit {status}") if status else ""

    # ------------------------------------------------------------------------------------------------ files

    def wipe(self, node: str) -> None:
        """Empty the disk of a node that is not running."""
        self._refuse_running(node)
        self._shell(_WIPE, self._data(node))
        self.files(node).forget_older()

    def is_empty(self, node: str) -> Receipt:
        """Whether there is nothing on the node's disk."""
        found = self._shell(_LIST, self._data(node)).strip()
        return Receipt(not found, f"node {node}: its disk is {'not ' if found else ''}empty")

    def damage(self, node: str, damage: LogDamage) -> None:
        """Damage the log of a node that is not running: in a copy, of which the damaged file is put back.

        Raises:
            EnvironmentFault: the node runs; or no batch holds the offset.
        """
        self._refuse_running(node)
        with self._copied(node) as copy:
            batch = node_disk.batch_at(copy, damage.partition, damage.offset)
            node_disk.damage(copy, damage)
            assert batch is not None, "it was damaged"
            self._put(batch.path, f"{self._data(node)}/{batch.path.relative_to(copy)}")

    def is_damaged(self, node: str, damage: LogDamage) -> Receipt:
        """See :meth:`harness.target.Target.is_log_damaged`."""
        with self._copied(node) as copy:
            return node_disk.inspect(copy, damage)

    def copy_out(self, node: str, directory: Path) -> None:
        """Copy the node's disk into ``directory``, which is created when missing."""
        chunks, _ = asked(lambda: self._holder.get_archive(self._data(node)))
        with tempfile.TemporaryFile() as packed:
            for chunk in chunks:
                packed.write(chunk)
            packed.seek(0)
            with tarfile.open(fileobj=packed) as archive:
                _unpack(archive, directory)

    def files(self, node: str) -> HeldDisk:
        """The files of the node's log directory, and the earlier contents of replaced ones."""
        return HeldDisk(self._holder, self._data(node), f"{self._volume(node)}/{KEPT}")

    @contextmanager
    def _copied(self, node: str) -> Iterator[Path]:
        with tempfile.TemporaryDirectory() as scratch:
            copy = Path(scratch, DATA)
            self.copy_out(node, copy)
            yield copy

    def _put(self, file: Path, place: str) -> None:
        """Copy ``file`` into a file of the holder, which keeps its owner."""
        content, packed = file.read_bytes(), io.BytesIO()
        directory, _, name = _REPLACEMENT.rpartition("/")
        with tarfile.open(fileobj=packed, mode="w") as archive:
            about = tarfile.TarInfo(name)
            about.size = len(content)
            archive.addfile(about, io.BytesIO(content))
        asked(lambda: self._holder.put_archive(directory, packed.getvalue()))
        told_by(self._holder, "cp", _REPLACEMENT, place)
        told_by(self._holder, "rm", _REPLACEMENT)

    # ------------------------------------------------------------------------------------------------ the holder

    @property
    def _holder(self) -> Container:
        return self._project.container(HOLDER)

    def _shell(self, script: str, *words: str) -> str:
        return told_by(self._holder, "bash", "-c", script, "seawall", *words)

    def _volume(self, node: str) -> str:
        [service] = self._project.nodes[node]
        return f"{HELD}/{service}"

    def _data(self, node: str) -> str:
        return f"{self._volume(node)}/{DATA}"

    def _refuse_running(self, node: str) -> None:
        if any(is_living(one) for one in self._project.containers(node)):
            raise EnvironmentFault(f"the disk of node {node} cannot be changed while the node runs.", "Kill it first.")


def _unpack(archive: tarfile.TarFile, directory: Path) -> None:
    """Write the directories and plain files below the archive's directory; logs need no others.

    Python before 3.11.4 has no filters that keep members from leaving ``directory``.
    """
    for member in archive:
        place = directory / Path(member.name.partition("/")[2])
        if not place.resolve().is_relative_to(directory.resolve()):
            raise EnvironmentFault(f"an archive of a disk names {member.name!r}, which is outside of it.")
        if member.isdir():
            place.mkdir(parents=True, exist_ok=True)
        elif member.isfile() and (content := archive.extractfile(member)) is not None:
            with content, place.open("wb") as file:
                shutil.copyfileobj(content, file)
