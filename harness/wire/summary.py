"""Summarises requests and responses for a wire tap: what they say of each partition, without keys and values.

A summary is a list of parts, one for each partition that the frame names, and of a Produce request or a Fetch response
one for each batch; a frame that names none has one part. The keys of a part are columns of the table ``wire``
(:data:`harness.history.schema.WIRE`). What the frame does not say, or says by -1, is left out.
"""

from __future__ import annotations

import struct
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, cast

from harness.model import NO_OFFSET
from harness.wire.batches.header import CONTROL, TRANSACTIONAL, BatchHeader
from harness.wire.declaration import Buffer, Message
from harness.wire.errors import WireError
from harness.wire.frames import SUPPORTED, UnsupportedVersion, decode_request, decode_response
from harness.wire.keys import ApiKey
from harness.wire.messages.consumers import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from harness.wire.messages.coordination import InitProducerIdResponse
from harness.wire.messages.fetch import AbortedTransaction, FetchRequest, FetchResponse
from harness.wire.messages.metadata import MetadataResponse
from harness.wire.messages.offsets import (
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from harness.wire.messages.operators import DeleteRecordsRequest, DeleteRecordsResponse
from harness.wire.messages.produce import ProduceRequest, ProduceResponse
from harness.wire.messages.shares import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from harness.wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from harness.wire.parts import Names, Part, batch_headers, known, of_batch
from harness.wire.share_parts import acknowledge_request, acknowledge_response, fetch_request, fetch_response

_HEADER = struct.Struct(">hhih")
_CORRELATION = struct.Struct(">i")
_NAMES: Mapping[int, str] = MappingProxyType({int(key): key.name for key in ApiKey})


class RequestSummary(NamedTuple):
    """A request, as far as it is understood.

    Attributes:
        api: its name; the number of one without a codec; None: there is no whole header.
        version: None with ``api``, and so is ``correlation_id``.
        client_id: None, too, where the client sends none.
        parts: see the module; at least one.
        problem: why it, or its body, is not understood; None: it is.
        is_answered: False of a Produce with acks=0, which has no response.
    """

    api: str | None
    version: int | None
    correlation_id: int | None
    client_id: str | None
    parts: Sequence[Part]
    problem: str | None = None
    is_answered: bool = True


class ResponseSummary(NamedTuple):
    """A response, as far as it is understood; see :class:`RequestSummary`."""

    parts: Sequence[Part]
    problem: str | None = None


class Summaries:
    """Summarises the frames of one node.

    It learns the names of topics from responses to Metadata, for newer Fetch requests have their ids alone.
    """

    def __init__(self) -> None:
        self._topics: dict[bytes, str] = {}

    def request(self, frame: Buffer) -> RequestSummary:
        """The summary of any frame that a client, or another node, has sent."""
        head = _head(frame)
        try:
            header, body = decode_request(frame)
        except UnsupportedVersion as error:
            return head._replace(client_id=error.header.client_id, problem=str(error))
        except WireError as error:
            return head._replace(problem=str(error))
        parts = self._parts(body)
        is_answered = not (isinstance(body, ProduceRequest) and body.acks == 0)
        return head._replace(client_id=header.client_id, parts=parts, is_answered=is_answered)

    def response(self, api: str, version: int, frame: Buffer) -> ResponseSummary:
        """The summary of any frame that answers a request of that API and version."""
        if api not in ApiKey.__members__:
            return ResponseSummary([{}], f"there is no codec for API {api}")
        key = ApiKey[api]
        try:
            _, body = _decoded_response(key, version, frame)
        except WireError as error:
            return ResponseSummary([{}], str(error))
        if isinstance(body, MetadataResponse):
            self._topics.update((one.topic_id, one.name) for one in body.topics if one.name)
        return ResponseSummary(self._parts(body))

    def _parts(self, body: Message) -> list[Part]:
        parts = _PARTS.get(type(body), _of_no_partition)(body, self._topics)
        return [{name: value for name, value in part.items() if value is not None} for part in parts] or [{}]


def correlation_id(frame: Buffer) -> int | None:
    """That of a response; None: the frame is too short to have one."""
    return None if len(frame) < _CORRELATION.size else int(_CORRELATION.unpack_from(frame)[0])


def merged(asked: Sequence[Part], answered: Sequence[Part]) -> list[Part]:
    """The parts of a request and those of its response about the same partitions, as one list."""
    replies: dict[tuple[Any, Any], list[Part]] = defaultdict(list)
    for part in answered:
        replies[_place(part)].append(part)
    general = {name: value for part in replies.pop((None, None), ()) for name, value in part.items()}
    found: list[Part] = []
    taken = set()
    for part in asked:
        own = [one for one in replies.get(_place(part), ()) if _concerns(part, one)]
        if "acknowledgement" in part:
            own = [{name: one[name] for name in _OF_ACKNOWLEDGEMENTS if name in one} for one in own[:1]]
        taken.add(_place(part))
        if own or "topic" in part or not replies:
            found += [_whole({**part, **general, **one}) for one in own or [{}]]
    shared = {name: value for name, value in (asked[0] if asked else {}).items() if name in _OF_THE_WHOLE}
    rest = [one for place, several in replies.items() if place not in taken for one in several]
    return [*found, *(_whole({**shared, **general, **one}) for one in rest)]


_OF_THE_WHOLE = frozenset({"group", "generation", "transactional_id", "acks"})
"""What a request says once for all its partitions."""


_OF_ACKNOWLEDGEMENTS = ("error", "acknowledge_error")
"""What a response to a ShareFetch or a ShareAcknowledge says of all that was acknowledged of a partition."""


def _place(part: Part) -> tuple[Any, Any]:
    return part.get("topic"), part.get("partition")


def _concerns(asked: Part, answered: Part) -> bool:
    """Of WriteTxnMarkers and OffsetFetch, which may name a partition once for each of several producers or groups."""
    return all(asked[name] == answered[name] for name in ("producer_id", "group") if name in asked and name in answered)


def _whole(part: Part) -> Part:
    """A produced batch with its end, which follows from the base offset that it was given."""
    if "base_offset" in part and "end_offset" not in part and "records" in part:
        part["end_offset"] = part["base_offset"] + part["records"]
    return part


def _head(frame: Buffer) -> RequestSummary:
    """The header, whatever follows it."""
    if len(frame) < _HEADER.size:
        return RequestSummary(None, None, None, None, [{}], f"a frame of {len(frame)} bytes has no request header")
    number, version, correlation, _ = _HEADER.unpack_from(frame)
    return RequestSummary(_NAMES.get(number, str(number)), version, correlation, None, [{}])


def _decoded_response(key: ApiKey, version: int, frame: Buffer) -> tuple[int, Message]:
    first, last = SUPPORTED[key]
    try:
        if not first <= version <= last:
            raise WireError(f"{key.name} v{version} is not supported")
        return decode_response(key, version, frame)
    except WireError:
        if key is ApiKey.API_VERSIONS and version:  # a broker that lacks the version answers in version 0
            return decode_response(key, 0, frame)
        raise


# ------------------------------------------------------------------------------------------------------ the messages


def _with_batches(common: Part, batches: Iterable[Part]) -> Iterator[Part]:
    """A part for each batch, or one without."""
    parts = [{**common, **batch, "batch": position} for position, batch in enumerate(batches)]
    yield from parts or [common]


def _of_no_partition(body: Any, _: Names) -> Iterator[Part]:
    """What requests and responses of many APIs have, whatever else they say."""
    producer_id = known(getattr(body, "producer_id", NO_OFFSET))
    yield {
        "error": getattr(body, "error_code", None),
        "group": getattr(body, "group_id", None),
        "generation": getattr(body, "generation_id", None),
        "transactional_id": getattr(body, "transactional_id", None),
        "producer_id": producer_id,
        "producer_epoch": None if producer_id is None else known(body.producer_epoch),
        "commits": getattr(body, "committed", None),
    }


def _produce_request(body: ProduceRequest, names: Names) -> Iterator[Part]:
    for topic in body.topic_data:
        for one in topic.partition_data:
            common = {
                "topic": topic.name or names.get(topic.topic_id),
                "partition": one.index,
                "acks": body.acks,
                "transactional_id": body.transactional_id,
            }
            yield from _with_batches(common, map(of_batch, batch_headers(one.records)))


def _produce_response(body: ProduceResponse, names: Names) -> Iterator[Part]:
    for topic in body.responses:
        for one in topic.partition_responses:
            yield {
                "topic": topic.name or names.get(topic.topic_id),
                "partition": one.index,
                "error": one.error_code,
                "base_offset": known(one.base_offset),
                "log_start_offset": known(one.log_start_offset),
                "log_append_ms": known(one.log_append_time_ms),
            }


def _fetch_request(body: FetchRequest, names: Names) -> Iterator[Part]:
    for topic in body.topics:
        for one in topic.partitions:
            yield {
                "topic": topic.topic or names.get(topic.topic_id),
                "partition": one.partition,
                "offset": known(one.fetch_offset),
                "current_leader_epoch": known(one.current_leader_epoch),
            }


def _fetch_response(body: FetchResponse, names: Names) -> Iterator[Part]:
    if not body.responses:
        yield {"error": body.error_code}
    for topic in body.responses:
        for one in topic.partitions:
            common = {
                "topic": topic.topic or names.get(topic.topic_id),
                "partition": one.partition_index,
                "error": one.error_code or body.error_code,
                "high_watermark": known(one.high_watermark),
                "last_stable_offset": known(one.last_stable_offset),
                "log_start_offset": known(one.log_start_offset),
            }
            listed = Aborted(one.aborted_transactions or ())
            batches = ({**_fetched_batch(x), "aborted": listed.has(x)} for x in batch_headers(one.records))
            yield from _with_batches(common, batches)


class Aborted:
    """The aborted transactions that a response lists, applied to its batches in order as a consumer does (KIP-98)."""

    def __init__(self, listed: Iterable[AbortedTransaction]) -> None:
        self._listed = deque(sorted(listed, key=lambda one: one.first_offset))
        self._open: set[int] = set()

    def has(self, header: BatchHeader) -> bool | None:
        """Whether a batch belongs to one of them; None: it belongs to no transaction, or is a control batch."""
        while self._listed and self._listed[0].first_offset < header.end_offset:
            self._open.add(self._listed.popleft().producer_id)
        if header.marker is not None:
            self._open.discard(header.producer_id)
        is_data = header.attributes & TRANSACTIONAL and not header.attributes & CONTROL
        return header.producer_id in self._open if is_data else None


def _fetched_batch(header: BatchHeader) -> Part:
    place = {"base_offset": header.base_offset, "end_offset": header.end_offset}
    return {**of_batch(header), **place, "leader_epoch": known(header.leader_epoch)}


def _list_offsets_request(body: ListOffsetsRequest, _: Names) -> Iterator[Part]:
    for topic in body.topics:
        for one in topic.partitions:
            epoch = known(one.current_leader_epoch)
            yield {"topic": topic.name, "partition": one.partition_index, "current_leader_epoch": epoch}


def _list_offsets_response(body: ListOffsetsResponse, _: Names) -> Iterator[Part]:
    for topic in body.topics:
        for one in topic.partitions:
            answer = {"offset": known(one.offset), "leader_epoch": known(one.leader_epoch)}
            yield {"topic": topic.name, "partition": one.partition_index, "error": one.error_code, **answer}


def _epoch_request(body: OffsetForLeaderEpochRequest, _: Names) -> Iterator[Part]:
    for topic in body.topics:
        for one in topic.partitions:
            epochs = {"leader_epoch": one.leader_epoch, "current_leader_epoch": known(one.current_leader_epoch)}
            yield {"topic": topic.topic, "partition": one.partition, **epochs}


def _epoch_response(body: OffsetForLeaderEpochResponse, _: Names) -> Iterator[Part]:
    for topic in body.topics:
        for one in topic.partitions:
            answer = {"leader_epoch": known(one.leader_epoch), "offset": known(one.end_offset)}
            yield {"topic": topic.topic, "partition": one.partition, "error": one.error_code, **answer}


def _offset_commit_request(body: OffsetCommitRequest | TxnOffsetCommitRequest, _: Names) -> Iterator[Part]:
    if isinstance(body, OffsetCommitRequest):
        common: Part = {"group": body.group_id, "generation": body.generation_id_or_member_epoch}
    else:
        common = {
            "group": body.group_id,
            "generation": body.generation_id,
            "transactional_id": body.transactional_id,
            "producer_id": body.producer_id,
            "producer_epoch": body.producer_epoch,
        }
    for topic in body.topics:
        for one in topic.partitions:
            place = {"topic": topic.name, "partition": one.partition_index}
            stored = {"offset": known(one.committed_offset), "leader_epoch": known(one.committed_leader_epoch)}
            yield {**common, **place, **stored}


def _partition_errors(body: Any, _: Names) -> Iterator[Part]:
    """A response that has nothing but an error for each partition."""
    for topic in body.topics:
        for one in topic.partitions:
            yield {"topic": topic.name, "partition": one.partition_index, "error": one.error_code}


def _offset_fetch_request(body: OffsetFetchRequest, _: Names) -> Iterator[Part]:
    groups = [(group.group_id, group.topics) for group in body.groups] or [(body.group_id, body.topics)]
    for group, topics in groups:
        if not topics:
            yield {"group": group}
        for topic in topics or ():
            for index in topic.partition_indexes:
                yield {"group": group, "topic": topic.name, "partition": index}


def _offset_fetch_response(body: OffsetFetchResponse, _: Names) -> Iterator[Part]:
    several: Sequence[Any] = body.groups or [body]
    for of in several:
        group = getattr(of, "group_id", None)
        if not of.topics:
            yield {"group": group, "error": of.error_code}
        for topic in of.topics:
            for one in topic.partitions:
                answer = {"offset": known(one.committed_offset), "leader_epoch": known(one.committed_leader_epoch)}
                error = one.error_code or of.error_code
                place = {"topic": topic.name, "partition": one.partition_index}
                yield {"group": group, **place, "error": error, **answer}


def _init_response(body: InitProducerIdResponse, _: Names) -> Iterator[Part]:
    given = {"producer_id": known(body.producer_id), "producer_epoch": known(body.producer_epoch)}
    yield {"error": body.error_code, **(given if body.producer_id >= 0 else {})}


def _end_response(body: EndTxnResponse, _: Names) -> Iterator[Part]:
    """The producer that it names is that of the next transaction (KIP-890), and the request's that of this one."""
    yield {"error": body.error_code}


def _add_partitions_request(body: AddPartitionsToTxnRequest, _: Names) -> Iterator[Part]:
    old = (
        body.v3_and_below_transactional_id,
        body.v3_and_below_producer_id,
        body.v3_and_below_producer_epoch,
        body.v3_and_below_topics,
    )
    new = [(one.transactional_id, one.producer_id, one.producer_epoch, one.topics) for one in body.transactions]
    for transactional_id, producer_id, producer_epoch, topics in new or [old]:
        common = {
            "transactional_id": transactional_id,
            "producer_id": producer_id,
            "producer_epoch": producer_epoch,
        }
        for topic in topics:
            for partition in topic.partitions:
                yield {**common, "topic": topic.name, "partition": partition}


def _add_partitions_response(body: AddPartitionsToTxnResponse, _: Names) -> Iterator[Part]:
    if body.error_code:
        yield {"error": body.error_code}
    several = [one.topic_results for one in body.results_by_transaction] or [body.results_by_topic_v3_and_below]
    for topics in several:
        for topic in topics:
            for one in topic.results_by_partition:
                place = {"topic": topic.name, "partition": one.partition_index}
                yield {**place, "error": one.partition_error_code}


def _markers_request(body: WriteTxnMarkersRequest, _: Names) -> Iterator[Part]:
    for marker in body.markers:
        common = {
            "producer_id": marker.producer_id,
            "producer_epoch": marker.producer_epoch,
            "commits": marker.transaction_result,
        }
        for topic in marker.topics:
            for partition in topic.partition_indexes:
                yield {**common, "topic": topic.name, "partition": partition}


def _markers_response(body: WriteTxnMarkersResponse, _: Names) -> Iterator[Part]:
    for marker in body.markers:
        for topic in marker.topics:
            for one in topic.partitions:
                place = {"topic": topic.name, "partition": one.partition_index}
                yield {"producer_id": marker.producer_id, **place, "error": one.error_code}


def _delete_request(body: DeleteRecordsRequest, _: Names) -> Iterator[Part]:
    for topic in body.topics:
        for one in topic.partitions:
            yield {"topic": topic.name, "partition": one.partition_index, "offset": known(one.offset)}


def _delete_response(body: DeleteRecordsResponse, _: Names) -> Iterator[Part]:
    for topic in body.topics:
        for one in topic.partitions:
            answer = {"error": one.error_code, "log_start_offset": known(one.low_watermark)}
            yield {"topic": topic.name, "partition": one.partition_index, **answer}


_Summarise = Callable[[Any, Names], Iterable[Part]]

_PARTS: Mapping[type[Message], _Summarise] = MappingProxyType(
    cast(
        "dict[type[Message], _Summarise]",
        {
            ProduceRequest: _produce_request,
            ProduceResponse: _produce_response,
            FetchRequest: _fetch_request,
            FetchResponse: _fetch_response,
            ListOffsetsRequest: _list_offsets_request,
            ListOffsetsResponse: _list_offsets_response,
            OffsetForLeaderEpochRequest: _epoch_request,
            OffsetForLeaderEpochResponse: _epoch_response,
            OffsetCommitRequest: _offset_commit_request,
            OffsetCommitResponse: _partition_errors,
            TxnOffsetCommitRequest: _offset_commit_request,
            TxnOffsetCommitResponse: _partition_errors,
            OffsetFetchRequest: _offset_fetch_request,
            OffsetFetchResponse: _offset_fetch_response,
            InitProducerIdResponse: _init_response,
            EndTxnResponse: _end_response,
            AddPartitionsToTxnRequest: _add_partitions_request,
            AddPartitionsToTxnResponse: _add_partitions_response,
            WriteTxnMarkersRequest: _markers_request,
            WriteTxnMarkersResponse: _markers_response,
            DeleteRecordsRequest: _delete_request,
            DeleteRecordsResponse: _delete_response,
            ShareFetchRequest: fetch_request,
            ShareFetchResponse: fetch_response,
            ShareAcknowledgeRequest: acknowledge_request,
            ShareAcknowledgeResponse: acknowledge_response,
        },
    )
)
