"""Directories that are full or have failed, in memory and on real files: the same refusals."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.broker.files import Disk
from harness.broker.ledger import lose_power
from harness.broker.subdirectory import Subdirectory
from harness.simulation.stack.disk import MemoryDisk
from harness.targets import log_dirs


class Kind(NamedTuple):
    """A disk, how a directory of it fails and is put back, and how one that has failed is replaced by an empty one."""

    disk: Disk | MemoryDisk
    fail: Callable[[str], None]
    mend: Callable[[str], object]
    replace: Callable[[str], object]


@pytest.fixture(params=["memory", "real"])
def kind(request: pytest.FixtureRequest, tmp_path: Path) -> Kind:
    root = tmp_path / "data"
    if request.param == "real":
        return Kind(
            Disk(root),
            lambda name: log_dirs.fail(root / name),
            lambda name: log_dirs.mend(root / name),
            lambda name: log_dirs.mend(root / name, empty=True),
        )
    memory = MemoryDisk()

    def replace(name: str) -> None:
        memory.failed.discard(name)
        memory.empty(name)

    return Kind(memory, memory.failed.add, memory.failed.discard, replace)


def refusal(act: Callable[[], object]) -> int | None:
    try:
        act()
    except OSError as error:
        return error.errno
    return None


def test_a_limit_of_one_directory_is_that_of_no_other(kind: Kind) -> None:
    disk = kind.disk
    disk.limit("log-1", 10)
    here, there = disk.open("log-0/t-0/log"), disk.open("log-1/t-1/log")
    assert (here.append(b"x" * 100), there.append(b"x" * 100)) == (100, 10)
    assert refusal(lambda: there.append(b"x")) == errno.ENOSPC
    assert refusal(lambda: disk.replace_text("log-1/text", "x", flush=True)) == errno.ENOSPC
    assert refusal(lambda: disk.replace_text("log-0/text", "x", flush=True)) is None
    assert (disk.probe(10, "log-0"), disk.probe(10, "log-1")) == ((None, 10), (errno.ENOSPC, 0))
    there.truncate(4)
    assert there.append(b"x" * 100) == 6
    disk.limit("log-1", None)
    assert there.append(b"x" * 100) == 100


def test_the_smaller_of_two_limits_counts_and_both_are_used_up(kind: Kind) -> None:
    disk = kind.disk
    disk.limit("", 30)
    disk.limit("log-1", 20)
    file = disk.open("log-1/log")
    assert file.append(b"x" * 15) == 15
    assert (disk.free_bytes, disk.free_within) == (15, {"log-1": 5})
    assert disk.open("log-0/log").append(b"x" * 100) == 15
    assert refusal(lambda: file.append(b"x")) == errno.ENOSPC


@pytest.mark.parametrize(
    ("directory", "left"), [("", {"log-0": [], "log-1": []}), ("log-1", {"log-0": ["log"], "log-1": []})]
)
def test_a_directory_that_is_replaced_is_empty(kind: Kind, directory: str, left: dict[str, list[str]]) -> None:
    for name in left:
        kind.disk.open(f"{name}/log").append(b"abc")
    kind.fail(directory)
    kind.replace(directory)
    assert {name: kind.disk.list(name) for name in left} == left


def test_in_a_failed_directory_nothing_can_be_named_and_what_is_open_stays_open(kind: Kind) -> None:
    disk = kind.disk
    file = disk.open("log-1/t-1/log")
    disk.replace_text("log-1/text", "old", flush=True)
    kind.fail("log-1")
    assert file.append(b"abc") == 3
    file.flush()
    assert (file.read(0, 10), file.size()) == (b"abc", 3)
    acts: list[Callable[[], object]] = [
        lambda: disk.open("log-1/t-1/log"),
        lambda: disk.open("log-1/new"),
        lambda: disk.remove("log-1/text"),
        lambda: disk.read_text("log-1/text"),
        lambda: disk.replace_text("log-1/text", "new", flush=True),
        lambda: disk.replace_text("log-1/text", "new", flush=False),
        lambda: disk.flush_directory("log-1/t-1"),
        lambda: disk.flush_directory("log-1"),
        lambda: disk.list("log-1"),
        lambda: disk.list("log-1/t-1"),
    ]
    assert [refusal(act) for act in acts] == [errno.ENOTDIR] * len(acts)
    assert disk.list("log-2") == []
    assert disk.probe(0, "log-1") == (errno.ENOTDIR, 0)
    assert refusal(lambda: disk.open("log-0/t-0/log")) is None
    kind.mend("log-1")
    assert disk.read_text("log-1/text") == "old"
    assert disk.open("log-1/t-1/log").read(0, 10) == b"abc"


def test_a_subdirectory_makes_its_own_name_safe(tmp_path: Path) -> None:
    files = Subdirectory(Disk(tmp_path / "data"), "log-1")
    files.replace_text("text", "kept", flush=True)
    assert lose_power(tmp_path / "data") == []
    assert Subdirectory(Disk(tmp_path / "data"), "log-1").read_text("text") == "kept"


def test_a_start_without_a_failed_directory_does_not_forget_what_was_flushed_there(tmp_path: Path) -> None:
    root = tmp_path / "data"
    files = Subdirectory(Disk(root), "log-1")
    file = files.open("t-1/log")
    file.append(b"abc")
    file.flush()
    files.flush_directory("t-1")
    files.flush_directory("")
    log_dirs.fail(root / "log-1")
    Disk(root)
    log_dirs.mend(root / "log-1")
    Disk(root)
    assert lose_power(root) == []
    assert (root / "log-1" / "t-1" / "log").read_bytes() == b"abc"
