"""Explores seeds in virtual time, replays one of them, and shrinks what it shows.

A seed draws a cluster, its load and its faults. :mod:`harness.simulation` runs them before the witness; a load of
groups and transactions runs beside, as :mod:`harness.runner` runs it, and is judged by the checkers of real runs.
"""
