"""Apache Kafka's own Java client as a client library, in a process of its own."""
