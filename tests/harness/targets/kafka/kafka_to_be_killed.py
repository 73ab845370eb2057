"""Starts a cluster of real Kafka below the directory named first, says its process ids, and waits for its end."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from harness.targets.kafka.local import find
from harness.targets.kafka.process import ProcessTarget
from harness.targets.kafka.server_properties import understood

pids: list[int] = []
kafka = find(sys.argv[2])
settings = understood({}, kafka.release, 1)
target = ProcessTarget(Path(sys.argv[1]), 1, kafka, settings, lambda _, pid: pids.append(pid))
target.start()
sys.stdout.write(" ".join(map(str, pids)) + "\n")
sys.stdout.flush()
time.sleep(60)
