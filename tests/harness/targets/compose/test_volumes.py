"""Disks of limited size, filled by a balloon and reached through their holder."""

from __future__ import annotations

import io
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

from harness.broker.ledger import Cut
from harness.errors import EnvironmentFault
from harness.model import TopicPartition
from harness.target import LogDamage
from harness.targets.compose.containers import run_in
from harness.targets.compose.project import DATA, DISK, HELD, HOLDER, KEPT, Project
from harness.targets.compose.volumes import Volumes
from harness.targets.kafka.flushed import Loss
from tests.harness.targets.compose.conftest import ANOTHER_PROJECT, Engine
from tests.harness.targets.logs_on_disk import batch, data_dir

PAGE = 4096
MIB = 2**20
TIMEOUT_S = 60.0
NODE = "broker-0"
LEDGER = TopicPartition("ledger", 0)
WRITER = """\
exec 2>&1
mkdir -p data/ledger-0
while sleep 0.1; do
    echo 'ERROR Error while appending records to ledger-0 in dir /seawall/disk (kafka.server.LogDirFailureChannel)'
    head -c 4096 /dev/zero >> data/ledger-0/log
done
"""
"""Says each time what it does, as Kafka does: what is said while a container starts may count as said before."""


@pytest.fixture
def project(engine: Engine, tmp_path: Path) -> Iterator[Project]:
    """One broker, which does nothing but write to its disk as an ordinary user, and the holder.

    Its working directory is in its image: without ``nocopy``, if the engine makes the broker while the holder already
    runs, it gives the volume that directory's owner and mode.
    """
    engine.need("tools")
    tools = {"image": "seawall/tools", "init": True}
    writer = {"working_dir": DISK, "user": "1000:1000", "command": ["bash", "-c", WRITER]}
    broker = {**writer, "volumes": [f"disk:{DISK}:nocopy"]}
    holder = {"command": ["sleep", "infinity"], "volumes": [f"disk:{HELD}/{NODE}"]}
    size = {"driver": "local", "driver_opts": {"type": "tmpfs", "device": "tmpfs", "o": "size=8m,mode=1777"}}
    services = {NODE: {**tools, **broker}, HOLDER: {**tools, **holder}}
    with engine.project(tmp_path, services, volumes={"disk": size}) as project:
        await_writes(project)
        yield project


def await_writes(project: Project) -> None:
    """Wait until the broker has written something."""
    deadline = time.monotonic() + TIMEOUT_S
    while run_in(project.container(HOLDER), "test", "-s", f"{HELD}/{NODE}/{DATA}/ledger-0/log")[0] != 0:
        assert time.monotonic() < deadline
        time.sleep(0.1)


def free_bytes(project: Project) -> int:
    """What is free on the broker's volume."""
    _, said = run_in(project.container(HOLDER), "stat", "-f", "-c", "%a", f"{HELD}/{NODE}")
    return int(said) * PAGE


def end(project: Project) -> None:
    """Kill the broker."""
    [container] = project.containers("0")
    container.kill()
    container.wait()


