"""A broker or a controller runs until it is ordered to end, or until its disk or environment fails.

``node-exit``: a life of a node ended by itself: a halt, an uncaught exception, an exit code of its own. ``endings`` in
``run.json`` has every life that the harness had not ordered to end, with the time, the exit status, and the node's last
words. A later restart, or a cluster that went on without the node, changes nothing.

Severity: ``VIOLATION``. ``DOCUMENTED`` when it ended

* because its storage failed, while a fault had harmed its disk: ``disk_full`` and ``log_dir_failure`` halt a broker
  whose last log directory fails (``LogDirFailureChannel``), and a controller that cannot write its metadata log;
* because of what it found in a log, at any time after ``corrupt_log`` had damaged one on its disk; or while it started
  on what a ``power_loss`` or a ``wipe_disk`` had left;
* because, as it started, it had waited for its controller in vain (``zookeeper.connection.timeout.ms``,
  ``initial.broker.registration.timeout.ms``), or ZooKeeper still had its last session, and a fault was in force
  meanwhile that can keep it from its controller: of this node, of a controller, or of a link between them;
* because its log was longer than its leader's and unclean elections are forbidden, up to 2.0
  (``ReplicaFetcherThread.handleOffsetOutOfRange``).

Its last words give the reason. Where they name no error, as those of a broker that is gone at once (0.10), they are
compatible with any fault. A fault that was injected counts, proven or not: where it was not, the run is ``INVALID``.
One that is misfiled (:mod:`checkers.views.proofs_match`) excuses nothing, and the run is ``INVALID``, too. An end that
its environment caused (a signal that seawall has not sent, a machine without memory or room) is no anomaly, and makes
the run ``INVALID``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from checkers.views.conclusion import Conclusion
from checkers.views.configured import Configured
from checkers.views.cuts import ends_of, links_of
from checkers.views.fault_journal import FaultJournal
from checkers.views.generations import since
from checkers.views.row import Row
from checkers.views.runner_report import RunnerReport
from faults import traits_of
from harness.anomaly import (
    NO_WORD,
    AnomalyKind,
    CauseAt,
    Excuses,
    Found,
    LossyFailure,
    Retention,
    Sampled,
    Unseen,
)
from harness.downtime import in_force
from harness.excuse import Excuse
from harness.fault import DiskEffect
from harness.model import CONTROLLER, NodeId, TopicPartition, is_broker, node_name

NODE_EXIT = AnomalyKind(
    name="node-exit",
    invariants=("T13",),
    meaning="A broker or a controller ended although nothing had ordered it to.",
    shows_loss=False,
    shown_by_clients=False,
    relies_on=frozenset(),
    follows_from=(),
    cause_at=CauseAt.OFFSET,
    excuses=Excuses(
        unclean_election=False,
        retention=Retention.NEVER,
        fault=True,
        lossy_failure=LossyFailure.NEVER,
        with_cause=False,
        own_topic=None,
        while_leading=True,
    ),
    since=None,
    sampled=Sampled(found=Found.ALL, unseen=Unseen.NOTHING),
    in_scenarios=NO_WORD,
    permitted_by="",
)
KINDS = (NODE_EXIT,)

NOWHERE = TopicPartition("", -1)
"""The place of an anomaly that is about a node."""

_STORAGE = (
    r"errno|storage|log dir|\bI/O\b|IO(?:Error|Exception)|OSError|no space|input/output|cannot be written|kafka\.log|"
    "NoSuchFile|FileNotFound|FileSystemException"
)
_DAMAGE = (
    rf"{_STORAGE}|corrupt|garbled|damage|checksum|crc|malformed|snapshot|checkpoint|index|segment|offset|cannot be read"
)
_HARMFUL = {
    DiskEffect.NEW_WRITES: re.compile(_STORAGE, re.IGNORECASE),
    DiskEffect.DIRECTORY: re.compile(_STORAGE, re.IGNORECASE),
    DiskEffect.DAMAGE: re.compile(_DAMAGE, re.IGNORECASE),
    DiskEffect.UNFLUSHED: re.compile(""),
    DiskEffect.EVERYTHING: re.compile(""),
}
"""By the effect of a fault on a disk that may end a node, what its last words match then. All effects but damage, which
lasts, apply until the fault is proven to be healed."""

_HALTING = re.compile("Halting: ([^|]*)")
"""Matches the reason in the last words of a node of the built-in cluster."""

_UNCAUGHT = re.compile(r"(?<!common\.errors\.)\b\w*(?:Error|Exception)\b")
"""Matches the error that ended a node; not an error of Kafka's protocol, which a request was answered with."""

