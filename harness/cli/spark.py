"""The use of Spark where PySpark is installed, and of the reference engine where it is not."""

from __future__ import annotations

from harness.cli.terminal import remark


def decides_alone() -> bool:
    """Whether the reference engine decides because PySpark is not installed; if so, print a sentence about it."""
    from spark_analysis.installed import has_spark, missing

    if has_spark():
        return False
    remark(f"seawall: {missing().sentence} The reference engine decides; 'seawall[spark]' installs Spark.")
    return True


def warm_up() -> None:
    """Start Spark in the background, where PySpark is installed; see :func:`spark_analysis.warmup.warm_up`."""
    from spark_analysis.installed import has_spark

    if has_spark():
        from checkers.registry import RULES
        from spark_analysis import warmup

        warmup.warm_up(RULES)
