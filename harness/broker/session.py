"""One accepted connection: requests in, answers out in the order of the requests.

No request of a client may end the node, as in Kafka (``KafkaApis.handleError``). An exception while one is served or
while its answer is encoded is reported, and answered with UNKNOWN_SERVER_ERROR. An ``AssertionError`` is not caught:
an invariant of ours is broken, and answers of such a node prove nothing. Nor is anything caught that a request between
brokers and controller raises, which no client can send.

A request that no node serves, for its size, its version, its sender or because it is malformed, costs its sender the
connection, and is a line in the log. A client that has hung up frees at once what its requests hold.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from harness.broker.ports import Buffer, Connection, FrameHandler
from harness.broker.served_versions import EVERYTHING, Served
from harness.error_codes import ErrorCode
from harness.model import CLIENTS
from harness.wire.declaration import Message
from harness.wire.frames import (
    ADVERTISED,
    RequestHeader,
    UnsupportedVersion,
    WireError,
    decode_request,
    encode_response,
)
from harness.wire.keys import ApiKey
from harness.wire.messages.api_versions import ApiVersionsResponse

MAX_UNANSWERED = 256
"""A connection with this many unanswered requests is not read from until half of them have been answered."""

MAX_REQUEST_BYTES = 1_048_576
"""The largest request but for Produce, which carries records: one that names every partition there may be has less."""

_PRODUCE = ApiKey.PRODUCE.to_bytes(2, "big")

Handle = Callable[["Request"], None]
"""Serves one request: answers it now, or keeps it and answers it later, exactly once."""

Report = Callable[[str, Exception], None]
"""Takes the request of a client that could not be served or answered, and the exception; may raise that again."""


class Request:
    """A request, and the place of its answer among the answers of its connection.

    Attributes:
        abandon: called when its client has hung up before it was answered; must answer it, now or later.
    """

    __slots__ = ("abandon", "answered", "body", "header", "is_given_up", "segments", "session")

    def __init__(self, session: Session, header: RequestHeader, body: Message) -> None:
        self.session = session
        self.header = header
        self.body = body
        self.abandon: Callable[[], None] = lambda: None
        self.answered = False
        self.is_given_up = False
        self.segments: list[Buffer] | None = None

    @property
    def version(self) -> int:
        """The version it was asked in, and is to be answered in."""
        return self.header.api_version

    def answer(self, body: Message | None) -> None:
        """Answer it; None where the protocol has no answer (acks 0). Sent when those before it have been."""
        if self.is_given_up:
            return  # it could not be served, and what of it was still under way has come to an end now
        assert not self.answered, f"{self.header} answered twice"
        self.answered = True
        if body is not None:
            with self.surviving():
                self.segments = self._encoded(body)
        self.session.flush()

    @contextmanager
    def surviving(self) -> Iterator[None]:
        """Serve or answer it in here: an exception costs a client this request, and the node nothing."""
        try:
            yield
        except AssertionError:
            raise
        except Exception as error:
            if self.header.api_key not in ADVERTISED or self.is_given_up:
                raise
            self.session.report(f"{self.header.api_key.name} version {self.version}", error)
            self._give_up()

    def _give_up(self) -> None:
        self.is_given_up = True
        body = self.body.error_response(ErrorCode.UNKNOWN_SERVER_ERROR)
        if self.segments is not None:
            return  # it was answered before
        self.answered = True
        if body is None:
            self.session.close()
        else:
            self.segments = self._encoded(body)
        self.session.flush()

    def _encoded(self, body: Message) -> list[Buffer]:
        key, version, correlation_id, _ = self.header
        return encode_response(key, version, correlation_id, body)


class Session:
    """The owner of an accepted connection.

    Answers keep the order of the requests even though requests complete in any order: the Java client checks it.

    Attributes:
        number: how many sessions this listener had accepted before; orders the connections of one peer.
        peer: the node at the other end.
        host: its address.
        report: see :data:`Report`.
        served: what this node offers clients.
        is_abandoned: whether the peer has hung up: what it still asks for need not be waited for.
    """

    def __init__(
        self,
        connection: Connection,
        number: int,
        handlers: Mapping[ApiKey, Handle],
        report: Report,
        *,
        complain: Callable[[str], None] = lambda _: None,
        is_silent: Callable[[], bool] = lambda: False,
        served: Served = EVERYTHING,
    ) -> None:
        self.report = report
        self.served = served
        self._is_silent = is_silent
        self._complain = complain
        self.number = number
        self.peer, self.host = connection.peer, connection.host
        self._connection = connection
        self._handlers = handlers
        self._unanswered: deque[Request] = deque()
        self._holds = 0
        self._paused = False
        self.is_abandoned = False
        self._is_early = False
        connection.watch_hangup(self.abandon)

    def on_frame(self, frame: memoryview) -> None:
        """See :class:`harness.broker.ports.FrameHandler`. Nonsense costs the peer its connection, no more."""
        try:
            header, body = self._decoded(frame)
        except UnsupportedVersion as error:
            self._refuse(error)
            return
        except WireError as error:
            self.hang_up(str(error))
            return
        handle = self._handlers.get(header.api_key)
        if handle is None:
            self.hang_up(f"{header.api_key.name} is not served here")
            return
        request = self._accept(header, body)
        with request.surviving():
            handle(request)

    def on_lost(self) -> None:
        """See :class:`harness.broker.ports.FrameHandler`. What is still being served is answered into the void."""
        self.abandon()

    def abandon(self) -> None:
        """The peer has hung up: its requests wait for nothing any more."""
        self.is_abandoned = True
        if self._is_early:
            self.close()
        for request in list(self._unanswered):
            if not request.answered:
                request.abandon()

    def hang_up(self, reason: str) -> None:
        """Close the connection, and write down why."""
        self._complain(f"Disconnected {self.peer}: {reason}.")
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def wait_to_be_served(self) -> None:
        """Read nothing until :meth:`serve`."""
        self._is_early = True
        self.hold()

    def serve(self) -> None:
        """Read what the peer has sent so far, and from now on."""
        self._is_early = False
        self.release()

    def flush(self) -> None:
        """Send the answers whose turn it is."""
        while self._unanswered and self._unanswered[0].answered:
            segments = self._unanswered.popleft().segments
            if segments is not None and not self._is_silent():
                self._connection.send(segments)
        self._pause_or_resume()

    def hold(self) -> None:
        """Read no further requests until :meth:`release`, as Kafka does while a request is being served."""
        self._holds += 1
        self._pause_or_resume()

    def release(self) -> None:
        """Undo one :meth:`hold`."""
        self._holds -= 1
        self._pause_or_resume()

    def _decoded(self, frame: memoryview) -> tuple[RequestHeader, Message]:
        """Raises WireError when no node serves such a frame."""
        if len(frame) > MAX_REQUEST_BYTES and frame[:2] != _PRODUCE:
            raise WireError(f"a request of {len(frame)} bytes, where {MAX_REQUEST_BYTES} are the most")
        header, body = decode_request(frame)
        if not self.served.knows(header.api_key, header.api_version):
            raise UnsupportedVersion(header)
        return header, body

    def _accept(self, header: RequestHeader, body: Message) -> Request:
        request = Request(self, header, body)
        self._unanswered.append(request)
        self._pause_or_resume()
        return request

    def _pause_or_resume(self) -> None:
        enough = MAX_UNANSWERED // 2 if self._paused else MAX_UNANSWERED
        pause = bool(self._holds) or len(self._unanswered) >= enough
        if pause != self._paused:
            self._paused = pause
            (self._connection.pause if pause else self._connection.resume)()

    def _refuse(self, error: UnsupportedVersion) -> None:
        """Kafka hangs up on versions it does not know, except for ApiVersions, which is how clients find out."""
        header = error.header
        if header.api_key == ApiKey.API_VERSIONS:
            request = self._accept(header._replace(api_version=0), ApiVersionsResponse())
            request.answer(self.served.answer(0, ErrorCode.UNSUPPORTED_VERSION))
        else:
            self.hang_up(str(error))


class Sessions:
    """Accepts connections for one set of handlers.

    Args:
        handlers: what is served.
        report: see :data:`Report`.
        complain: takes a line about a peer that is disconnected.
        serves_clients: whether clients are served from the start, or only from :meth:`serve_clients` on: until then
            their connections are accepted and not read from, as a broker of Kafka does that is still starting.
        served: what is offered to clients.
    """

    def __init__(
        self,
        handlers: Mapping[ApiKey, Handle],
        report: Report,
        complain: Callable[[str], None] = lambda _: None,
        *,
        serves_clients: bool = True,
        served: Served = EVERYTHING,
    ) -> None:
        self._handlers = handlers
        self._report = report
        self._complain = complain
        self._serves_clients = serves_clients
        self._served = served
        self._early: list[Session] = []
        self._accepted = 0
        self._is_silent = False

    def accept(self, connection: Connection) -> FrameHandler:
        """For :meth:`harness.broker.ports.Network.listen`."""
        session = Session(
            connection,
            self._accepted,
            self._handlers,
            self._report,
            complain=self._complain,
            is_silent=lambda: self._is_silent,
            served=self._served,
        )
        self._accepted += 1
        if session.peer == CLIENTS and not self._serves_clients:
            session.wait_to_be_served()
            self._early = [other for other in self._early if not other.is_abandoned]
            self._early.append(session)
        return session

    def serve_clients(self) -> None:
        """Read what clients have sent so far, and from now on."""
        self._serves_clients = True
        early, self._early = self._early, []
        for session in early:
            session.serve()

    def silence(self) -> None:
        """Send no further answers to any client."""
        self._is_silent = True


def raise_again(_: str, error: Exception) -> None:
    """A :data:`Report` for where no stranger is a client, so that what cannot be served is a bug, and must be seen."""
    raise error


def answer_api_versions(request: Request) -> None:
    """Serve ApiVersions."""
    request.answer(request.session.served.answer(request.version))


def only_from(peers: Callable[[str], bool], handle: Handle) -> Handle:
    """Serve ``handle`` to peers that ``peers`` accepts, and refuse all others: cluster requests are not for clients.

    Kafka refuses clients that lack the permission ClusterAction in the same way.
    """

    def guarded(request: Request) -> None:
        if peers(request.session.peer):
            handle(request)
        else:
            request.answer(request.body.error_response(ErrorCode.CLUSTER_AUTHORIZATION_FAILED))

    return guarded


def is_node(peer: str) -> bool:
    """Whether ``peer`` belongs to the cluster."""
    return peer != CLIENTS
