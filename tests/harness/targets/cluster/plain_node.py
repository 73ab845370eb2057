"""``python plain_node.py CONFIG SECRET PID_FILE``: runs a node of the built-in cluster as a process by itself.

``SERVES_AFTER_S`` in its environment: the process exists so many seconds before it serves.
"""

import os
import sys
import time
from pathlib import Path

from harness.broker.broker import Broker
from harness.broker.controller_node import ControllerNode
from harness.broker.forking import Role, role_of
from harness.broker.node import Build, main
from harness.broker.settings import NodeConfig

if __name__ == "__main__":
    config, secret, pid_file = sys.argv[1:]
    if os.fork():
        os._exit(0)
    os.setsid()
    with Path(secret).open() as told:
        os.dup2(told.fileno(), 0)
    Path(pid_file).write_text(str(os.getpid()))
    time.sleep(float(os.environ.get("SERVES_AFTER_S", "0")))
    builds: dict[Role, Build] = {Role.BROKER: Broker, Role.CONTROLLER: ControllerNode}
    sys.exit(main(builds[role_of(NodeConfig.read(Path(config)).node_id)], config))
