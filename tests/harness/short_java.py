"""The command of a Java program of Kafka's that lives for seconds: what compiles best takes more than it gives back."""

from __future__ import annotations

from harness.targets.kafka.fetching import Distribution
from harness.targets.kafka.jvm import java


def short_java(distribution: Distribution) -> list[str]:
    """The first words of the command, before the name of a class or of a source file.

    Args:
        distribution: where its classes are.
    """
    return [java(), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", distribution.classpath]
