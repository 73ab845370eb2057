"""Targets whose connections cannot be told apart: a link of theirs is cut for all of them, or for none."""

from __future__ import annotations

from collections.abc import Sequence

from harness.errors import EnvironmentFault
from harness.model import Link
from harness.target import Receipt


class NeverStalls:
    """The part of :class:`harness.target.Target` without ``Capability.STALL``."""

    def stall(self, links: Sequence[Link]) -> None:
        """See :class:`harness.target.Target`.

        Raises:
            EnvironmentFault: always.
        """
        raise EnvironmentFault(f"{', '.join(map(str, links))} cannot be stalled.", "Use --target process:RELEASE.")

    def resume_links(self, links: Sequence[Link]) -> None:
        """See :class:`harness.target.Target`. Nothing has been stalled."""

    def is_stalled(self, link: Link) -> Receipt:
        """See :class:`harness.target.Target`."""
        return Receipt(False, f"{link}: no connection has been stalled")

    def has_gone_on(self, link: Link) -> Receipt:
        """See :class:`harness.target.Target`."""
        return Receipt(True, f"{link}: no connection has been stalled")
