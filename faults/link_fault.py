"""The base of faults of links: it resolves the directed links at which they are aimed."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, product
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, model_validator

from harness.json_schema import exactly_one
from harness.model import CLIENTS, CONTROLLER, Link, is_broker
from harness.selection import EndSelector, NothingToAimAt, Selector, aim, nodes
from harness.target import ClusterView


class LinkFault(BaseModel):
    """A fault of the links that exactly one of ``links``, ``isolate`` and ``between`` names.

    As an end of ``links`` and ``between``, ``controller`` is all of a cluster's controllers: a node that is cut off
    from it reaches none, whichever is active. ``isolate: controller`` is the active one, alone.

    Attributes:
        links: directed links, ``[[2, 1]]`` for bytes from 2 to 1.
        isolate: a node, from every other node, controllers included.
        between: two nodes, from each other.
        direction: for ``isolate`` and ``between``: ``out`` cuts what the (first) node sends, ``in`` what it
            receives, ``both`` both.
        topic: with ``partition``, the one whose leader or follower is meant.
        partition: its number.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        json_schema_extra={
            **exactly_one("links", "isolate", "between"),
            "not": {"required": ["links"], "properties": {"links": {"type": "array", "maxItems": 0}}},
        },
    )

    links: tuple[tuple[EndSelector, EndSelector], ...] | None = None
    isolate: Selector | None = None
    between: tuple[Selector, Selector] | None = None
    direction: Literal["both", "in", "out"] = "both"
    topic: str | None = None
    partition: int | None = None

    @model_validator(mode="after")
    def _says_once_which_links(self) -> Self:
        given = [name for name in ("links", "isolate", "between") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"write exactly one of links, isolate and between, not {' and '.join(given) or 'none'}.")
        if self.links is not None and not self.links:
            raise ValueError("links is empty: nothing would be cut.")
        if any(one == other for one, other in self.links or () if one != "any"):
            raise ValueError("a link needs two different ends.")
        return self

    def aimed(self, view: ClusterView, seed: int) -> Self:
        """See :meth:`harness.fault.Fault.aimed`; the result names its ``links`` only."""
        ends = [tuple(_end(name) for name in link) for link in self._aimed_links(view, seed)]
        if not ends:
            raise NothingToAimAt("there is no link to aim at: nothing else was observed.")
        return self.model_copy(update={"links": tuple(ends), "isolate": None, "between": None, "direction": "both"})

    def nodes(self) -> Sequence[str]:
        """See :meth:`harness.fault.Fault.nodes`."""
        return sorted({end for link in self.named_links() for end in link if end != CLIENTS})

    def claims(self) -> Sequence[str]:
        """See :meth:`harness.fault.Fault.claims`."""
        return [f"link {link}" for link in self.named_links()]

    def parameters(self) -> dict[str, Any]:
        """See :meth:`harness.fault.Fault.parameters`."""
        return self.model_dump(mode="json", exclude_none=True, exclude_defaults=True)

    def named_links(self) -> list[Link]:
        """The directed links, once aimed."""
        return [Link(str(source), str(destination)) for source, destination in self.links or ()]

    def _aimed_links(self, view: ClusterView, seed: int) -> list[tuple[str, str]]:
        if self.links is not None:
            pairs = (_directed(*self._aimed_ends(link, view, seed), "out") for link in self.links)
            return list(dict.fromkeys(chain.from_iterable(pairs)))
        if self.between is not None:
            return _directed(*self._aimed_ends(self.between, view, seed), self.direction)
        assert self.isolate is not None
        alone = aim(self.isolate, view, seed, self.topic, self.partition)
        return _directed([alone], [name for name in nodes(view) if name != alone], self.direction)

    def _aimed_ends(
        self, ends: tuple[int | str, int | str], view: ClusterView, seed: int
    ) -> tuple[Sequence[str], Sequence[str]]:
        ones = self._aimed_end(ends[0], view, seed, [])
        return ones, self._aimed_end(ends[1], view, seed, ones)

    def _aimed_end(self, end: int | str, view: ClusterView, seed: int, avoid: Sequence[str]) -> Sequence[str]:
        if end == CONTROLLER:
            return view.controllers
        return [aim(end, view, seed, self.topic, self.partition, avoid=avoid)]


def _end(name: str) -> int | str:
    return int(name) if is_broker(name) else name


def _directed(ones: Sequence[str], others: Sequence[str], direction: str) -> list[tuple[str, str]]:
    out = list(product(ones, others)) if direction != "in" else []
    back = list(product(others, ones)) if direction != "out" else []
    return [(source, destination) for source, destination in out + back if source != destination]
