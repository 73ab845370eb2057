"""The disk of memory and the real one: the same promises, the same refusals, the same losses."""

from __future__ import annotations

import errno
import random
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Protocol

import pytest

from harness.broker.files import Disk
from harness.broker.ledger import Cut, lose_power
from harness.broker.ports import File, FileSystem
from harness.simulation.stack.disk import MemoryDisk


class BudgetedDisk(FileSystem, Protocol):
    free_bytes: int | None

    def probe(self, size: int) -> tuple[int | None, int]: ...

    def sync(self) -> None: ...


class Plug:
    """A disk, and what happens to it when the plug is pulled; afterwards it is used by another life of its node."""

    def __init__(self, start: Callable[[], BudgetedDisk], lose: Callable[[], Sequence[Cut]]) -> None:
        self.disk = start()
        self._start = start
        self._lose = lose

    def pull(self) -> Sequence[Cut]:
        cuts = self._lose()
        self.disk = self._start()
        return cuts


def memory(_: Path) -> Plug:
    disk = MemoryDisk()
    return Plug(lambda: disk, disk.lose_power)


def real(root: Path) -> Plug:
    return Plug(lambda: Disk(root / "data"), lambda: lose_power(root / "data"))


@pytest.fixture(params=[memory, real])
def plug(request: pytest.FixtureRequest, tmp_path: Path) -> Plug:
    made: Plug = request.param(tmp_path)
    return made


@pytest.fixture
def disk(plug: Plug) -> BudgetedDisk:
    return plug.disk


def test_a_write_beyond_the_budget_is_torn_and_the_next_one_refused(disk: BudgetedDisk) -> None:
    disk.free_bytes = 10
    file = disk.open("t-0/log")
    assert file.append(b"x" * 16) == 10
    with pytest.raises(OSError, match="No space") as refusal:
        file.append(b"y")
    assert refusal.value.errno == errno.ENOSPC
    assert (file.size(), file.read(0, 100), disk.free_bytes) == (10, b"x" * 10, 0)


def test_an_empty_write_passes_on_a_full_disk(disk: BudgetedDisk) -> None:
    disk.free_bytes = 0
    assert disk.open("log").append(b"") == 0


def test_truncating_and_removing_give_bytes_back(disk: BudgetedDisk) -> None:
    disk.free_bytes = 10
    file = disk.open("log")
    file.append(b"x" * 10)
    file.truncate(4)
    assert disk.free_bytes == 6
    file.close()
    disk.remove("log")
    assert disk.free_bytes == 10


def test_a_refused_replacement_keeps_the_old_text_and_leaves_no_temporary(disk: BudgetedDisk) -> None:
    disk.replace_text("checkpoint", "old", flush=True)
    disk.free_bytes = 2
    with pytest.raises(OSError, match="No space"):
        disk.replace_text("checkpoint", "longer", flush=True)
    assert (disk.read_text("checkpoint"), disk.list(""), disk.free_bytes) == ("old", ["checkpoint"], 2)


def test_a_replacement_costs_only_the_difference(disk: BudgetedDisk) -> None:
    disk.free_bytes = 10
    disk.replace_text("checkpoint", "1234", flush=False)
    disk.replace_text("checkpoint", "12", flush=False)
    assert disk.free_bytes == 8


def test_the_probe_reports_the_refusal_and_does_not_use_the_budget_up(disk: BudgetedDisk) -> None:
    disk.free_bytes = 100
    assert disk.probe(65_536) == (errno.ENOSPC, 100)
    assert disk.free_bytes == 100
    disk.free_bytes = None
    assert disk.probe(65_536) == (None, 65_536)
    assert disk.list("") == []


def test_what_is_missing_reads_as_nothing_and_cannot_be_removed(disk: BudgetedDisk) -> None:
    assert disk.read_text("nothing") is None
    assert disk.list("nowhere") == []
    with pytest.raises(FileNotFoundError):
        disk.remove("nothing")
    with pytest.raises(FileNotFoundError):
        disk.flush_directory("nowhere")


