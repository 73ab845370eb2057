"""``python -m harness.broker.controller CONFIG.json``: the built-in cluster's controller."""

import sys

from harness.broker.controller_node import ControllerNode
from harness.broker.node import main

if __name__ == "__main__":
    sys.exit(main(ControllerNode))
