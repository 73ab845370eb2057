"""When a cluster that does not come to rest is stuck, and when its environment is to blame."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pytest

from checkers.verdicts.memory import decided
from checkers.views.recovery import broken_unrest
from harness import scenario
from harness.checker import Verdict
from harness.clock import SystemClock
from harness.controls import Processes
from harness.errors import EnvironmentFault, InvalidRun, NoSuchProbe
from harness.final_read import Unread
from harness.model import NO_LEADER, Link, NodeId, TopicPartition
from harness.orders import SendOrder, Sent
from harness.runner import plan
from harness.runner.rehearsal import rehearse
from harness.runner.service import Sends, reads, takeovers
from harness.runner.settle import require_unblamed
from harness.runner.unrest import Look, RecoveryAspect, Unrest, observed, probed, rest
from harness.target import ClusterView, Receipt, ReplicaView
from harness.testing.scripted_clients import Scripted, ScriptedClient
from harness.testing.scripted_target import ScriptedTarget, cluster_view, partition_view

LEDGER = TopicPartition("ledger", 0)
STILL_S = 10.0
WHOLE = partition_view(0, [0, 1, 2])
SHRUNK = replace(WHOLE, isr=(NodeId(0), NodeId(2)))


class Hurried(SystemClock):
    """Its time passes while it is waited on alone, and at once."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0

    def monotonic_ns(self) -> int:
        return round(self.now_s * 1e9)

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds


@dataclass
class Cluster(ScriptedTarget):
    """Broker 1 is out of the ISR. ``looked`` is called with every look."""

    looked: Callable[[], None] = lambda: None
    clock: Hurried = field(default_factory=Hurried)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.shown = cluster_view(3, {LEDGER: SHRUNK})
        for node in range(3):
            self.at(node, 100)

    def replica(self, node: str, partition: TopicPartition) -> ReplicaView | None:
        if not node.isdecimal():
            raise EnvironmentFault(f"there is no node {node!r}.")
        return super().replica(node, partition)

    def at(self, node: int, log_end: int) -> None:
        role = "leader" if node == 0 else "follower"
        self.replicas[str(node), LEDGER] = ReplicaView(role, NodeId(0), 0, log_end, log_end, 0, (), {})

    def view(self) -> ClusterView:
        self.looked()
        return super().view()


def watched(cluster: Cluster, of: RecoveryAspect, look: Callable[[], Look]) -> Unrest | None:
    unrest = observed(cluster, of, look, STILL_S, cluster.clock)
    return None if unrest is None else probed(cluster, unrest)


def look_at(cluster: Cluster) -> Unrest | None:
    return watched(cluster, "rest", partial(rest, cluster, [LEDGER]))


def test_a_cluster_that_stands_still_while_all_around_it_is_well_is_stuck() -> None:
    seen = look_at(Cluster())
    assert seen is not None
    assert (seen.missing, seen.blamed) == (("ledger-0: the ISR is [0, 2], not [0, 1, 2]",), ())
    assert seen.still_s >= STILL_S
    assert seen.looks >= 20
    assert "1->2: a probe got through" in seen.probes
    assert seen.to_json([LEDGER])["missing"] == {"ledger-0": ["the ISR is [0, 2], not [0, 1, 2]"]}


def test_a_partition_that_nobody_leads_is_looked_at_like_any_other() -> None:
    cluster = Cluster()
    cluster.shown = cluster_view(3, {LEDGER: replace(WHOLE, leader=NO_LEADER)})
    seen = look_at(cluster)
    assert seen is not None
    assert seen.missing == ("ledger-0: there is no leader",)


def test_the_slowest_looks_that_count_are_as_many_as_the_checkers_ask_for() -> None:
    cluster = Cluster()
    cluster.looked = lambda: cluster.clock.sleep(STILL_S / 41)  # twice a look: almost as late as it may be
    seen = look_at(cluster)
    assert seen is not None
    assert not seen.blamed
    assert not broken_unrest(seen.to_json([LEDGER]))


def test_a_cluster_that_comes_to_rest_at_last_is_not_stuck() -> None:
    cluster = Cluster()

    def recover() -> None:
        if cluster.clock.now_s > STILL_S / 2:
            cluster.shown = cluster_view(3, {LEDGER: WHOLE})

    cluster.looked = recover
    assert look_at(cluster) is None


def test_a_replica_that_is_still_catching_up_has_not_stopped() -> None:
    cluster = Cluster()
    cluster.looked = lambda: cluster.at(1, round(cluster.clock.now_s))
    seen = look_at(cluster)
    assert seen is not None
    assert seen.blamed == ("after 100 s it was still getting nearer",)


def test_a_cluster_that_goes_to_and_fro_gets_no_nearer() -> None:
    cluster = Cluster()
    cluster.looked = lambda: cluster.at(1, 50 + round(cluster.clock.now_s) % 3)
    seen = look_at(cluster)
    assert seen is not None
    assert not seen.blamed


