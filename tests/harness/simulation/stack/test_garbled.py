"""A broker garbles one part of a record under a checksum that fits: what clients read and what disks hold shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness.simulation.stack.loaded_target import LoadedTarget
from tests.replica_rows import held

APPENDING = (
    "garbled_before_crc",
    "key_garbled_before_crc",
    "header_garbled_before_crc",
    "timestamp_garbled_before_crc",
)
SERVING = ("fetch_garbles_a_key", "fetch_drops_headers", "fetch_stamps_records")
COUNT = 64


def read_and_stored(path: Path, bugs: str) -> tuple[list[bool], dict[int, list[bool]]]:
    """Whether what the final read was given was intact, and what is on the disks, by broker."""
    loaded = LoadedTarget(path, bugs=bugs)
    assert [one.kind for one in loaded.send(count=COUNT)] == ["ok"] * COUNT
    assert all(loaded.clients.final_read.read(5.0) for _ in range(COUNT))
    read = [row["intact"] for row in loaded.rows("poll", type="ok", final=True) if row["offset"] is not None]
    loaded.target.stop()
    stored: dict[int, list[bool]] = {}
    for row in held(loaded.target):
        stored.setdefault(row["node"], []).append(row["intact"])
    return read, stored


def test_what_no_broker_garbles_is_intact_everywhere(tmp_path: Path) -> None:
    read, stored = read_and_stored(tmp_path, "")
    assert read == [True] * COUNT * COUNT
    assert stored == dict.fromkeys((0, 1, 2), [True] * COUNT)


@pytest.mark.parametrize("bug", APPENDING)
def test_what_a_leader_garbles_when_it_appends_is_read_and_stored_as_that_everywhere(tmp_path: Path, bug: str) -> None:
    read, stored = read_and_stored(tmp_path, bug)
    assert 0 < stored[0].count(False) < COUNT // 4
    assert stored[0] == stored[1] == stored[2]
    assert read == stored[0] * COUNT


@pytest.mark.parametrize("bug", SERVING)
def test_what_a_leader_garbles_when_it_serves_is_read_and_stored_nowhere(tmp_path: Path, bug: str) -> None:
    read, stored = read_and_stored(tmp_path, bug)
    assert 0 < read.count(False) < len(read) // 4
    assert stored == dict.fromkeys((0, 1, 2), [True] * COUNT)


def test_what_a_follower_garbles_is_stored_there_alone(tmp_path: Path) -> None:
    read, stored = read_and_stored(tmp_path, "follower_drops_headers")
    assert all(read)
    assert all(stored[0])
    assert not any(stored[1] + stored[2])
