"""Caches lookups of the JVM's classes, which PySpark repeats at every use."""

from __future__ import annotations

from typing import Any

USED_AT_EVERY_STEP = (
    "functions",
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.expressions.Window",
    "org.apache.spark.sql.classic.SparkSession",
    "PythonSQLUtils",
    "PythonUtils",
)
"""The classes that PySpark looks up while it makes a plan."""


class Remembered:
    """A class of the JVM whose static members are looked up once each."""

    def __init__(self, java_class: Any) -> None:
        self._java_class = java_class

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._java_class, name)
        setattr(self, name, member)
        return member

    def __call__(self, *arguments: Any) -> Any:
        """Construct one."""
        return self._java_class(*arguments)


def remember_classes(jvm: Any) -> None:
    """Look the classes of :data:`USED_AT_EVERY_STEP` up now, and never again.

    Otherwise every ``f.col`` makes the JVM search all of its class path twice, which is a sixth of a short run's check.
    """
    for name in USED_AT_EVERY_STEP:
        setattr(jvm, name, Remembered(getattr(jvm, name)))
