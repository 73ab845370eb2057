"""Brings up the Kafka of a compose file for the run directory named second, says its project, and waits for its end."""

from __future__ import annotations

import sys
import time
from functools import partial
from pathlib import Path

from harness.runner.journal import Journal
from harness.targets.compose.inspected_stack import find
from harness.targets.compose.leftovers import NAME
from harness.targets.compose.target import ComposeTarget
from harness.targets.compose.written_stack import read
from harness.targets.kafka.server_properties import understood

kafka, directory = find(read(sys.argv[1])), Path(sys.argv[2])
settings = understood({}, kafka.release, len(kafka.file.brokers))
with Journal(directory, is_temporary=True) as journal:
    target = ComposeTarget(directory / "cluster", kafka, settings, partial(journal.leftover_coming, NAME))
    target.start()
    sys.stdout.write(target.project.name + "\n")
    sys.stdout.flush()
    time.sleep(600)
