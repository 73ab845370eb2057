"""Link faults on the built-in cluster: cut links, and links that are stalled in the connections of now."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol

from harness.broker.secret import Secret
from harness.errors import EnvironmentFault, NoAnswer
from harness.model import CLIENTS, Link, node_id
from harness.target import Receipt
from harness.targets.addresses import Address
from harness.targets.builtin_nodes import BuiltinNodes
from harness.targets.link_probe import nudge_as_client, ping_as_client, probe_link, try_link
from harness.targets.node_process import NodeProcess
from harness.targets.stalling import ClientWitness, Witness, probe_stall, try_stalled

_PING_TIMEOUT_S = 0.15
_OPENING_TIMEOUT_S = 5.0
_POLL_S = 0.01


class BuiltinLinks(BuiltinNodes):
    """Implements the protocols of :mod:`harness.controls` about links.

    Args:
        nodes: the controller first.
        secret: of the run.
    """

    def __init__(self, nodes: Iterable[NodeProcess], secret: Secret) -> None:
        super().__init__(nodes, secret)
        self._cut: set[Link] = set()
        self._witnesses: dict[Link, Witness] = {}

    def cut(self, links: Sequence[Link]) -> None:
        """See :class:`harness.controls.Links`."""
        self._set_cut(self._cut | set(self._known(links)))

    def mend(self, links: Sequence[Link]) -> None:
        """See :class:`harness.controls.Links`."""
        self._set_cut(self._cut - set(self._known(links)))

    def is_cut(self, link: Link) -> Receipt:
        """See :class:`harness.controls.Links`."""
        return probe_link(link, partial(self._held_bytes, link), partial(self._ping, link))

    def carries(self, link: Link) -> Receipt:
        """See :class:`harness.controls.Links`."""
        return try_link(link, partial(self._held_bytes, link), partial(self._ping, link))

    def _ping(self, link: Link, held_bytes: Callable[[], int]) -> int | None:
        if link.source == CLIENTS:
            return ping_as_client(self.addresses.listener(node_id(link.destination)), _PING_TIMEOUT_S, held_bytes)
        if link.destination == CLIENTS:
            listener = self.addresses.listener(node_id(link.source))
            return nudge_as_client(listener, _PING_TIMEOUT_S, held_bytes, partial(self._nudge, link.source))
        answer = self._ask(link.source, op="ping", node=link.destination, timeout_ms=_PING_TIMEOUT_S * 1000)
        return None if answer["answered"] else held_bytes()

    def _nudge(self, node: str, client: Address) -> bool:
        return bool(self._ask(node, op="nudge", address=list(client))["connected"])

    def _held_bytes(self, link: Link) -> int:
        holder = link.source if link.destination == CLIENTS else link.destination
        return int(self._look(holder)["links"]["held_bytes"].get(str(link), 0))

    def _set_cut(self, links: set[Link]) -> None:
        concerned = sorted({end for link in self._cut ^ links for end in link if end != CLIENTS})
        self._cut = links
        for name in concerned:
            self._apply_faults(name)

    def _known(self, links: Iterable[Link]) -> Iterable[Link]:
        for link in links:
            for end in link:
                if end != CLIENTS:
                    self._node(end)
            yield link

    def _apply_faults(self, node: str) -> None:
        """Send a node its faults."""
        raise NotImplementedError

    # ------------------------------------------------------------------------------------------------ stalls

    def stall(self, links: Sequence[Link]) -> None:
        """See :class:`harness.controls.ConnectionStalls`."""
        for link in sorted(set(self._known(links))):
            self._dismiss(link)
            try:
                self._witnesses[link] = self._witness(link)
            except OSError as error:
                raise EnvironmentFault(f"{link} cannot be stalled: no answer ({error}).") from error
        self._set_stalled(set(links), stalled=True)

    def resume_links(self, links: Sequence[Link]) -> None:
        """See :class:`harness.controls.ConnectionStalls`."""
        self._set_stalled(set(self._known(links)), stalled=False)

    def is_stalled(self, link: Link) -> Receipt:
        """See :class:`harness.controls.ConnectionStalls`."""
        stalled = partial(self._stalled_bytes, link)
        return probe_stall(link, self._witnesses.get(link), stalled, partial(self._ping, link))

    def has_gone_on(self, link: Link) -> Receipt:
        """See :class:`harness.controls.ConnectionStalls`."""
        return try_stalled(link, self._witnesses.get(link))

    def close_witnesses(self) -> None:
        """Close the connections that prove stalls."""
        for link in list(self._witnesses):
            self._dismiss(link)

    def _witness(self, link: Link) -> Witness:
        if link.source == CLIENTS:
            return ClientWitness(self.addresses.listener(node_id(link.destination)))
        if link.destination == CLIENTS:
            listener = self.addresses.listener(node_id(link.source))
            return ClientWitness(listener, partial(self._nudge, link.source))
        return _NodeWitness(partial(self._watch, link), partial(self._answers, link))

    def _dismiss(self, link: Link) -> None:
        if link in self._witnesses:
            self._witnesses.pop(link).close()

    def _watch(self, link: Link, *, anew: bool) -> None:
        self._ask(link.source, op="watch", node=link.destination, anew=anew)

    def _answers(self, link: Link) -> int:
        try:
            return int(self._look(link.source)["links"]["answers"].get(link.destination, 0))
        except NoAnswer:
            return 0

    def _stalled_bytes(self, link: Link) -> int:
        return int(self._look(_holder(link))["links"]["stalled_bytes"].get(str(link), 0))

    def _set_stalled(self, links: set[Link], *, stalled: bool) -> None:
        """Tell the nodes that withhold bytes; one that has died since has no connection from before."""
        for name in sorted({_holder(link) for link in links}):
            if self._can_obey(name):
                mine = sorted(link for link in links if _holder(link) == name)
                self._ask(name, op="stall", links=[list(link) for link in mine], stalled=stalled)


class _NodeWitness:
    """A :class:`harness.targets.stalling.Witness` in a connection from one node to another.

    Args:
        watch: sends a request in it; ``anew``: in a new connection.
        answers: how many requests have been answered in it.

    Raises:
        TimeoutError: the other node does not answer.
    """

    def __init__(self, watch: _Watch, answers: Callable[[], int]) -> None:
        self._watch = watch
        self._answers = answers
        self._asked = 1
        watch(anew=True)
        if not self._has_answers(_OPENING_TIMEOUT_S):
            raise TimeoutError("the other node does not answer")

    def is_answered(self, within_s: float) -> bool:
        """See :class:`harness.targets.stalling.Witness`."""
        if self._asked == 1:
            self._asked = 2
            self._watch(anew=False)
        return self._has_answers(within_s)

    def close(self) -> None:
        """See :class:`harness.targets.stalling.Witness`. The node closes it when it opens another one, or ends."""

    def _has_answers(self, within_s: float) -> bool:
        deadline = time.monotonic() + within_s
        while self._answers() < self._asked:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
        return True


class _Watch(Protocol):
    def __call__(self, *, anew: bool) -> None: ...


def _holder(link: Link) -> str:
    """The node that withholds what is stalled on a link."""
    return link.source if link.destination == CLIENTS else link.destination
