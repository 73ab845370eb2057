"""The same replication code in virtual time: the bare core, fast, or the whole broker, deep.

Everything is drawn from one seed. :mod:`harness.simulation.core` drives the replicas and the controller of
:mod:`harness.replication` directly; an omniscient witness sees every log and asserts the invariants as they happen.
"""
