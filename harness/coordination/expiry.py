"""Which committed offsets are kept no longer.

Since KIP-211 (the knob ``offset_expiry``) the offsets of a group of the classic protocol expire together,
``offsets.retention.minutes`` after its last member has gone; with members, and always in a group of the consumer
protocol, an offset expires that long after its commit if no member subscribes to its topic. An offset whose group has
never had a member expires that long after its commit. Where a client has said for how long an offset is to be kept
(OffsetCommit up to version 4), this counts instead. Before KIP-211, every offset expires that long after its commit,
whether or not the group has members: one that is quiet loses what it has committed.

Kafka measures an empty group's time from when it became so, also for what is committed later, as by a tool that resets
its offsets: that may expire at once.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.coordination.classic_group import ClassicGroup
from harness.coordination.group_commits import CONSUMER, busy_topics
from harness.coordination.kept_groups import KeptGroup
from harness.coordination.offsets import CommittedOffset, OffsetRetention
from harness.model import TopicPartition


def expired(group: KeptGroup, now_ms: int, retention: OffsetRetention) -> list[TopicPartition]:
    """The partitions whose committed offset is kept no longer at ``now_ms``, by the wall clock."""
    settled = [(name, one) for name, one in group.offsets if group.offsets.is_settled(name)]
    if retention.after_commit:
        return [name for name, one in settled if now_ms > one.expires_ms >= 0]
    begun = _begun(group)
    if begun is None:
        return []
    since_ms, busy = begun
    return [
        name
        for name, one in settled
        if name.topic not in busy
        and now_ms >= (one.expires_ms if one.expires_ms >= 0 else since_ms(one) + retention.retention_ms)
    ]


def _begun(group: KeptGroup) -> tuple[Callable[[CommittedOffset], int], set[str]] | None:
    """From when on an offset's time counts, and of which topics none expires; None: no offset of the group does."""
    members = group.members
    if not isinstance(members, ClassicGroup):
        return (lambda one: one.commit_ms), members.subscribed
    since_ms = members.empty_since_ms
    if members.protocol_type is None or (members.state == "Empty" and since_ms is None):
        return (lambda one: one.commit_ms), set()
    if members.state == "Empty" and since_ms is not None:
        return (lambda _: since_ms), set()
    busy, _ = busy_topics(group)
    if members.protocol_type != CONSUMER or members.state != "Stable" or busy is None:
        return None
    return (lambda one: one.commit_ms), busy
