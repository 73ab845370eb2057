"""Which broker bugs the checkers find: a matrix of bugs, workloads and faults, measured in virtual time.

A checker that has never failed proves nothing. Each row of :mod:`harness.detection.table` is a broker or a
controller that does one thing wrong; each cell of the matrix runs it on some seeds of a mix of load and faults, and
the same seeds without the bug. The checkers decide, from what such a run leaves behind, not the simulator's witness.
"""
