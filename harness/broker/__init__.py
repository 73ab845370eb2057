"""The built-in broker: Kafka's wire protocol, segment files and replication, behind ports.

From the outside in::

    __main__, controller   one process each; node: its real ports, its start and exit
    network, files         the ports on asyncio and the operating system, with the gates and budgets of faults
    control_channel, ping  the harness's own channel into a node; no part of the system under test
    introductions, secret  how nodes authenticate each other
    broker                 assembles a broker: which function serves which API
    session                a client's connection; produce, fetch, offsets, *_requests, describe_* serve its requests
    *_coordinator          groups and transactions, on the log of one partition (coordinator_log)
    partition, segments    one replica: the pure core's effects performed on a log, storage's answers fed back
    log_manager, log_*     the logs and directories of a broker; log_cleaner, compaction, swap: what is compacted
    fetcher, caller        a follower's endless fetch; requests to other nodes
    controller_link        registration, heartbeats, ISR proposals
    controller_*           drive the controller core; pusher: its pushes to each broker until acknowledged
    injected_bugs          the switchable bugs that take more than a line

Everything but ``__main__``, ``controller``, ``node``, ``control_channel``, ``network`` and ``files`` lives on ``ports``
alone, so that a simulation can drive the very same classes in virtual time.
"""
