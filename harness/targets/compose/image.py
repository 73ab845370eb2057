"""Inspects the image of a broker: its Kafka release, and whether the shim can move its clock."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

import docker
from docker.errors import DockerException, ImageNotFound

from harness.errors import EnvironmentFault, UsageError
from harness.targets.compose.container_clock import takes_shim
from harness.targets.compose.containers import said_in
from harness.targets.kafka import shim
from harness.targets.kafka.releases import Release, numbers, release

OLDEST = "2.4.0"
"""The first supported release: its brokers return their leader epochs."""

OWN_IMAGES = "seawall/"
"""The prefix of the images that ``compose/images/build.py`` builds."""

_NO_SHELL = '"/bin/sh": stat /bin/sh: no such file'
_SEARCH = "find / -xdev -name 'kafka_2.*.jar'"
_JAR = re.compile(r"kafka_2\.\d+-(?P<version>\d+(?:\.\d+)+)(?P<build>-[a-z]+)?\.jar")
_CONFLUENT = ("-ccs", "-ce")

_OF_CONFLUENT = {
    (5, 4): "2.4", (5, 5): "2.5", (6, 0): "2.6", (6, 1): "2.7", (6, 2): "2.8",
    (7, 0): "3.0", (7, 1): "3.1", (7, 2): "3.2", (7, 3): "3.3", (7, 4): "3.4", (7, 5): "3.5",
    (7, 6): "3.6", (7, 7): "3.7", (7, 8): "3.8", (7, 9): "3.9", (8, 0): "4.0", (8, 1): "4.1",
}  # fmt: skip
"""The release of Apache Kafka in each release of Confluent Platform, whose jars have the platform's version.

Confluent's table of versions has no more than "6.2.x is 2.8.x". The first of each counts as the first, the others as
the second, which suffices to tell families apart: only 2.8.1 begins one that late.
"""


class NoKafka(UsageError):
    """There is no Kafka in an image."""


@dataclass(frozen=True, slots=True)
class KafkaImage:
    """The Kafka in an image.

    Attributes:
        release: of Kafka.
        platform: Confluent's version, ``"6.2.1"``, where the release is derived from it; then the last number of the
            release may be wrong.
        takes_shim: whether the clock shim can be loaded into its programs, and moves their clock.
    """

    release: Release
    platform: str | None
    takes_shim: bool


def has_image(client: docker.DockerClient, image: str) -> bool:
    """Whether the engine has it already."""
    try:
        client.images.get(image)
    except ImageNotFound:
        return False
    except DockerException as problem:
        raise EnvironmentFault(f"the Docker engine does not answer: {problem}.") from None
    return True


def how_to_get(image: str) -> str:
    """How a user can get an image."""
    own, _, name = image.partition(OWN_IMAGES)
    if not own and name:
        return f"Build it: `python compose/images/build.py {name.removesuffix(':latest')}`."
    return f"Pull it: `docker pull {image}`; or load it: `docker load`."


def look_into(client: docker.DockerClient, image: str) -> KafkaImage:
    """Inspect an image in a temporary container without a network.

    Raises:
        NoKafka: there is none in it.
        UsageError: it is an unknown one, or there are several.
        EnvironmentFault: the engine does not have it, or it cannot be run.
    """
    try:
        output = said_in(client, image, _SEARCH)
    except ImageNotFound:
        raise EnvironmentFault(f"image {image} is not on this machine.", how_to_get(image)) from None
    except (DockerException, OSError) as problem:
        if _NO_SHELL in str(problem):
            raise NoKafka(f"image {image} has no shell, and so no Kafka in it.") from None
        raise EnvironmentFault(f"image {image} cannot be looked into: {problem}.") from None
    found, platform = found_in(output.split("\n"), image)
    return KafkaImage(found, platform, shim.is_available() and takes_shim(client, image))


def found_in(paths: list[str], image: str) -> tuple[Release, str | None]:
    """The release, and Confluent's version, by the files of an image. Raises UsageError as :func:`look_into`."""
    names = [PurePosixPath(path.strip()).name for path in paths]
    jars = [match for name in names if (match := _JAR.fullmatch(name))]
    versions = {_version(jar["version"], jar["build"]) for jar in jars}
    if not versions:
        raise NoKafka(f"image {image} has no Kafka in it.")
    if len(versions) > 1:
        seen = ", ".join(sorted(versions))
        raise UsageError(f"image {image} has not exactly one release of Kafka in it, but {seen}.")
    found = release(versions.pop())
    if found.numbers < numbers(OLDEST):
        raise UsageError(
            f"image {image} has Kafka {found.version}, whose brokers do not return their leader epochs.",
            f"In containers {OLDEST} is the oldest that can be looked at; --target process: goes back to 0.10.2.",
        )
    return found, next((jar["version"] for jar in jars if jar["build"] in _CONFLUENT), None)


def _version(written: str, build: str | None) -> str:
    if build not in _CONFLUENT:
        return written
    platform, patch = numbers(written)[:2], numbers(written)[2:]
    if platform not in _OF_CONFLUENT:
        known = ", ".join(f"{major}.{minor}" for major, minor in _OF_CONFLUENT)
        raise UsageError(f"Confluent Platform {written} is not known; known are {known}.")
    return f"{_OF_CONFLUENT[platform]}.{int(any(patch))}"
