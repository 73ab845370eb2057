"""unique_sends: producers that send values never sent before, and consumers that follow every partition.

A consumer whose poll ended with an error ends there; a new one goes on where it stood, under a new process number, or,
where the log no longer reaches that far, from the beginning.

Promised: what is acknowledged with acks=all is on every in-sync replica, once where the producer numbers its records or
sends each only once, in the order in which its process has sent it, and is given to every consumer that comes that
far; no broker refuses a position of theirs that the log has.

Judged: the answer to each send against the logs of all replicas and the final read, the polls of each consumer against
one another and the log, a position out of range against what had been delivered before it, and what the brokers
believed meanwhile: watermarks, leader epochs and in-sync replicas.

Missed: what takes two records in a batch, a codec, two requests of a producer in flight, a group or a transaction.
"""

from __future__ import annotations

from pydantic import Field

from harness.client_ports import ClientContext
from harness.client_tasks.sends_and_tails import SendsAndTails
from harness.client_tasks.steady_sends import SteadySendsParameters
from harness.workload import WorkloadKind


class UniqueSendsParameters(SteadySendsParameters):
    """What a scenario may write about the workload.

    Attributes:
        consumers: tailing consumers; the partitions are dealt out among them.
    """

    consumers: int = Field(default=2, ge=1, le=64)


class UniqueSends(SendsAndTails):
    """Sends at a steady rate and reads what comes of it."""

    def __init__(self, parameters: UniqueSendsParameters, context: ClientContext) -> None:
        super().__init__(parameters, parameters.consumers, context)


KIND = WorkloadKind("unique_sends", UniqueSendsParameters, UniqueSends, {"rate": 40, "producers": 2, "consumers": 1})
