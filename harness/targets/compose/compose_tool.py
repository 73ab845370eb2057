"""Runs the compose tool of this machine: ``docker compose`` (v2), or else ``docker-compose`` (v1)."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from harness import documents, program
from harness.documents import Unfit, require_yaml, yaml_document
from harness.errors import EnvironmentFault, UsageError
from harness.targets.compose.project import address

TOOLS = (("docker", "compose"), ("docker-compose",))
"""The commands of the tool: the plugin (v2), and the old program (v1)."""

_CONFIG_TIMEOUT_S = 60.0
_UP_TIMEOUT_S = 900.0
_MAX_REASON_CHARS = 300
_VERSION = re.compile(r"""^version:\s*["']?(?P<version>[\d.]+)""", re.MULTILINE)


@cache
def command() -> tuple[str, ...]:
    """The command of the tool: the first of :data:`TOOLS` that answers.

    Raises:
        EnvironmentFault: there is none on this machine.
    """
    for words in TOOLS:
        if is_installed(words):
            return words
    raise EnvironmentFault(
        "there is no Docker Compose on this machine: neither `docker compose` nor `docker-compose` answers.",
        "Install the compose plugin of Docker (Debian: apt install docker-compose).",
    )


def is_installed(words: Sequence[str]) -> bool:
    """Whether the tool with this command answers."""
    return shutil.which(words[0]) is not None and _works((*words, "version"))


def resolved(file: Path) -> Mapping[str, Any]:
    """A compose file as the tool resolves it: with variables, extensions and defaults applied.

    Raises:
        UsageError: the file is missing, or the tool refuses it.
        EnvironmentFault: there is no tool, or it hangs.
    """
    written = _written(file)
    done = _run((*command(), "-f", str(file), "config"), _CONFIG_TIMEOUT_S)
    if done.returncode != 0:
        raise UsageError(f"{' '.join(command())} refuses {file}: {_reason(done)}.")
    read = yaml_document(done.stdout, f"{file}, as {' '.join(command())} understands it")
    if not isinstance(read, dict):
        raise UsageError(f"{file} has no services.")
    version = _VERSION.search(written)  # v1 adds one where there is none
    return {**_unescaped(read), "version": version and version["version"]}


def _unescaped(written: Any) -> Any:
    """The same data without the dollars that the tools double in their output."""
    if isinstance(written, dict):
        return {key: _unescaped(value) for key, value in written.items()}
    if isinstance(written, list):
        return list(map(_unescaped, written))
    return written.replace("$$", "$") if isinstance(written, str) else written


def _written(file: Path) -> str:
    """The text of a compose file; refuses what is no YAML itself, for few tools name the line.

    Raises:
        UsageError: the file is missing, no YAML, or beyond the limits.
    """
    try:
        written = documents.text(file)
    except FileNotFoundError:
        raise UsageError(
            f"there is no compose file {file}.",
            "Name one by its path from here, as in --target compose:stack/kafka.yml.",
        ) from None
    except (OSError, Unfit) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"compose file {file} cannot be read: {reason}.") from None
    require_yaml(written, str(file))
    return written


def provide(file: Path, service: str, verb: str) -> None:
    """Have the tool ``build`` or ``pull`` the image of a service.

    Raises:
        EnvironmentFault: it did not work.
    """
    _do((*command(), "-f", str(file), verb, service))


def up(project: str, directory: Path, stack: Mapping[str, Any]) -> None:
    """Create and start the services of a file; images that are missing are pulled or built.

    A signal, or a timeout, ends the tool. The engine still executes its last requests a little later: see
    :func:`harness.targets.compose.removal.removed`.

    Args:
        project: its name, which is in the names of its containers, networks and volumes.
        directory: which relative paths start from.
        stack: the file, as plain data.

    Raises:
        EnvironmentFault: it did not work.
    """
    words = (*command(), "--project-directory", str(directory), "-f", "-", "-p", project, "up", "--detach")
    _do((*words, *stack["services"]), json.dumps(stack).replace("$", "$$"))


def _do(words: Sequence[str], given: str = "") -> None:
    done = _run(words, _UP_TIMEOUT_S, given)
    if done.returncode != 0:
        raise EnvironmentFault(f"`{' '.join(words)}` failed: {_reason(done)}.")


def _run(words: Sequence[str], timeout_s: float, given: str = "") -> subprocess.CompletedProcess[str]:
    """Run the tool for the harness's engine, whatever context ``docker`` has."""
    inherited = {name: value for name, value in os.environ.items() if name != "DOCKER_CONTEXT"}
    try:
        return program.run(words, timeout_s, given=given, environment={**inherited, "DOCKER_HOST": address()})
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise EnvironmentFault(f"`{' '.join(words[:2])}` did not work: {problem}.") from None


def _works(words: Sequence[str]) -> bool:
    try:
        return _run(words, _CONFIG_TIMEOUT_S).returncode == 0
    except EnvironmentFault:
        return False


def _reason(done: subprocess.CompletedProcess[str]) -> str:
    """The error in a failed tool's output, without its progress messages."""
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    errors = [line for line in lines if "rror" in line or "invalid" in line.lower()] or lines[-2:]
    return " ".join(errors).rstrip(".")[:_MAX_REASON_CHARS] or f"exit status {done.returncode}"
