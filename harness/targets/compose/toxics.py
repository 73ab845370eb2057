"""Cuts links between clients and brokers by Toxiproxy, which holds the bytes, in order, until the link is mended.

It uses the toxic ``bandwidth`` with rate 0, for each direction by itself; ``timeout`` would drop bytes from the stream.
toxiproxy-python 0.1.1 keeps the server's address in a class, has no timeout (Toxiproxy gives up after 25 s), and treats
error answers as answers. So this module sets the address before every call, and relies only on what the server lists.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from toxiproxy import Proxy, Toxiproxy
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

from harness.errors import EnvironmentFault
from harness.model import CLIENTS, Link
from harness.target import Receipt
from harness.targets.addresses import Address

PROBE_PORT = 19999
"""In Toxiproxy's container: the port of a copy of a proxy, by which a link is probed whose reverse is cut, too."""

_THERE, _BACK = "upstream", "downstream"
_PROBE = "seawall-probe"
_SILENCE_S = 1.0
_ANSWER_TIMEOUT_S = 5.0
_POLL_S = 0.1
_ONE_SERVER = threading.Lock()


class Toxics:
    """The proxies of one Toxiproxy, one for each broker.

    Args:
        api: the address of its API.
        listeners: the clients' address of each broker's proxy, by the broker's name.
        probe: the published address of :data:`PROBE_PORT`.
        answers: whether a broker answers, at an address and within a time in seconds, what any client may send it.
    """

    def __init__(
        self, api: Address, listeners: Mapping[str, Address], probe: Address, answers: Callable[[Address, float], bool]
    ) -> None:
        self._api = api
        self._server = Toxiproxy()
        self._listeners = listeners
        self._probe = probe
        self._answers = answers

    def await_up(self, timeout_s: float) -> None:
        """Wait until Toxiproxy answers.

        Raises:
            EnvironmentFault: it does not within ``timeout_s``.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                self._told(self._server.proxies)
            except EnvironmentFault:
                if time.monotonic() >= deadline:
                    raise
                time.sleep(_POLL_S)
            else:
                return

    def create(self, node: str, listen: str, upstream: str) -> None:
        """Let clients reach a broker: ``listen`` and ``upstream`` are ``host:port`` in Toxiproxy's container."""
        self._told(self._server.create, upstream, node, listen, enabled=True)
        self._proxy(node)

    def cut(self, links: Sequence[Link]) -> None:
        """Let no byte pass on these links, one end of which is ``CLIENTS``, until they are mended."""
        for link in links:
            node, stream = _placed(link)
            if stream not in self._stalled(node):
                self._stall(self._proxy(node), stream)

    def mend(self, links: Sequence[Link]) -> None:
        """Undo :meth:`cut` for these links; the held bytes arrive."""
        for link in links:
            node, stream = _placed(link)
            proxy = self._proxy(node)
            for toxic in self._told(proxy.toxics).values():
                if toxic.stream == stream:
                    self._told(proxy.destroy_toxic, toxic.name)
            if stream in self._stalled(node):
                raise EnvironmentFault(f"Toxiproxy still holds back what flows {stream} at the proxy of node {node}.")

    def is_cut(self, link: Link) -> Receipt:
        """Send an ApiVersions request through the broker's proxy, and see whether the link holds back the answer.

        Where the reverse link is cut, too, the probe also uses a copy of the proxy with the toxic of this link alone.
        """
        node, stream = _placed(link)
        stalled = self._stalled(node)
        if stream not in stalled:
            return Receipt(False, f"{link}: Toxiproxy lists no toxic that holds back what flows {stream}")
        if self._answers(self._listeners[node], _SILENCE_S):
            return Receipt(False, f"{link}: a request was answered")
        if stalled == {stream}:
            return Receipt(True, f"{link}: a request was not answered, Toxiproxy holds back what flows {stream}")
        with self._copy(node, [stream]):
            answered = self._answers(self._probe, _SILENCE_S)
        what = "was answered" if answered else "was not answered, and Toxiproxy holds back what flows " + stream
        return Receipt(not answered, f"{link}: a request through a copy of the proxy, with this link cut alone, {what}")

    def carries(self, link: Link) -> Receipt:
        """Send the request of :meth:`is_cut`; where the reverse link is cut, through a copy without toxics."""
        node, stream = _placed(link)
        stalled = self._stalled(node)
        if stream in stalled:
            return Receipt(False, f"{link}: Toxiproxy holds back what flows {stream}")
        if not stalled:
            through = self._answers(self._listeners[node], _ANSWER_TIMEOUT_S)
        else:
            with self._copy(node, []):
                through = self._answers(self._probe, _ANSWER_TIMEOUT_S)
        return Receipt(through, f"{link}: a request was {'' if through else 'not '}answered")

    # ------------------------------------------------------------------------------------------------ proxies

    @contextmanager
    def _copy(self, node: str, stalled: Sequence[str]) -> Iterator[None]:
        """A temporary proxy to the same broker, which holds back the bytes of these directions."""
        original = self._proxy(node)
        copy = self._told(self._server.create, original.upstream, _PROBE, f"0.0.0.0:{PROBE_PORT}", enabled=True)
        try:
            for stream in stalled:
                self._stall(copy, stream)
            yield
        finally:
            self._told(copy.destroy)

    def _stall(self, proxy: Proxy, stream: str) -> None:
        self._told(proxy.add_toxic, type="bandwidth", stream=stream, attributes={"rate": 0})
        if stream not in self._stalled(proxy.name):
            raise EnvironmentFault(f"Toxiproxy holds back nothing that flows {stream} at proxy {proxy.name}.")

    def _stalled(self, name: str) -> set[str]:
        """The directions in which a proxy holds back all bytes."""
        toxics = self._told(self._proxy(name).toxics)
        return {toxic.stream for toxic in toxics.values() if toxic.type == "bandwidth" and not toxic.attributes["rate"]}

    def _proxy(self, name: str) -> Proxy:
        found = self._told(self._server.get_proxy, name)
        if found is None:
            raise EnvironmentFault(f"Toxiproxy has no proxy {name!r}.")
        return found

    def _told(self, tell: Callable[..., Any], *words: Any, **more: Any) -> Any:
        with _ONE_SERVER:
            self._server.update_api_consumer(*self._api)
            try:
                return tell(*words, **more)
            except (OSError, KeyError, TypeError, NotFound, ProxyExists, InvalidToxic) as problem:
                raise EnvironmentFault(
                    f"Toxiproxy at {self._api[0]}:{self._api[1]} did not execute a request: "
                    f"{type(problem).__name__} {problem}."
                ) from None


def _placed(link: Link) -> tuple[str, str]:
    """The broker's proxy, and the direction through it."""
    if CLIENTS not in link:
        raise EnvironmentFault(f"no proxy is on the link {link}: neither end is {CLIENTS}.")
    return (link.destination, _THERE) if link.source == CLIENTS else (link.source, _BACK)
