"""Finds the Kafka releases on this machine, unpacked or in a cache, and fetches new ones into the cache.

A release in the cache is whole: it is fetched into a directory beside its place, which is renamed when every jar is
there and is a sound archive. It comes from Apache's archive, or, where that lacks something, through Maven, which
compares each jar with the repository's checksum.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

from harness import program
from harness.errors import EnvironmentFault, UsageError
from harness.scratch import note_unfinished
from harness.targets.kafka.releases import Artifact, Metadata, Release, numbers, release

_TIMEOUT_S = 900.0
_CLIENTS_JAR = re.compile(r"kafka-clients-(\d+(?:\.\d+)+)\.jar")
_LIBS = "libs"
_NEEDED = ("kafka_*-{version}", "scala-library-*", "slf4j-api-*", "metrics-core-2.*", "jopt-simple-*")
_NEEDED_BY = {
    Metadata.ZOOKEEPER: ("zookeeper-*",),
    Metadata.KRAFT: (
        *("kafka-metadata-{version}", "kafka-raft-{version}", "kafka-server-common-{version}"),
        *("kafka-storage-{version}", "jackson-databind-*"),
    ),
}
"""Jars without which no node starts, as patterns of their names."""

_UNFINISHED = ".fetching-"
_NO_SUCH_RELEASE = re.compile(r"could not find artifact org\.apache\.kafka:kafka_", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Distribution:
    """A release that can be started: the jars in ``home/libs``."""

    release: Release
    home: Path

    @property
    def classpath(self) -> str:
        """As Java takes it: every jar, in the order of their names."""
        return os.pathsep.join(map(str, sorted((self.home / _LIBS).glob("*.jar"))))


def cache() -> Path:
    """Where fetched releases are kept: ``seawall/kafka`` below ``XDG_CACHE_HOME``, which is ``~/.cache`` if not set."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "seawall", "kafka")


def fetched() -> list[str]:
    """The releases in the cache, oldest first."""
    found = [path.name for path in cache().glob("*") if path.is_dir() and path.name[0].isdecimal()]
    return sorted(found, key=numbers)


def find(spelling: str) -> Distribution:
    """The distribution that ``spelling`` means: a release, which has been fetched, or the path of an unpacked one.

    Raises:
        UsageError: it is neither a release nor a directory with ``libs/kafka-clients-VERSION.jar``.
        EnvironmentFault: the release has not been fetched, or the distribution is not whole.
    """
    if "/" in spelling or spelling in (".", "..", "~"):
        return unpacked(Path(spelling).expanduser())
    wanted = release(spelling)
    if spelling not in fetched():
        raise EnvironmentFault(
            f"Kafka {spelling} is not on this machine.", f"Fetch it with `seawall kafka fetch {spelling}`."
        )
    return Distribution(wanted, cache() / spelling)


def unpacked(home: Path) -> Distribution:
    """The distribution in ``home``; the names of its jars contain its release.

    Raises:
        UsageError: there is none, or it needs jars that no distribution of it has.
        EnvironmentFault: jars are missing that its distribution has.
    """
    found = [match[1] for path in (home / _LIBS).glob("*.jar") if (match := _CLIENTS_JAR.fullmatch(path.name))]
    if len(found) != 1:
        raise UsageError(
            f"{home} is no unpacked Kafka distribution: it has {len(found)} {_LIBS}/kafka-clients-VERSION.jar.",
            "Name the directory with bin, config and libs.",
        )
    distribution = Distribution(release(found[0]), home.resolve())
    for jar in (f"{one.name}-{one.version}.jar" for one in distribution.release.family.jars):
        if not (home / _LIBS / jar).exists():
            raise UsageError(
                f"the Kafka {found[0]} in {home} does not run on a Java of today: its {_LIBS} has no {jar}.",
                f"`seawall kafka fetch {found[0]}` gets Kafka with all it needs.",
            )
    _require_whole(distribution)
    return distribution


def _require_whole(distribution: Distribution) -> None:
    version, libs = distribution.release.version, distribution.home / _LIBS
    needed = [pattern.format(version=version) for pattern in (*_NEEDED, *_NEEDED_BY[distribution.release.metadata])]
    if missing := [f"{pattern}.jar" for pattern in needed if not any(libs.glob(f"{pattern}.jar"))]:
        raise EnvironmentFault(
            f"the Kafka {version} in {distribution.home} is not whole: its {_LIBS} has no {', '.join(missing)}.",
            f"Unpack the distribution again, or let `seawall kafka fetch {version}` get it.",
        )


