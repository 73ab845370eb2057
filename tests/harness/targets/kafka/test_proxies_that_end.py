from __future__ import annotations

import resource
import socket
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from harness.errors import EnvironmentFault
from harness.model import CLIENTS, Link
from harness.targets.kafka.layout import Layout, Listener
from harness.targets.kafka.proxies import Proxies
from harness.targets.kafka.releases import Metadata

TIMEOUT_S = 60.0


def test_proxies_that_have_too_many_connections_say_why_they_have_ended(tmp_path: Path) -> None:
    layout = Layout.claim(2, Metadata.KRAFT)
    one = Proxies(layout, tmp_path)
    one.start()
    try:
        one.require_running()
        assert one.pid is not None
        process = psutil.Process(one.pid)
        resource.prlimit(one.pid, resource.RLIMIT_NOFILE, (process.num_fds() + 20,) * 2)
        one.cut([Link(CLIENTS, "0")])  # so that each connection waits
        with ExitStack() as waiting:
            for _ in range(40):
                waiting.enter_context(socket.socket()).connect_ex(layout.seen_by(CLIENTS, "0", Listener.CLIENTS))
            psutil.wait_procs([process], TIMEOUT_S)
        with pytest.raises(EnvironmentFault, match=r"have ended, exit status \d: FATAL: .*Too many open files"):
            one.require_running()
    finally:
        one.stop()
        layout.release()
