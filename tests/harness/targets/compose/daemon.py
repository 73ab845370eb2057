"""A Docker engine of the tests' own, for machines that have the daemon's program and do not run it."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from itertools import product
from pathlib import Path

from harness.errors import EnvironmentFault

_IMAGES = Path(__file__).parents[4] / "compose" / "images"
_UP_TIMEOUT_S = 90.0
_DOWN_TIMEOUT_S = 60.0
_POLL_S = 0.2
_OF_AN_ENGINE = re.compile(r"\bDOCKER\b|DOCKER-|-[io] (br-|docker)")
"""A rule that an engine has made: it names one of its chains or bridges."""

_FILTERS, _TABLES = ("iptables", "ip6tables"), ("filter", "nat", "raw", "mangle")
_DIES_WITH_ITS_PARENT = """\
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGTERM)
os.execvp(sys.argv[1], sys.argv[1:])
"""


@contextmanager
def own_engine() -> Iterator[str]:
    """Where an engine listens that is there for as long as this lasts; images that it builds are kept for the next one.

    Processes that want one at the same time share it: the first starts it, and ends it when the others have done.

    Raises:
        EnvironmentFault: this machine, or this user, cannot run one.
    """
    if os.geteuid() != 0 or not all(map(shutil.which, ("dockerd", "docker", "iptables-save"))):
        raise EnvironmentFault(
            "no Docker engine runs, and none can be started: that takes root, and Debian's docker.io."
        )
    data = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "seawall", "engine")
    data.parent.mkdir(parents=True, exist_ok=True)
    told = data.with_name("engine.socket")
    deadline = time.monotonic() + 2 * _UP_TIMEOUT_S
    while time.monotonic() < deadline:
        with locked(data.with_name("engine.owner"), fcntl.LOCK_EX | fcntl.LOCK_NB) as owns:
            if owns:
                told.unlink(missing_ok=True)
                with _started(data) as place:
                    _write(told, f"unix://{place}")
                    try:
                        yield f"unix://{place}"
                    finally:
                        told.unlink()
                        with locked(data.with_name("engine.users"), fcntl.LOCK_EX):
                            pass
                return
        with locked(data.with_name("engine.users"), fcntl.LOCK_SH):
            if told.exists():
                yield told.read_text()
                return
        time.sleep(_POLL_S)
    raise EnvironmentFault("no Docker engine runs, and the one that other tests have started does not come up.")


def _write(path: Path, text: str) -> None:
    """So that nobody reads half of it."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(text)
    unfinished.rename(path)


@contextmanager
def locked(path: Path, how: int) -> Iterator[bool]:
    """Whether the lock was to be had; it is given back in the end."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, how)
        except BlockingIOError:
            yield False
        else:
            yield True


@contextmanager
def _started(data: Path) -> Iterator[Path]:
    with _rules_removed(), tempfile.TemporaryDirectory() as scratch:
        _forget_other_images(data)
        place = Path(scratch, "docker.sock")
        with (Path(scratch) / "log").open("wb") as log:
            # A session of its own: `timeout` ends the whole group of the tests, which then need an engine to clean up.
            command = _command(Path(scratch), data, place)
            process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        try:
            _await_up(process, place, Path(scratch) / "log")
            yield place
        finally:
            _end(process)
            _unmount_below(Path(scratch))


def _command(scratch: Path, data: Path, socket_path: Path) -> Sequence[str]:
    config = scratch / "daemon.json"
    config.write_text("{}")
    return (
        *(sys.executable, "-I", "-S", "-c", _DIES_WITH_ITS_PARENT),
        *("dockerd", "--host", f"unix://{socket_path}", "--config-file", str(config), "--data-root", str(data)),
        *("--exec-root", str(scratch / "exec"), "--pidfile", str(scratch / "pid"), "--bridge", "none"),
        *("--oom-score-adjust", "0", "--log-level", "warn"),
    )


def _await_up(process: subprocess.Popen[bytes], socket_path: Path, log: Path) -> None:
    deadline = time.monotonic() + _UP_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        if _answers(socket_path):
            return
        time.sleep(_POLL_S)
    last = log.read_text(errors="replace").strip().splitlines()[-1:] or ["(nothing)"]
    raise EnvironmentFault(f"no Docker engine runs, and one that was started does not answer; it says: {last[0]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_DOWN_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _unmount_below(directory: Path) -> None:
    """The engine leaves the network namespace of those who share the machine's where it had mounted it."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        place = line.split()[1]
        if Path(place).is_relative_to(directory):
            subprocess.run(("umount", place), check=True)


def _forget_other_images(data: Path) -> None:
    """Images that were built from other files are none of this project's."""
    built_from, now = data / "built-from", sha256()
    for path in sorted(path for path in _IMAGES.rglob("*") if path.is_file() and path.suffix != ".pyc"):
        now.update(path.read_bytes())
    if not built_from.exists() or built_from.read_text() != now.hexdigest():
        shutil.rmtree(data, ignore_errors=True)
        data.mkdir(exist_ok=True)  # an engine mounts it on itself, and may have left it so: then it is only emptied
        built_from.write_text(now.hexdigest())


@contextmanager
def _rules_removed() -> Iterator[None]:
    """The engine adds chains and rules to the machine's packet filters, and leaves them there."""
    before = {(tool, table): _rules(tool, table) for tool, table in product(_FILTERS, _TABLES)}
    try:
        yield
    finally:
        for (tool, table), rules in before.items():
            words = "\n".join((f"*{table}", *undoing(rules, _rules(tool, table)), "COMMIT", ""))
            subprocess.run((f"{tool}-restore", "--noflush"), input=words, text=True, check=True)


def _rules(tool: str, table: str) -> Sequence[str]:
    return subprocess.run((f"{tool}-save", "-t", table), capture_output=True, text=True, check=True).stdout.splitlines()


def undoing(before: Sequence[str], after: Sequence[str]) -> Iterator[str]:
    """What undoes in a table what an engine has done, as ``iptables-restore`` takes it; rules of others stay.

    Args:
        before: the table as ``iptables-save`` had it before the engine.
        after: the same when the engine has ended.
    """
    policies, chains = _chains(before), _chains(after)
    changed = [chain for chain, policy in chains.items() if policies.get(chain, policy) != policy]
    yield from (f":{chain} {policies[chain]}" for chain in changed)
    added = [line for line in after if line.startswith("-A ") and line not in before]
    yield from (f"-D {line.removeprefix('-A ')}" for line in added if _OF_AN_ENGINE.search(line))
    yield from (f"-X {chain}" for chain in chains if chain not in policies and chain.startswith("DOCKER"))


def _chains(rules: Sequence[str]) -> dict[str, str]:
    """The chains of a table, each with its policy."""
    found = (line.removeprefix(":").split() for line in rules if line.startswith(":"))
    return {words[0]: words[1] for words in found}


def _answers(socket_path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_UP_TIMEOUT_S)
        try:
            connection.connect(str(socket_path))
            connection.sendall(b"GET /_ping HTTP/1.0\r\nHost: localhost\r\n\r\n")
            return b" 200 " in connection.recv(64)
        except OSError:
            return False
