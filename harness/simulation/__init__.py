"""Simulated clusters in virtual time: the replication core alone, or unmodified brokers.

Everything is drawn from one seed. :mod:`harness.simulation.core` drives the replicas and the controller of
:mod:`harness.replication` directly; an omniscient witness sees every log and asserts the invariants as they happen.
"""
