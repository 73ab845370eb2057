"""Guarantees that only some protocol generations give, so that the witness checks them only there."""

from __future__ import annotations

from typing import NamedTuple

from harness.replication.knobs import Knobs


class Promises(NamedTuple):
    """What a set of knobs promises beyond what every generation does.

    Attributes:
        no_committed_cut: a replica never cuts a committed record (R10), so that every replica that may be elected
            holds all of them (R4). Only epochs that are looked up to the end keep it: from Kafka 2.0.1 on.
        fenced: a leader serves followers of its own epoch only (T11).
        frozen: the watermark waits for ``min.insync.replicas`` (T8).
    """

    no_committed_cut: bool
    fenced: bool
    frozen: bool


def promises(knobs: Knobs) -> Promises:
    """What ``knobs`` promise."""
    by_epoch = knobs.truncation in ("epoch_pair", "diverging_fetch")
    mended = knobs.lookup_below_first == "start_of_first" and knobs.epoch_entry == "on_election"
    return Promises(by_epoch and mended, knobs.fetch_fencing, knobs.hw_below_min_isr == "freeze")
