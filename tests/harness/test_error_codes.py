"""The error codes of the protocol."""

from __future__ import annotations

from confluent_kafka import KafkaError
from kio.schema.errors import ErrorCode as KioErrorCode

from harness.error_codes import ErrorCode


def test_there_is_a_gap_between_codes() -> None:
    assert sorted(ErrorCode) == list(range(-1, 134))


def test_kio_names_a_code_otherwise() -> None:
    theirs = {code.name.upper(): code.value for code in KioErrorCode}
    ours = {code.name: code.value for code in ErrorCode if code.value < len(theirs) - 1}
    assert ours == theirs


def test_librdkafka_numbers_an_error_otherwise() -> None:
    known = {code: getattr(KafkaError, code.name) for code in ErrorCode if hasattr(KafkaError, code.name)}
    assert len(known) > 60
    assert all(theirs == code for code, theirs in known.items())
