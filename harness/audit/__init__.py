"""``seawall audit``: canary records on a cluster in production, judged window by window, for hours or days.

It injects no faults and touches no topic but its own. Each window becomes a run directory, whose history the reference
checker judges like that of any other run; what carries over from one window to the next is in
:mod:`harness.audit.ledger`.
"""