def test_a_machine_that_keeps_the_harness_waiting_proves_nothing_against_a_cluster() -> None:
    cluster = Cluster()
    cluster.looked = lambda: cluster.clock.sleep(STILL_S / 5)
    seen = look_at(cluster)
    assert seen is not None
    assert "a look took" in seen.blamed[0]


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda cluster: cluster.lossy.add(Link("2", "1")), "2->1: a probe got lost"),
        (lambda cluster: cluster.kill("1"), "node 1 is dead"),
        (lambda cluster: cluster.pause("1"), "node 1 is stopped"),
        (lambda cluster: cluster.limit_disk("1", 0), "the disk of node 1 takes no writes"),
        (lambda cluster: cluster.offset_clock("1", -60_000), "node 1: its clock is off by -60000 ms"),
    ],
)
def test_what_a_probe_blames_is_named(harm: Callable[[Cluster], None], words: str) -> None:
    cluster = Cluster()
    harm(cluster)
    seen = look_at(cluster)
    assert seen is not None
    assert words in seen.blamed


@dataclass
class Failing(Cluster):
    """Each probe of a disk, a clock or a link raises ``fails``."""

    fails: type[EnvironmentFault] = EnvironmentFault

    def takes_writes(self, node: str) -> Receipt:
        raise self.fails(f"node {node} gives no answer.")

    def clock_offset_ms(self, node: str) -> int:
        raise self.fails(f"node {node} tells no time.")

    def carries(self, link: Link) -> Receipt:
        raise self.fails(f"{link} cannot be probed.")


@dataclass
class Incapable(Failing):
    """Neither disks, nor clocks, nor links are anything that this target can do something to."""

    controls = frozenset({Processes})


@pytest.mark.parametrize("cluster", [Incapable(), Failing(fails=NoSuchProbe)], ids=["of no node", "of some nodes"])
def test_a_probe_that_the_target_does_not_have_blames_nothing(cluster: Cluster) -> None:
    seen = look_at(cluster)
    assert seen is not None
    assert not seen.blamed
    assert seen.probes == tuple(f"node {node} answers" for node in cluster.nodes())


@pytest.mark.parametrize(
    "words",
    [
        "the probe of the disk of node 1 failed: node 1 gives no answer",
        "the probe of the clock of node 1 failed: node 1 tells no time",
        "the probe of the link 1->2 failed: 1->2 cannot be probed",
    ],
)
def test_a_probe_that_fails_proves_nothing_against_a_cluster(words: str) -> None:
    seen = look_at(Failing())
    assert seen is not None
    assert words in seen.blamed
    assert seen.probes == tuple(f"node {node} answers" for node in Failing().nodes())
    with pytest.raises(InvalidRun, match="the probe of the disk of node 0 failed: node 0 gives no answer"):
        require_unblamed("the cluster did not settle", seen.missing, seen.blamed)


def test_a_probe_of_a_process_that_fails_proves_nothing_against_a_cluster() -> None:
    class Unseen(Cluster):
        def is_paused(self, node: str) -> Receipt:
            raise EnvironmentFault(f"the state of node {node} cannot be read.")

    cluster = Unseen(exited={"1"})
    seen = look_at(cluster)
    assert seen is not None
    assert seen.blamed == ("the probe of the process of node 1 failed: the state of node 1 cannot be read",)


SCENARIO = """\
id: away-and-back
title: A follower is killed and comes back
source: a test
topics: [{name: ledger}]
workload: {name: unique_sends}
settle_s: 5
schedule:
  - send: {per_partition: 3}
  - inject: {fault: kill, node: 2, as: gone}
  - until: {isr: [0, 1]}
  - send: {per_partition: 3}
  - heal: gone
"""


def verdict_on(text: str, bug: str = "") -> tuple[str, list[str]]:
    """The outcome of a run in virtual time, and the kinds that nothing excuses."""
    rehearsal = rehearse(plan(scenario.parse(text), "simulated", seed=1, overrides={"replication.bugs": bug}))
    archive = rehearsal.archive
    tables = (archive.history, archive.tables["timeline"], archive.tables["replica_logs"])
    verdict = decided(rehearsal.manifest, tables, archive.tables["faults"])
    return str(verdict.outcome), [one.kind for one in verdict.anomalies if one.verdict is Verdict.VIOLATION]


@pytest.mark.parametrize("more", ["", "  - until: {isr: [0, 1, 2]}\n"], ids=["at the end", "in the schedule"])
def test_a_leader_that_takes_no_follower_back_is_detected_wherever_the_run_waits_for_it(more: str) -> None:
    assert verdict_on(SCENARIO + more, "isr_never_grown") == ("violation", ["stuck"])
    assert verdict_on(SCENARIO + more) == ("pass", [])


LOADED = """\
id: loaded
title: A leader dies under load
source: a test
topics: [{name: ledger}]
workload: {name: unique_sends, rate: 40, producers: 2, consumers: 1}
settle_s: 5
schedule:
  - until: {polled: 15}
  - inject: {fault: kill, node: leader, topic: ledger, partition: 0, as: gone}
  - wait_s: 3
  - heal: gone
"""


