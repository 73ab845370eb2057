import random
from pathlib import Path

import pytest

from harness.broker.files import Disk
from harness.broker.ledger import Cut, ledger_path, lose_power


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "data"


def test_bytes_that_were_flushed_survive_a_power_loss_and_bytes_that_were_not_do_not(root: Path) -> None:
    disk = Disk(root)
    file = disk.open("log")
    disk.flush_directory("")
    file.append(b"flushed")
    file.flush()
    file.append(b"cached")
    assert lose_power(root) == [Cut("log", 13, 7)]
    assert (root / "log").read_bytes() == b"flushed"


def test_a_file_whose_name_was_never_flushed_is_gone_although_its_bytes_were(root: Path) -> None:
    disk = Disk(root)
    file = disk.open("log")
    file.append(b"flushed")
    file.flush()
    assert lose_power(root) == [Cut("log", 7, None)]
    assert not (root / "log").exists()


def test_what_lies_below_a_lost_directory_is_lost_with_it(root: Path) -> None:
    disk = Disk(root)
    file = disk.open("t-0/log")
    file.append(b"flushed")
    file.flush()
    disk.flush_directory("t-0")
    disk.replace_text("t-0/checkpoint", "text", flush=True)
    assert [cut.path for cut in lose_power(root)] == ["t-0/checkpoint", "t-0/log"]
    assert list(root.iterdir()) == []


def test_a_name_that_is_flushed_later_keeps_the_bytes_that_were_flushed_before(root: Path) -> None:
    disk = Disk(root)
    file = disk.open("t-0/log")
    file.append(b"flushed")
    file.flush()
    disk.flush_directory("t-0")
    disk.flush_directory("")
    assert lose_power(root) == []
    assert (root / "t-0" / "log").read_bytes() == b"flushed"


def test_an_unflushed_replacement_of_a_text_is_undone(root: Path) -> None:
    disk = Disk(root)
    disk.replace_text("checkpoint", "first", flush=True)
    disk.replace_text("checkpoint", "second", flush=False)
    disk.replace_text("checkpoint", "third, longer", flush=False)
    assert lose_power(root) == [Cut("checkpoint", 13, 5)]
    assert disk.read_text("checkpoint") == "first"


def test_a_text_that_was_never_flushed_is_gone_even_if_its_directory_was_flushed(root: Path) -> None:
    disk = Disk(root)
    disk.replace_text("checkpoint", "first", flush=False)
    disk.flush_directory("")
    assert lose_power(root) == [Cut("checkpoint", 5, None)]


def test_a_flushed_text_does_not_make_its_neighbours_names_safe(root: Path) -> None:
    disk = Disk(root)
    disk.open("log").flush()
    disk.replace_text("checkpoint", "text", flush=True)
    assert lose_power(root) == [Cut("log", 0, None)]
    assert disk.read_text("checkpoint") == "text"


def test_cutting_and_removing_are_durable_at_once(root: Path) -> None:
    disk = Disk(root)
    for name in ("cut", "removed"):
        file = disk.open(name)
        file.append(b"flushed")
        file.flush()
    disk.flush_directory("")
    cut = disk.open("cut")
    cut.truncate(3)
    cut.append(b"again")
    disk.remove("removed")
    disk.open("removed").append(b"another file of that name")
    assert lose_power(root) == [Cut("cut", 8, 3), Cut("removed", 25, None)]


def test_what_an_earlier_process_did_not_flush_is_still_at_risk_after_its_restart(root: Path) -> None:
    disk = Disk(root)
    file = disk.open("log")
    disk.flush_directory("")
    file.append(b"abc")
    file.flush()
    file.append(b"def")
    Disk(root).open("log").append(b"ghi")
    assert lose_power(root) == [Cut("log", 9, 3)]


def test_a_directory_that_was_wiped_or_cut_while_nobody_looked_promises_nothing_it_no_longer_has(root: Path) -> None:
    disk = Disk(root)
    for name in ("wiped", "cut"):
        file = disk.open(name)
        file.append(b"flushed")
        file.flush()
    disk.flush_directory("")
    (root / "wiped").unlink()
    (root / "cut").write_bytes(b"flu")
    later = Disk(root)
    later.open("wiped").append(b"new")
    later.open("cut").append(b"new")
    assert lose_power(root) == [Cut("cut", 6, 3), Cut("wiped", 3, None)]


def test_a_torn_last_row_of_the_ledger_was_never_true(root: Path) -> None:
    disk = Disk(root)
    file = disk.open("log")
    disk.flush_directory("")
    file.append(b"abc")
    file.flush()
    with ledger_path(root).open("ab") as ledger:
        ledger.write(b'["size", "log", 3')
    assert lose_power(root) == []


def test_without_a_ledger_power_cannot_be_lost(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no ledger of"):
        lose_power(tmp_path)


def test_a_second_power_loss_finds_nothing_left_to_cut(root: Path) -> None:
    rng = random.Random(7)
    disk = Disk(root)
    files = [disk.open(f"t-{number % 3}/{number}") for number in range(12)]
    for _ in range(400):
        file = rng.choice(files)
        match rng.randrange(5):
            case 0:
                file.flush()
            case 1:
                file.truncate(rng.randrange(file.size() + 1))
            case 2:
                disk.flush_directory(rng.choice(["", "t-0", "t-1", "t-2"]))
            case 3:
                disk.replace_text(f"t-{rng.randrange(3)}/text", "x" * rng.randrange(9), flush=rng.random() < 0.5)
            case _:
                file.append(b"x" * rng.randrange(100))
    assert lose_power(root)
    assert lose_power(root) == []
    Disk(root)
    assert lose_power(root) == []


def test_after_a_sync_a_power_loss_takes_nothing_but_what_is_written_later(root: Path) -> None:
    disk = Disk(root)
    file = disk.open("t-0/log")
    file.append(b"cached")
    disk.replace_text("t-0/checkpoint", "text", flush=False)
    disk.sync()
    assert lose_power(root) == []
    file.append(b" more")
    disk.replace_text("t-0/checkpoint", "newer", flush=False)
    assert lose_power(root) == [Cut("t-0/checkpoint", 5, 4), Cut("t-0/log", 11, 6)]
    assert (root / "t-0" / "log").read_bytes() == b"cached"
    assert (root / "t-0" / "checkpoint").read_text() == "text"
