"""``systemctl`` as far as presets use it: ``stand_in_systemctl.py DIRECTORY WORD...``, with the words of systemctl.

``DIRECTORY/UNIT.json`` describes a unit: the ``start`` command, and the ``pid_file`` that names its main process. Like
one with ``Restart=always``, a unit that is killed is started again at once, unless it is masked. ``DIRECTORY/refuses``
holds the verb that is refused to this user.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

OPTIONS = {
    "show": ["--property", "MainPID", "--value"],
    "mask": ["--runtime"],
    "unmask": ["--runtime"],
    "kill": ["--signal", "KILL"],
    "start": ["--no-block"],
    "stop": ["--no-block"],
}
"""By verb, what stands between it and the unit."""

SIGNALS = {"stop": signal.SIGTERM, "kill": signal.SIGKILL}


def main_pid(unit: dict[str, str]) -> int:
    """Its main process; 0: it has none."""
    try:
        pid = int(Path(unit["pid_file"]).read_text())
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return 0
    return 0 if state == "Z" else pid


def start(unit: dict[str, str]) -> None:
    if not main_pid(unit):
        subprocess.run(("sh", "-c", unit["start"]), check=True, stdin=subprocess.DEVNULL)


def end(unit: dict[str, str], by: signal.Signals) -> None:
    if pid := main_pid(unit):
        os.kill(pid, by)


def do(directory: Path, verb: str, name: str) -> None:
    """Do it.

    Raises:
        SystemExit: with a complaint.
    """
    description, mask, refuses = directory / f"{name}.json", directory / f"{name}.masked", directory / "refuses"
    failed = f"Failed to {verb} {name}.service:"
    if refuses.exists() and refuses.read_text() == verb:
        sys.exit(f"{failed} Access denied")
    unit = json.loads(description.read_text()) if description.exists() else None
    if verb == "show":
        sys.stdout.write(f"{main_pid(unit) if unit else 0}\n")
    elif unit is None:
        sys.exit(f"{failed} Unit {name}.service not found.")
    elif verb == "mask":
        mask.touch()
    elif verb == "unmask":
        mask.unlink(missing_ok=True)
    elif verb == "start" and mask.exists():
        sys.exit(f"{failed} Unit {name}.service is masked.")
    else:
        if verb in SIGNALS:
            end(unit, SIGNALS[verb])
        if verb == "start" or (verb == "kill" and not mask.exists()):
            start(unit)


if __name__ == "__main__":
    verb, *options, name = sys.argv[2:]
    if OPTIONS.get(verb) != options:
        sys.exit(f"{sys.argv[2:]} is nothing that this stand-in knows.")
    do(Path(sys.argv[1]), verb, name)
