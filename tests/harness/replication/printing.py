"""How a story reads: its commands' words, and what nodes do."""

from __future__ import annotations

from harness.model import NO_LEADER, NodeId, TopicPartition
from harness.replication.controller_messages import (
    AnswerElection,
    AnswerHeartbeat,
    AnswerIsrChange,
    AnswerPlacement,
    AnswerProducerIds,
    AnswerRegistration,
    AnswerTopicChange,
    AnswerTopicCreation,
    ControllerEffect,
    Elected,
    IsrChanged,
    PartitionState,
    Persist,
    SendDeletions,
    SendMetadata,
    SendPartitionStates,
    SessionChanged,
)
from harness.replication.messages import (
    AnswerDeleteRecords,
    AnswerFetch,
    AnswerProduce,
    Append,
    CheckpointEpochs,
    HighWatermarkAdvanced,
    NextEpochLookup,
    NextFetch,
    ProposeIsr,
    RaiseLogStart,
    ReplicaEffect,
    ReplicaFailed,
    StartLogAt,
    Truncate,
)
from tests.harness.replication.nodes import Produced


def parse_options(words: list[str]) -> tuple[list[str], dict[str, str]]:
    options = dict(word.split("=", 1) for word in words if "=" in word)
    return [word for word in words if "=" not in word], options


def print_nodes(nodes: tuple[NodeId, ...]) -> str:
    return ",".join(map(str, nodes))


def parse_values(name: str) -> list[str]:
    stem, _, count = name.partition("*")
    return [f"{stem}{number}" for number in range(int(count))] if count else [name]


def parse_nodes(nodes: str) -> tuple[NodeId, ...]:
    return tuple(NodeId(int(node)) for node in nodes.split(",") if node)


def print_request(wanted: NextFetch | NextEpochLookup | None) -> str:
    match wanted:
        case None:
            return "nothing to fetch"
        case NextEpochLookup(_, _, requested_epoch):
            return f"look up epoch {requested_epoch}"
        case NextFetch(_, _, fetch_offset):
            return f"fetch {fetch_offset}"


def print_replica_effect(effect: ReplicaEffect | ControllerEffect) -> str:  # noqa: C901, PLR0911
    match effect:
        case Append(payload, spans):
            batches = zip(spans, payload, strict=True)  # type: ignore[call-overload]
            return "append " + " ".join(
                f"[{s.base_offset},{s.end_offset})@{s.leader_epoch} {' '.join(v)}" for s, v in batches
            )
        case AnswerProduce(Produced() as produced, error, base_offset):
            return f"answer produce {' '.join(produced.values)}: {error.name} {base_offset}"
        case AnswerFetch(token, error, high_watermark, _, _, diverging):
            parts = f" diverging=({diverging.leader_epoch},{diverging.end_offset})" if diverging else ""
            return f"answer fetch of {token[0]}: {error.name} hw={high_watermark}{parts}"  # type: ignore[index]
        case Truncate(to_offset, reason):
            return f"truncate to {to_offset} ({reason})"
        case RaiseLogStart(to_offset, reason):
            return f"log starts at {to_offset} ({reason})"
        case StartLogAt(offset, reason):
            return f"empty the log, start at {offset} ({reason})"
        case AnswerDeleteRecords(_, error, low_watermark):
            return f"answer delete records: {error.name} {low_watermark}"
        case CheckpointEpochs(entries):
            return f"epochs {' '.join(f'{e.leader_epoch}:{e.start_offset}' for e in entries)}"
        case HighWatermarkAdvanced(high_watermark):
            return f"high watermark {high_watermark}"
        case ProposeIsr(isr, _, partition_epoch):
            return f"propose isr {print_nodes(isr)} over version {partition_epoch}"
        case ReplicaFailed(errno, reason):
            return f"failed errno={errno} {reason}".rstrip()
        case _:
            return repr(effect)


def print_state(state: PartitionState) -> str:
    elr = f" elr={print_nodes(state.elr)}" if state.elr else ""
    known = f" last_known_elr={print_nodes(state.last_known_elr)}" if state.last_known_elr else ""
    last = f" last_known_leader={state.last_known_leader}" if state.last_known_leader != NO_LEADER else ""
    return (
        f"{state.topic_partition} leader={state.leader} epoch={state.leader_epoch} "
        f"version={state.partition_epoch} isr={print_nodes(state.isr)} replicas={print_nodes(state.replicas)}"
        f"{elr}{known}{last}"
    )


def print_decision(effect: ReplicaEffect | ControllerEffect) -> str:
    match effect:
        case Elected(state, clean):
            return f"elected{'' if clean else ' uncleanly'} {print_state(state)}"
        case IsrChanged(state):
            return f"isr {print_state(state)}"
        case SessionChanged(broker, change):
            return f"broker {broker} {change}"
        case AnswerIsrChange(_, error) | AnswerElection(_, error) if error.name != "NONE":
            return f"refused: {error.name}"
        case _:
            return ""


def parse_partition(name: str) -> TopicPartition:
    topic, number = name.rsplit("-", 1)
    return TopicPartition(topic, int(number))


def print_controller_effect(effect: ControllerEffect) -> str:  # noqa: C901, PLR0911, PLR0912 (one case per effect)
    match effect:
        case Persist(snapshot):
            return f"persist controller_epoch={snapshot['controller_epoch']}"
        case SendPartitionStates(broker, controller_epoch, partitions):
            states = "".join(f"\n    {print_state(state)}" for state in partitions)
            return f"send states to {broker} as controller {controller_epoch}{states}"
        case SendMetadata(brokers, _, live, partitions):
            names = print_nodes(tuple(endpoint.broker for endpoint in live))
            return f"send metadata to {print_nodes(brokers)}: brokers {names}, {len(partitions)} partitions"
        case AnswerRegistration(_, error, broker_epoch):
            return f"answer registration: {error.name} broker_epoch={broker_epoch}"
        case AnswerHeartbeat(_, error):
            return f"answer heartbeat: {error.name}"
        case AnswerTopicCreation(_, error, message, partitions, factor):
            return f"answer creation: {error.name} partitions={partitions} factor={factor} {message}".rstrip()
        case SendDeletions(broker, controller_epoch, replicas):
            names = ", ".join(f"{one.topic_partition}#{one.incarnation}" for one in replicas)
            return f"send deletions to {broker} as controller {controller_epoch}: {names}"
        case AnswerTopicChange(_, error, message):
            return f"answer change: {error.name} {message}".rstrip()
        case AnswerIsrChange(_, error, state):
            return f"answer isr: {error.name} {print_state(state) if state else ''}".rstrip()
        case AnswerElection(_, error, state):
            return f"answer election: {error.name} {print_state(state) if state else ''}".rstrip()
        case AnswerProducerIds(_, error, first, count):
            return f"answer producer ids: {error.name} {first}+{count}"
        case AnswerPlacement(_, error):
            return f"answer placement: {error.name}"
        case Elected(state, clean, from_isr, previous, _, cause):
            return f"elected {print_state(state)} clean={clean} from_isr={from_isr} previous={previous} ({cause})"
        case IsrChanged(state, previous_isr, _, cause):
            return f"isr {print_state(state)} previous={print_nodes(previous_isr)} ({cause})"
        case SessionChanged(broker, change, broker_epoch):
            return f"broker {broker} {change} broker_epoch={broker_epoch}"
