"""The group coordinator of a partition of ``__consumer_offsets``, without network, disk and clock.

Its groups answer requests of Kafka's protocol (:mod:`harness.wire`). What they need of a broker is the port
:class:`harness.coordination.surroundings.Surroundings`: to store records in the partition, to wait, and the time.
"""
