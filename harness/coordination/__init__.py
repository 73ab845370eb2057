"""The coordinators of groups and of transactions, without network, disk and clock.

They answer requests of Kafka's protocol (:mod:`harness.wire`), and keep what they know in a partition of
``__consumer_offsets`` or ``__transaction_state``. What they need of a broker are the ports of
:mod:`harness.coordination.ports`: to store records in the partition, to wait, and the time.
"""
