"""Other users of this machine reach the ports of the JVM, on which Spark reads Java objects."""

from __future__ import annotations

import socket
import struct

import psutil
from pyspark.sql import SparkSession

_RPC_REQUEST = 3
_PATIENCE_S = 30.0


def _listening() -> list[int]:
    """The ports of this process's JVM."""
    machines = [child for child in psutil.Process().children(recursive=True) if child.name() == "java"]
    connections = [one for machine in machines for one in machine.net_connections("tcp")]
    return sorted({one.laddr.port for one in connections if one.status == psutil.CONN_LISTEN})


def _answer(port: int) -> bytes:
    """What is said to a frame of Spark's transport that holds the beginning of a serialized Java object."""
    body = b"\xac\xed\x00\x05"
    message = struct.pack(">bqi", _RPC_REQUEST, 7, len(body)) + body
    with socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_S) as stranger:
        stranger.sendall(struct.pack(">q", 8 + len(message)) + message)
        return stranger.recv(1_000)


def test_spark_takes_nothing_from_who_does_not_know_the_secret_of_its_session(spark: SparkSession) -> None:
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    py4j = gateway.gateway_parameters
    assert py4j.auth_token
    ports = [port for port in _listening() if port != py4j.port]
    assert len(ports) == 2  # the driver's endpoint and its block manager
    for port in ports:
        assert b"Expected SaslMessage" in _answer(port)
