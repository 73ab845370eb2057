"""The DeleteRecords requests of a run: the broker, the time, the offset, and the outcome of each.

``run.json`` has them (``orders``): a schedule's clients sent them, or the random load of virtual time. A run that was
recorded before there were orders, or was killed, lacks them; there were none where its schedule has none.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from harness.history.run_directory import Manifest
from harness.model import TopicPartition

_PROVEN: Final = frozenset({"OFFSET_OUT_OF_RANGE"})
"""Errors that prove that nothing was deleted. (A broker that no longer leads may have led at the first attempt.)"""


class Order(NamedTuple):
    """A DeleteRecords, of one partition.

    Attributes:
        number: its position in ``run.json``.
        before: the first offset to stay; None: where the high watermark is at the time.
        timeout_ns: how long the leader may let its client wait for the followers.
        node: the broker that was asked; None: the one that the client took for the leader.
        completed_ns: when the answer came, or the client gave up; None: neither, until the run was over.
        error: its name; None: the leader has answered that the records are deleted, if the order is completed.
        low_watermark: from which offset on every log begins, by such an answer.
    """

    number: int
    before: int | None
    timeout_ns: int
    node: int | None
    invoked_ns: int
    completed_ns: int | None
    error: str | None
    low_watermark: int | None

    @property
    def is_obeyed(self) -> bool:
        """Whether a leader has answered that the records are deleted."""
        return self.completed_ns is not None and self.error is None

    @property
    def is_refused(self) -> bool:
        """Whether it is proven that no leader has deleted anything for it."""
        return self.error in _PROVEN

    @property
    def deleted(self) -> int:
        """Where the leader's log begins at the earliest, once it has obeyed."""
        return (self.low_watermark if self.before is None else self.before) or 0


def orders(manifest: Manifest) -> Mapping[TopicPartition, Sequence[Order]] | None:
    """The orders of a run by partition, in the order in which they were sent; None: the run does not have them."""
    if manifest.orders is None:
        return None if _may_have_been(manifest) else {}
    found: dict[TopicPartition, list[Order]] = defaultdict(list)
    for number, one in enumerate(manifest.orders):
        found[TopicPartition(one["topic"], one["partition"])].append(
            Order(
                number, one["before"], one["timeout_ms"] * 1_000_000, one["node"], one["invoked_ns"],
                one["completed_ns"], one["error"], one["low_watermark"],
            )
        )  # fmt: skip
    return found


def _may_have_been(manifest: Manifest) -> bool:
    schedule = (manifest.configuration.get("scenario") or {}).get("schedule")
    return schedule is None or any(step.get("delete_records") for step in schedule)
