"""``kubectl`` as far as cluster files use it: ``stand_in_kubectl.py DIRECTORY WORD...``, with the words of kubectl.

``DIRECTORY/POD`` holds the id of the process whose namespaces are those of the pod's container, while one runs; it is
empty while none does. ``DIRECTORY/refuses`` holds the verb that is refused to this user, and ``DIRECTORY/hangs`` the
one that never ends.
"""

import subprocess
import sys
import time
from pathlib import Path

NAMESPACE = ["-n", "kafka"]


def is_set(file: Path, verb: str) -> bool:
    """Whether a test has set a failure for the verb."""
    return file.exists() and file.read_text() == verb


def is_contained(process: str) -> bool:
    """Whether it has processes of its own, instead of this machine's."""
    try:
        return Path(f"/proc/{process}/ns/pid_for_children").readlink() != Path("/proc/self/ns/pid").readlink()
    except OSError:
        return False


def run(directory: Path, verb: str, words: list[str]) -> int:
    """Do it; returns the exit status.

    Raises:
        SystemExit: with a complaint.
    """
    if words[:2] != NAMESPACE:
        sys.exit('Error from server (NotFound): namespaces "default" has no pods')
    name, *words = words[2:]
    if is_set(directory / "hangs", verb):
        time.sleep(600)
    if is_set(directory / "refuses", verb):
        sys.exit(f'Error from server (Forbidden): pods "{name}" is forbidden: User "me" cannot {verb} resource "pods"')
    pod = directory / name
    if not pod.exists():
        sys.exit(f'Error from server (NotFound): pods "{name}" not found')
    container = pod.read_text()
    if not container or not is_contained(container):
        sys.exit('error: Internal error occurred: unable to upgrade connection: container not found ("kafka")')
    enter = ["nsenter", f"--pid=/proc/{container}/ns/pid_for_children", f"--mount=/proc/{container}/ns/mnt"]
    if verb == "delete":
        return subprocess.run((*enter, "sh", "-c", "kill -TERM -1"), check=False).returncode
    status = subprocess.run((*enter, *words[1:]), check=False).returncode
    return status if status >= 0 else 128 - status


if __name__ == "__main__":
    verb, *words = sys.argv[2:]
    if verb == "delete":
        assert words.pop(0) == "pod"
    else:
        assert verb == "exec", verb
    sys.exit(run(Path(sys.argv[1]), verb, words))