_LOST_CONTACT = re.compile(
    "timed out waiting for connection|unable to register with the controller quorum|NodeExists|"
    "fatal error while waiting for the controller to acknowledge that we are caught up.*CancellationException",
    re.IGNORECASE,
)
"""Matches the last words of a real broker that gave up as it started. Those of 4.3, the last ones, say that it has
cancelled the wait, for the time to register was over."""

_START_NS = 120_000_000_000
"""For how long a broker waits for its controller at the most, until it gives up."""

_MAY_NOT_CUT = re.compile("log truncation .*is not allowed")


def conclude(configured: Configured, journal: FaultJournal, runner: RunnerReport) -> Iterator[Conclusion]:
    """Every breach in one run."""
    for number, ending in enumerate(runner.endings):
        if not ending["blames"]:
            known = {name: ending[name] for name in ("node", "incarnation", "time_ns")}
            finding = configured.finding(
                "node-exit", NOWHERE, row=number, excuse=_excuse(configured, journal, ending), **known
            )
            yield Conclusion(finding, f"{_sentence(ending)}: {ending['said'].rstrip('.')}.", ())


def blamed(configured: Configured, journal: FaultJournal, runner: RunnerReport) -> Iterator[str]:
    """One sentence for each life of a node that its environment ended."""
    for ending in runner.endings:
        if ending["blames"] and _excuse(configured, journal, ending) is None:
            yield f"{_sentence(ending)}, and {ending['blames']}: its environment is to blame."


def _excuse(configured: Configured, journal: FaultJournal, ending: Mapping[str, Any]) -> Excuse | None:
    if any(_explains(configured, fault, ending) for fault in journal.excusing):
        return "harmed"
    may_not = _MAY_NOT_CUT.search(ending["said"]) and configured.guarantees.get("unclean_election") is not True
    return "exits" if may_not and not since(configured.generation, "2.1") else None


def _explains(configured: Configured, fault: Row, ending: Mapping[str, Any]) -> bool:
    at_ns, began_ns, healed_ns = ending["time_ns"], fault["injected_ns"], fault["heal_proven_ns"]
    node, disk = node_name(NodeId(ending["node"])), traits_of(fault["kind"]).disk
    if _LOST_CONTACT.search(ending["said"]) and in_force(began_ns, healed_ns, at_ns - _START_NS, at_ns):
        return _may_keep_out(configured, fault, node)
    if node not in fault["nodes"] or disk not in _HARMFUL or not _fits(ending["said"], _HARMFUL[disk]):
        return False
    return in_force(began_ns, None if disk is DiskEffect.DAMAGE else healed_ns, at_ns, at_ns)


def _fits(last_words: str, words: re.Pattern[str]) -> bool:
    """Whether a node's last words match, or give no reason."""
    halting = _HALTING.search(last_words)
    if halting is not None:
        return words.search(halting[1]) is not None
    return words.search(last_words) is not None or _UNCAUGHT.search(last_words) is None


def _may_keep_out(configured: Configured, fault: Row, node: str) -> bool:
    """Whether a fault can keep a node from its controller."""
    among = {name for name in ends_of(fault) if name == node or _may_control(configured, name)}
    links = links_of(fault)
    if links is not None:
        return any(among.issuperset(link) for link in links)
    # A step of a clock may stop a controller's own timer (its follower then waits for a leader that is gone), but keeps
    # no broker out by itself: that takes a fault which takes the leader.
    return not traits_of(fault["kind"]).moves_clock and bool(among)


def _may_control(configured: Configured, name: str) -> bool:
    """Whether the name is a controller's, or a broker's where brokers may be the controllers."""
    combined = configured.wanted is None or configured.wanted.combined
    return name.startswith(CONTROLLER) or (combined and is_broker(name))


def _sentence(ending: Mapping[str, Any]) -> str:
    node, status = node_name(NodeId(ending["node"])), ending["status"]
    how = f"with exit status {status}" if status >= 0 else f"by signal {-status}"
    return f"Node {node} ended {how}, in its life {ending['incarnation']}, and nothing had ordered it to"