def fetch(version: str) -> Distribution:
    """Fetch a release, unless it is in the cache already.

    Raises:
        UsageError: there is no such release.
        EnvironmentFault: neither the archive nor Maven gets it, or the cache cannot be written.
    """
    wanted = release(version)
    place = cache() / version
    if place.is_dir():
        return Distribution(wanted, place)
    try:
        cache().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f"{_UNFINISHED}{version}-", dir=cache()) as unfinished:
            note_unfinished(Path(unfinished))
            home = Path(unfinished, version)
            home.mkdir()
            _get(wanted, home)
            _check(wanted, home)
            _put(home, place)
    except OSError as error:
        raise EnvironmentFault(f"the cache {cache()} cannot be written: {error.strerror}.") from None
    return Distribution(wanted, place)


def _put(home: Path, place: Path) -> None:
    """Rename ``home``; another process may have been faster."""
    try:
        home.rename(place)
    except OSError:
        if not place.is_dir():
            raise


def _get(wanted: Release, home: Path) -> None:
    """Put the jars of a release into ``home/libs``."""
    from harness.targets.kafka import archive  # noqa: PLC0415 - it speaks HTTP, which every command would import

    why = f"a distribution of {wanted.version} lacks jars that it needs on a Java of today"
    if not wanted.family.jars:
        try:
            return archive.unpack(wanted, home / _LIBS)
        except archive.Unavailable as reason:
            why = str(reason)
    maven = shutil.which("mvn")
    if maven is None:
        raise EnvironmentFault(
            f"Kafka {wanted.version} cannot be fetched: {why}, and there is no Maven (mvn) on the PATH.",
            "Install it (Debian: apt install maven), or unpack a Kafka distribution and name its directory instead.",
        )
    return _copy_jars(maven, wanted, home)


def _copy_jars(maven: str, wanted: Release, home: Path) -> None:
    (home / "pom.xml").write_text(pom(wanted))
    words = (maven, "--batch-mode", "--quiet", "--strict-checksums", "dependency:copy-dependencies")
    options = ("-DincludeScope=runtime", f"-DoutputDirectory={home / _LIBS}")
    try:
        done = program.run((*words, *options), _TIMEOUT_S, directory=home)
    except subprocess.TimeoutExpired:
        raise EnvironmentFault(f"Kafka {wanted.version} was not fetched: Maven took {_TIMEOUT_S:g} s.") from None
    if done.returncode != 0:
        raise _refusal(wanted, done.stdout + done.stderr)


def _refusal(wanted: Release, output: str) -> UsageError | EnvironmentFault:
    if _NO_SUCH_RELEASE.search(output):
        return UsageError(
            f"there is no Kafka release {wanted.version} in the Maven repository.", "See `seawall kafka list`."
        )
    lines = [line.removeprefix("[ERROR] ").strip() for line in output.splitlines() if "[ERROR]" in line]
    reason = (lines or ["it says nothing"])[0].partition(" -> ")[0].rstrip(".")
    return EnvironmentFault(
        f"Kafka {wanted.version} was not fetched: Maven failed: {reason}.",
        "Maven needs a network, or what it needs in its local repository.",
    )


def _check(wanted: Release, home: Path) -> None:
    """Check that Kafka is among the jars, and that each of them is sound.

    Raises:
        EnvironmentFault: it is not.
    """
    jars = sorted((home / _LIBS).glob("*.jar"))
    needed = f"{wanted.artifact.name}-{wanted.version}.jar"
    if needed not in {jar.name for jar in jars}:
        raise EnvironmentFault(f"Kafka {wanted.version} was not fetched: {needed} is not among the jars.")
    for jar in jars:
        if not _is_sound(jar):
            raise EnvironmentFault(
                f"Kafka {wanted.version} was not fetched: {jar.name} is damaged.",
                "Remove it from Maven's local repository, ~/.m2/repository, and fetch again.",
            )


def _is_sound(jar: Path) -> bool:
    try:
        with zipfile.ZipFile(jar) as archive:
            return archive.testzip() is None
    except (OSError, zipfile.BadZipFile):
        return False


def pom(wanted: Release) -> str:
    """A Maven project that depends on the release, and on what it needs besides; the nearest version of a jar wins."""
    needed = [wanted.artifact, *wanted.family.jars, *([wanted.family.binding] if wanted.family.binding else [])]
    return f"""\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>seawall</groupId><artifactId>kafka</artifactId><version>{escape(wanted.version)}</version>
  <dependencies>
{chr(10).join(_dependencies(needed))}
  </dependencies>
</project>
"""


def _dependencies(artifacts: Sequence[Artifact]) -> Iterable[str]:
    for one in artifacts:
        group, name, version = map(escape, (one.group, one.name, one.version))
        yield (
            f"    <dependency><groupId>{group}</groupId><artifactId>{name}</artifactId>"
            f"<version>{version}</version></dependency>"
        )
