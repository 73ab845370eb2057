"""Compose files of brokers of other makes, with the structure of what their makers publish."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml

from harness.targets.compose.foreign_file import ForeignFile, understood

FILE = Path("compose.yml")


def parsed(text: str) -> dict[str, Any]:
    """The file as plain data."""
    stack: dict[str, Any] = yaml.safe_load(dedent(text))
    return stack


def read(text: str, pattern: str | None = None) -> ForeignFile:
    """What is understood of a file."""
    return understood(parsed(text), FILE, pattern)


def redpanda(number: int, external: int) -> str:
    """A broker of Redpanda's own files, whose external listeners begin at the published port ``external``."""
    name, shift = f"redpanda-{number}", external - 19092
    return f"""
      {name}:
        image: docker.redpanda.com/redpandadata/redpanda:v25.2.1
        container_name: {name}
        command:
          - redpanda
          - start
          - --kafka-addr internal://0.0.0.0:9092,external://0.0.0.0:{external}
          - --advertise-kafka-addr internal://{name}:9092,external://localhost:{external}
          - --pandaproxy-addr internal://0.0.0.0:8082,external://0.0.0.0:{18082 + shift}
          - --advertise-pandaproxy-addr internal://{name}:8082,external://localhost:{18082 + shift}
          - --schema-registry-addr internal://0.0.0.0:8081,external://0.0.0.0:{18081 + shift}
          - --rpc-addr {name}:33145
          - --advertise-rpc-addr {name}:33145
          - --seeds redpanda-0:33145
          - --mode dev-container
          - --smp 1
        volumes: ["{name}:/var/lib/redpanda/data"]
        networks: [redpanda_network]
        ports: ["{18081 + shift}:{18081 + shift}", "{18082 + shift}:{18082 + shift}", "{external}:{external}"]
        {"depends_on: [redpanda-0]" if number else "healthcheck: {test: [CMD-SHELL, rpk cluster health]}"}
"""


BESIDE = """
      console:
        image: docker.redpanda.com/redpandadata/console:v3.2.1
        container_name: redpanda-console
        entrypoint: /bin/sh
        command: -c 'echo "$$CONSOLE_CONFIG_FILE" > /tmp/config.yml; /app/console'
        environment:
          CONFIG_FILEPATH: /tmp/config.yml
          CONSOLE_CONFIG_FILE: |
            kafka: {brokers: ["redpanda-0:9092"]}
            server: {listenPort: 8080, publicUrl: "http://localhost:8080"}
        networks: [redpanda_network]
        ports: ["8080:8080"]
        depends_on: [redpanda-0]
      create-topics:
        image: docker.redpanda.com/redpandadata/redpanda:v25.2.1
        entrypoint: [rpk, topic, create, ledger, -X, "brokers=redpanda-0:9092"]
        networks: [redpanda_network]
        depends_on: {redpanda-0: {condition: service_healthy}}
"""

REDPANDA_THREE = f"""
    networks: {{redpanda_network: {{driver: bridge}}}}
    volumes: {{redpanda-0: null, redpanda-1: null, redpanda-2: null}}
    services:
{redpanda(0, 19092)}{redpanda(1, 29092)}{redpanda(2, 39092)}{BESIDE}
"""

REDPANDA_ONE = f"""
    networks: {{redpanda_network: {{driver: bridge}}}}
    volumes: {{redpanda-0: null}}
    services:
{redpanda(0, 19092)}{BESIDE}
"""

IN_VARIABLES = """
    services:
      tansu:
        image: ghcr.io/tansu-io/tansu
        environment:
          CLUSTER_ID: tansu
          ADVERTISED_LISTENER_URL: tcp://localhost:9092
          STORAGE_ENGINE: "memory://tansu/"
        ports: [{mode: ingress, target: 9092, published: "9092", protocol: tcp}]
"""
"""As Compose v2 resolves it."""

TWO_ADDRESSES = """
    services:
      broker:
        image: example/broker
        command: broker --public-address localhost:19092 --public-admin-address localhost:19093
        labels: {}
        ports: ["19092:9092", "127.0.0.1:19093:9093/tcp"]
"""
