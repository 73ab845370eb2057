"""Log directories that fill up or fail, on real processes and real files."""

from __future__ import annotations

import errno
import json
import logging
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

import faults
from harness.broker.files import Disk
from harness.broker.settings import Settings
from harness.client_properties import Access
from harness.clients.sender import Sender
from harness.errors import EnvironmentFault
from harness.model import NodeId, TopicPartition
from harness.replication.knobs import CURRENT_GENERATION, generation
from harness.runner.conditions import unsettled
from harness.target import PartitionView, TopicSpec
from harness.targets import log_dirs
from harness.targets.builtin import BuiltinTarget
from tests.harness.broker.cluster import wait_until
from tests.records import record
from tests.replica_rows import held

HERE, THERE = TopicPartition("ledger", 0), TopicPartition("ledger", 1)
BOTH = [HERE, THERE]


def eventually(look: Callable[[], bool], within_s: float = 15.0) -> bool:
    deadline = time.monotonic() + within_s
    while not (held := look()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return held


@contextmanager
def running(path: Path) -> Iterator[BuiltinTarget]:
    """Two brokers with two log directories each; partition 1 lies in directory 1, and broker 0 leads."""
    settings = {"log.dirs.count": 2, "replica.high.watermark.checkpoint.interval.ms": 200}
    target = BuiltinTarget(path / "cluster", 2, generation(CURRENT_GENERATION), Settings.parse(dict(settings)))
    try:
        target.start()
        target.create_topic(TopicSpec("ledger", 2, 2, ((NodeId(0), NodeId(1)),) * 2))
        yield target
    finally:
        target.stop()


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BuiltinTarget]:
    """Such a cluster for several tests."""
    with running(tmp_path_factory.mktemp("shared")) as target:
        yield target


@pytest.fixture
def target(shared: BuiltinTarget) -> BuiltinTarget:
    """It, whole, and led by broker 0; each test heals what it does."""
    assert eventually(lambda: not unsettled(shared, BOTH))
    for partition in BOTH:
        shared.elect(partition, None, unclean=False)
        assert eventually(lambda partition=partition: leader(shared, partition) == 0)  # type: ignore[misc]
    return shared


def send(target: BuiltinTarget, partition: TopicPartition, value: int, size: int = 100) -> str:
    sender = Sender(Access(target.bootstrap()), "test", -1, 3, logging.getLogger("seawall.tests"))
    try:
        return sender.send(partition, record(value, partition, size)).kind
    finally:
        sender.close()


def leader(target: BuiltinTarget, partition: TopicPartition) -> int:
    """As soon as the controller tells of it."""
    seen: PartitionView = wait_until(lambda: target.view().partitions.get(partition), "the controller's answer")
    return seen.leader


def test_a_failed_directory_moves_its_leaders_away_and_is_back_after_healing(tmp_path: Path) -> None:
    with running(tmp_path) as target:
        assert send(target, THERE, 0) == "ok"
        failure = faults.parse({"fault": "log_dir_failure", "node": 0, "log_dir": 1}, "test").aimed(target.view(), 1)
        assert not failure.probe(target).holds
        failure.inject(target)
        failure.inject(target)
        assert eventually(lambda: leader(target, THERE) == 1)
        receipt = failure.probe(target)
        assert receipt.holds
        assert receipt.seen == (
            f"node 0: a new file in log directory 1 got errno {errno.ENOTDIR}; the broker has taken it offline"
        )
        assert leader(target, HERE) == 0
        assert target.is_running("0").holds
        assert [send(target, HERE, 1), send(target, THERE, 2)] == ["ok", "ok"]
        assert not failure.probe_healed(target).holds
        failure.heal(target)
        failure.heal(target)
        assert failure.probe_healed(target).holds
        assert eventually(lambda: not unsettled(target, BOTH))
    ends = [row for row in target.timeline("r") if row["kind"] == "final" and row["topic"] is not None]
    finals = [json.loads(row["detail"]) for row in ends if row["node"] < 2]
    assert [final["epochs"][0] for final in finals] == [[0, 0]] * 4
    rows = sorted((row["node"], row["partition"], row["value"]) for row in held(target))
    assert rows == [(0, 0, 1), (0, 1, 0), (0, 1, 2), (1, 0, 1), (1, 1, 0), (1, 1, 2)]


def test_a_full_directory_is_full_alone_and_only_its_replicas_go_offline(target: BuiltinTarget) -> None:
    written = {"fault": "disk_full", "node": 0, "log_dir": 1, "free_bytes": 1000}
    full = faults.parse(written, "test").aimed(target.view(), 1)
    full.inject(target)
    receipt = full.probe(target)
    assert receipt.holds
    assert "a scratch write of 64 KiB in log-1 got errno 28, in log-0 errno None" in receipt.seen
    assert not target.is_disk_full("0", 0).holds
    assert not target.takes_writes("0").holds
    assert not full.probe_healed(target).holds
    assert send(target, THERE, 0, 5000) != "ok"
    assert eventually(lambda: leader(target, THERE) == 1)
    assert "(append ledger-1) in log directory 1 was refused with errno 28" in full.probe(target).seen
    assert not target.has_refused_write("0", 0).holds
    assert leader(target, HERE) == 0
    full.heal(target)
    assert full.probe_healed(target).holds
    assert eventually(lambda: not unsettled(target, BOTH))


def test_a_limit_of_one_directory_survives_a_restart(target: BuiltinTarget) -> None:
    target.limit_disk("0", 1000, 1)
    target.kill("0")
    target.restart("0")
    assert eventually(lambda: target.is_disk_full("0", 1).holds)
    target.limit_disk("0", None, 1)


