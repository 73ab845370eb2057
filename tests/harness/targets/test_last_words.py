"""What a node's end is blamed on."""

from __future__ import annotations

import pytest

from harness.targets.last_words import last_words

FAREWELL = """\
[2026-11-24 20:00:02,000] INFO [BrokerServer id=1] shutting down (kafka.server.BrokerServer)
[2026-11-24 20:00:02,001] INFO App info kafka.server for 1 unregistered, without ERROR (AppInfoParser)
[2026-11-24 20:00:02,002] INFO [SocketServer] Stopping (kafka.network.SocketServer)
"""
CONFIGURED = "[2026-11-24 20:00:01,000] INFO KafkaConfig values: (kafka.server.KafkaConfig)\n"
FATAL = """\
[2026-11-24 20:00:01,500] ERROR Exiting Kafka due to fatal exception (kafka.Kafka$)
java.lang.RuntimeException: No readable meta.properties files found.
\tat kafka.Kafka.main(Kafka.scala)
Caused by: java.io.IOException: Stale file handle
\t... 3 more
"""


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        (
            CONFIGURED + FATAL + FAREWELL,
            (
                "[2026-11-24 20:00:01,500] ERROR Exiting Kafka due to fatal exception (kafka.Kafka$) | java.lang."
                "RuntimeException: No readable meta.properties files found. | Caused by: java.io.IOException: "
                "Stale file handle"
            ),
        ),
        (
            "[t] ERROR one (a)\n[t] FATAL the gravest (b)\n[t] ERROR two (c)\n" + FAREWELL,
            "[t] FATAL the gravest (b)",
        ),
        ("[t] ERROR one (a)\n[t] ERROR two (b)\n" + FAREWELL, "[t] ERROR two (b)"),
        (
            "2026-11-24 20:00:01,500 [myid:] - ERROR [main:QuorumPeerMain@99] - Invalid config, exiting abnormally\n"
            + FAREWELL.replace("[2026-11-24 20:00:02,000] INFO", "2026-11-24 20:00:02,000 [myid:] - INFO"),
            "2026-11-24 20:00:01,500 [myid:] - ERROR [main:QuorumPeerMain@99] - Invalid config, exiting abnormally",
        ),
        (
            (
                'Exception in thread "main" org.apache.kafka.common.config.ConfigException: Invalid value never\n'
                "\tat kafka.tools.StorageTool$.main(StorageTool.scala)\n"
            ),
            'Exception in thread "main" org.apache.kafka.common.config.ConfigException: Invalid value never',
        ),
        (
            'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nOSError: [Errno 98] in use\n',
            "OSError: [Errno 98] in use",
        ),
        ("===> User\nuid=1000\n  indented\n===> Configuring\nKAFKA_NODE_ID is required.\n", None),
        ("", "(its log is empty)"),
    ],
)
def test_an_end_is_blamed_on_the_error_and_else_on_the_last_lines(printed: str, told: str | None) -> None:
    assert last_words(printed) == (told or "uid=1000 | ===> Configuring | KAFKA_NODE_ID is required.")


HALTED = """\
02:48:04.041 [1] ERROR: Produce could not be served and is answered with UNKNOWN_SERVER_ERROR: KeyError('x').
02:48:04.041 [1] FATAL: Halting: the log directory failed with errno 28.
02:48:04.041 [1] audit-1: offline in leader epoch 0, leader 1, log end 71, high watermark 71.
02:48:04.106 [1] Stopped with exit code 1.
"""


@pytest.mark.parametrize(
    ("printed", "told"),
    [
        (HALTED, "02:48:04.041 [1] FATAL: Halting: the log directory failed with errno 28."),
        (
            "FATAL: Node 0 cannot start: [Errno 98] Address in use.\n",
            "FATAL: Node 0 cannot start: [Errno 98] Address in use.",
        ),
        (
            "02:48:04.041 [1] Replication from broker 2 is interrupted.\n02:48:04.106 [1] Stopped with exit code 0.\n",
            "02:48:04.106 [1] Stopped with exit code 0.",
        ),
        ("", "(its log is empty)"),
    ],
)
def test_the_end_of_a_built_in_node_is_blamed_on_one_line(printed: str, told: str) -> None:
    assert last_words(printed, 1) == told
