"""Which release of Kafka is in an image, told by the names of its files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.targets.compose.containers import said_in
from harness.targets.compose.image import found_in
from harness.targets.compose.ownership import owner
from tests.harness.targets.compose.conftest import Engine

BUILD = Path(__file__).parents[4] / "compose" / "images" / "build.py"


@pytest.mark.parametrize(
    ("names", "says"), [((), "which images are to be built?"), (("--help",), "there is no image --help.")]
)
def test_who_names_no_image_is_told_which_there_are(names: tuple[str, ...], says: str) -> None:
    done = subprocess.run([sys.executable, str(BUILD), *names], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.strip() == f"{says} There are base, tools, toxiproxy, kafka:VERSION and zookeeper:VERSION."


@pytest.mark.parametrize(
    ("jar", "version"),
    [
        ("/opt/kafka/libs/kafka_2.13-4.1.0.jar", "4.1.0"),
        ("/opt/bitnami/kafka/libs/kafka_2.13-3.9.1.jar", "3.9.1"),
        ("/usr/share/java/kafka/kafka_2.13-7.9.0-ccs.jar", "3.9.0"),
        ("/usr/share/java/kafka/kafka_2.13-6.2.0-ccs.jar", "2.8.0"),
        ("/usr/share/java/kafka/kafka_2.13-6.2.15-ccs.jar", "2.8.1"),
        ("/usr/share/java/kafka/kafka_2.12-5.5.1-ce.jar", "2.5.1"),
    ],
)
def test_a_jar_tells_the_release_of_apache_kafka(jar: str, version: str) -> None:
    assert found_in([jar, jar, "/some/kafka_2.13-4.1.0-sources.jar.asc", ""], "image")[0].version == version


def test_of_a_release_that_a_table_tells_confluents_own_number_is_kept() -> None:
    assert found_in(["/usr/share/java/kafka/kafka_2.13-6.2.15-ccs.jar"], "image")[1] == "6.2.15"
    assert found_in(["/opt/kafka/libs/kafka_2.13-4.1.0.jar"], "image")[1] is None


@pytest.mark.parametrize(
    ("jars", "says"),
    [
        ([], "image web has no Kafka in it"),
        (["/a/kafka_2.13-4.1.0.jar", "/b/kafka_2.13-3.9.1.jar"], "but 3.9.1, 4.1.0"),
        (["/a/kafka_2.12-2.0.1.jar"], "Kafka 2.0.1, whose brokers do not return their leader epochs"),
        (["/a/kafka_2.13-9.0.0-ccs.jar"], "Confluent Platform 9.0.0 is not known"),
    ],
)
def test_an_image_that_cannot_be_watched_is_refused(jars: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        found_in(jars, "web")


def test_an_image_is_asked_by_a_container_that_is_gone_afterwards_and_so_is_one_of_a_killed_harness(
    engine: Engine,
) -> None:
    engine.need("tools")
    says = "from harness.targets.compose.ownership import owner; print(owner())"
    gone = subprocess.check_output([sys.executable, "-c", says], text=True).strip()
    left = engine.client.containers.create("seawall/tools", ["true"], labels={"seawall.asked-by": gone})
    assert said_in(engine.client, "seawall/tools", "echo $0; exit 1") == "/bin/sh\n"
    mine = {"label": f"seawall.asked-by={owner()}"}
    assert not engine.client.containers.list(all=True, filters=mine)
    assert left.id not in [one.id for one in engine.client.containers.list(all=True, ignore_removed=True)]
