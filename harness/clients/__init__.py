"""Clients on confluent-kafka (librdkafka), configured to report outcomes exactly."""