def test_a_disk_that_is_replaced_comes_back_empty(target: BuiltinTarget) -> None:
    written = {"fault": "log_dir_failure", "node": 0, "log_dir": 1, "replaced": True}
    failure = faults.parse(written, "test").aimed(target.view(), 1)
    failure.inject(target)
    assert eventually(lambda: leader(target, THERE) == 1)
    failure.heal(target)
    assert failure.probe_healed(target).holds
    assert eventually(lambda: not unsettled(target, BOTH))


@pytest.mark.parametrize(
    ("probes", "takes_writes"),
    [
        ({"": None}, True),
        ({"": errno.ENOSPC}, False),
        ({"log-0": None, "log-1": errno.EIO}, False),
        ({"log-0": errno.ENOSPC, "log-1": None}, False),
    ],
)
def test_a_disk_takes_writes_where_every_write_worked(probes: dict[str, int | None], *, takes_writes: bool) -> None:
    assert log_dirs.writable("0", probes).holds == takes_writes


def test_a_directory_that_refuses_files_for_another_reason_has_not_failed() -> None:
    assert log_dirs.failure("0", 1, errno.ENOTDIR).holds
    assert not any(log_dirs.failure("0", 1, refusal).holds for refusal in (None, errno.ENOSPC, errno.EACCES))


def test_there_is_no_directory_beyond_the_last(target: BuiltinTarget) -> None:
    acts: list[Callable[[], None]] = [lambda: target.fail_log_dir("0", 2), lambda: target.limit_disk("0", 0, 2)]
    for act in acts:
        with pytest.raises(EnvironmentFault, match="there is no log directory 2: each broker has 2"):
            act()


def test_what_a_dead_harness_has_put_aside_is_put_back(tmp_path: Path) -> None:
    for place in ("one/data/log-1", "two/data"):
        (tmp_path / place).mkdir(parents=True)
        (tmp_path / place / "kept").write_text(place)
        log_dirs.fail(tmp_path / place)
        assert log_dirs.refusal_of(tmp_path / place) == errno.ENOTDIR
    (tmp_path / "two" / "data").unlink()  # it may have died between the two halves of the fault
    mended = [str(tmp_path / place) for place in ("one/data/log-1", "two/data")]
    assert log_dirs.mend_all(tmp_path) == mended
    assert log_dirs.mend_all(tmp_path) == []
    for place in ("one/data/log-1", "two/data"):
        assert (tmp_path / place / "kept").read_text() == place


@pytest.fixture(params=["data/log-1", "data"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A log directory that holds a file."""
    directory: Path = tmp_path / request.param
    directory.mkdir(parents=True)
    (directory / "kept").touch()
    return directory


def test_a_directory_that_is_written_to_all_the_time_fails_and_is_put_back(place: Path) -> None:
    files, done = Disk(place), threading.Event()

    def write() -> None:
        while not done.is_set():
            with suppress(OSError):
                files.replace_text("checkpoint", "1", flush=False)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(300):
            log_dirs.fail(place)
            assert log_dirs.refusal_of(place) == errno.ENOTDIR
            assert log_dirs.mend(place)
            assert (place / "kept").exists()
    finally:
        done.set()
        writer.join()
    assert [path for path in place.parent.iterdir() if path.suffix in (".aside", ".discarded")] == []


def test_what_is_aside_goes_back_whatever_is_in_its_place(place: Path) -> None:
    log_dirs.fail(place)
    place.unlink()
    place.mkdir()
    (place / "newer").touch()
    assert log_dirs.mend(place)
    assert [path.name for path in place.iterdir()] == ["kept"]


@pytest.mark.parametrize("call", ["rename", "unlink", "mkdir", "rmtree"])
def test_a_disk_whose_replacement_was_interrupted_is_replaced_and_fails_again(
    place: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    def dies(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    log_dirs.fail(place)
    with monkeypatch.context() as patched:
        patched.setattr(shutil if call == "rmtree" else Path, call, dies)
        with pytest.raises(KeyboardInterrupt):
            log_dirs.mend(place, empty=True)
    log_dirs.mend(place, empty=True)
    assert list(place.iterdir()) == []
    assert [path for path in place.parent.iterdir() if path.suffix in (".aside", ".discarded")] == []
    log_dirs.fail(place)
    assert log_dirs.refusal_of(place) == errno.ENOTDIR


def test_only_what_was_put_back_is_said_to_have_been(place: Path, tmp_path: Path) -> None:
    log_dirs.fail(place)
    assert log_dirs.mend_all(tmp_path) == [str(place)]
    name = place.relative_to(tmp_path).as_posix().replace("/", "%")
    (tmp_path / f"{name}.aside").touch()  # whoever was about to let it fail had got no further
    (tmp_path / f"{name}.discarded").mkdir()
    assert log_dirs.mend_all(tmp_path) == []
    assert [path.name for path in tmp_path.iterdir()] == ["data"]
    assert (place / "kept").exists()


def test_the_log_of_a_topic_called_log_is_no_log_directory(tmp_path: Path) -> None:
    (tmp_path / "log-0").mkdir()
    segment = tmp_path / "log-0" / "00000000000000000000.log"
    segment.touch()
    assert log_dirs.found_in(tmp_path) == [tmp_path]
    segment.unlink()  # a power loss may leave the directory alone
    (tmp_path / "replication-offset-checkpoint").touch()
    assert log_dirs.found_in(tmp_path) == [tmp_path]


def test_log_directories_are_found_below_the_data_directory(tmp_path: Path) -> None:
    for number in (0, 1):
        (tmp_path / f"log-{number}" / "ledger-0").mkdir(parents=True)
        (tmp_path / f"log-{number}" / "replication-offset-checkpoint").touch()
    assert log_dirs.found_in(tmp_path) == [tmp_path / "log-0", tmp_path / "log-1"]
