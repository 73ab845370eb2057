from __future__ import annotations

from typing import get_args

import pytest

from harness.excuse import EXCUSES, Effect, Excuse, ExcuseKind


def test_every_name_of_an_excuse_has_one_record() -> None:
    assert sorted(EXCUSES) == sorted(get_args(Excuse))


@pytest.mark.parametrize("excuse", EXCUSES.values(), ids=lambda excuse: excuse.name)
def test_an_excuse_has_a_sentence_where_it_is_the_reason_for_the_verdict(excuse: ExcuseKind) -> None:
    assert bool(excuse.reason) == (excuse.effect in (Effect.DOCUMENTED, Effect.LEFT_OPEN))


def test_an_excuse_that_rests_on_a_guarantee_holds_with_that_value_alone() -> None:
    unnumbered, damage = EXCUSES["unnumbered"], EXCUSES["damage"]
    assert [unnumbered.is_permitted({"idempotent_producers": value}) for value in (True, False)] == [False, True]
    assert not unnumbered.is_permitted({})
    assert damage.is_permitted({})
