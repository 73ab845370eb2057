"""The table of generations says what it is meant to say."""

from __future__ import annotations

from dataclasses import fields
from itertools import pairwise

import pytest

from harness.errors import UsageError
from harness.replication.knobs import CURRENT_GENERATION, GENERATIONS, Knobs, generation


def changes(older: Knobs, newer: Knobs) -> dict[str, object]:
    """What ``newer`` does otherwise."""
    names = [field.name for field in fields(Knobs)]
    return {name: getattr(newer, name) for name in names if getattr(older, name) != getattr(newer, name)}


PROTOCOL = {
    "0.11": {"truncation": "epoch_offset", "deletion_answered": "when_followed", "transactions": "unverified"},
    "2.0.0": {
        "truncation": "epoch_pair",
        "last_isr_member": "stays",
        "producers_without_records": "unknown",
        "batches_remembered": "five",
    },
    "2.0.1": {
        "lookup_below_first": "start_of_first",
        "epoch_entry": "on_election",
        "truncate_when": "epoch_gap",
        "isr_join": "hw_and_epoch_start",
        "out_of_range": "lenient",
    },
    "2.1": {
        "truncate_when": "every_epoch",
        "fetch_fencing": True,
        "lookup_fencing": True,
        "in_sync_at_the_end": True,
        "offset_expiry": "after_empty",
    },
    "2.8": {
        "truncation": "diverging_fetch",
        "isr_update": "maximal",
        "broker_bounce": "noticed",
        "transactional_offsets": "fenced",
        "producers_without_records": "kept",
    },
    "3.7": {
        "transactions": "verified",
        "topic_identity": "id",
        "newcomers": "eligible",
        "hw_below_min_isr": "freeze",
        "broker_epoch_check": True,
        "fenced_replicas_join": False,
        "broker_bounce": "refused",
        "shrink_raises_epoch": False,
    },
    "4.1": {"elections": "elr", "transactions": "numbered", "consumer_protocol": True},
}
OF_STORAGE = {"disk_full", "clean_shutdown_marker", "recovered_tail", "segment_names", "tombstones"}


def test_each_generation_changes_what_its_release_notes_say() -> None:
    names = list(GENERATIONS)
    changed = {
        newer: {
            knob: value
            for knob, value in changes(GENERATIONS[older], GENERATIONS[newer]).items()
            if knob not in OF_STORAGE
        }
        for older, newer in pairwise(names)
    }
    assert names[0] == "0.10"
    assert changed == PROTOCOL


def test_no_generation_has_a_bug_that_a_patch_release_has_mended() -> None:
    bugs = (
        "diverging_fetch_is_progress",
        "stale_truncation_applied",
        "hw_from_diverging",
        "spurious_out_of_range",
        "empty_isr_retry",
        "placing_forgets_eligible",
    )
    assert not [name for name, knobs in GENERATIONS.items() for bug in bugs if getattr(knobs, bug)]


def test_the_knobs_default_to_the_newest_generation() -> None:
    assert Knobs() == list(GENERATIONS.values())[-1]
    assert CURRENT_GENERATION in GENERATIONS


def test_every_knob_is_documented() -> None:
    documented = Knobs.__doc__ or ""
    assert not [field.name for field in fields(Knobs) if f"        {field.name}: " not in documented]


def test_a_knob_is_set_by_its_name() -> None:
    knobs = generation("2.1", {"truncation": "leader_hw", "fetch_fencing": "false"})
    assert (knobs.truncation, knobs.fetch_fencing) == ("leader_hw", False)


@pytest.mark.parametrize(
    ("name", "overrides"),
    [("1.1", {}), ("2.1", {"truncate": "hw"}), ("2.1", {"truncation": "none"}), ("2.1", {"fetch_fencing": "yes"})],
)
def test_what_is_not_known_is_refused_with_what_is(name: str, overrides: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        generation(name, overrides)
