"""Whether PySpark is installed, which is an extra of seawall's distribution; nothing here imports it."""

from __future__ import annotations

from importlib.util import find_spec

from harness.errors import EnvironmentFault

_REMEDY = "Install 'seawall[spark]', or check without Spark: --engine reference."


def has_spark() -> bool:
    """Whether PySpark is installed."""
    return find_spec("pyspark") is not None


def missing() -> EnvironmentFault:
    """The error where it is not."""
    return EnvironmentFault("PySpark is not installed.", _REMEDY)


def require_spark() -> None:
    """Check that PySpark is installed.

    Raises:
        EnvironmentFault: it is not.
    """
    if not has_spark():
        raise missing()
