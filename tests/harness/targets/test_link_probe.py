from __future__ import annotations

from collections.abc import Callable

from harness.model import Link
from harness.targets.link_probe import probe_link, try_link

LINK = Link("2", "1")


def held(*values: int) -> Callable[[], int]:
    """Says one after the other."""
    remaining = iter(values)
    return lambda: next(remaining)


def test_silence_with_bytes_piling_up_proves_a_cut() -> None:
    receipt = probe_link(LINK, held(10, 28), lambda look: look())
    assert receipt.holds
    assert "18 more bytes" in receipt.seen


def test_silence_alone_proves_nothing_because_the_answer_may_have_been_lost() -> None:
    assert not probe_link(LINK, held(10, 10), lambda look: look()).holds


def test_an_answer_proves_that_the_link_is_whole() -> None:
    assert not probe_link(LINK, held(0, 100), lambda look: None).holds


def test_a_probe_that_got_lost_does_not_prove_that_a_link_is_whole_though_nothing_is_withheld() -> None:
    assert not try_link(LINK, held(10, 10), lambda look: look()).holds
    assert try_link(LINK, held(), lambda look: None).holds
