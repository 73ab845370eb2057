"""What may have made a client send a record again that it does not number.

It has a reason, which lies between the send's invocation and its acknowledgement, or the end of the run where
none came:

* its leader answered that it no longer leads, or closed the connection: an election in the partition, a broker that
  became leader or ceased to be, or a start of one that has led;
* its leader answered NOT_ENOUGH_REPLICAS_AFTER_APPEND: an ISR that became smaller than ``min.insync.replicas``;
* its connection broke, or its leader's storage refused: a fault was in force of a broker that led meanwhile, or of a
  link between that broker and the clients;
* no answer came within the client's timeout (``retry_after_s`` of a schedule's send with ``retries``;
  background producers try again for none of these reasons but the first).

And it waits before it does (``retry.backoff.ms``): what was answered within :data:`~harness.findings.RESENT_NS`
was sent once.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, pairwise

from checkers.views.configured import Configured, is_watched
from checkers.views.cuts import links_of
from checkers.views.fault_journal import FaultJournal
from checkers.views.leadership import elections, leaders, starts
from checkers.views.row import Row
from checkers.views.sampled_timelines import LOOK_NS
from checkers.views.states import States
from faults import traits_of
from harness.downtime import in_force
from harness.facts import StateInterval
from harness.fault import DiskEffect
from harness.findings import RESENT_NS, Finding
from harness.model import CLIENTS, NO_LEADER, TopicPartition


def reason_to_resend(states: States, configured: Configured, journal: FaultJournal, finding: Finding) -> str | None:
    """What happened while a duplicate's send was under way that makes clients send again; None: nothing did.

    Where no broker reported its state, or the configuration lacks the client's timeout, the answer is that it may have.
    """
    if not is_watched(configured) or configured.wanted is None:
        return "the run does not record when its client does"
    since_ns = finding.since_ns or 0
    until_ns = float("inf") if finding.by_ns is None else finding.by_ns
    if until_ns - since_ns < RESENT_NS:
        return None
    place = TopicPartition(finding.topic, finding.partition)
    look_ns = LOOK_NS if states.sampled else 0
    shaken = min(_changes(states, configured, place, since_ns - look_ns, until_ns + look_ns), default=None)
    if shaken is not None:
        return shaken[1]
    patience_s = configured.wanted.retry_after_s
    if patience_s is not None and until_ns - since_ns >= patience_s * 1e9:
        return f"it was not answered for {patience_s:g} s"
    return next(_faults(states, journal, place, since_ns, until_ns), None)


def _changes(
    states: States, configured: Configured, place: TopicPartition, since_ns: float, until_ns: float
) -> Iterator[tuple[int, str]]:
    """Decisions and states in between that make a leader break off or refuse, and when."""
    again = ((at_ns, f"node {node}, which had led, was started again") for node, at_ns in starts(states, place))
    for at_ns, words in chain(
        map(_election, elections(states, place)),
        again,
        _leader_changes(states, place),
        _thin(states, configured, place),
    ):
        if since_ns <= at_ns <= until_ns:
            yield at_ns, words


def _election(one: StateInterval) -> tuple[int, str]:
    elected = "no node" if one.leader in (None, NO_LEADER) else f"node {one.leader}"
    return one.begin_ns, f"{elected} was elected in leader epoch {one.leader_epoch}"


def _leader_changes(states: States, place: TopicPartition) -> Iterator[tuple[int, str]]:
    for node, intervals in states.reported.get(place, {}).items():
        for before, one in pairwise(intervals):
            moved = (before.role, before.leader_epoch) != (one.role, one.leader_epoch)
            if moved and "leader" in (before.role, one.role):
                did = "became leader" if one.role == "leader" else "ceased to be leader"
                yield one.begin_ns, f"node {node} {did} in leader epoch {one.leader_epoch}"


def _thin(states: States, configured: Configured, place: TopicPartition) -> Iterator[tuple[int, str]]:
    least = configured.least_isr(place) or 0
    decided, reported = states.decided.get(place, ()), states.reported.get(place, {}).values()
    for intervals in (decided, *([one for one in intervals if one.role == "leader"] for intervals in reported)):
        for before, one in pairwise(intervals):
            if one.isr is not None and len(one.isr) < least and one.isr != before.isr:
                yield one.begin_ns, f"the ISR was {list(one.isr)}, smaller than min.insync.replicas"


def _faults(
    states: States, journal: FaultJournal, place: TopicPartition, since_ns: float, until_ns: float
) -> Iterator[str]:
    led = {str(node) for node in leaders(states, place, since_ns, until_ns)}
    for fault in journal.faults:
        hit = sorted(led.intersection(_cut_off(fault)))
        if hit and in_force(fault["injected_ns"], fault["healed_ns"], since_ns, until_ns):
            yield f"the fault {fault['fault']} ({fault['kind']}) was in force, of node {hit[0]}, which led"


def _cut_off(fault: Row) -> set[str]:
    """The nodes whose client connections a fault breaks, or whose storage it makes refuse."""
    links = links_of(fault)
    if links is not None:
        return {end for link in links if CLIENTS in link for end in link}
    # Neither a clock nor damage in a log breaks a connection, or makes a leader refuse.
    traits = traits_of(fault["kind"])
    return set() if traits.moves_clock or traits.disk is DiskEffect.DAMAGE else set(fault["nodes"])
