"""Kafka's replication as a pure function of events: replica, ISR, leader epochs, controller."""
