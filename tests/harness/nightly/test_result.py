"""What a signature leaves out."""

from __future__ import annotations

from harness.nightly.result import Incident, signature_of


def test_a_signature_is_of_kinds_and_places_alone() -> None:
    one, other = Incident(kind="lost-write", place="ledger/0", count=3), Incident(kind="stuck", place="", count=1)
    assert signature_of([one, other]) == signature_of([other, one.model_copy(update={"count": 40})])
    assert signature_of([one]) != signature_of([other])
    assert signature_of([]) is None
