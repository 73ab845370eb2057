"""How much an audit may ask of a cluster, and that nothing passes it."""

from __future__ import annotations

import math

import pytest

from harness.audit.ceiling import MOST_BYTES_PER_S, MOST_PARTITIONS, MOST_RECORDS_PER_S, Budget, Load
from harness.audit.cluster import Wanted, begun
from harness.errors import UsageError
from harness.targets.bootstrap.administration import Administration
from harness.targets.bootstrap.spelling import named


@pytest.mark.parametrize(
    ("rate", "partitions", "size"),
    [
        *[(201, 1, 0), (20_000, 3, 0), (10, 21, 0), (200, 1, 1001), (10, 20, 1001), (1, 1, 30_000)],
        *[(0, 1, 0), (1, 0, 0), (math.nan, 1, 0)],
    ],
)
def test_a_load_that_could_pass_the_ceiling_is_refused(rate: float, partitions: int, size: int) -> None:
    with pytest.raises(UsageError):
        Load(rate, partitions, size)


def test_a_load_at_the_ceiling_is_not() -> None:
    load = Load(MOST_RECORDS_PER_S, 20, int(MOST_BYTES_PER_S / MOST_RECORDS_PER_S))
    assert load.worst_records_per_s == MOST_RECORDS_PER_S
    assert load.worst_bytes_per_s == MOST_BYTES_PER_S


def test_a_budget_begins_empty_and_never_gives_more_than_its_rate() -> None:
    load = Load(10, 3)
    budget, taken = Budget(load, 0), 0
    assert budget.wait_s(0) > 0
    for now_ns in range(0, 60 * 10**9, 10**7):
        while budget.wait_s(now_ns) == 0:
            taken += 1
    assert 590 <= taken <= 600


def test_a_budget_that_was_not_used_holds_one_second_of_records() -> None:
    budget = Budget(Load(10, 3), 0)
    taken = 0
    while budget.wait_s(3600 * 10**9) == 0:
        taken += 1
    assert taken == 10


def test_a_topic_of_the_default_has_no_more_partitions_than_may_send(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Administration, "brokers", lambda _: list(range(40)))
    made = begun("bootstrap:127.0.0.1:9092", named("127.0.0.1:9092"), Wanted(None, None), 60.0, 0)
    assert made.partitions == MOST_PARTITIONS
    Load(10.0, made.partitions)
    with pytest.raises(UsageError):
        Load(10.0, made.partitions + 1)


def test_what_is_kept_is_not_read_again_too_often() -> None:
    Load(10.0, 3).refuse_times(3600, 300)
    Load(200.0, 3).refuse_times(3000, 300)
    with pytest.raises(UsageError, match=r"reads 2,400 records/s, and never reads more than 2,000"):
        Load(200.0, 3).refuse_times(3600, 300)
    with pytest.raises(UsageError, match=r"--keep is 60 s, which is shorter than a window of 300 s"):
        Load(10.0, 3).refuse_times(60, 300)
