"""A user's compose file as a target: real Kafka in containers, broken from outside."""
