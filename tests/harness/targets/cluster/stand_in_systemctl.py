"""``systemctl`` as far as presets use it: ``stand_in_systemctl.py DIRECTORY WORD...``, with the words of systemctl.

``DIRECTORY/UNIT.json`` describes a unit: the ``start`` command, and the ``pid_file`` that names its main process. It
has ``Restart=always``, so that it is started again at once when it is killed, unless one of its drop-ins in
``DIRECTORY/run`` says otherwise; that counts since the last ``daemon-reload``, as ``DIRECTORY/UNIT.restart`` has it.
``DIRECTORY/refuses`` holds the verb that is refused to this user.
"""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

OPTIONS: dict[str, list[list[str]]] = {
    "show": [["--property", name, "--value"] for name in ("MainPID", "Restart", "ActiveState")],
    "kill": [["--signal", "KILL"]],
    "start": [["--no-block"]],
    "stop": [["--no-block"]],
    "reset-failed": [[]],
}
"""By verb, what may stand between it and the unit."""

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


def reload(directory: Path) -> None:
    """Read the drop-ins again, in the order of their names."""
    for description in directory.glob("*.json"):
        drop_ins = (directory / "run" / f"{description.stem}.service.d").glob("*.conf")
        texts = [one.read_text() for one in sorted(drop_ins, key=lambda one: one.name)]
        [*_, last] = re.findall(r"^Restart=(.*)$", "\n".join(["Restart=always", *texts]), re.MULTILINE)
        description.with_suffix(".restart").write_text(last)


def policy(directory: Path, name: str) -> str:
    """When it is started again."""
    file = directory / f"{name}.restart"
    return file.read_text() if file.exists() else "always"


def do(directory: Path, verb: str, options: list[str], name: str) -> None:
    """Do it.

    Raises:
        SystemExit: with a complaint.
    """
    description = directory / f"{name}.json"
    failed = f"Failed to {verb} {name}.service:"
    refuse(directory, verb, failed)
    unit = json.loads(description.read_text()) if description.exists() else None
    if verb == "show" and "Restart" in options:
        sys.stdout.write(f"{policy(directory, name)}\n")
    elif verb == "show" and "ActiveState" in options:
        sys.stdout.write("active\n" if unit and main_pid(unit) else "failed\n")
    elif verb == "show":
        sys.stdout.write(f"{main_pid(unit) if unit else 0}\n")
    elif unit is None:
        sys.exit(f"{failed} Unit {name}.service not found.")
    else:
        if verb in SIGNALS:
            end(unit, SIGNALS[verb])
        if verb == "start" or (verb == "kill" and policy(directory, name) == "always"):
            start(unit)


def refuse(directory: Path, verb: str, failed: str) -> None:
    """End with a complaint if the verb is refused."""
    refuses = directory / "refuses"
    if refuses.exists() and refuses.read_text() == verb:
        sys.exit(f"{failed} Access denied")


if __name__ == "__main__":
    place, verb, *words = sys.argv[1:]
    if [verb, *words] == ["daemon-reload"]:
        refuse(Path(place), verb, "Failed to reload daemon:")
        reload(Path(place))
    elif words and words[:-1] in OPTIONS.get(verb, ()):
        do(Path(place), verb, words[:-1], words[-1])
    else:
        sys.exit(f"{sys.argv[2:]} is nothing that this stand-in knows.")
