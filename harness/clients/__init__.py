"""confluent-kafka (librdkafka), configured so that every answer means what it says."""
