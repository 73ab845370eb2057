"""Whatever peers send: the core answers or ignores it, and none of its own invariants breaks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.error_codes import ErrorCode
from harness.model import NodeId, TopicPartition
from harness.replication.controller import Controller
from harness.replication.controller_messages import (
    ControllerEvent,
    ControllerStarted,
    ElectionRequested,
    HeartbeatReceived,
    IsrChangeRequested,
    Persist,
    ProducerIdsRequested,
    RegistrationRequested,
    TopicCreationRequested,
)
from harness.replication.knobs import GENERATIONS, Knobs
from harness.replication.log_state import StoredLog
from harness.replication.messages import (
    AnswerDeleteRecords,
    AnswerFetch,
    AnswerProduce,
    Append,
    Appended,
    AppendFailed,
    BatchSpan,
    DeleteRecordsRequested,
    EpochEnd,
    EpochEndAnswered,
    EpochEntry,
    FetchAnswered,
    FetchReceived,
    IsrAnswered,
    LogStartedAt,
    LogStartRaised,
    PartitionStateChanged,
    ProduceExpired,
    ProduceRequested,
    ProducerStamp,
    RaiseLogStart,
    ReplicaEffect,
    ReplicaEvent,
    RetentionReached,
    StartLogAt,
    Tick,
    Truncate,
    Truncated,
)
from harness.replication.replica import Replica, ReplicaConfig

small = st.integers(-2, 6)
nodes = st.integers(-1, 3).map(NodeId)
several = st.lists(nodes, max_size=4).map(tuple)
times = st.integers(0, 10**10)
errors = st.sampled_from(ErrorCode)
tokens = st.integers(0, 5)
stamps = st.none() | st.builds(ProducerStamp, small, small, small)
spans = st.lists(st.builds(BatchSpan, small, small, small, stamps), max_size=3).map(tuple)

events = st.one_of(
    st.builds(PartitionStateChanged, nodes, small, several, several, small, times, small),
    st.builds(
        ProduceRequested, tokens, st.integers(-2, 2), st.lists(small, max_size=2).map(tuple), st.none(), times, stamps
    ),
    st.builds(ProduceExpired, tokens),
    st.builds(FetchReceived, tokens, nodes, small, small, small, times, small, small),
    st.builds(
        FetchAnswered, nodes, small, small, errors, small, small, small,
        st.none() | st.builds(EpochEnd, small, small), spans, st.none(), times,
    ),
    st.builds(EpochEndAnswered, nodes, small, small, errors, st.builds(EpochEnd, small, small), times),
    st.builds(DeleteRecordsRequested, tokens, small, times),
    st.builds(RetentionReached, small, times),
    st.builds(IsrAnswered, errors, several, small, small),
    st.builds(Tick, times),
)  # fmt: skip


RULES = [
    *GENERATIONS.values(),
    *(replace(GENERATIONS["4.1"], truncation=rule) for rule in ("leader_hw", "hw_after_first_fetch")),
    replace(GENERATIONS["4.1"], hw_advance="after_followers", hw_in_fetch_response="post_update"),
    replace(GENERATIONS["0.10"], out_of_range="wipe", spurious_out_of_range=True, hw_waits_for="isr"),
    replace(GENERATIONS["4.1"], diverging_fetch_is_progress=True, hw_from_diverging=True, empty_isr_retry=True),
    replace(GENERATIONS["2.8"], stale_truncation_applied=True, isr_update="naive", controller_epoch_fencing=False),
]


class Driver:
    """A replica with the plainest of storages."""

    def __init__(self, knobs: Knobs, *, unclean: bool) -> None:
        self.replica = Replica(
            NodeId(1),
            TopicPartition("ledger", 0),
            knobs,
            ReplicaConfig(
                min_insync_replicas=2,
                replica_lag_time_max_ms=2_000,
                unclean_leader_election_enable=unclean,
            ),
            StoredLog(
                log_start_offset=1,
                log_end_offset=3,
                epoch_entries=[EpochEntry(0, 1), EpochEntry(1, 3)],
                high_watermark=7,
            ),
        )
        self.asked: list[object] = []
        self.answered: list[object] = []

    def handle(self, event: ReplicaEvent, *, fail: bool) -> None:
        for effect in self.replica.handle(event):
            self._perform(effect, fail=fail)

    def _perform(self, effect: ReplicaEffect, *, fail: bool) -> None:
        match effect:
            case Append():
                self.handle(AppendFailed(28) if fail else Appended(0), fail=fail)
            case Truncate(to_offset):
                start = self.replica.log_start_offset
                self.handle(AppendFailed(28) if fail else Truncated(max(start, to_offset - 1)), fail=fail)
            case RaiseLogStart(to_offset):
                self.handle(AppendFailed(28) if fail else LogStartRaised(to_offset), fail=fail)
            case StartLogAt(offset):
                self.handle(AppendFailed(28) if fail else LogStartedAt(offset), fail=fail)
            case AnswerProduce(token) | AnswerFetch(token) | AnswerDeleteRecords(token):
                self.answered.append(token)
            case _:
                pass


@settings(max_examples=300)
@given(st.sampled_from(RULES), st.booleans(), st.lists(st.tuples(events, st.sampled_from([False] * 9 + [True]))))
def test_a_replica_survives_whatever_its_peers_say(
    knobs: Knobs, unclean: bool, said: list[tuple[ReplicaEvent, bool]]
) -> None:
    driver = Driver(knobs, unclean=unclean)
    for event, fail in said:
        if isinstance(event, ProduceRequested | FetchReceived | DeleteRecordsRequested):
            driver.asked.append(event.token)
        driver.handle(event, fail=fail)
        wanted = driver.replica.next_request()
        assert wanted is None or wanted.leader == driver.replica.leader
    deposed = PartitionStateChanged(NodeId(2), 100, (NodeId(2),), (NodeId(1), NodeId(2)), 100, 10**10, 100)
    driver.handle(deposed, fail=False)
    assert sorted(map(str, driver.asked)) == sorted(map(str, driver.answered))


partitions = st.builds(TopicPartition, st.sampled_from(["ledger", "x", ""]), st.integers(-1, 2))
epochs = st.integers(-1, 4)
commands = st.one_of(
    st.builds(ControllerStarted, times),
    st.builds(RegistrationRequested, tokens, nodes, st.sampled_from("abc"), st.just("h"), st.just(1), times, epochs),
    st.builds(HeartbeatReceived, tokens, nodes, epochs, times),
    st.builds(
        TopicCreationRequested, tokens, st.sampled_from(["ledger", "x", "", "a/b", "." * 300]),
        epochs, epochs, st.none() | st.lists(several, max_size=3).map(tuple),
    ),
    st.builds(
        IsrChangeRequested, tokens, nodes, epochs, partitions, epochs, epochs, several,
        st.lists(epochs, max_size=4).map(tuple),
    ),
    st.builds(ElectionRequested, tokens, partitions, st.none() | nodes, st.booleans(), times),
    st.builds(ProducerIdsRequested, tokens, nodes, epochs),
    st.builds(Tick, times),
)  # fmt: skip


@settings(max_examples=300)
@given(st.sampled_from(RULES), st.booleans(), st.lists(commands))
def test_a_controller_survives_whatever_brokers_say(knobs: Knobs, unclean: bool, said: list[ControllerEvent]) -> None:
    def born(state: Mapping[str, Any] | None) -> Controller:
        return Controller(1_500, state, knobs=knobs, min_insync_replicas=2, unclean_leader_election_enable=unclean)

    controller = born(None)
    controller.handle(ControllerStarted(0))
    for command in said:
        before = controller.to_state()
        effects = controller.handle(command)
        changed = controller.to_state() != before
        assert changed == (bool(effects) and isinstance(effects[0], Persist)), "every change is persisted first"
        assert sum(isinstance(effect, Persist) for effect in effects) == changed
        assert born(controller.to_state()).to_state() == controller.to_state()
        if changed:
            assert cast("Persist", effects[0]).snapshot == controller.to_state()
