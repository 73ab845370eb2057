"""The harness: runs a scenario against a Kafka-like cluster and records what happened."""
