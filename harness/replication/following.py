"""What a follower works out from its own log: what to fetch, where to cut, what it cannot append."""

from __future__ import annotations

from harness.model import NO_EPOCH, NodeId, Offset
from harness.replication.knobs import Knobs
from harness.replication.log_state import LogState
from harness.replication.messages import BatchSpan, EpochEnd, NextFetch


def next_fetch(leader: NodeId, leader_epoch: int, log: LogState, knobs: Knobs) -> NextFetch:
    """The fetch that continues ``log``, with the epochs that the generation carries."""
    return NextFetch(
        leader=leader,
        leader_epoch=leader_epoch if knobs.fetch_fencing else NO_EPOCH,
        fetch_offset=log.log_end_offset,
        last_fetched_epoch=log.epochs.latest if knobs.truncation == "diverging_fetch" else NO_EPOCH,
    )


def truncation_target(diverging: EpochEnd, log: LogState) -> Offset:
    """Where to cut, given where the leader says that its largest epoch not above ours ends.

    When we know that epoch too, the logs part at the earlier of its two ends. Otherwise the end of our largest
    epoch below it is as far as we can tell: the next fetch asks about that one (KIP-279,
    ``AbstractFetcherThread.getOffsetTruncationState``).
    """
    if diverging.end_offset < 0:
        return log.high_watermark
    ours = log.epochs.end_offset_for(diverging.leader_epoch, log.log_end_offset)
    if ours.leader_epoch == NO_EPOCH:
        return diverging.end_offset
    if ours.leader_epoch != diverging.leader_epoch:
        return ours.end_offset
    return min(ours.end_offset, diverging.end_offset)


def unappendable(spans: tuple[BatchSpan, ...], log_end_offset: Offset) -> bool:
    """Whether the batches ``spans`` do not continue a log that ends at ``log_end_offset`` (gaps are legal)."""
    end_offset = log_end_offset
    for span in spans:
        if span.base_offset < end_offset or span.end_offset <= span.base_offset:
            return True
        end_offset = span.end_offset
    return False
