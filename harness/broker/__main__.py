"""``python -m harness.broker CONFIG.json``: one broker of the built-in cluster."""

import sys

import crc32c  # noqa: F401 (loaded before the first batch asks for it: it takes longer than serving a batch does)

from harness.broker.broker import Broker
from harness.broker.node import main

if __name__ == "__main__":
    sys.exit(main(Broker))
