"""Compose files as people write them, in the dialects of the common images."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import yaml

from harness.targets.compose.compose_file import ComposeFile, understood

FILE = Path("compose.yml")


def read(text: str, pattern: str | None = None) -> ComposeFile:
    """What is understood of a file."""
    return understood(yaml.safe_load(dedent(text)), FILE, pattern)


APACHE_COMBINED = """
    services:
      broker-1:
        image: apache/kafka:4.1.0
        hostname: broker-1
        container_name: broker-1
        ports: ["29092:9092"]
        environment: &environment
          KAFKA_NODE_ID: 1
          KAFKA_PROCESS_ROLES: 'broker,controller'
          KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: 'CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PLAINTEXT_HOST:PLAINTEXT'
          KAFKA_CONTROLLER_QUORUM_VOTERS: '1@broker-1:9093,2@broker-2:9093,3@broker-3:9093'
          KAFKA_LISTENERS: 'PLAINTEXT://:19092,CONTROLLER://:9093,PLAINTEXT_HOST://:9092'
          KAFKA_INTER_BROKER_LISTENER_NAME: 'PLAINTEXT'
          KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://broker-1:19092,PLAINTEXT_HOST://localhost:29092
          KAFKA_CONTROLLER_LISTENER_NAMES: 'CONTROLLER'
          CLUSTER_ID: '4L6g3nShT-eMCtK--X86sw'
          KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR: 1
          KAFKA_LOG_DIRS: '/tmp/kraft-combined-logs'
          KAFKA_AUTO_CREATE_TOPICS_ENABLE: false
      broker-3:
        image: apache/kafka:4.1.0
        environment:
          <<: *environment
          KAFKA_NODE_ID: 3
          KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://broker-3:19092,PLAINTEXT_HOST://localhost:49092
      broker-2:
        image: apache/kafka:4.1.0
        environment:
          <<: *environment
          KAFKA_NODE_ID: 2
          KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://broker-2:19092,PLAINTEXT_HOST://localhost:39092
      ui:
        image: provectuslabs/kafka-ui
        environment: {KAFKA_CLUSTERS_0_NAME: local, KAFKA_CLUSTERS_0_BOOTSTRAPSERVERS: "broker-1:19092"}
      create-topics:
        image: apache/kafka:4.1.0
        command: /opt/kafka/bin/kafka-topics.sh --create --topic ledger
"""

CONFLUENT_ZOOKEEPER = """
    version: '2'
    services:
      zookeeper:
        image: confluentinc/cp-zookeeper:6.2.1
        environment: {ZOOKEEPER_CLIENT_PORT: 2181, ZOOKEEPER_TICK_TIME: 2000}
      broker:
        image: confluentinc/cp-kafka:6.2.1
        depends_on: [zookeeper]
        ports: ["29092:29092"]
        environment:
          KAFKA_BROKER_ID: 1
          KAFKA_ZOOKEEPER_CONNECT: 'zookeeper:2181'
          KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: PLAINTEXT:PLAINTEXT,PLAINTEXT_INTERNAL:PLAINTEXT
          KAFKA_ADVERTISED_LISTENERS: PLAINTEXT://localhost:29092,PLAINTEXT_INTERNAL://broker:9092
          KAFKA_INTER_BROKER_LISTENER_NAME: PLAINTEXT_INTERNAL
      schema-registry:
        image: confluentinc/cp-schema-registry:6.2.1
        environment: {SCHEMA_REGISTRY_KAFKASTORE_BOOTSTRAP_SERVERS: 'broker:9092'}
      connect:
        image: confluentinc/cp-kafka-connect:6.2.1
        environment: {CONNECT_BOOTSTRAP_SERVERS: 'broker:9092'}
"""

BITNAMI = """
    services:
      controller:
        image: docker.io/bitnami/kafka:3.9
        environment:
          - KAFKA_CFG_NODE_ID=0
          - KAFKA_CFG_PROCESS_ROLES=controller
          - KAFKA_CFG_LISTENERS=CONTROLLER://:9093
          - KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
          - KAFKA_CFG_CONTROLLER_LISTENER_NAMES=CONTROLLER
          - KAFKA_KRAFT_CLUSTER_ID=abcdefghijklmnopqrstuv
      kafka:
        image: docker.io/bitnami/kafka:3.9
        volumes: ["kafka_data:/bitnami"]
        environment:
          - KAFKA_CFG_NODE_ID=5
          - KAFKA_CFG_PROCESS_ROLES=broker
          - KAFKA_CFG_LISTENERS=PLAINTEXT://:9092
          - KAFKA_CFG_ADVERTISED_LISTENERS=PLAINTEXT://kafka:9092
          - KAFKA_CFG_LISTENER_SECURITY_PROTOCOL_MAP=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
          - KAFKA_CFG_CONTROLLER_LISTENER_NAMES=CONTROLLER
          - KAFKA_CFG_MIN_INSYNC_REPLICAS=2
          - ALLOW_PLAINTEXT_LISTENER=yes
"""

WURSTMEISTER = """
    services:
      zk:
        image: wurstmeister/zookeeper
        container_name: zookeeper
      kafka:
        image: wurstmeister/kafka:2.13-2.8.1
        networks: [back]
        environment:
          KAFKA_BROKER_ID: 7
          KAFKA_ADVERTISED_HOST_NAME: 192.168.99.100
          KAFKA_ZOOKEEPER_CONNECT: zookeeper:2181
          KAFKA_CREATE_TOPICS: "ledger:1:1"
"""
