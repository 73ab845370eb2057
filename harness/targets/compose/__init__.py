"""The target that runs a user's compose file: real Kafka in containers, with faults injected from outside."""
