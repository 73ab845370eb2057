"""Runs the scenario file named first into the directory named second; ends as the command line would."""

from __future__ import annotations

import sys
from pathlib import Path

from harness import scenario
from harness.errors import SeawallError
from harness.runner import plan, run


def say(line: object) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


try:
    run(plan(scenario.load(sys.argv[1])), Path(sys.argv[2]), say)
except SeawallError as error:
    say(error)
    sys.exit(error.exit_code)
