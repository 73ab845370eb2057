"""Real Apache Kafka as a target: brokers of any release as Java processes on this machine's loopback addresses."""
