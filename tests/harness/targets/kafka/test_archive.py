"""Fetching distributions from an archive, which is a web server of the test's."""

from __future__ import annotations

import functools
import hashlib
import http.server
import io
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import EnvironmentFault
from harness.targets.kafka import archive, fetching
from harness.targets.kafka.releases import release

NAME = "kafka_2.13-4.1.0"
JAR = f"{NAME}/libs/{NAME}.jar"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without telling."""

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The directory of 4.1.0 in an archive, empty; no Maven, and an empty cache."""
    root = tmp_path / "archive"
    (root / "4.1.0").mkdir(parents=True)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=root)) as server:
        monkeypatch.setenv("SEAWALL_KAFKA_ARCHIVE", f"http://127.0.0.1:{server.server_port}/")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
        monkeypatch.setenv("PATH", "/nowhere")
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield root / "4.1.0"
        server.shutdown()
        thread.join()


def jar() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as made:
        made.writestr("a.class", b"class")
    return content.getvalue()


def distribution(*names: str) -> bytes:
    """An archive with a jar of each of these names."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as made:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = len(jar())
            made.addfile(member, io.BytesIO(jar()))
    return content.getvalue()


def serve(place: Path, content: bytes, checksum: str | None = None) -> None:
    digest = hashlib.sha512(content).hexdigest()
    (place / f"{NAME}.tgz").write_bytes(content)
    (place / f"{NAME}.tgz.sha512").write_text(f"{digest}  {NAME}.tgz\n" if checksum is None else checksum)


def test_the_jars_of_a_distribution_are_in_the_cache_and_nothing_else(served: Path, tmp_path: Path) -> None:
    serve(served, distribution(JAR, f"{NAME}/libs/other.jar", f"{NAME}/bin/kafka.sh", f"{NAME}/site/libs.jar"))
    fetched = fetching.fetch("4.1.0")
    assert {path.name for path in fetched.home.rglob("*")} == {"libs", f"{NAME}.jar", "other.jar"}
    assert [path.name for path in fetching.cache().iterdir()] == ["4.1.0"]


def test_a_checksum_is_understood_as_gpg_writes_it(served: Path) -> None:
    content = distribution(JAR)
    digits = hashlib.sha512(content).hexdigest().upper()
    lines = "\n    ".join(" ".join(digits[at : at + 8]) for at in range(0, len(digits), 8))
    serve(served, content, f"{NAME}.tgz: {lines}\n")
    assert fetching.fetch("4.1.0").classpath.endswith(f"{NAME}.jar")


@pytest.mark.parametrize(
    ("content", "checksum", "why"),
    [
        (distribution(JAR), "0" * 128, r"is damaged: its SHA-512"),
        (b"<html>", None, "is no archive"),
        (distribution(f"{NAME}/libs/other.jar"), None, f"{NAME}.jar is not among the jars"),
    ],
)
def test_what_is_not_whole_does_not_get_into_the_cache(
    served: Path, content: bytes, checksum: str | None, why: str
) -> None:
    serve(served, content, checksum)
    with pytest.raises(EnvironmentFault, match=why):
        fetching.fetch("4.1.0")
    assert not list(fetching.cache().iterdir())


@pytest.mark.parametrize("checksum", ["", "not a checksum"])
def test_without_a_checksum_nothing_is_taken(served: Path, checksum: str) -> None:
    serve(served, distribution(JAR), checksum)
    with pytest.raises(EnvironmentFault, match=r"cannot be read, and there is no Maven"):
        fetching.fetch("4.1.0")


def test_an_archive_that_breaks_off_or_lacks_a_release_is_not_available(served: Path, tmp_path: Path) -> None:
    with pytest.raises(archive.Unavailable, match=rf"4\.1\.0/{NAME}\.tgz\.sha512 is not there"):
        archive.unpack(release("4.1.0"), tmp_path / "libs")
    serve(served, distribution(JAR))
    (served / f"{NAME}.tgz").unlink()
    with pytest.raises(archive.Unavailable, match=rf"{NAME}\.tgz is not there"):
        archive.unpack(release("4.1.0"), tmp_path / "libs")
    assert not (tmp_path / "libs").exists()