def put(project: Project, directory: Path) -> None:
    """Put what is in the directory onto the broker's disk."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(directory, ".")
    assert project.container(HOLDER).put_archive(f"{HELD}/{NODE}/{DATA}", packed.getvalue())


@ANOTHER_PROJECT
def test_a_disk_takes_so_many_bytes_more_and_all_of_them_when_the_limit_is_lifted(project: Project) -> None:
    volumes = Volumes(project)
    assert volumes.takes_writes("0").holds
    end(project)
    for limit in (MIB, 3 * MIB, PAGE + 1, 0, 2 * MIB):
        volumes.limit("0", limit)
        assert free_bytes(project) == limit // PAGE * PAGE
        assert volumes.is_full("0").holds is (limit < 65_536)
        assert volumes.takes_writes("0").holds is (limit >= 65_536)
    volumes.limit("0", None)
    volumes.limit("0", None)
    assert free_bytes(project) > 3 * MIB


@ANOTHER_PROJECT
def test_a_write_that_a_full_disk_refused_is_the_brokers_own_word_for_it(project: Project) -> None:
    volumes = Volumes(project)
    assert not volumes.has_refused_write("0").holds
    volumes.limit("0", 0)
    assert volumes.is_full("0").holds
    [container] = project.containers("0")
    deadline = time.monotonic() + TIMEOUT_S
    while not (refused := volumes.has_refused_write("0")).holds:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert "a write of its own (append ledger-0) was refused" in refused.seen
    volumes.limit("0", None)
    container.restart(timeout=0)
    assert not volumes.has_refused_write("0").holds


@ANOTHER_PROJECT
def test_the_disk_outlives_its_broker_and_is_wiped_only_when_that_is_dead(project: Project) -> None:
    volumes = Volumes(project)
    with pytest.raises(EnvironmentFault, match=r"the disk of node 0 cannot be changed while the node runs\."):
        volumes.wipe("0")
    end(project)
    assert not volumes.is_empty("0").holds
    volumes.wipe("0")
    assert volumes.is_empty("0").holds


@ANOTHER_PROJECT
def test_files_are_cut_back_replaced_by_what_they_held_before_and_removed(project: Project, tmp_path: Path) -> None:
    volumes = Volumes(project)
    end(project)
    volumes.wipe("0")
    (tmp_path / "before" / "ledger 0").mkdir(parents=True)
    for name, content in {"ledger 0/log": b"1234567890", "checkpoint": b"newer", "nameless": b"1"}.items():
        (tmp_path / "before" / name).write_bytes(content)
    put(project, tmp_path / "before")
    disk = volumes.files("0")
    found = disk.listing()
    sizes = {str(path): file.size for path, file in found.files.items()}
    assert sizes == {"ledger 0/log": 10, "checkpoint": 5, "nameless": 1}
    assert len(set(found.directories)) == 2
    newer = found.files[PurePosixPath("checkpoint")].inode
    place, held = f"{HELD}/{NODE}/{KEPT}", project.container(HOLDER)
    run_in(held, "bash", "-c", f"mkdir {place} && printf 'older one' > {place}/{newer}")
    assert {name: file.size for name, file in disk.listing().older.items()} == {newer: 9}
    cuts = Cut("ledger 0/log", 10, 7), Cut("checkpoint", 5, 5), Cut("nameless", 1, None)
    disk.take([Loss(cut, newer if cut.path == "checkpoint" else None) for cut in cuts])
    volumes.copy_out("0", tmp_path / "after")
    assert (tmp_path / "after" / "ledger 0" / "log").read_bytes() == b"1234567"
    assert (tmp_path / "after" / "checkpoint").read_bytes() == b"older"
    assert not (tmp_path / "after" / "nameless").exists()
    run_in(held, "touch", f"{place}/7")
    volumes.wipe("0")
    assert not disk.listing().files
    assert not disk.listing().older


@ANOTHER_PROJECT
@pytest.mark.parametrize("how", ["flip", "cut"])
def test_a_batch_is_damaged_in_place_and_copied_out_as_it_is(project: Project, tmp_path: Path, how: str) -> None:
    volumes = Volumes(project)
    end(project)
    volumes.wipe("0")
    log = batch(0, 1, 2) + batch(2, 3)
    put(project, data_dir(tmp_path / "before", log))
    damage = LogDamage(LEDGER, 2, "flip" if how == "flip" else "cut")
    assert not volumes.is_damaged("0", damage).holds
    volumes.damage("0", damage)
    assert volumes.is_damaged("0", damage).holds
    volumes.copy_out("0", tmp_path / "after")
    left = (tmp_path / "after" / "ledger-0" / f"{0:020d}.log").read_bytes()
    assert left != log
    assert left[: len(batch(0, 1, 2))] == batch(0, 1, 2)
