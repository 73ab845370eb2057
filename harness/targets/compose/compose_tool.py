"""The compose tool of this machine: ``docker compose`` (v2), or else ``docker-compose`` (v1)."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from harness.errors import EnvironmentFault, UsageError

_CONFIG_TIMEOUT_S = 60.0
_UP_TIMEOUT_S = 900.0
_DOWN_TIMEOUT_S = 120.0
_PLUGIN, _STANDALONE = ("docker", "compose"), ("docker-compose",)
_MAX_REASON_CHARS = 300


@cache
def command() -> tuple[str, ...]:
    """The words that every call of the tool begins with.

    Raises:
        EnvironmentFault: there is none on this machine.
    """
    for words in (_PLUGIN, _STANDALONE):
        if shutil.which(words[0]) is not None and _works((*words, "version")):
            return words
    raise EnvironmentFault(
        "there is no Docker Compose on this machine: neither `docker compose` nor `docker-compose` answers.",
        "Install the compose plugin of Docker (Debian: apt install docker-compose).",
    )


def resolved(file: Path) -> Mapping[str, Any]:
    """A compose file as the tool itself understands it: variables filled in, extensions and defaults applied.

    Raises:
        UsageError: the file is missing, or the tool refuses it.
        EnvironmentFault: there is no tool, or it hangs.
    """
    if not file.is_file():
        raise UsageError(f"there is no compose file {file}.")
    done = _run((*command(), "-f", str(file), "config"), _CONFIG_TIMEOUT_S)
    if done.returncode != 0:
        raise UsageError(f"{' '.join(command())} refuses {file}: {_reason(done)}.")
    read = yaml.safe_load(done.stdout)
    if not isinstance(read, dict):
        raise UsageError(f"{file} has no services.")
    written = yaml.safe_load(file.read_text())  # v1 makes up a version where there is none
    return {**read, "version": written.get("version")}


def provide(file: Path, services: Sequence[str]) -> None:
    """Have the tool pull or build the images of these services, as it would to start them.

    Raises:
        EnvironmentFault: it did not work.
    """
    project = ComposeProject("seawall-images", [file])
    try:
        project.create(services)
    finally:
        project.down()


class ComposeProject:
    """One project: a user's file and an overlay, under a name of its own.

    Args:
        name: of the project, which is in the names of its containers, networks and volumes.
        files: the user's file, and the overlay.
    """

    def __init__(self, name: str, files: Sequence[Path]) -> None:
        self.name = name
        self._files = files

    def up(self, services: Sequence[str]) -> None:
        """Create and start these services, and what they depend on; images that are missing are pulled or built.

        Raises:
            EnvironmentFault: it did not work.
        """
        self._do(("up", "--detach", *services), _UP_TIMEOUT_S)

    def create(self, services: Sequence[str]) -> None:
        """The same without starting anything. Raises as :meth:`up`."""
        self._do(("up", "--no-start", *services), _UP_TIMEOUT_S)

    def down(self) -> None:
        """Remove every container, network and volume of the project; harmless when there are none.

        Raises:
            EnvironmentFault: it did not work.
        """
        self._do(("down", "--volumes", "--remove-orphans", "--timeout", "0"), _DOWN_TIMEOUT_S)

    def _do(self, words: Sequence[str], timeout_s: float) -> None:
        files = [word for file in self._files for word in ("-f", str(file))]
        # Relative paths of the user's file are relative to its directory, which that of the first file is.
        done = _run((*command(), *files, "-p", self.name, *words), timeout_s)
        if done.returncode != 0:
            raise EnvironmentFault(f"`{' '.join((*command(), words[0]))}` failed: {_reason(done)}.")


def _run(words: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
    """In a session of its own, so that Ctrl-C, which is for the harness, does not end it halfway."""
    try:
        return subprocess.run(
            words, capture_output=True, text=True, timeout=timeout_s, check=False, start_new_session=True
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise EnvironmentFault(f"`{' '.join(words[:2])}` did not work: {problem}.") from None


def _works(words: Sequence[str]) -> bool:
    try:
        return _run(words, _CONFIG_TIMEOUT_S).returncode == 0
    except EnvironmentFault:
        return False


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """What a tool that failed said, without its account of what went well."""
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    told = [line for line in lines if "rror" in line or "invalid" in line.lower()] or lines[-2:]
    return " ".join(told).rstrip(".")[:_MAX_REASON_CHARS] or f"exit status {done.returncode}"