def test_two_handles_of_one_file_see_each_other_s_bytes(disk: BudgetedDisk) -> None:
    one, other = disk.open("log"), disk.open("log")
    one.append(b"one")
    other.append(b"two")
    assert one.read(1, 4) == b"netw"
    assert (one.read(5, 100), one.read(6, 1)) == (b"o", b"")


def test_directories_are_listed_beside_files_and_outlive_what_was_in_them(disk: BudgetedDisk) -> None:
    disk.open("t-1/log")
    disk.open("t-0/deep/log")
    disk.replace_text("checkpoint", "text", flush=False)
    disk.remove("t-1/log")
    assert disk.list("") == ["checkpoint", "t-0", "t-1"]
    assert (disk.list("t-0"), disk.list("t-1"), disk.list("t-0/deep")) == (["deep"], [], ["log"])


def test_a_kill_keeps_everything_and_a_power_loss_what_was_flushed(plug: Plug) -> None:
    disk = plug.disk
    file = disk.open("t-0/log")
    disk.flush_directory("")
    disk.flush_directory("t-0")
    file.append(b"flushed")
    file.flush()
    file.append(b"cached")
    disk.replace_text("checkpoint", "first", flush=True)
    disk.replace_text("checkpoint", "the second", flush=False)
    disk.open("t-0/new").flush()
    assert plug.pull() == [Cut("checkpoint", 10, 5), Cut("t-0/log", 13, 7), Cut("t-0/new", 0, None)]
    assert plug.disk.open("t-0/log").read(0, 100) == b"flushed"
    assert (plug.disk.read_text("checkpoint"), plug.disk.list("t-0")) == ("first", ["log"])
    assert plug.pull() == []


def test_what_lies_below_a_lost_name_is_lost_with_it(plug: Plug) -> None:
    plug.disk.open("t-0/log").flush()
    plug.disk.flush_directory("t-0")
    plug.disk.replace_text("t-0/checkpoint", "text", flush=True)
    assert [cut.path for cut in plug.pull()] == ["t-0/checkpoint", "t-0/log"]
    assert plug.disk.list("") == []


def test_what_was_lost_once_does_not_come_back_when_its_directory_does(plug: Plug) -> None:
    plug.disk.replace_text("t-0/checkpoint", "old", flush=True)
    plug.disk.open("t-0/log").flush()
    plug.disk.flush_directory("t-0")
    assert [cut.path for cut in plug.pull()] == ["t-0/checkpoint", "t-0/log"]
    plug.disk.open("t-0/log").append(b"new")
    plug.disk.replace_text("t-0/checkpoint", "new", flush=False)
    plug.disk.flush_directory("")
    assert [cut.path for cut in plug.pull()] == ["t-0/checkpoint", "t-0/log"]
    assert plug.disk.list("t-0") == []


def test_cutting_and_removing_are_durable_at_once(plug: Plug) -> None:
    plug.disk.flush_directory("")
    for name in ("cut", "removed"):
        file = plug.disk.open(name)
        file.append(b"0123456789")
        file.flush()
    plug.disk.flush_directory("")
    plug.disk.open("cut").truncate(4)
    plug.disk.open("cut").append(b"cached")
    plug.disk.remove("removed")
    assert plug.pull() == [Cut("cut", 10, 4)]
    assert plug.disk.list("") == ["cut"]


def test_a_synced_disk_loses_nothing(plug: Plug) -> None:
    plug.disk.open("t-0/log").append(b"cached")
    plug.disk.replace_text("t-0/checkpoint", "text", flush=False)
    plug.disk.sync()
    assert plug.pull() == []


def on(disk: BudgetedDisk, path: str, act: Callable[[File], object]) -> object:
    """Do something with a file, and close it."""
    with closing(disk.open(path)) as file:
        return act(file)


