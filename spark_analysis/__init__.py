"""The Spark engine: one PySpark question per module, DataFrame -> DataFrame, over many runs in one job.

Nothing is imported here, so that users of :mod:`harness.findings` alone do not load Spark.
"""
