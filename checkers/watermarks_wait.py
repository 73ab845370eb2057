"""What is committed is on enough replicas: the watermark waits for ``min.insync.replicas``.

``advance-below-min-isr``: a leader's high watermark rose while the ISR that it knew was smaller than
``min.insync.replicas``, or than the replication factor if that is less (T8). What is committed so is on fewer disks
than the configuration asks for; consumers read it, and it is lost with them. The row in which the ISR shrinks is not
held against a leader: whichever came first, nobody sees.

Severity: ``VIOLATION``. ``DOCUMENTED`` before 3.7 (KAFKA-15583).
"""

from __future__ import annotations

from collections.abc import Iterator

from checkers.conclusion import Conclusion, RunFacts, cite, seen_at

KINDS = ("advance-below-min-isr",)


def conclude(run: RunFacts) -> Iterator[Conclusion]:
    """Every breach in one run: one for each stretch of a leader with such an ISR."""
    for place, nodes in run.told.items():
        least = run.least_isr(place)
        for one in (x for ours in nodes.values() for x in ours):
            if one.role != "leader" or one.rose is None or one.isr is None or least is None or len(one.isr) >= least:
                continue
            yield Conclusion(
                run.finding(
                    "advance-below-min-isr",
                    place,
                    offset=one.first_high_watermark or 0,
                    until=one.high_watermark,
                    leader_epoch=one.leader_epoch,
                    **seen_at(one, one.rose),
                ),
                f"Node {one.node}, leader in epoch {one.leader_epoch}, committed offsets "
                f"{one.first_high_watermark or 0} to {(one.high_watermark or 1) - 1} with an ISR of {list(one.isr)}, "
                f"fewer than {least}.",
                (cite(one, f"node {one.node}'s high watermark rises with an ISR of {list(one.isr)}", one.rose),),
            )
