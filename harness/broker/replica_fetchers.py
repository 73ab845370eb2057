"""The fetchers of one broker, one per leader that it follows: Kafka's ``ReplicaFetcherManager``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from harness.broker.fetcher import Fetcher
from harness.broker.partition import Partition
from harness.broker.settings import Address, NodeConfig
from harness.broker.timeline import ReplicaState
from harness.model import NO_LEADER, NodeId


class ReplicaFetchers:
    """Moves each replica to the fetcher of its leader.

    Args:
        config: of the broker.
        fetch_from: makes the fetcher of the leader at an address.
    """

    def __init__(self, config: NodeConfig, fetch_from: Callable[[NodeId, Address], Fetcher]) -> None:
        self._config = config
        self._fetch_from = fetch_from
        self._fetchers: dict[NodeId, Fetcher] = {}
        self._addresses: dict[NodeId, Address] = {}

    def learn_leaders(self, addresses: Mapping[NodeId, Address]) -> None:
        """Take the addresses of leaders, which replace older ones."""
        self._addresses.update(addresses)

    def follow(self, partition: Partition, state: ReplicaState) -> None:
        """Fetch ``partition`` from the leader in ``state`` only; from none if this broker does not follow it."""
        for other in self._fetchers.values():
            other.remove(partition.name)
        if state.role != "follower" or state.leader in (NO_LEADER, self._config.node_id):
            return
        address = self._addresses.get(state.leader) or self._config.address_of(str(state.leader))
        fetcher = self._fetchers.get(state.leader)
        if fetcher is None or fetcher.address != address:
            fetcher = self._fetch_from(state.leader, address)
            self._fetchers[state.leader] = fetcher
        fetcher.add(partition)
