"""When a fault is in force."""

from __future__ import annotations

import pytest

from harness.downtime import in_force


@pytest.mark.parametrize(
    ("injected_ns", "healed_ns", "since_ns", "until_ns", "expected"),
    [
        (5, 5, 5, 5, True),
        (5, 9, 9, 9, True),
        (5, 9, 10, 12, False),
        (5, 9, 1, 4, False),
        (5, 9, 1, 5, True),
        (5, None, 90, 91, True),
        (None, None, 0, 99, False),
        (0, 0, 0, 0, True),
    ],
)
def test_a_fault_is_in_force_from_its_injection_to_its_healing_both_included(
    injected_ns: int | None, healed_ns: int | None, since_ns: int, until_ns: int, expected: bool
) -> None:
    assert in_force(injected_ns, healed_ns, since_ns, until_ns) is expected
