"""Stories of coordinators: what brokers of a generation answer clients that speak the newest versions they offer.

A story is a script of commands, ``----``, and what comes of it in each generation, those of the same ending together.
Producers and members have names of the story's; ``#`` comments. The topic "t" has one partition, which broker 0 leads.

The brokers of seawall offer some requests in newer versions than Kafka's of the same age (InitProducerId of KIP-360,
static members of KIP-345): where all generations have one ending, no knob says otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from harness.broker.served_versions import served_by
from harness.error_codes import ErrorCode
from harness.replication.knobs import GENERATIONS
from harness.wire import batches as wire
from harness.wire.declaration import Message
from harness.wire.keys import ApiKey
from harness.wire.messages.consumer_groups import ConsumerGroupHeartbeatRequest, TopicPartitions
from harness.wire.messages.consumers import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from harness.wire.messages.coordination import FindCoordinatorRequest, InitProducerIdRequest
from harness.wire.messages.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    MemberIdentity,
    SyncGroupRequest,
)
from harness.wire.messages.operators import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from harness.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.harness.broker.raw_client import batch, fetch_request, produce_request
from tests.harness.broker.virtual_cluster import VirtualCluster

_GROUP, _TRANSACTION = 0, 1
_CLIENTS_NEWEST = {
    ApiKey.ADD_PARTITIONS_TO_TXN: 3,
    ApiKey.FIND_COORDINATOR: 3,
    ApiKey.OFFSET_FETCH: 7,
    ApiKey.FETCH: 11,
}
"""Where newer versions ask for several things at once, or are for brokers."""

UNSUPPORTED = "unsupported"
"""What comes of a command for which a generation has nothing; its story ends there."""

SESSION_MS, REBALANCE_MS = 6_000, 3_000


@dataclass(slots=True)
class Producer:
    """Who a producer of the story is; ``name``: its transactional id, None: it has none."""

    name: str | None
    producer_id: int = -1
    epoch: int = -1


@dataclass(slots=True)
class Member:
    """Who a member of a group is; ``joined``: the answers to its JoinGroup that is under way."""

    instance: str | None
    member_id: str = ""
    generation: int = -1
    joined: list[Any] | None = None


class CoordinatorTeller:
    """Plays the commands of a story on the brokers of one generation.

    Args:
        generation: which.
        overrides: knobs that are turned.
    """

    def __init__(self, generation: str, overrides: Mapping[str, str] = MappingProxyType({})) -> None:
        self.cluster = VirtualCluster(
            generation,
            overrides,
            offsets_retention_minutes=1,
            offsets_retention_check_interval_ms=1_000,
            group_consumer_session_timeout_ms=SESSION_MS,
        )
        self.cluster.create_topic()
        knobs = self.cluster.simulated.knobs
        self._served, self._knows_producers = served_by(knobs), knobs.transactions != "none"
        self._producers: dict[str, Producer] = {}
        self._members: dict[str, Member] = {}

    def command(self, line: str) -> str:
        """What comes of the command ``line``, in one line."""
        name, *words = line.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        told: str = getattr(self, f"_do_{name.replace('-', '_')}")(*(w for w in words if "=" not in w), **options)
        return told

    # ------------------------------------------------------------------------------------------------------ producers

    def _do_producer(self, who: str, name: str | None = None, timeout_ms: str = "60000") -> str:
        """A new process begins, as a transactional producer of ``name`` or without."""
        return self._begun(who, Producer(name), timeout_ms)

    def _do_begin_again(self, who: str) -> str:
        """The same process asks for its next epoch (KIP-360)."""
        return self._begun(who, self._producers[who], "60000")

    def _begun(self, who: str, producer: Producer, timeout_ms: str) -> str:
        body = InitProducerIdRequest(producer.name, int(timeout_ms), producer.producer_id, producer.epoch)
        if not self._knows_producers:
            return UNSUPPORTED
        node = 0 if producer.name is None else self._coordinator(producer.name, _TRANSACTION)
        answer = self._ask(node, ApiKey.INIT_PRODUCER_ID, body)
        if not answer.error_code:
            self._producers[who] = Producer(producer.name, answer.producer_id, answer.producer_epoch)
        return self._said(answer.error_code, epoch=answer.producer_epoch)

    def _do_add(self, who: str) -> str:
        """It adds the partition to its transaction."""
        producer = self._producers[who]
        topics = [AddPartitionsToTxnTopic("t", [0])]
        body = AddPartitionsToTxnRequest([], producer.name or "", producer.producer_id, producer.epoch, topics)
        node = self._coordinator(producer.name, _TRANSACTION)
        answer = self._ask(node, ApiKey.ADD_PARTITIONS_TO_TXN, body)
        return self._said(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)

    def _do_send(self, who: str, sequence: str, transaction: str = "") -> str:
        """It sends a batch of one record, in its transaction or without."""
        producer = self._producers[who]
        records = batch(
            sequence.encode(),
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=int(sequence),
            timestamp_ms=self.cluster.world.wall_ms(),
            attributes=wire.TRANSACTIONAL if transaction else 0,
        )
        body = produce_request("t", records, transactional_id=producer.name if transaction else None)
        answer = self._ask(0, ApiKey.PRODUCE, body)
        one = answer.responses[0].partition_responses[0]
        return self._said(one.error_code, **({} if one.error_code else {"offset": one.base_offset}))

    def _do_end(self, who: str, how: str, lost: str = "") -> str:
        """It ends its transaction: ``commit`` or ``abort``; ``lost``: it does not get the answer, and its new epoch."""
        producer = self._producers[who]
        body = EndTxnRequest(producer.name or "", producer.producer_id, producer.epoch, how == "commit")
        answer = self._ask(self._coordinator(producer.name, _TRANSACTION), ApiKey.END_TXN, body)
        if answer.error_code or answer.producer_epoch < 0:
            return self._said(answer.error_code)
        if not lost:
            producer.producer_id, producer.epoch = answer.producer_id, answer.producer_epoch
        return self._said(0, epoch=answer.producer_epoch)

    def _do_log(self) -> str:
        """What is in the log, marker by marker, and up to where a reader of committed records gets."""
        (part,) = self._ask(0, ApiKey.FETCH, fetch_request("t", 0)).responses[0].partitions
        headers = wire.headers(memoryview(part.records or b""))
        told = " ".join(f"{one.base_offset}:{_batch(one)}" for one in headers)
        return f"{told or 'empty'} stable={part.last_stable_offset}"

    def _do_delete_records(self) -> str:
        """A client deletes everything that there is."""
        body = DeleteRecordsRequest([DeleteRecordsTopic("t", [DeleteRecordsPartition(0, -1)])], 1_000)
        return self._said(self._ask(0, ApiKey.DELETE_RECORDS, body).topics[0].partitions[0].error_code)

    # --------------------------------------------------------------------------------------------------------- groups

    def _do_join(self, who: str, instance: str | None = None) -> str:
        """A member of the classic protocol joins the group, or joins it again."""
        known = self._members.setdefault(who, Member(instance))
        protocols = [JoinGroupRequestProtocol("range", b"mine")]
        body = JoinGroupRequest("g", SESSION_MS, REBALANCE_MS, known.member_id, known.instance, "consumer", protocols)
        answer = self._ask(self._coordinator("g", _GROUP), ApiKey.JOIN_GROUP, body)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            known.member_id = body.member_id = answer.member_id
            answer = self._ask(self._coordinator("g", _GROUP), ApiKey.JOIN_GROUP, body)
        if not answer.error_code:
            known.member_id, known.generation = answer.member_id, answer.generation_id
            assert not self._ask(
                self._coordinator("g", _GROUP),
                ApiKey.SYNC_GROUP,
                SyncGroupRequest("g", known.generation, known.member_id, known.instance),
            ).error_code
        return self._said(answer.error_code, generation=answer.generation_id)

    def _do_heartbeat(self, who: str) -> str:
        known = self._members[who]
        body = HeartbeatRequest("g", known.generation, known.member_id, known.instance)
        return self._said(self._ask(self._coordinator("g", _GROUP), ApiKey.HEARTBEAT, body).error_code)

    def _do_stay(self, who: str, seconds: str) -> str:
        """It sends heartbeats for so long; the answer to the last."""
        told = ""
        for _ in range(int(seconds) // 5):
            self.cluster.world.sleep(4.8)
            told = self._do_heartbeat(who)
        return told

    def _do_leave(self, who: str) -> str:
        known = self._members[who]
        body = LeaveGroupRequest("g", members=[MemberIdentity(known.member_id, known.instance)])
        return self._said(self._ask(self._coordinator("g", _GROUP), ApiKey.LEAVE_GROUP, body).error_code)

    def _do_member(self, who: str, epoch: str | None = None, owns: str = "") -> str:
        """A member of the consumer protocol sends a heartbeat; ``epoch``: another than the one it was given."""
        known = self._members.setdefault(who, Member(None, who))
        said = known.generation if epoch is None else int(epoch)
        body = ConsumerGroupHeartbeatRequest("g", known.member_id, said, topic_partitions=self._owned(owns))
        if said == 0:
            body.rebalance_timeout_ms, body.subscribed_topic_names = REBALANCE_MS, ["t"]
        if ApiKey.CONSUMER_GROUP_HEARTBEAT not in self._served.versions:
            return UNSUPPORTED
        answer = self._ask(self._coordinator("g", _GROUP), ApiKey.CONSUMER_GROUP_HEARTBEAT, body)
        if answer.error_code:
            return self._said(answer.error_code)
        known.generation = answer.member_epoch
        parts = () if answer.assignment is None else answer.assignment.topic_partitions
        given = [number for one in parts for number in one.partitions]
        return self._said(0, epoch=answer.member_epoch) + ("" if answer.assignment is None else f" given={given}")

    def _owned(self, owns: str) -> list[TopicPartitions]:
        topic = self.cluster.brokers[0].metadata.topic_id("t") or b""
        return [TopicPartitions(topic, [int(number) for number in owns.split(",")])] if owns else []

    def _do_commit(self, offset: str, who: str = "", generation: str = "") -> str:
        """A client commits an offset, as a member of the group or as none."""
        known = self._members.get(who, Member(None))
        said = int(generation) if generation else known.generation
        topics = [OffsetCommitRequestTopic("t", [OffsetCommitRequestPartition(0, int(offset), 0, "")])]
        body = OffsetCommitRequest("g", said, known.member_id, known.instance, topics=topics)
        answer = self._ask(self._coordinator("g", _GROUP), ApiKey.OFFSET_COMMIT, body)
        return self._said(answer.topics[0].partitions[0].error_code)

    def _do_commit_in_transaction(self, producer: str, offset: str, who: str = "", generation: str = "") -> str:
        """An offset is committed in a transaction, by a member where the request can say so."""
        one, known = self._producers[producer], self._members.get(who, Member(None))
        said = int(generation) if generation else known.generation
        group = self._coordinator("g", _GROUP)
        added = AddOffsetsToTxnRequest(one.name or "", one.producer_id, one.epoch, "g")
        error = self._ask(self._coordinator(one.name, _TRANSACTION), ApiKey.ADD_OFFSETS_TO_TXN, added).error_code
        if error:
            return self._said(error)
        topics = [TxnOffsetCommitRequestTopic("t", [TxnOffsetCommitRequestPartition(0, int(offset), 0, "")])]
        names_itself = self._version(ApiKey.TXN_OFFSET_COMMIT) >= 3
        member = (said, known.member_id, known.instance) if names_itself else (-1, "", None)
        body = TxnOffsetCommitRequest(one.name or "", "g", one.producer_id, one.epoch, *member, topics)
        answer = self._ask(group, ApiKey.TXN_OFFSET_COMMIT, body)
        return self._said(answer.topics[0].partitions[0].error_code)

    def _do_committed(self) -> str:
        """The commit with which the coordinator answers a consumer, which asks for a stable offset where it can."""
        can_wait = self._version(ApiKey.OFFSET_FETCH) >= 7
        body = OffsetFetchRequest("g", [OffsetFetchRequestTopic("t", [0])], require_stable=can_wait)
        (one,) = self._ask(self._coordinator("g", _GROUP), ApiKey.OFFSET_FETCH, body).topics[0].partitions
        return self._said(one.error_code, offset=one.committed_offset)

    # ----------------------------------------------------------------------------------------------------------- time

    def _do_wait(self, seconds: str) -> str:
        self.cluster.world.sleep(float(seconds))
        return ""

    # ------------------------------------------------------------------------------------------------------ internals

    def _coordinator(self, name: str | None, kind: int) -> int:
        for _ in range(2):  # its topic is created when it is first asked for
            (answer,) = self.cluster.call(1, ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(name or "", kind))
            if not answer.error_code:
                return int(answer.node_id)
            self.cluster.world.sleep(2)
        raise AssertionError(f"{name} has no coordinator")

    def _version(self, key: ApiKey) -> int:
        return min(self._served.versions[key][1], _CLIENTS_NEWEST.get(key, 99))

    def _ask(self, node: int, key: ApiKey, body: Message) -> Any:
        """The answer, once it has come."""
        answers = self.cluster.call(node, key, self._version(key), body)
        assert self.cluster.world.sleep_until(lambda: bool(answers), 20), key
        self.cluster.world.sleep(0.2)
        return answers[0]

    @staticmethod
    def _said(error: int, **details: int) -> str:
        told = [ErrorCode(error).name if error else "ok"]
        return " ".join([*told, *(f"{name}={one}" for name, one in details.items() if not error)])


def _batch(header: wire.BatchHeader) -> str:
    if header.marker is not None:
        return "COMMIT" if header.marker.commits else "ABORT"
    return f"record({header.base_sequence})" if header.producer_id >= 0 else "record"


def tell(path: Path, overrides: Mapping[str, str] = MappingProxyType({})) -> str:
    """The text of the story ``path``, with what comes of it now in each generation."""
    script = path.read_text().split("\n----")[0].rstrip("\n")
    endings: dict[str, list[str]] = {}
    for generation in GENERATIONS:
        endings.setdefault("\n".join(_lines(script, CoordinatorTeller(generation, overrides))), []).append(generation)
    told = [f"{', '.join(names)}:\n{ending}" for ending, names in endings.items()]
    return "\n".join([script, "----", *told]) + "\n"


def _lines(script: str, teller: CoordinatorTeller) -> Iterator[str]:
    """What comes of each command, up to the first that brokers of the generation do not serve."""
    for line in script.split("\n"):
        if line and not line.startswith("#"):
            told = teller.command(line)
            yield f"  {line}: {told}".removesuffix(": ")
            if told == UNSUPPORTED:
                return