@pytest.mark.parametrize("bug", ["fetch_stops_short", "acks_all_unanswered"])
def test_a_cluster_at_rest_that_does_not_serve_its_clients_is_stuck(bug: str) -> None:
    assert verdict_on(LOADED, bug) == ("violation", ["stuck"])
    assert verdict_on(LOADED) == ("pass", [])


def reading(cluster: Cluster, client: ScriptedClient) -> Unrest | None:
    return watched(cluster, "reads", partial(reads, client))


def test_a_final_read_that_stands_still_names_where_it_stands() -> None:
    other = TopicPartition("ledger", 1)
    unread = {LEDGER: Unread(begun=True, position=40, end=731), other: Unread()}
    seen = reading(Cluster(), ScriptedClient(reading=lambda: unread))
    assert seen is not None
    assert (seen.of, seen.blamed) == ("reads", ())
    told = seen.to_json([LEDGER, other])
    assert told["missing"] == {"ledger-0": ["the final read stands at offset 40, and the high watermark is 731"]}
    assert not broken_unrest(told)


@pytest.mark.parametrize(
    ("unread", "words"),
    [
        (Unread(begun=True), "no leader says where the log begins and ends"),
        (Unread(begun=True, position=3, end=9, error="_BAD_MSG"),
         "the final read stands at offset 3, where _BAD_MSG ended it, and the high watermark is 9"),
    ],
)  # fmt: skip
def test_what_keeps_a_final_read_from_its_end_is_named(unread: Unread, words: str) -> None:
    assert reads(ScriptedClient(reading=lambda: {LEDGER: unread})).missing == [f"ledger-0: {words}"]


def test_a_final_read_that_goes_on_is_not_stuck() -> None:
    cluster = Cluster()
    client = ScriptedClient(reading=lambda: {LEDGER: Unread(begun=True, position=round(cluster.clock.now_s), end=731)})
    seen = reading(cluster, client)
    assert seen is not None
    assert seen.blamed == ("after 100 s it was still getting nearer",)


def test_a_final_read_that_comes_to_its_end_at_last_is_not_stuck() -> None:
    cluster = Cluster()
    client = ScriptedClient(
        reading=lambda: {LEDGER: Unread(begun=True, position=40, end=41)} if cluster.clock.now_s < STILL_S / 2 else {}
    )
    assert reading(cluster, client) is None


def test_a_final_read_that_waits_for_a_broken_link_proves_nothing_against_a_cluster() -> None:
    cluster = Cluster()
    cluster.lossy.add(Link("2", "1"))
    seen = reading(cluster, ScriptedClient(reading=lambda: {LEDGER: Unread(begun=True, position=40, end=41)}))
    assert seen is not None
    assert "2->1: a probe got lost" in seen.blamed


def test_a_group_whose_new_member_is_given_nothing_is_stuck() -> None:
    cluster = Cluster()
    look = partial(takeovers, lambda: {"g has given it to no new member": {LEDGER}})
    seen = watched(cluster, "takeovers", look)
    assert seen is not None
    told = seen.to_json([LEDGER])
    assert (told["of"], told["missing"]) == ("takeovers", {"ledger-0": ["g has given it to no new member"]})
    assert not broken_unrest(told)


def test_a_group_whose_new_member_is_given_its_partitions_at_last_is_not_stuck() -> None:
    cluster = Cluster()
    look = partial(
        takeovers, lambda: {"g has given it to no new member": {LEDGER}} if cluster.clock.now_s < STILL_S / 2 else {}
    )
    assert watched(cluster, "takeovers", look) is None


def sending(cluster: Cluster, client: ScriptedClient, partitions: Sequence[TopicPartition]) -> Unrest | None:
    sends = Sends(client, partitions, timeout_s=1.0, idempotent=False)
    return watched(cluster, "sends", sends.look)


def test_records_are_sent_until_one_is_acknowledged() -> None:
    cluster = Cluster()

    class Recovering(ScriptedClient):
        def send(self, order: SendOrder) -> Scripted[Sequence[Sent]]:
            self.refuses = int(cluster.clock.now_s < STILL_S / 2)
            return super().send(order)

    client = Recovering()
    assert sending(cluster, client, [LEDGER]) is None
    assert 5 < len(client.orders) < 15
    assert {(order.count, order.acks) for order in client.orders} == {(1, -1)}


def test_a_partition_that_acknowledges_nothing_is_stuck_and_the_others_are_not() -> None:
    cluster, others = Cluster(), [TopicPartition("ledger", number) for number in range(1, 20)]

    class Refusing(ScriptedClient):
        def send(self, order: SendOrder) -> Scripted[Sequence[Sent]]:
            self.refuses = int(order.partitions == (LEDGER,))
            return super().send(order)

    seen = sending(cluster, Refusing(), [LEDGER, *others])
    assert seen is not None
    (said,) = seen.to_json([LEDGER, *others])["missing"]["ledger-0"]
    assert len(seen.missing) == 1
    assert "sends with acks=all, and none was acknowledged (the last: NOT_ENOUGH_REPLICAS)" in said
