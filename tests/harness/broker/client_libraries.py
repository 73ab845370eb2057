"""What tests of client libraries share: the libraries, groups of their members, and the clients that are left open."""

from __future__ import annotations

import logging
import shutil
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from harness.client_ports import BEGINNING, Begins, CommittedOffset
from harness.client_properties import Access
from harness.clients.java.library import Java
from harness.clients.library import ClientLibrary, Member
from harness.clients.librdkafka_library import Librdkafka
from harness.history.recorder import Change, PolledRecord
from harness.membership import Membership
from harness.model import TopicPartition
from harness.runner.client_libraries import kafka_python
from tests.harness.targets.contract import fetched_or_skip

NEWEST = "4.3.0"
LOG = logging.getLogger("seawall.tests.libraries")
PATIENCE_S = 60.0


def fails(failure: BaseException) -> None:
    raise failure


def java_classpath() -> str:
    if shutil.which("javac") is None:
        pytest.skip("no Java compiler")
    return fetched_or_skip(NEWEST).classpath


LIBRARIES: dict[str, Callable[[Access], ClientLibrary]] = {
    "librdkafka": lambda access: Librdkafka(access, LOG),
    "java": lambda access: Java(access, java_classpath(), LOG, fails),
    "kafka-python": kafka_python,
}


def watch_clients(library: ClientLibrary, left: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """While the patch holds, a client that ``library`` makes is in ``left`` until it is closed."""

    def watched(make: Callable[..., Any]) -> Callable[..., Any]:
        def made(*arguments: Any, **named: Any) -> Any:
            client = make(*arguments, **named)
            close = client.close

            def closed() -> None:
                left[:] = [one for one in left if one is not client]
                close()

            client.close = closed
            left.append(client)
            return client

        return made

    for name in ("sender", "transactional_sender", "reader", "member", "group_offsets"):
        monkeypatch.setattr(library, name, watched(getattr(library, name)))


class Group:
    """Members of one group, and what they learn."""

    def __init__(
        self, library: ClientLibrary, places: list[TopicPartition], name: str = "", session_timeout_s: float = 6.0,
        **settings: Any,
    ) -> None:  # fmt: skip
        self.changes: list[tuple[Change, list[TopicPartition]]] = []
        self.name = name or uuid.uuid4().hex
        self._library = library
        self._membership = Membership(
            self.name, places, session_timeout_s=session_timeout_s, poll_timeout_s=30.0, **settings
        )

    def member(self) -> Member:
        made: list[Member] = []

        def rebalanced(change: Change, partitions: Sequence[TopicPartition]) -> Begins | None:
            self.changes.append((change, sorted(partitions)))
            if change != "assigned":
                return {}
            committed = made[0].committed(partitions, 10.0)
            assert not isinstance(committed, str)
            return {name: committed.get(name, CommittedOffset(BEGINNING)) for name in partitions}

        made.append(self._library.member("member", self._membership, "read_committed", rebalanced))
        return made[0]


def polled(member: Member, enough: Callable[[list[PolledRecord]], bool]) -> list[PolledRecord]:
    """What a member is given until it is ``enough``."""
    found: list[PolledRecord] = []
    errors: list[str] = []
    deadline = time.monotonic() + PATIENCE_S
    while not enough(found):
        assert time.monotonic() < deadline, f"{len(found)} records came, and the errors {errors}"
        given = member.poll(500, 0.2)
        found += given.records
        errors += [given.error] if given.error else []
    return found
