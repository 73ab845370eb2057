"""Kafka's replication as a pure function of events: replica, in-sync set, epochs, controller."""
