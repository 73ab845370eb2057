"""What jobs of CI systems share: where their lines of shell run, and which ``seawall`` those find."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]

SOUND = """
cells:
  - {name: overtaken, scenarios: [kip-101-double-failover], targets: [simulated], generations: ["4.1"], seeds: [7]}
  - {kind: command, name: absent, argv: [no-such-program]}
"""
BROKEN = SOUND.replace("seeds: [7]", "seeds: [7], settings: {replication.truncation: hw}")
"""The run loses acknowledged records; the command is skipped in both plans."""

_RECORDING = """\
#!/bin/sh
echo "$*" >> "$ASKED"
code=${RUNS:-0}
if test "$2" = keep; then
  touch "$3/seeds.yaml" "$3/committed.yaml"
  exec "$KEEPS" "$@"
fi
test "$2" = merge && code=${MERGES:-0}
while test $# -gt 0; do
  case $1 in
    --out) mkdir -p "$2"; touch "$2/results.jsonl" "$2/junit.xml";;
    --bank) test "$code" -eq 0 || echo "# found" >> "$2";;
    --history) echo '{}' >> "$2";;
  esac
  shift
done
exit "$code"
"""


@dataclass
class Machine:
    """Runs lines of shell as a CI system does, each job in a directory of its own.

    Attributes:
        scratch: for those directories.
        repository: what a checkout has.
        environment: of every job.
        asked: the words of every call of ``seawall``, where it only records them.
    """

    scratch: Path
    plan: str = SOUND
    files: Mapping[str, str] = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.repository = self.scratch / "repository"
        self.repository.mkdir()
        for name, text in {"nightly.yaml": self.plan, **self.files}.items():
            path = self.repository / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        # Without Java the merge keeps what the reference engine said.
        self.environment = {"JAVA_HOME": "/nonexistent", "HOME": str(self.scratch), **self.environment}

    def record(self, runs: int = 0, merges: int = 0, keeps: str = "true") -> None:
        """Replace ``seawall`` by a script that records its words, and ends with these exit codes.

        Args:
            keeps: the program that does what ``seawall nightly keep`` does.
        """
        script = self.scratch / "bin" / "seawall"
        script.parent.mkdir(exist_ok=True)
        script.write_text(_RECORDING)
        script.chmod(0o755)
        self.environment |= {"ASKED": str(self.scratch / "asked"), "RUNS": str(runs), "MERGES": str(merges)}
        self.environment["KEEPS"] = keeps

    @property
    def asked(self) -> list[str]:
        """The words of each call that was recorded."""
        return (self.scratch / "asked").read_text().splitlines()

    @property
    def bin(self) -> Path:
        """The directory of ``seawall``."""
        recording = self.scratch / "bin"
        return recording if recording.exists() else Path(sys.executable).parent

    def job(self, name: str) -> Path:
        """The new directory of a job, with a checkout."""
        place = self.scratch / "jobs" / name.replace("/", "-")
        shutil.copytree(self.repository, place)
        return place

    def run(self, lines: str, place: Path, environment: Mapping[str, str], shell: Sequence[str]) -> int:
        """The exit code of some lines."""
        path = f"{self.bin}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        given = {"PATH": path, "CI": "true", **self.environment, **environment}
        return subprocess.run([*shell, "-c", lines], cwd=place, env=given, check=False).returncode


def copy(names: Sequence[str], source: Path, target: Path) -> None:
    """Copy those of the files and directories that are there."""
    for name in names:
        if (source / name).is_dir():
            shutil.copytree(source / name, target / name, dirs_exist_ok=True)
        elif (source / name).exists():
            shutil.copy2(source / name, target / name)
