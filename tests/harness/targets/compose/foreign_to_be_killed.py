"""Brings up the foreign brokers of a compose file for the run directory named second, and waits for its end."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from harness.runner.journal import Journal
from harness.targets.compose.foreign_stack import find
from harness.targets.compose.foreign_target import ForeignTarget
from harness.targets.compose.written_stack import read

directory = Path(sys.argv[2])
with Journal(directory, is_temporary=True) as journal:
    target = ForeignTarget(directory / "cluster", find(read(sys.argv[1])), {}, {}, journal)
    target.start()
    sys.stdout.write(target.project.name + "\n")
    sys.stdout.flush()
    time.sleep(600)
