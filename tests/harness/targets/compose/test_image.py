"""Which release of Kafka is in an image, told by the names of its files."""

from __future__ import annotations

import pytest

from harness.errors import UsageError
from harness.targets.compose.image import found_in


@pytest.mark.parametrize(
    ("jar", "version"),
    [
        ("/opt/kafka/libs/kafka_2.13-4.1.0.jar", "4.1.0"),
        ("/opt/bitnami/kafka/libs/kafka_2.13-3.9.1.jar", "3.9.1"),
        ("/usr/share/java/kafka/kafka_2.13-7.9.0-ccs.jar", "3.9.1"),
        ("/usr/share/java/kafka/kafka_2.12-5.5.1-ce.jar", "2.5.1"),
    ],
)
def test_a_jar_tells_the_release_of_apache_kafka(jar: str, version: str) -> None:
    assert found_in([jar, jar, "/some/kafka_2.13-4.1.0-sources.jar.asc", ""], "image").version == version


@pytest.mark.parametrize(
    ("jars", "says"),
    [
        ([], "image web has not exactly one release of Kafka in it, but none"),
        (["/a/kafka_2.13-4.1.0.jar", "/b/kafka_2.13-3.9.1.jar"], "but 3.9.1, 4.1.0"),
        (["/a/kafka_2.12-2.0.1.jar"], "Kafka 2.0.1, whose brokers do not tell their leader epochs"),
        (["/a/kafka_2.13-9.0.0-ccs.jar"], "Confluent Platform 9.0.0 is not known"),
    ],
)
def test_an_image_that_cannot_be_watched_is_refused(jars: list[str], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        found_in(jars, "web")
