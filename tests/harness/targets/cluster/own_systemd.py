"""A systemd that is the first process of namespaces of its own, with the network and the files of this machine.

Its ``/run`` and ``/etc/systemd/system`` are its own, and so is its cgroup; the rest of ``/etc`` and the settings of the
kernel are read-only for it. It starts no unit by itself, and its processes end with it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import psutil

SYSTEMD = "/lib/systemd/systemd"
TOOLS = ("unshare", "nsenter", "setpriv", "systemctl")
ETC, RUN = "/etc/systemd/system", "/run/systemd/system"
_TARGET = "[Unit]\nDescription=No unit\nDefaultDependencies=no\n"
_NAMESPACES = ("unshare", "--pid", "--fork", "--kill-child", "--mount", "--mount-proc", "--uts", "--ipc")
_DIES_WITH_ITS_THREAD = ("setpriv", "--pdeathsig", "KILL")
_NAME = "seawall-systemd-"
_TIMEOUT_S = 60.0

_FIRST = """\
set -e
echo 0 >"$CGROUP/cgroup.procs"
exec unshare --cgroup sh -ec '
    umount --recursive /sys/fs/cgroup
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    for one in /proc/sys /etc; do
        mount --bind "$one" "$one"
        mount -o remount,bind,ro "$one"
    done
    mount --bind /dev/null /dev/console
    mount -t tmpfs -o mode=755 seawall-test /run
    mkdir -p /run/lock /run/systemd/system
    mount -t tmpfs -o mode=755 seawall-test /etc/systemd/system
    cp -r "$UNITS/." /
    exec env -i container=seawall PATH="$PATH" "$SYSTEMD" --system --unit=seawall.target
'
"""
"""Becomes it, in namespaces that are new."""


@cache
def lacking() -> str:
    """What this machine lacks for it, in a clause; empty: nothing."""
    if os.geteuid() != 0:
        return "namespaces are root's to make"
    missing = [tool for tool in (SYSTEMD, *TOOLS) if shutil.which(tool) is None]
    if missing:
        return f"there is no {' and no '.join(missing)}"
    if (hierarchy := _hierarchy()) is None or not os.access(hierarchy, os.W_OK):
        return "there is no cgroup2 file system that can be written"
    tried = subprocess.run((*_NAMESPACES, "--cgroup", "true"), capture_output=True, text=True, check=False)
    return f"namespaces cannot be made: {tried.stderr.strip()}" if tried.returncode else ""


def _hierarchy() -> Path | None:
    """Where the file system of cgroups is, version 2; None: nowhere."""
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return next((Path(place) for _, place, kind, *_ in mounts if kind == "cgroup2"), None)


@contextmanager
def own_systemd(units: Mapping[str, str]) -> Iterator[Sequence[str]]:
    """Start one; yields the words before a command line that runs it there.

    Args:
        units: the content of each unit file, by its path below :data:`ETC` or :data:`RUN`.
    """
    with _cgroup() as cgroup, tempfile.TemporaryDirectory() as directory, tempfile.TemporaryFile("w+") as log:
        for place, content in {f"{ETC}/seawall.target": _TARGET, **units}.items():
            file = Path(directory, place.removeprefix("/"))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        given = {"CGROUP": str(cgroup), "UNITS": directory, "SYSTEMD": SYSTEMD}
        process = subprocess.Popen(
            (*_DIES_WITH_ITS_THREAD, *_NAMESPACES, "sh", "-c", _FIRST),
            env={**os.environ, **given},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
        try:
            if (first := _started(process)) is None:
                log.seek(0)
                raise AssertionError(f"systemd has not started: {log.read()}")
            yield _inside(first)
        finally:
            process.kill()  # its child, the first process of the namespace, is killed with it
            process.wait()


def _inside(first: int) -> Sequence[str]:
    return "nsenter", "--target", str(first), "--mount", "--pid", "--"


def _started(process: subprocess.Popen[bytes]) -> int | None:
    """The id of systemd, here, when it answers; None: it has ended, or does not answer in time."""
    deadline = time.monotonic() + _TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        for child in psutil.Process(process.pid).children():
            asked = (*_inside(child.pid), "systemctl", "is-system-running")
            if subprocess.run(asked, capture_output=True, check=False).stdout.strip() in (b"running", b"degraded"):
                return child.pid
        time.sleep(0.05)
    return None


@contextmanager
def _cgroup() -> Iterator[Path]:
    """One for it, which is removed with all below it; and those that killed tests have left."""
    hierarchy = _hierarchy()
    assert hierarchy is not None
    for left in hierarchy.glob(f"{_NAME}*"):
        if not psutil.pid_exists(int(left.name.removeprefix(_NAME).partition("-")[0])):
            _remove(left)
    cgroup = Path(tempfile.mkdtemp(prefix=f"{_NAME}{os.getpid()}-", dir=hierarchy))
    try:
        yield cgroup
    finally:
        _remove(cgroup)


def _remove(cgroup: Path) -> None:
    """Remove it as soon as its processes, which were killed, have ended."""
    deadline = time.monotonic() + _TIMEOUT_S
    while cgroup.exists():
        for below, _, _ in os.walk(cgroup, topdown=False):
            with suppress(OSError):
                Path(below).rmdir()
        assert time.monotonic() < deadline, f"{cgroup} has processes: {(cgroup / 'cgroup.events').read_text()}"
        time.sleep(0.01)
