"""The built-in broker: Kafka's wire protocol, segment files and replication, behind ports.

From the outside in::

    __main__, controller   one process each; node: its real ports, its control channel, its start and exit
    network, files         the ports on asyncio and the operating system, with the gates and budgets of faults
    control, ping          the harness's own channel into a node; no part of the system under test
    broker                 assembles a broker; session, handlers, produce, fetch, offsets serve its clients
    partition, segments    one replica: the pure core's effects performed on a log, storage's answers fed back
    fetcher, caller        a follower's endless fetch; requests to other nodes
    controller_link        registration, heartbeats, ISR proposals
    controller_node        drives the controller core; pusher: its pushes to each broker until acknowledged

Everything but ``__main__``, ``controller``, ``node``, ``control``, ``network`` and ``files`` lives on ``ports``
alone, so that a simulation can drive the very same classes in virtual time.
"""
