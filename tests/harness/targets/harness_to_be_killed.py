"""Starts a cluster below the directory named first, says its process ids, and waits for its end."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from harness.broker.settings import Settings
from harness.replication.knobs import CURRENT_GENERATION, generation
from harness.targets.builtin import BuiltinTarget

target = BuiltinTarget(Path(sys.argv[1]), 2, generation(CURRENT_GENERATION), Settings())
target.start()
sys.stdout.write(" ".join(map(str, target.pids().values())) + "\n")
sys.stdout.flush()
time.sleep(60)
