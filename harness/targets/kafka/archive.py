"""Downloads releases from Apache's archive of distributions, or a mirror of it, without Maven.

It checks each archive against the SHA-512 beside it, and keeps only the jars.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tarfile
import tempfile
from pathlib import Path, PurePosixPath
from typing import IO

import requests

from harness.errors import EnvironmentFault
from harness.targets.kafka.releases import Release

_ADDRESS = "https://archive.apache.org/dist/kafka"
_TIMEOUTS_S = (5.0, 60.0)
"""Timeouts to connect and to read."""
_CHUNK = 1 << 20
_NO_FILE = (403, 404, 410)


class Unavailable(Exception):
    """The archive cannot be reached, or has no such release; the text is the reason, without a full stop."""


def address() -> str:
    """Where the archive is: ``SEAWALL_KAFKA_ARCHIVE``, which is Apache's if not set."""
    return os.environ.get("SEAWALL_KAFKA_ARCHIVE", _ADDRESS).rstrip("/")


def unpack(wanted: Release, libs: Path) -> None:
    """Put the jars of a release into ``libs``; creates it.

    Raises:
        Unavailable: the archive does not answer, or has no such release.
        EnvironmentFault: the download does not match its checksum, or is no archive.
    """
    url = f"{address()}/{wanted.version}/{wanted.artifact.name}-{wanted.version}.tgz"
    expected = _checksum(_get(f"{url}.sha512").text)
    with tempfile.TemporaryFile(dir=libs.parent) as file:
        if _download(url, file) != expected:
            raise EnvironmentFault(f"{url} is damaged: its SHA-512 is not the one beside it.", "Fetch it again.")
        file.seek(0)
        try:
            _extract(file, libs)
        except tarfile.TarError as error:
            raise EnvironmentFault(f"{url} is no archive: {error}.") from None


def _get(url: str, *, stream: bool = False) -> requests.Response:
    try:
        answer = requests.get(url, timeout=_TIMEOUTS_S, stream=stream)
    except requests.RequestException as error:
        raise Unavailable(f"{address()} does not answer ({type(error).__name__})") from None
    if answer.status_code in _NO_FILE:
        raise Unavailable(f"{url} is not there")
    if not answer.ok:
        raise Unavailable(f"{address()} answers with status {answer.status_code}")
    return answer


def _checksum(text: str) -> str:
    """The digest in a file that is written by ``gpg --print-md`` or by ``sha512sum``."""
    digits = re.sub(r"\s", "", text.rpartition(":")[2]).lower()
    found = re.match(r"[0-9a-f]{128}", digits)
    if found is None:
        raise Unavailable(f"a checksum at {address()} cannot be read")
    return found[0]


def _download(url: str, file: IO[bytes]) -> str:
    """Write what is at ``url``, and return its SHA-512."""
    digest = hashlib.sha512()
    with _get(url, stream=True) as answer:
        try:
            for chunk in answer.iter_content(_CHUNK):
                file.write(chunk)
                digest.update(chunk)
        except requests.RequestException as error:
            raise Unavailable(f"{address()} broke off ({type(error).__name__})") from None
    return digest.hexdigest()


def _extract(file: IO[bytes], libs: Path) -> None:
    libs.mkdir()
    with tarfile.open(fileobj=file) as archive:
        for member in archive:
            name = PurePosixPath(member.name)
            content = archive.extractfile(member) if name.parent.name == "libs" and name.suffix == ".jar" else None
            if content is not None:
                with (libs / name.name).open("wb") as jar:
                    shutil.copyfileobj(content, jar)
