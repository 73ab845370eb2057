"""Whether the nodes are well: alive, in their first life, no larger than they should be, and doing their work."""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import count

import psutil

from harness.model import CONTROLLER_ID, NodeId
from harness.wire.batches import headers, records
from harness.wire.keys import ApiKey
from harness.wire.messages.api_versions import ApiVersionsRequest
from harness.wire.messages.consumers import OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic
from harness.wire.messages.coordination import FindCoordinatorRequest
from harness.wire.messages.metadata import MetadataRequest
from tests.fuzz.load import KnownLoad
from tests.harness.broker.cluster import Cluster
from tests.harness.broker.raw_client import RawClient, batch, fetch_request, produce_request

MOST_GROWTH_BYTES = 300 << 20
"""By how much a node may grow, resident, over what it had before the first frame."""

WATCHED_TOPIC = "written-and-read-at-each-look"
"""A topic with a partition for each broker, which that broker leads."""

_ANSWER_S = 0.1


class Unwell(Exception):
    """A node is not well; ``node`` and a sentence."""

    def __init__(self, node: int, sentence: str) -> None:
        super().__init__(f"Node {node} {sentence}")
        self.node = node


class Watch:
    """Looks at every node of a cluster, and at the load beside it, whose partition *i* broker *i* leads.

    Attributes:
        slowest_s: the longest that an answer has taken.
        growth_bytes: by how much each node has grown at most.
    """

    def __init__(self, cluster: Cluster, load: KnownLoad, answers_within_s: float) -> None:
        self._cluster = cluster
        self._load = load
        self._counted = load.counted()
        self._answers_within_s = answers_within_s
        self._processes = {node: psutil.Process(process.pid) for node, process in cluster.processes.items()}
        self._before = {node: process.memory_info().rss for node, process in self._processes.items()}
        self._looks = count(1)
        self.slowest_s = 0.0
        self.growth_bytes = dict.fromkeys(self._processes, 0)

    def __str__(self) -> str:
        growth = ", ".join(f"{node}: {size >> 20}" for node, size in self.growth_bytes.items())
        return f"slowest answer {self.slowest_s:.2f} s, growth in MiB {growth}; {self._load}"

    def look(self) -> None:
        """Look at all of them: each must do its work, and the load must have got on since the last look.

        Raises:
            Unwell: one is not well.
        """
        look = next(self._looks)
        for node, process in self._cluster.processes.items():
            if (status := process.poll()) is not None:
                raise Unwell(node, f"has ended with exit code {status}")
            self._measure(node)
            self._work(node, look)
        self._require_progress()

    def _measure(self, node: NodeId) -> None:
        growth = self._processes[node].memory_info().rss - self._before[node]
        self.growth_bytes[node] = max(self.growth_bytes[node], growth)
        if growth > MOST_GROWTH_BYTES:
            raise Unwell(node, f"has grown by {growth >> 20} MiB; {MOST_GROWTH_BYTES >> 20} are allowed")

    def _work(self, node: NodeId, look: int) -> None:
        """Have a node do its work: a broker answers, writes and reads; the controller keeps what a group commits."""
        try:
            self._ask(node)
            if node == CONTROLLER_ID:
                self._commit(look)
            else:
                self._write_and_read(node, b"%d" % look)
        except (OSError, AssertionError) as error:
            who = "the controller" if node == CONTROLLER_ID else "a broker"
            raise Unwell(node, f"({who}) did not do its work within {self._answers_within_s} s: {error!r}") from error

    def _ask(self, node: NodeId) -> None:
        begun = time.monotonic()
        with self._client(node) as client:
            client.ask(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("watch", "1"))
        self.slowest_s = max(self.slowest_s, time.monotonic() - begun)

    def _write_and_read(self, node: NodeId, value: bytes) -> None:
        with self._client(node) as client:
            told = client.ask(ApiKey.METADATA, 9, MetadataRequest(None))
            assert {one.node_id for one in told.brokers} == set(self._cluster.ids), "Metadata lacks a broker"
            about = {"partition": node, "timeout_ms": int(1_000 * self._answers_within_s)}
            [topic] = client.ask(ApiKey.PRODUCE, 9, produce_request(WATCHED_TOPIC, batch(value), **about)).responses
            [written] = topic.partition_responses
            assert written.error_code == 0, f"Produce is answered with error {written.error_code}"
            begun = time.monotonic()
            while value not in self._read(client, node, written.base_offset):
                # A consumer reads up to the watermark that the leader has, and an acknowledgement may be before that.
                assert time.monotonic() - begun < self._answers_within_s, "what was acknowledged is not read"
                time.sleep(_ANSWER_S)

    def _read(self, client: RawClient, node: NodeId, offset: int) -> list[bytes | None]:
        [topic] = client.ask(ApiKey.FETCH, 12, fetch_request(WATCHED_TOPIC, offset, partition=node)).responses
        [read] = topic.partitions
        assert read.error_code == 0, f"Fetch is answered with error {read.error_code}"
        content = bytes(read.records or b"")
        return [record.value for header in headers(content) for record in records(content, header)]

    def _commit(self, offset: int) -> None:
        """Through a broker, for clients do not ask the controller; what is committed it writes down."""
        partitions = [OffsetCommitRequestPartition(0, offset, -1, "")]
        body = OffsetCommitRequest("watch", topics=[OffsetCommitRequestTopic(WATCHED_TOPIC, partitions)])
        with self._client(self._coordinator()) as client:
            [topic] = client.ask(ApiKey.OFFSET_COMMIT, 8, body).topics
        [committed] = topic.partitions
        assert committed.error_code == 0, f"OffsetCommit is answered with error {committed.error_code}"

    def _coordinator(self) -> NodeId:
        """Of the group; the first one to ask for a coordinator has the topic of the groups made."""
        begun = time.monotonic()
        with self._client(self._cluster.ids[0]) as client:
            while (found := client.ask(ApiKey.FIND_COORDINATOR, 2, FindCoordinatorRequest("watch"))).error_code:
                assert time.monotonic() - begun < self._answers_within_s, f"no coordinator: error {found.error_code}"
                time.sleep(_ANSWER_S)
        return NodeId(found.node_id)

    def _client(self, node: NodeId) -> RawClient:
        client = RawClient(self._cluster.ips[node], self._cluster.configs[node].listener[1])
        client.socket.settimeout(self._answers_within_s)
        return client

    def _require_progress(self) -> None:
        """Every partition of the load has been acknowledged more since the last look, and nothing of it has failed."""
        deadline = time.monotonic() + self._answers_within_s
        while still := self._still():
            if time.monotonic() > deadline:
                raise Unwell(min(still), "leads a partition of the load to which nothing more is written")
            time.sleep(_ANSWER_S)
        self._counted = self._load.counted()
        if self._load.failed:
            raise Unwell(self._cluster.ids[0], f"or another broker has failed {self._load.failed} sends of the load")

    def _still(self) -> Iterable[int]:
        return [partition for partition, number in self._load.counted().items() if number <= self._counted[partition]]