class Story:
    """Random operations on a disk, and everything that can be seen of them."""

    def __init__(self, plug: Plug, seed: int) -> None:
        self._plug = plug
        self._drawn = random.Random(seed)

    def tell(self, steps: int) -> list[object]:
        return [self._outcome(self._draw()) for _ in range(steps)]

    def _draw(self) -> Callable[[], object]:
        disk, drawn = self._plug.disk, self._drawn
        directory = drawn.choice(["", "t-0", "t-1"])
        file = f"{drawn.choice(['t-0', 't-1'])}/{drawn.choice('ab')}"
        text = drawn.choice(["checkpoint", "t-0/epochs"])
        data = drawn.randbytes(drawn.randrange(40))
        size, words, flush = drawn.randrange(30), "x" * drawn.randrange(40), drawn.random() < 0.5
        budget = drawn.choice([None, None, drawn.randrange(60)])
        acts: list[Callable[[], object]] = [
            lambda: on(disk, file, lambda opened: opened.append(data)),
            lambda: on(disk, file, lambda opened: opened.append(data)),
            lambda: on(disk, file, lambda opened: opened.flush()),
            lambda: on(disk, file, lambda opened: opened.truncate(min(size, opened.size()))),
            lambda: disk.replace_text(text, words, flush=flush),
            lambda: disk.flush_directory(directory),
            lambda: disk.flush_directory(directory),
            lambda: disk.remove(file),
            lambda: setattr(disk, "free_bytes", budget),
        ]
        return drawn.choice(acts)

    def _outcome(self, act: Callable[[], object]) -> object:
        try:
            done: object = act()
        except OSError as refused:
            done = refused.errno
        return done, self._plug.disk.free_bytes, self._files()

    def _files(self) -> list[object]:
        disk = self._plug.disk
        names = [f"{directory}/{name}" for directory in ("t-0", "t-1") for name in disk.list(directory)]
        logs = [on(disk, name, lambda opened: opened.read(0, 1 << 16)) for name in names if name[-1] in "ab"]
        return [disk.list(""), names, *logs, *(disk.read_text(name) for name in ("checkpoint", "t-0/epochs"))]


@pytest.mark.parametrize("seed", range(40))
def test_no_story_tells_them_apart(tmp_path: Path, seed: int) -> None:
    stories = []
    for make in (memory, real):
        plug = make(tmp_path)
        told = Story(plug, seed).tell(40)
        plug.disk.free_bytes = None
        stories.append((told, plug.pull(), Story(plug, seed + 1000).tell(40), plug.pull()))
    assert stories[0] == stories[1]


def test_a_disk_that_fails_refuses_writes_with_its_errno_and_still_reads() -> None:
    disk = MemoryDisk()
    file = disk.open("log")
    file.append(b"written")
    disk.refusal = errno.EIO
    for act in (
        lambda: file.append(b"more"),
        file.flush,
        lambda: disk.flush_directory(""),
        lambda: disk.replace_text("checkpoint", "text", flush=False),
        lambda: file.truncate(3),
    ):
        with pytest.raises(OSError, match="Input/output error"):
            act()
    assert file.read(0, 100) == b"written"


def test_a_flipped_bit_changes_one_byte_and_flipping_it_again_mends_it() -> None:
    disk = MemoryDisk()
    disk.open("log").append(b"abc")
    disk.flip_bit("log", -1)
    assert disk.read_bytes("log") == b"abb"
    disk.flip_bit("log", -1)
    assert disk.read_bytes("log") == b"abc"


def test_a_wiped_disk_is_empty_and_a_copy_of_a_disk_has_its_files(tmp_path: Path) -> None:
    disk = MemoryDisk()
    disk.open("t-0/log").append(b"bytes")
    disk.replace_text("checkpoint", "text", flush=False)
    disk.copy_to(tmp_path)
    assert (tmp_path / "t-0" / "log").read_bytes() == b"bytes"
    assert (tmp_path / "checkpoint").read_text() == "text"
    disk.wipe()
    assert disk.is_empty()
    assert disk.list("") == []
