from __future__ import annotations

import pytest

from harness.errors import UsageError
from harness.replication.knobs import GENERATIONS, generation
from harness.targets.kafka.releases import FAMILIES, TRIED, Metadata, numbers, release


def test_a_release_belongs_to_the_newest_family_that_is_not_newer() -> None:
    assert release("2.0.0").generation == "2.0.0"
    assert release("2.0.1").generation == release("2.0.9").generation == "2.0.1"
    assert release("2.8.0").family.knobs["stale_truncation_applied"] == "true"
    assert "stale_truncation_applied" not in release("2.8.1").family.knobs
    assert [release(one).family.knobs.get("placing_forgets_eligible") for one in ("4.0.0", "4.2.1", "4.3.0")] == [
        None,
        "true",
        None,
    ]
    assert release("3.9.1").metadata is Metadata.KRAFT
    assert release("10.0.0").family is FAMILIES[-1]


def test_every_family_speaks_a_generation_with_knobs_that_it_has_and_they_do_not_get_older() -> None:
    order = list(GENERATIONS)
    spoken = [order.index(family.generation) for family in FAMILIES]
    assert spoken == sorted(spoken)
    assert [numbers(family.since) for family in FAMILIES] == sorted(numbers(family.since) for family in FAMILIES)
    for family in FAMILIES:
        generation(family.generation, family.knobs)


def test_every_release_that_was_tried_is_one() -> None:
    assert [release(version).version for version in TRIED] == list(TRIED)


@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("0.10.1.1", "older than any that can be run"),
        ("newest", "no version"),
        ("4.x", "no version"),
        ("4", "no version"),
        ("4.1", r"did you mean 4\.1\.0\?"),
        ("0.10.2", r"did you mean 0\.10\.2\.2\?"),
        ("2.8", r"did you mean 2\.8\.1\?"),
    ],
)
def test_what_is_no_release_that_can_be_run_is_refused(version: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        release(version)
