"""The controller keeps a legal ISR, and records truly whether an election was clean.

* ``illegal-isr``: a decision of the controller has a leader outside the ISR; an empty ISR (legal only without a leader,
  from 4.1, with eligible leader replicas, and up to 1.0 where unclean elections are allowed); a member that is no
  replica, or twice; an eligible leader replica that is in the ISR, or any although the ISR has ``min.insync.replicas``
  members; or, from 3.7, one that joined without a session (T5, KIP-841). A partition begins (partition epoch 0) with
  all of its replicas in the ISR whose brokers have a session. Or, from 4.1, it drops a replica that was in the ISR or
  eligible, so that fewer than ``min.insync.replicas`` are either (KIP-966): only an unclean election and an unclean
  shutdown of that broker permit it. (A real controller's log does not record which brokers shut down uncleanly, so
  there only decisions that reassign replicas are judged.) Or a broker's session has ended, and the controller keeps
  that broker as a leader, or in an ISR that has other members (:mod:`checkers.views.ended_sessions`).
* ``misclassified-election``: an election is recorded as clean although the new leader was neither in the ISR nor an
  eligible leader replica before it, or as unclean although it was (T12). Every excuse by an unclean election depends on
  this record. Or it is not recorded at all: a broker led in a leader epoch, later than the first that was decided, that
  no decision gave to it. (Not judged where a controller was started again, which may have died before it wrote a
  decision down, nor in a sampled timeline, which may lack a leader.)

An election is judged against the decision right before it (its partition epoch is one less); where that row is missing,
it is not judged, for the candidates are unknown.

Severity: ``VIOLATION``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, pairwise

from checkers.views.conclusion import Conclusion, age, cite, detail, seen_at
from checkers.views.configured import Configured
from checkers.views.ended_sessions import ENDED, neglected
from checkers.views.generations import since
from checkers.views.states import States
from harness.anomaly import (
    NO_WORD,
    NOTHING,
    AnomalyKind,
    CauseAt,
    Found,
    Needs,
    Sampled,
    Unseen,
)
from harness.facts import StateInterval
from harness.model import CONTROLLER_ID, NO_LEADER, TopicPartition

ILLEGAL_ISR = AnomalyKind(
    name="illegal-isr",
    invariants=("T5",),
    meaning="The controller decided on a leader or an ISR that may not be.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.TIMELINE, Needs.ISR}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.SOME, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)

MISCLASSIFIED_ELECTION = AnomalyKind(
    name="misclassified-election",
    invariants=("T12",),
    meaning="An election was recorded as clean, or unclean, and was not.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset({Needs.TIMELINE}),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=NOTHING,
    since=None,
    sampled=Sampled(found=Found.SOME, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (ILLEGAL_ISR, MISCLASSIFIED_ELECTION)


def conclude(states: States, configured: Configured) -> Iterator[Conclusion]:
    """Every breach in one run."""
    for place, decisions in states.decided.items():
        for before, one in zip([None, *decisions], decisions, strict=False):
            changed = (
                _illegally_begun(states, configured, place, one)
                if before is None
                else _illegally_changed(states, configured, place, before, one)
            )
            wrong = next(chain(_illegal(configured, place, one), changed), None)
            if wrong is not None:
                yield Conclusion(
                    states.finding("illegal-isr", place, leader_epoch=one.leader_epoch, **seen_at(one)),
                    f"The controller decided on leader {one.leader} and ISR {list(one.isr or ())}: {wrong}.",
                    (cite(one, f"the controller decided: leader {one.leader}, ISR {list(one.isr or ())}"),),
                )
        for before, after in pairwise(decisions):
            yield from _misclassified(configured, place, before, after)
        if not states.sampled:
            yield from _without_consequences(states, configured, place, decisions)
        if not (states.sampled or _was_restarted(states)):
            yield from _unrecorded(states, place, decisions)


def _illegal(configured: Configured, place: TopicPartition, one: StateInterval) -> Iterator[str]:
    """What is wrong with the ISR of a decision."""
    if one.isr is None:
        return
    isr, elr = one.isr, _eligible(one)
    if one.leader not in (None, NO_LEADER) and one.leader not in isr:
        yield "the leader is not in it"
    if not isr and not (one.leader == NO_LEADER and _may_empty_an_isr(configured)):
        yield "it is empty"
    if len(set(isr)) < len(isr):
        yield "a replica is in it twice"
    replicas = configured.wanted.partitions.get(place) if configured.wanted else None
    if replicas is not None and replicas.nodes is not None and not set(isr) <= set(replicas.nodes):
        yield f"the replicas are {list(replicas.nodes)}"
    if set(isr) & set(elr):
        yield f"the eligible leader replicas are {list(elr)}"
    least = configured.least_isr(place)
    if elr and least is not None and len(isr) >= least:
        yield f"{list(elr)} are eligible leader replicas beside an ISR of at least {least}"


def _illegally_begun(
    states: States, configured: Configured, place: TopicPartition, one: StateInterval
) -> Iterator[str]:
    """What is wrong with the ISR in which a partition begins."""
    replicas = configured.wanted.partitions.get(place) if configured.wanted else None
    if one.partition_epoch != 0 or one.isr is None or replicas is None or replicas.nodes is None:
        return
    left_out = sorted((set(replicas.nodes) & _present(states, one)) - set(one.isr))
    if left_out:
        yield f"the partition begins without broker {', '.join(map(str, left_out))}, which has a session"


def _illegally_changed(
    states: States, configured: Configured, place: TopicPartition, before: StateInterval, one: StateInterval
) -> Iterator[str]:
    """What is wrong with the change that a decision makes."""
    if one.isr is None:
        return
    least, left = configured.least_isr(place), {*one.isr, *_eligible(one)}
    if least is not None and len(left) < least and not _may_forget(configured, one):
        gone = sorted({*(before.isr or ()), *_eligible(before)} - left)
        if gone and before.partition_epoch is not None and one.partition_epoch == before.partition_epoch + 1:
            yield f"{gone} could be elected, and fewer than {least} are left who can"
    # The rows of sessions that end at the same moment all come before the decisions that the first one causes.
    ending = str(detail(one).get("cause", "")).startswith("session of")
    if since(configured.generation, "3.7") and not ending:
        away = sorted((set(one.isr) - set(before.isr or one.isr)) & _away(states, one))
        if away:
            yield f"broker {', '.join(map(str, away))} joined without a session"


def _may_empty_an_isr(configured: Configured) -> bool:
    """Whether the last member leaves the ISR, too: from 4.1 on, and up to 1.0 where unclean elections are allowed."""
    keeps_the_last = since(configured.generation, "2.0.0") or not configured.guarantees.get("unclean_election")
    return _keeps_eligible(configured) or not keeps_the_last


def _keeps_eligible(configured: Configured) -> bool:
    """Whether a replica that has left the ISR may stay eligible: from 4.1 on, unless the run states otherwise."""
    return bool(configured.guarantees.get("eligible_replicas", since(configured.generation, "4.1")))


def _may_forget(configured: Configured, one: StateInterval) -> bool:
    """Whether a replica that has left the ISR need not stay eligible."""
    details = detail(one)
    distrusted = "shut down uncleanly" in str(details.get("cause", ""))
    unknown = configured.sampled and not details.get("places")
    return not _keeps_eligible(configured) or unknown or distrusted or details.get("clean") is False


def _away(states: States, one: StateInterval) -> set[int]:
    """The brokers whose sessions ended, and did not begin again, before ``one`` in the same life of the controller."""
    return {broker for broker, change in _last_changes(states, one).items() if change in ENDED}


def _present(states: States, one: StateInterval) -> set[int]:
    """The brokers whose sessions began, and did not end again, before ``one`` in the same life of the controller."""
    return {broker for broker, change in _last_changes(states, one).items() if change not in ENDED}


def _last_changes(states: States, one: StateInterval) -> dict[int, str]:
    """By broker, what changed last about its session in the same life of the controller before ``one``."""
    rows = sorted((x for x in states.intervals if x.kind == "session"), key=age)
    intervals = [
        x for x in rows if (x.node, x.incarnation) == (one.node, one.incarnation) and x.sequence < one.sequence
    ]
    return {int(details.get("broker", -1)): str(details.get("change")) for details in map(detail, intervals)}


def _without_consequences(
    states: States, configured: Configured, place: TopicPartition, decisions: Sequence[StateInterval]
) -> Iterator[Conclusion]:
    for one in neglected(states, decisions):
        state = f"leader {one.kept.leader} and ISR {list(one.kept.isr or ())}"
        yield Conclusion(
            states.finding("illegal-isr", place, leader_epoch=one.kept.leader_epoch, **seen_at(one.following)),
            f"The session of broker {one.broker} ended, and the controller kept {state}.",
            (
                cite(one.ended, f"the session of broker {one.broker} ended"),
                cite(one.kept, f"the decision in force: {state}"),
                cite(one.following, "the controller goes on to something else"),
            ),
        )


def _misclassified(
    configured: Configured, place: TopicPartition, before: StateInterval, after: StateInterval
) -> Iterator[Conclusion]:
    clean = detail(after).get("clean")
    if after.kind != "election" or after.leader in (None, NO_LEADER) or not isinstance(clean, bool):
        return
    if before.partition_epoch is None or after.partition_epoch != before.partition_epoch + 1:
        return
    candidates = {*(before.isr or ()), *_eligible(before)}
    if clean == (after.leader in candidates):
        return
    kind = "clean" if clean else "unclean"
    yield Conclusion(
        configured.finding("misclassified-election", place, leader_epoch=after.leader_epoch, **seen_at(after)),
        f"The election of node {after.leader} in epoch {after.leader_epoch} was recorded as {kind}, and those who "
        f"could be elected cleanly were {sorted(candidates)}.",
        (
            cite(before, f"before, the ISR was {list(before.isr or ())}, eligible beside it {list(_eligible(before))}"),
            cite(after, f"the controller elected node {after.leader} and called that {kind}"),
        ),
    )


def _was_restarted(states: States) -> bool:
    return any(one.node == CONTROLLER_ID and one.incarnation > 0 for one in states.intervals)


def _unrecorded(states: States, place: TopicPartition, decisions: Sequence[StateInterval]) -> Iterator[Conclusion]:
    """The first row of every leader in an epoch in which the controller did not elect it."""
    begun = min((one.leader_epoch for one in decisions if one.leader_epoch is not None), default=None)
    known = {(one.leader, one.leader_epoch) for one in decisions}
    for node, intervals in states.reported.get(place, {}).items():
        led = (x for x in intervals if (x.kind, x.role) == ("state", "leader") and x.leader_epoch is not None)
        first = {one.leader_epoch: one for one in reversed(list(led))}
        for epoch, one in first.items():
            if begun is None or epoch is None or epoch <= begun or (node, epoch) in known:
                continue
            yield Conclusion(
                states.finding("misclassified-election", place, leader_epoch=epoch, **seen_at(one)),
                f"Node {node} led in epoch {epoch}, and the controller has recorded no election of it in that epoch.",
                (cite(one, f"node {node} led in epoch {epoch} from here on"),),
            )


def _eligible(one: StateInterval) -> tuple[int, ...]:
    return tuple(detail(one).get("elr") or ())
