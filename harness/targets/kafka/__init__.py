"""The target that runs Apache Kafka: brokers of any release as Java processes on loopback addresses."""
