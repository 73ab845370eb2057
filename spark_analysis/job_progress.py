"""Says how far Spark has come with its jobs, by its status tracker."""

from __future__ import annotations

from py4j.protocol import Py4JError

from spark_analysis import session

_LOOKED_AT = 4
"""How many active stages are looked at; each takes six calls of the JVM, some milliseconds together."""


def stages() -> str:
    """The stages that Spark computes now, in words; empty: none, as while Spark plans, or there is no session.

    It neither starts nor awaits a session. Any thread may call it.
    """
    spark = session.running()
    if spark is None:
        return ""
    try:
        tracker = spark.sparkContext.statusTracker()
        active = sorted(tracker.getActiveStageIds())
        seen = [found for stage in active[:_LOOKED_AT] if (found := tracker.getStageInfo(stage)) is not None]
    except (Py4JError, OSError, AttributeError):  # its JVM ends
        return ""
    if not seen:
        return ""
    done, tasks = sum(one.numCompletedTasks for one in seen), sum(one.numTasks for one in seen)
    return f"stage {active[-1]}, {done} of {tasks} tasks done"
