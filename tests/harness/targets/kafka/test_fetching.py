"""Fetching with a Maven that is a script of the test's, and finding what is there; no network."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from harness.errors import EnvironmentFault, UsageError
from harness.targets.kafka import fetching
from harness.targets.kafka.releases import release

JAR = "kafka_2.13-4.1.0.jar"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty one, and no archive."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("SEAWALL_KAFKA_ARCHIVE", "http://127.0.0.1:1/kafka")
    return tmp_path / "cache" / "seawall" / "kafka"


def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Put a Maven on the PATH that does what ``script`` says, with the output directory in ``$libs``."""
    program = tmp_path / "bin" / "mvn"
    program.parent.mkdir()
    libs = 'for word; do case $word in -DoutputDirectory=*) libs=${word#*=};; esac; done; mkdir -p "$libs"'
    program.write_text(f"#!/bin/sh\n{libs}\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")


def jar(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.class", b"class")
    return path


def test_what_maven_copies_is_in_the_cache_and_is_not_fetched_again(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = jar(tmp_path / "made" / JAR)
    maven(tmp_path, monkeypatch, f'cp {made} "$libs"')
    fetched = fetching.fetch("4.1.0")
    assert fetched.classpath == str(cache / "4.1.0" / "libs" / JAR)
    assert fetching.fetched() == ["4.1.0"]
    monkeypatch.setenv("PATH", "/nowhere")
    assert fetching.fetch("4.1.0") == fetching.find("4.1.0") == fetched
    assert [path.name for path in cache.iterdir()] == ["4.1.0"]


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo '[ERROR] Could not transfer artifact: no route to host -> [Help 1]'; exit 1", "no route to host"),
        ("exit 1", "it says nothing"),
        ("true", f"{JAR} is not among the jars"),
        (f'echo half > "$libs/{JAR}"', f"{JAR} is damaged"),
    ],
)
def test_what_is_not_whole_does_not_get_into_the_cache(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch, script: str, why: str
) -> None:
    maven(tmp_path, monkeypatch, script)
    with pytest.raises(EnvironmentFault, match=why):
        fetching.fetch("4.1.0")
    assert not list(cache.iterdir())


def test_a_release_that_the_repository_does_not_have_is_a_mistake_of_who_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "[ERROR] Could not find artifact org.apache.kafka:kafka_2.13:jar:4.1.99 in central"
    maven(tmp_path, monkeypatch, f"echo '{said}'; exit 1")
    with pytest.raises(UsageError, match=r"no Kafka release 4\.1\.99"):
        fetching.fetch("4.1.99")


@pytest.mark.parametrize(
    ("version", "why"),
    [("4.1.0", r"http://127\.0\.0\.1:1/kafka does not answer"), ("2.0.0", r"a distribution of 2\.0\.0 lacks jars")],
)
def test_without_archive_and_maven_it_is_said_what_to_do(
    monkeypatch: pytest.MonkeyPatch, version: str, why: str
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(EnvironmentFault, match=f"cannot be fetched: {why}.*, and there is no Maven") as refused:
        fetching.fetch(version)
    assert "apt install maven" in refused.value.remedy


def test_a_release_that_was_not_fetched_is_not_found() -> None:
    with pytest.raises(EnvironmentFault, match=r"seawall kafka fetch 4\.1\.0"):
        fetching.find("4.1.0")


THIRD = ("scala-library-2.12.6", "slf4j-api-1.7.25", "metrics-core-2.2.0", "jopt-simple-5.0.4")
KRAFT = ("kafka_2.13", "kafka-clients", "kafka-metadata", "kafka-raft", "kafka-server-common", "kafka-storage")


def test_an_unpacked_distribution_that_lacks_jars_is_refused_with_its_directory_and_what_it_lacks(
    tmp_path: Path,
) -> None:
    for name in (*(f"{name}-3.9.1" for name in KRAFT), "jackson-databind-2.16.2", *THIRD):
        jar(tmp_path / "libs" / f"{name}.jar")
    assert fetching.find(str(tmp_path)).release.version == "3.9.1"
    for name in ("kafka_2.13-3.9.1", "kafka-raft-3.9.1"):
        (tmp_path / "libs" / f"{name}.jar").unlink()
    lacks = (
        rf"3\.9\.1 in {tmp_path} is not whole: its libs has no kafka_\*-3\.9\.1\.jar, kafka-raft-3\.9\.1\.jar\. Unpack"
    )
    with pytest.raises(EnvironmentFault, match=lacks):
        fetching.find(str(tmp_path))


def test_an_unpacked_distribution_says_by_its_jars_which_release_it_is(tmp_path: Path) -> None:
    home = tmp_path / "kafka"
    with pytest.raises(UsageError, match="is no unpacked Kafka distribution"):
        fetching.find(str(home))
    jar(home / "libs" / "kafka-clients-2.0.1.jar")
    with pytest.raises(UsageError, match=r"does not run on a Java of today: its libs has no zookeeper-3\.4\.10\.jar"):
        fetching.find(str(home))
    jar(home / "libs" / "zookeeper-3.4.10.jar")
    for name in ("kafka_2.12-2.0.1", *THIRD):
        jar(home / "libs" / f"{name}.jar")
    found = fetching.find(str(home))
    assert (found.release.version, found.release.generation) == ("2.0.1", "2.0.1")
    jar(home / "libs" / "kafka-clients-2.0.0.jar")
    with pytest.raises(UsageError, match="is no unpacked Kafka distribution"):
        fetching.find(str(home))


def test_the_project_names_kafka_and_what_it_needs_besides() -> None:
    text = fetching.pom(release("2.0.0"))
    assert "<artifactId>kafka_2.12</artifactId><version>2.0.0</version>" in text
    assert "<artifactId>zookeeper</artifactId><version>3.4.10</version>" in text
