"""Seawall's own library in the process of a node, and the commands that have it move the clock of that process."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from harness.targets.kafka.shim import Shim, library

_PRELOADED = """\
grep -qF {control} "/proc/$PID/maps" || {{ echo "the broker runs without the shim" >&2; exit 1; }}
{environment} date +%s%3N"""

_ORDER = """\
import struct, sys
with open(sys.argv[1], "r+b") as control:
    control.write(struct.pack("=q", int(sys.argv[2]) * 1_000_000))
"""


def preloaded(directory: Path) -> Mapping[str, str]:
    """The variables that the process of a node with this directory is started with."""
    Shim(directory)
    return {
        "LD_PRELOAD": str(library()),
        "SEAWALL_CONTROL": str(_control(directory)),
        "SEAWALL_DISK": str(directory / "no-disk"),
        "SEAWALL_LEDGER": "/dev/null",
    }


def commands(directory: Path) -> Mapping[str, str]:
    """The commands ``skew``, ``unskew`` and ``now`` of that node."""
    control = shlex.quote(str(_control(directory)))
    order = f"{shlex.join([sys.executable, '-I', '-S', '-c', _ORDER])} {control}"
    environment = " ".join(f"{name}={shlex.quote(value)}" for name, value in preloaded(directory).items())
    now = _PRELOADED.format(control=control, environment=environment)
    return {"skew": f'{order} "$OFFSET_MS"', "unskew": f"{order} 0", "now": now}


def _control(directory: Path) -> Path:
    """By what the shim of a node with this directory is steered."""
    return directory.resolve() / "shim.control"
