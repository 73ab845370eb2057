from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.targets.bootstrap.spelling import Named, from_anywhere, named


def test_a_file_is_named_by_its_whole_path_for_other_working_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert from_anywhere("one:9092#keep-topics#client=a=b#topic=c") == (
        f"one:9092#keep-topics#client={tmp_path}/a=b#topic=c"
    )
    assert from_anywhere("one:9092#client=/a") == "one:9092#client=/a"
    assert from_anywhere("one:9092#client=") == "one:9092#client="


def test_addresses_and_options_are_read() -> None:
    assert named("one:9092,[::1]:9093") == Named("one:9092,[::1]:9093")
    written = named("one:9092#keep-topics#prefix=ci-#promise=min.insync.replicas=2#promise=log.retention.ms=1")
    promises = {"min.insync.replicas": "2", "log.retention.ms": "1"}
    assert written == Named("one:9092", keeps_topics=True, prefix="ci-", promises=promises)
    assert named("one:9092#topic=orders#topic=bills").topics == ("orders", "bills")


@pytest.mark.parametrize(
    ("argument", "complaint"),
    [
        ("one", r"'one' is not HOST:PORT"),
        ("one:9092,", r"'' is not HOST:PORT"),
        ("one:0", r"'one:0' is not HOST:PORT"),
        ("one:65536", r"'one:65536' is not HOST:PORT"),
        ("one:9092 ", r"'one:9092 ' is not HOST:PORT"),
        ("one:9092#keep", r"'keep' is no option; known: client, keep-topics, prefix, promise, topic"),
        ("one:9092#keep-topics=no", r"keep-topics=no: it takes no value"),
        ("one:9092#prefix=__a", r"topics cannot begin with '__a'"),
        ("one:9092#prefix=a/b", r"topics cannot begin with 'a/b'"),
        ("one:9092#topic=a b", r"topic 'a b' cannot be given to a run"),
        ("one:9092#topic=__consumer_offsets", r"topic '__consumer_offsets' cannot be given to a run"),
        ("one:9092#topic=a#topic=a", r"topic 'a' cannot be given to a run"),
        ("one:9092#promise=min.insync.replicas", r"write promise=SETTING=VALUE"),
    ],
)
def test_what_is_malformed_is_named(argument: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        named(argument)
