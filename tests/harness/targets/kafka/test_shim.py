"""The shim in a process of its own, and what its ledger says of a power loss."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from errno import ENOSPC
from pathlib import Path

import pytest

from harness.errors import EnvironmentFault
from harness.targets.kafka import flushed, shim
from harness.targets.kafka.flushed import Flushed, LocalDisk
from harness.targets.kafka.shim import Refusal, Shim
from harness.targets.node_disk import in_words

LOG = f"ledger-0/{0:020d}.log"
INDEX = f"ledger-0/{0:020d}.index"
SECOND_LOG = f"ledger-0/{70:020d}.log"
CHECKPOINT = "recovery-point-offset-checkpoint"

HEADER = """\
import mmap, os, sys, time
def full(path):
    return os.path.join(sys.argv[1], path)
def write(path, data, flush=False):
    file = os.open(full(path), os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    written = os.write(file, data)
    if flush:
        os.fsync(file)
    os.close(file)
    return written
def flush_directory(path):
    os.fsync(os.open(full(path), os.O_RDONLY))
def replace(path, data, flush):
    write(path + ".tmp", data, flush)
    os.rename(full(path + ".tmp"), full(path))
"""


@pytest.fixture
def node(tmp_path: Path) -> Shim:
    """The shim of a node whose disk has a replica and two log directories."""
    try:
        shim.library()
    except EnvironmentFault as refusal:
        pytest.skip(str(refusal))
    for directory in ("ledger-0", "log-0", "log-1"):
        (tmp_path / "data" / directory).mkdir(parents=True)
    return Shim(tmp_path, ["log-0", "log-1"])


def run(node: Shim, script: str) -> str:
    """What a process with the shim prints that runs ``script``; a process that ends with an error says so last."""
    words = [sys.executable, "-I", "-S", "-c", HEADER + script, str(node.disk)]
    done = subprocess.run(words, env=node.environment(), capture_output=True, text=True, check=False)
    assert not done.stderr or "OSError" in done.stderr, done.stderr
    return done.stdout + done.stderr


def refusal(output: str) -> int | None:
    found = re.search(r"OSError: \[Errno (\d+)\]", output)
    return int(found[1]) if found else None


def size(node: Shim, path: str) -> int | None:
    return (node.disk / path).stat().st_size if (node.disk / path).exists() else None


def flushed_of(node: Shim) -> Flushed:
    return Flushed(LocalDisk(node.disk, node.ledger), node.ledger)


def lose_power(node: Shim) -> str:
    said = in_words(flushed_of(node).lose())
    assert not flushed_of(node).losses()
    return said


# ------------------------------------------------------------------------------------------------------------- clock


@pytest.mark.parametrize("offset_ms", [0, 3_600_000, -60_500])
def test_the_wall_clock_is_off_and_the_monotonic_clock_is_not(node: Shim, offset_ms: int) -> None:
    node.clock_offset_ms = offset_ms
    before = time.time_ns(), time.monotonic_ns()
    wall_ns, monotonic_ns = map(int, run(node, "print(time.time_ns(), time.monotonic_ns())").split())
    after = time.time_ns(), time.monotonic_ns()
    assert before[0] <= wall_ns - offset_ms * 1_000_000 <= after[0]
    assert before[1] <= monotonic_ns <= after[1]
    assert node.clock_offset_ms == offset_ms


def test_a_step_reaches_a_process_that_is_running(node: Shim) -> None:
    script = "a = time.time(); print(flush=True); sys.stdin.readline(); print(round((time.time() - a) / 100))"
    words = [sys.executable, "-I", "-S", "-c", HEADER + script, str(node.disk)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(words, env=node.environment(), text=True, **pipes) as process:  # type: ignore[call-overload]
        assert process.stdout.readline() == "\n"
        assert node.is_loaded_by(process.pid)
        node.clock_offset_ms = 500_000
        assert process.communicate("\n")[0] == "5\n"
    assert not node.is_loaded_by(process.pid)


# ------------------------------------------------------------------------------------------------------------- budget


def test_a_write_is_torn_where_the_budget_ends_and_the_next_one_is_refused(node: Shim) -> None:
    node.limit("", 100)
    output = run(
        node, f"print(os.getpid(), write('{LOG}', bytes(70)), write('{LOG}', bytes(70))); write('{LOG}', b'x')"
    )
    pid, first, torn = map(int, output.split()[:3])
    assert (first, torn, refusal(output)) == (70, 30, ENOSPC)
    assert size(node, LOG) == 100
    assert list(node.refusals()) == [Refusal(pid, None, 1, LOG)]
    node.limit("", None)
    assert run(node, f"print(write('{LOG}', bytes(70)))") == "70\n"


def test_what_is_removed_cut_or_replaced_can_be_written_again(node: Shim) -> None:
    node.limit("", 100)
    assert (
        run(node, f"print(write('a', bytes(60))); replace('a', bytes(40), False); write('{LOG}', bytes(60))") == "60\n"
    )
    script = f"os.truncate(full('a'), 40); os.unlink(full('a')); print(write('{LOG}', bytes(50)))"
    assert run(node, script) == "40\n"
    script = f"file = os.open(full('{LOG}'), os.O_WRONLY); os.ftruncate(file, 0); print(write('{LOG}', bytes(200)))"
    assert run(node, script) == "100\n"


def test_bytes_that_are_written_over_and_holes_take_no_space(node: Shim) -> None:
    node.limit("", 10)
    script = f"write('{LOG}', bytes(10)); file = os.open(full('{LOG}'), os.O_RDWR); print(os.write(file, bytes(10)))"
    assert run(node, f"{script}; os.ftruncate(file, 1000); print(os.pwrite(file, bytes(900), 100))") == "10\n900\n"


@pytest.mark.parametrize(
    "gone", ["os.ftruncate(index, 24)", "os.unlink(full('i'))", "os.open(full('i'), os.O_TRUNC | os.O_RDWR)"]
)
def test_what_a_file_was_grown_by_and_was_never_written_gives_no_space(node: Shim, gone: str) -> None:
    node.limit("", 10)
    script = f"index = os.open(full('i'), os.O_CREAT | os.O_RDWR); os.ftruncate(index, 10 << 20); {gone}"
    assert refusal(run(node, f"{script}; write('{LOG}', bytes(10)); write('{LOG}', b'x')")) == ENOSPC
    assert size(node, LOG) == 10


def test_several_buffers_are_written_as_far_as_they_fit(node: Shim) -> None:
    node.limit("", 10)
    script = f"file = os.open(full('{LOG}'), os.O_CREAT | os.O_RDWR); print(os.writev(file, [b'abcde', b'', b'f' * 9]))"
    assert run(node, script) == "10\n"
    assert (node.disk / LOG).read_bytes() == b"abcdefffff"


def test_a_full_log_directory_leaves_the_others_their_space(node: Shim) -> None:
    node.limit("log-1", 0)
    output = run(node, "print(os.getpid(), write('log-0/x', bytes(50)), write('y', bytes(50))); write('log-1/z', b'z')")
    assert refusal(output) == ENOSPC
    assert list(node.refusals()) == [Refusal(int(output.split()[0]), 1, 1, "log-1/z")]
    assert [node.probe(name, 65_536) for name in ("log-0", "log-1")] == [None, ENOSPC]


def test_a_probe_leaves_nothing_and_takes_nothing_and_is_no_refusal_of_the_node_s_own(node: Shim) -> None:
    node.limit("", 100)
    assert node.probe("log-0", 65_536) == ENOSPC
    assert node.probe("log-0", 100) is None
    assert not list(node.refusals())
    assert not list((node.disk / "log-0").iterdir())
    assert run(node, f"print(write('{LOG}', bytes(100)))") == "100\n"


def test_what_is_outside_the_disk_is_not_limited(node: Shim, tmp_path: Path) -> None:
    node.limit("", 0)
    run(node, "write('../beside', bytes(50))")
    assert (tmp_path / "beside").stat().st_size == 50


# ------------------------------------------------------------------------------------------------------------- power


def test_a_power_loss_takes_the_bytes_behind_the_last_flush(node: Shim) -> None:
    run(node, f"write('{LOG}', bytes(70), flush=True); write('{LOG}', bytes(30))")
    assert lose_power(node) == f"dropped from the page cache: {LOG} (30 bytes)"
    assert size(node, LOG) == 70


def test_an_index_has_reached_the_disk_when_its_mapping_was_forced(node: Shim) -> None:
    script = f"file = os.open(full('{INDEX}'), os.O_CREAT | os.O_RDWR); os.ftruncate(file, 4096)\n"
    script += "index = mmap.mmap(file, 4096); os.close(file); index[0] = 7\n"
    run(node, f"{script}flush_directory('ledger-0')")
    assert lose_power(node) == f"dropped from the page cache: {INDEX} (4096 bytes)"
    (node.disk / INDEX).unlink()
    run(node, f"{script}flush_directory('ledger-0'); index.flush()")
    assert lose_power(node) == "everything had reached the disk"


def test_a_segment_whose_directory_was_not_flushed_loses_its_name_unless_it_is_the_first(node: Shim) -> None:
    run(node, f"write('{LOG}', b'1', flush=True); write('{SECOND_LOG}', bytes(30), flush=True)")
    assert lose_power(node) == f"dropped from the page cache: {SECOND_LOG} (its name)"
    assert (size(node, LOG), size(node, SECOND_LOG)) == (1, None)
    run(node, f"write('{SECOND_LOG}', bytes(30), flush=True); flush_directory('ledger-0')")
    assert lose_power(node) == "everything had reached the disk"


def test_a_checkpoint_is_the_newest_that_was_flushed_before_it_was_renamed(node: Shim) -> None:
    run(node, f"replace('{CHECKPOINT}', b'first', True); replace('{CHECKPOINT}', b'second', True)")
    assert lose_power(node) == "everything had reached the disk"
    run(node, f"replace('{CHECKPOINT}', b'the third', False); replace('{CHECKPOINT}', b'4th', False)")
    lose_power(node)
    assert (node.disk / CHECKPOINT).read_bytes() == b"second"
    run(node, f"replace('{CHECKPOINT}', b'fifth', False); replace('{CHECKPOINT}', b'sixth', True)")
    assert lose_power(node) == "everything had reached the disk"
    assert not list(shim.kept(node.ledger).iterdir())


REUSED = """\
def inode(path):
    return os.stat(full(path)).st_ino
def reuse(wanted, path, data):
    for number in range(300):
        write(path, data)
        if inode(path) == wanted:
            return True
        os.rename(full(path), full(f"unlucky-{number}"))
"""


@pytest.mark.parametrize("gone", ["os.unlink(full('old'))", "replace('old', b'x', True)"])
def test_an_inode_that_is_used_again_is_not_taken_for_flushed(node: Shim, gone: str) -> None:
    script = f"replace('{CHECKPOINT}', b'first', True); write('old', b'_last', True); last = inode('old')\n{gone}\n"
    script += f"print(reuse(last, 'new', b'third')); os.rename(full('new'), full('{CHECKPOINT}'))"
    if run(node, REUSED + script) != "True\n":
        pytest.skip("this file system does not use an inode again soon")
    lose_power(node)
    assert (node.disk / CHECKPOINT).read_bytes() == b"first"


def test_what_a_file_held_before_it_was_emptied_is_not_taken_for_what_was_written_since(node: Shim) -> None:
    emptied = "file = os.open(full('new'), os.O_WRONLY | os.O_TRUNC); os.write(file, b'third')"
    script = f"replace('{CHECKPOINT}', b'first', True); write('new', b'_last', True); {emptied}\n"
    run(node, f"{script}os.rename(full('new'), full('{CHECKPOINT}'))")
    lose_power(node)
    assert (node.disk / CHECKPOINT).read_bytes() == b"first"


def test_a_new_file_does_not_inherit_what_was_kept_for_one_that_had_its_inode(node: Shim) -> None:
    script = "replace('c', b'first', True); replace('c', b'second', False); gone = inode('c'); os.unlink(full('c'))\n"
    if run(node, f"{REUSED}{script}print(reuse(gone, '{LOG}', b'other'))") != "True\n":
        pytest.skip("this file system does not use an inode again soon")
    lose_power(node)
    assert (node.disk / LOG).read_bytes() == b""


def test_a_file_that_is_written_to_again_after_it_was_cut_has_lost_what_was_flushed_there(node: Shim) -> None:
    run(node, f"write('{LOG}', bytes(70), flush=True)")
    run(node, f"file = os.open(full('{LOG}'), os.O_WRONLY); os.ftruncate(file, 20); write('{LOG}', bytes(40))")
    lose_power(node)
    assert size(node, LOG) == 20


def test_renaming_a_directory_changes_nothing_about_what_is_in_it(node: Shim) -> None:
    run(
        node,
        f"write('{LOG}', bytes(70), flush=True); write('{LOG}', bytes(30)); os.rename(full('ledger-0'), full('x-1'))",
    )
    lose_power(node)
    assert size(node, LOG.replace("ledger-0", "x-1")) == 70


def test_a_sync_lets_everything_reach_the_disk(node: Shim) -> None:
    script = f"write('{LOG}', bytes(70)); write('{SECOND_LOG}', bytes(30)); replace('{CHECKPOINT}', b'1', True)"
    run(node, f"{script}; replace('{CHECKPOINT}', b'2', False)")
    assert len(flushed_of(node).losses()) == 3
    flushed.sync(LocalDisk(node.disk, node.ledger), node.ledger)
    assert lose_power(node) == "everything had reached the disk"
    assert (node.disk / CHECKPOINT).read_bytes() == b"2"


def test_what_was_written_by_the_shim_s_processes_before_is_remembered(node: Shim) -> None:
    run(node, f"write('{LOG}', bytes(70), flush=True)")
    run(node, f"write('{LOG}', bytes(30))")
    lose_power(node)
    assert size(node, LOG) == 70


def test_a_file_that_the_harness_puts_in_for_a_removed_one_is_not_taken_for_that(node: Shim) -> None:
    run(node, f"write('{LOG}', bytes(70), flush=True); write('{SECOND_LOG}', bytes(30), flush=True)")
    (node.disk / LOG).unlink()
    flushed.forget_removed(node.disk.parent, node.ledger)
    told = node.ledger.read_text().split()
    inode = (node.disk / SECOND_LOG).stat().st_ino
    assert told[:2] == ["created", str(inode)]
    assert told[3:] == ["flushed", str(inode), "30"]


def test_a_torn_line_of_the_ledger_is_not_believed(node: Shim) -> None:
    run(node, f"write('{LOG}', bytes(70), flush=True); write('{LOG}', bytes(30))")
    with node.ledger.open("a") as file:
        file.write(f"flushed {(node.disk / LOG).stat().st_ino} 100")
    lose_power(node)
    assert size(node, LOG) == 70


def test_a_disk_beside_the_first_never_fills_and_loses_power_with_it(node: Shim, tmp_path: Path) -> None:
    beside = tmp_path / "metadata"
    (beside / "__cluster_metadata-0").mkdir(parents=True)
    both, log = Shim(tmp_path, ["log-0", "log-1"], beside), beside / "__cluster_metadata-0" / f"{0:020d}.log"
    both.limit("", 0)
    script = f"write('{log}', bytes(70), flush=True); print(write('{log}', bytes(30))); write('{LOG}', b'x')"
    output = run(both, script)
    assert (output.splitlines()[0], refusal(output), log.stat().st_size) == ("30", ENOSPC, 100)
    assert not flushed_of(both).losses()
    [lost] = Flushed(LocalDisk(beside, both.ledger), both.ledger).lose()
    assert (lost.before_bytes, lost.after_bytes, log.stat().st_size) == (100, 70, 70)


def test_a_log_that_was_written_without_the_shim_is_refused_by_name(node: Shim) -> None:
    run(node, f"write('{LOG}', bytes(70))")
    flushed_of(node).refuse_strangers()
    (node.disk / SECOND_LOG).touch()
    with pytest.raises(EnvironmentFault, match=rf"is not known: the shim saw no write to {SECOND_LOG}\."):
        flushed_of(node).refuse_strangers()


def test_a_process_whose_ledger_cannot_be_written_ends_and_that_is_the_environments_fault(node: Shim) -> None:
    node.ledger.symlink_to("/dev/full")
    words = [sys.executable, "-I", "-S", "-c", f"{HEADER}write('{LOG}', b'x')", str(node.disk)]
    done = subprocess.run(words, env=node.environment(), capture_output=True, text=True, check=False)
    assert done.stderr == "seawall: the ledger: No space left on device\n"
    shim.refuse_failure("1", [None, 0, 1])
    with pytest.raises(EnvironmentFault, match=r"node 1 was ended by its disk shim.* --out\."):
        shim.refuse_failure("1", [None, done.returncode])


def test_a_power_loss_of_a_disk_without_a_ledger_is_refused(node: Shim) -> None:
    with pytest.raises(EnvironmentFault, match=r"there is no .*data\.ledger"):
        flushed_of(node)


# ------------------------------------------------------------------------------------------------------------- build


def test_where_there_is_no_compiler_the_shim_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"there is no C compiler 'cc' on the PATH\. Install one"):
        shim.library({"PATH": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)})


def test_a_compiler_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="false does not compile the disk and clock shim: exit 1"):
        shim.library({"PATH": "/bin:/usr/bin", "CC": "false", "XDG_CACHE_HOME": str(tmp_path)})


def test_a_cache_that_cannot_be_preloaded_from_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"my cache/seawall/shim-.*\.so, which has a space or a colon in it"):
        shim.library({"XDG_CACHE_HOME": str(tmp_path / "my cache")})


def test_more_log_directories_than_the_shim_can_tell_apart_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match="9 log directories are more than the 8 of the disk shim"):
        Shim(tmp_path, [f"log-{number}" for number in range(9)])
