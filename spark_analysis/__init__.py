"""What Spark is asked about histories: one question per module, DataFrame -> DataFrame, many runs in one job.

Nothing is imported here, so that who only wants :mod:`spark_analysis.answer` does not load Spark.
"""
