"""What every kind of target answers for itself, so that no other module asks of which class it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, Protocol

from harness.targets.leftovers import Leftovers
from harness.targets.system import SystemSource

Timeline = Literal["whole", "sampled", "logs", "metadata", "none"]
"""What the timelines of a kind's runs hold.

Every change of the brokers' states; samples of them; samples of what the cluster tells clients, with or without how
each replica ended by the files of its disk; or nothing.
"""


class Tried(NamedTuple):
    """What was tried of a target without harm to it.

    Attributes:
        what: a node and what is done to it, in words.
        works: None: it is not possible there.
        seen: how it went, in a clause.
    """

    what: str
    works: bool | None
    seen: str


class TargetKind(Protocol):
    """A kind of target, as ``--target`` names it.

    Attributes:
        name: as ``--target`` spells it, before the colon.
        argument: what follows the colon, in a word; empty: there is none.
        in_virtual_time: whether its targets are :class:`harness.targets.cluster_kind.InVirtualTime`.
        runs_releases: whether what follows the colon decides which protocol its brokers speak.
        needs_loopback: whether each of its nodes has a loopback address of its own.
        with_pattern: the argument with a pattern of the names of the services that run Kafka; None: it has no services.
        leftovers: how ``seawall heal`` ends what its targets record as coming; None: they leave nothing but processes
            and files of the run directory.
        tried: tries what its nodes are harmed by, by the argument, and raises as :meth:`source`; None: its nodes are
            seawall's own, or nothing is done to them.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def argument(self) -> str: ...  # noqa: D102

    @property
    def in_virtual_time(self) -> bool: ...  # noqa: D102

    @property
    def runs_releases(self) -> bool: ...  # noqa: D102

    @property
    def needs_loopback(self) -> bool: ...  # noqa: D102

    @property
    def with_pattern(self) -> Callable[[str, str], str] | None: ...  # noqa: D102

    @property
    def leftovers(self) -> Leftovers | None: ...  # noqa: D102

    @property
    def tried(self) -> Callable[[str], Iterator[Tried]] | None: ...  # noqa: D102

    @property
    def spelling(self) -> str:
        """As messages show it."""
        ...

    def source(self, argument: str) -> SystemSource:
        """What makes a system of what the argument names.

        Raises:
            UsageError: it is malformed, or there is no such thing.
            EnvironmentFault: it cannot be had now.
        """
        ...

    def may_combine(self, argument: str) -> bool:
        """Whether brokers may also be controllers."""
        ...

    def timeline(self, configuration: Mapping[str, Any]) -> Timeline:
        """What a run knows of its brokers' states, which has this configuration in ``run.json``."""
        ...
