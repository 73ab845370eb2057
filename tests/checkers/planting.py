"""Anomalies that random steps and falsifications seldom make, planted on purpose."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

from harness.facts import OUT_OF_SEQUENCE, UNDESERVED
from tests.checkers.clients import Polled, Sent, commit, poll, transact
from tests.checkers.story import NODES, Row, Story


def tear_a_transaction(story: Story, rng: random.Random) -> None:
    """Half of a transaction of which nobody knows how it ended is there, and is read."""
    p = rng.choice(list(story.partitions))
    transact(story, Sent(p), Sent(p, append=False), result="info")
    poll(story, 20, [len(story.partitions[p].logs[story.partitions[p].leader]) - 1], p)


def skip_records(story: Story, rng: random.Random) -> None:
    """A consumer is taken past records, in one operation or between two."""
    for _ in range(3):
        story.send()
    end = len(story.partitions[0].logs[story.partitions[0].leader])
    if rng.random() < 0.3:
        poll(story, 21, [end - 3, end - 1])
    else:
        poll(story, 22, [end - 3])
        poll(story, 22, [end - 1])


def commit_what_is_not_there(story: Story, rng: random.Random) -> None:
    """A group commits an offset that no log reaches."""
    commit(story, 1000 + rng.randrange(3))


def read_in_a_circle(story: Story, rng: random.Random) -> None:
    """Two transactions that are under way at once read each other's records."""
    p = rng.choice(list(story.partitions))
    start, first = len(story.history), len(story.partitions[p].logs[story.partitions[p].leader])
    transact(story, Sent(p), Polled([first], p), process=11)
    transact(story, Sent(p), Polled([first], p), process=12)
    rows = story.history[start:]
    for mine, theirs in ((11, 12), (12, 11)):
        sent = next(r for r in rows if (r["process"], r["f"], r["type"]) == (theirs, "send", "ok"))
        read = next((r for r in rows if (r["process"], r["f"], r["type"]) == (mine, "poll", "ok")), None)
        if read is not None and read["topic"] is not None:
            read |= {name: sent[name] for name in ("offset", "value")}
    told = [*(r for r in rows if r["type"] == "invoke"), *(r for r in rows if r["type"] != "invoke")]
    times = [row["time_ns"] for row in rows]
    for at, (row, time_ns) in enumerate(zip(told, times, strict=True)):
        row |= {"index": start + at, "time_ns": time_ns}
    story.history[start:] = told


def cut_a_candidate(story: Story, rng: random.Random) -> None:
    """The controller counts on a replica that has just cut what is committed, and everybody hears of it."""
    part = story.partitions[0]
    story.send(copies=[node for node in NODES if node != part.leader])
    node = rng.choice([node for node in NODES if node != part.leader])
    log = list(part.logs[node])
    story.cut(node, max(0, len(log) - 1))
    decided = {"leader": part.leader, "leader_epoch": part.epoch, "partition_epoch": 3 * part.epoch + 1}
    story.say(100, "isr", 0, {"controller_epoch": 1}, isr=sorted({part.leader, node}), **decided)
    before, part.isr = part.isr, {part.leader, node}
    for other in NODES:
        story.state(other)
    part.isr = before
    if rng.random() < 0.7:
        part.logs[node] = log
        story.state(node)


def send_backwards(story: Story, rng: random.Random) -> None:
    """A transaction's later record is stored before its earlier one."""
    p = rng.choice(list(story.partitions))
    end = len(story.partitions[p].logs[story.partitions[p].leader])
    transact(story, Sent(p, offset=end + 1), Sent(p, offset=end))


def leave_room_for_a_marker(story: Story, rng: random.Random) -> None:
    """A transaction, and a record behind it that is none of the workload's."""
    p = rng.choice(list(story.partitions))
    transact(story, Sent(p), result=rng.choice(("ok", "ok", "info", "fail")))
    story.append(p, None, [node for node in NODES if node != story.partitions[p].leader])
    story.send(p)


def delete_too_much(story: Story, rng: random.Random) -> None:
    """A leader deletes what it has, committed or not."""
    part = story.partitions[0]
    story.send(result="info", copies=(), commit=rng.random() < 0.3)
    story.delete(len(part.logs[part.leader]), nodes=[part.leader])


def delete_while_it_is_read(story: Story, rng: random.Random) -> None:
    """A consumer is taken past records, some of which a leader deletes before, or after."""
    p = rng.choice(list(story.partitions))
    for _ in range(3):
        story.send(p)
    end = len(story.partitions[p].logs[story.partitions[p].leader])
    before, after = sorted(rng.randrange(end + 1) for _ in range(2))
    poll(story, 23, [max(0, end - 4)], p)
    if rng.random() < 0.5:
        story.delete(before, p)
    poll(story, 23, [end - 1], p)
    if rng.random() < 0.7:
        story.delete(after, p)


def throw_a_log_away(story: Story, rng: random.Random) -> None:
    """A follower's log begins later, for a good reason or none; the leader may have died; and the follower leads."""
    part = story.partitions[0]
    story.send()
    old, node = part.leader, rng.choice([node for node in NODES if node != part.leader])
    part.starts[node] = rng.randrange(1, len(part.logs[old]) + 1)
    said = {"from_offset": 0, "to_offset": part.starts[node], "reason": rng.choice(("leader", "leader", "retention"))}
    if rng.random() < 0.8:
        story.state(node, 0, "log_start")["detail"] = json.dumps(said)
    if rng.random() < 0.3:
        story.restart(rng.choice((old, node)))
    story.send(result="info")
    if rng.random() < 0.8:
        story.elect(node)
        story.delete(part.starts[node], nodes=[other for other in NODES if other != node])


def take_with_few_in_sync(story: Story, rng: random.Random) -> None:
    """A leader takes records with an ISR that may be too small for it, which may be waiting for them or not."""
    p = rng.choice(list(story.partitions))
    part = story.partitions[p]
    others = [node for node in NODES if node != part.leader]
    if rng.random() < 0.5:
        story.state(part.leader, p)
    part.isr = {part.leader, *rng.sample(others, rng.choice((0, 0, 0, 1)))}
    for _ in range(rng.randrange(4)):
        copies = rng.sample(others, rng.randrange(3))
        story.send(p, rng.choice((-1, -1, -1, 1)), rng.choice(("ok", "ok", "info")), copies=copies,
                   commit=rng.random() < 0.6)  # fmt: skip
    if rng.random() < 0.7:
        story.state(part.leader, p)
    part.isr = set(NODES)
    if rng.random() < 0.3:
        story.elect(rng.choice(others), p)
        story.send(p)


PLANTS: tuple[Callable[[Story, random.Random], None], ...] = (
    tear_a_transaction,
    skip_records,
    commit_what_is_not_there,
    read_in_a_circle,
    *[cut_a_candidate] * 2,
    send_backwards,
    leave_room_for_a_marker,
    *[delete_too_much] * 2,
    delete_while_it_is_read,
    throw_a_log_away,
    *[take_with_few_in_sync] * 2,
)
"""What may be planted before a story ends."""


def read_what_nobody_sent(story: Story, rng: random.Random) -> None:
    """A value that is nobody's."""
    reads = [row for row in story.history if row["f"] == "poll" and row["value"] is not None]
    for row in rng.sample(reads, min(1, len(reads))):
        row["value"] = 10_000 + rng.randrange(3)


def cross_bounds(story: Story, rng: random.Random) -> None:
    """A broker says that it has committed more than it has."""
    rows = [row for row in story.timeline if row["kind"] == "state"]
    row = rng.choice(rows)
    row["high_watermark"] = (row["log_end_offset"] or 0) + 1


def lead_together(story: Story, rng: random.Random) -> None:
    """A follower takes itself for the leader of its epoch."""
    rows = [row for row in story.timeline if (row["kind"], row["role"]) == ("state", "follower")]
    for row in rng.sample(rows, min(1, len(rows))):
        row["role"] = "leader"


def call_an_election_names(story: Story, rng: random.Random) -> None:
    """An election right after a decision is not what it is called."""
    epochs = [row["partition_epoch"] for row in story.timeline if row["partition_epoch"] is not None]
    epoch = max(epochs, default=0) + 10
    known: Row = {"leader": 0, "leader_epoch": 90, "isr": [0]}
    story.say(100, "isr", 0, {"controller_epoch": 1}, partition_epoch=epoch, **known)
    clean = rng.random() < 0.5
    leader: Row = {"leader": 1 if clean else 0, "leader_epoch": 91, "isr": [1 if clean else 0]}
    story.say(100, "election", 0, {"controller_epoch": 1, "clean": clean}, partition_epoch=epoch + 1, **leader)


def usurp(story: Story, rng: random.Random) -> None:
    """Somebody leads in an epoch that the controller may never have decided on."""
    rows = [row for row in story.timeline if (row["kind"], row["role"]) == ("state", "leader")]
    story.say(100, "isr", 0, {"controller_epoch": 1}, leader=0, leader_epoch=0, partition_epoch=0, isr=list(NODES))
    for row in rng.sample(rows, min(1, len(rows))):
        row["leader_epoch"] += rng.choice((0, 1, 60))
    if rng.random() < 0.3:
        story.incarnations[100], story.sequences[100] = 1, 0
        story.say(100, "started", None)


def forget_who_is_eligible(story: Story, rng: random.Random) -> None:
    """An ISR shrinks, and who leaves it may stay eligible or not, for a reason or none."""
    epochs = [row["partition_epoch"] for row in story.timeline if row["partition_epoch"] is not None]
    epoch = max(epochs, default=0) + 10
    known: Row = {"leader": 0, "leader_epoch": 95}
    story.say(100, "isr", 0, {"controller_epoch": 1}, partition_epoch=epoch, isr=[0, 1], **known)
    said: Row = {"controller_epoch": 1, "elr": rng.choice(([], [], [1]))}
    said |= {"cause": rng.choice(("an ISR change", "an ISR change", "broker 1 shut down uncleanly"))}
    story.say(100, "isr", 0, said, partition_epoch=epoch + 1, isr=[0], **known)


def fence_nobody(story: Story, rng: random.Random) -> None:
    """Records of a producer's older epoch lie behind those of a newer one."""
    for row in story.logs:
        row |= {"producer_id": 3, "producer_epoch": (row["offset"] + 1) % 2, "sequence": row["offset"] // 2}
    if rng.random() < 0.5:
        for row in story.logs:
            row["sequence"] = None if row["value"] is None else row["sequence"]


def leave_behind(story: Story, rng: random.Random) -> None:
    """Now and then a follower stands still, and its leader keeps it; a fault may have parted the two."""
    if rng.random() > 0.15:
        return
    part = story.partitions[0]
    others = [node for node in NODES if node != part.leader]
    behind, begun = rng.choice(others), {"injected_ns": story.now, "proven_ns": story.now}
    for _ in range(rng.randrange(4, 14)):
        story.send(result="info", copies=[node for node in others if node != behind], commit=False)
        story.now += rng.randrange(4) * 1_000_000
    if rng.random() < 0.3:
        nodes = rng.choice(([behind], [part.leader], [part.leader, behind]))
        story.fault("apart", nodes=sorted(map(str, nodes)), **begun)
    if rng.random() < 0.5:
        part.logs[behind] = list(part.logs[part.leader])
        story.state(behind)


def read_unfenced(story: Story, rng: random.Random) -> None:
    """Now and then a consumer names a leader epoch, mostly an older one than that of a record that it is given."""
    if rng.random() > 0.15:
        return
    part = story.partitions[0]
    story.elect(rng.choice([node for node in NODES if node != part.leader]))
    story.send()
    for row in story.poll(43, [len(part.logs[part.leader]) - 1]):
        row["current_leader_epoch"] = part.epoch - rng.choice((0, 1, 1))


def fall_back(story: Story, rng: random.Random) -> None:
    """Now and then a follower takes back what it had taken for committed; its leader may have begun a new life."""
    if rng.random() > 0.15:
        return
    part = story.partitions[0]
    node = rng.choice([node for node in NODES if node != part.leader])
    story.send(copies=[other for other in NODES if other != part.leader])
    if rng.random() < 0.3:
        story.restart(part.leader)
    mark, part.marks[node] = part.marks[node], rng.randrange(part.marks[node] + 1)
    story.state(node)
    part.marks[node] = mark
    story.state(node)


def overtake_what_was_read(story: Story, rng: random.Random) -> None:
    """Now and then a record is told a lower offset than one that was read before it was sent, or meanwhile."""
    if rng.random() > 0.15:
        return
    p = rng.choice(list(story.partitions))
    for _ in range(rng.randrange(1, 4)):
        story.send(p, result=rng.choice(("info", "info", "ok")), acks=rng.choice((-1, 1)), process=40)
    end = len(story.partitions[p].logs[story.partitions[p].leader])
    about: Row = {"process": 41, "op": next(story.ops), "f": "send", "topic": "ledger", "partition": p}
    about |= {"value": next(story.values), "acks": rng.choice((-1, -1, 1))}
    under_way = rng.random() < 0.3
    if under_way:
        story.row(**about, type="invoke")
    poll(story, 42, [end - 1], p, rng.choice(("ok", "info")), isolation=rng.choice((None, "read_uncommitted")))
    if rng.random() < 0.3:
        story.elect(rng.choice(NODES), p, clean=rng.random() < 0.5)
    if not under_way:
        story.row(**about, type="invoke")
    story.row(**about, type="ok", offset=max(0, end - rng.choice((0, 2, 2, 3))))


def give_up_and_send_again(story: Story, rng: random.Random) -> None:
    """Now and then a record is appended, seen or not, lost for a good reason or a bad one, and then sent again."""
    if rng.random() > 0.25:
        return
    part, value = story.partitions[0], next(story.values)
    about: Row = {"process": 0, "op": next(story.ops), "f": "send", "topic": "ledger", "partition": 0, "value": value}
    about |= {"acks": rng.choice((-1, -1, 1))}
    story.row(**about, type="invoke")
    at = len(part.logs[part.leader])
    others = [node for node in NODES if node != part.leader]
    story.append(0, value, rng.sample(others, rng.choice((0, 1, 2, 2))), commit=rng.random() < 0.7)
    if rng.random() < 0.8:
        story.poll(30, [at])
    _take_away(story, rng, max(0, at - rng.choice((0, 1, 1, 2))))
    again = len(part.logs[part.leader])
    story.append(0, value, [node for node in NODES if node != part.leader], commit=rng.random() < 0.8)
    story.row(**about, type="ok", offset=again)
    if rng.random() < 0.5:
        story.send()


def _take_away(story: Story, rng: random.Random, end: int) -> None:
    """What lies behind an offset is gone from some logs: a power loss took it, or they cut it off. Somebody leads."""
    part, nodes = story.partitions[0], rng.sample(NODES, rng.choice((1, 2, 3, 3)))
    if rng.random() < 0.5:
        times = {"injected_ns": story.now + 1, "healed_ns": story.now + 3, "heal_proven_ns": story.now + 4}
        story.fault("dark", kind="power_loss", nodes=sorted(map(str, nodes)), **times)
        for node in nodes:
            del part.logs[node][end:]
            part.marks[node] = min(part.marks[node], end)
            story.restart(node)
    else:
        for node in nodes:
            story.cut(node, end)
    story.elect(rng.choice(nodes), clean=rng.random() < 0.5)


def swap_a_record_s_past(story: Story, rng: random.Random) -> None:
    """One log has a record of another epoch below what it shares with the others."""
    node = rng.choice(NODES)
    ends = [row["offset"] for row in story.logs if row["node"] == node and row["partition"] == 0]
    for row in story.logs:
        if row["partition"] == 0 and len(ends) > 1:
            stranger = row["node"] == node and row["offset"] == min(ends)
            row["leader_epoch"] = 6 if stranger else 7


def close_as_it_did_not_end(story: Story, rng: random.Random) -> None:
    """Everybody is one producer, some sends are transactions, and what follows their records are markers."""
    sends = [row for row in story.history if (row["f"], row["type"]) == ("send", "ok") and row["offset"] is not None]
    chosen = {row["op"] for row in rng.sample(sends, min(3, len(sends)))}
    for row in story.history:
        row["txn"] = row["txn"] or row["op"] in chosen
    sent = {row["value"] for row in story.history if row["txn"] and row["f"] == "send"}
    ends = {(row["partition"], row["offset"] + 1) for row in story.logs if row["value"] in sent}
    said = {end: rng.choice(("commit", "abort")) for end in sorted(ends)}
    for row in story.logs:
        row |= {"producer_id": 5, "producer_epoch": 0, "control": said.get((row["partition"], row["offset"]))}
    if rng.random() < 0.5:
        story.forget(*[row for row in story.history if row["final"] and (row["partition"], row["offset"]) in said])


def send_again(story: Story, rng: random.Random) -> None:
    """A sequence number is in the log twice."""
    for row in story.logs:
        row |= {"producer_id": 4, "producer_epoch": 0, "sequence": max(0, row["offset"] - 1)}


def send_one_value_twice(story: Story, rng: random.Random) -> None:
    """Now and then two operations say that they send the same value."""
    sends = [row for row in story.history if row["f"] == "send" and row["partition"] == 0]
    if sends and rng.random() < 0.08:
        one, other = rng.choice(sends), rng.choice(sends)
        for row in sends:
            if (row["op"], row["mop"]) == (one["op"], one["mop"]):
                row["value"] = other["value"]


def refuse_sends(story: Story, rng: random.Random) -> None:
    """Sends that nothing was appended of end with an error that needs a reason; a producer's, or those of others."""
    if rng.random() < 0.3:
        for row in [row for row in story.history if row["f"] == "send" and row["type"] in ("fail", "info")]:
            row["error"] = rng.choice((*sorted(UNDESERVED | OUT_OF_SEQUENCE), "timeout"))
    if rng.random() < 0.3:
        process = rng.choice((0, 1, 40))
        story.send(process=process)
        for _ in range(rng.randrange(1, 3)):
            error = rng.choice(sorted(OUT_OF_SEQUENCE))
            story.send(result="info", append=False, process=process, error=error)


def commit_nothing(story: Story, rng: random.Random) -> None:
    """No broker has a watermark above the first records, whatever was delivered."""
    most = rng.randrange(2)
    for row in story.timeline:
        if row["kind"] == "state" and row["high_watermark"] is not None:
            row["high_watermark"] = min(most, row["high_watermark"])


def rot_a_record(story: Story, rng: random.Random) -> None:
    """A record on a disk is damaged, and a fault may have done that."""
    for row in rng.sample(story.logs, min(1, len(story.logs))):
        row |= {"value": None, "intact": False}
        if rng.random() < 0.7:
            harm = {"topic": "ledger", "partition": row["partition"], "clean": rng.random() < 0.7}
            story.fault(kind="corrupt_log", nodes=[str(row["node"])], parameters=json.dumps(harm))
            story.logs = [other for other in story.logs if rng.random() < 0.9 or other["node"] != row["node"]]


def end_otherwise(story: Story, rng: random.Random) -> None:
    """A replica ends with another record than its leader has, and may not take it for committed."""
    node = rng.choice(NODES)
    mine = [row for row in story.logs if (row["node"], row["partition"]) == (node, 0)]
    if mine:
        mine[-1] |= {"leader_epoch": 8, "batch_crc": 8}
    for row in story.timeline:
        if (row["kind"], row["node"], row["partition"]) == ("final", node, 0):
            row["high_watermark"] = max(0, row["high_watermark"] - rng.randrange(2))


def number_decisions(story: Story, rng: random.Random) -> None:
    """What is said of partitions is of numbered decisions, and now and then it is something else."""
    numbers: dict[object, int] = {}
    for row in story.timeline:
        if row["kind"] in ("state", "isr", "election") and row["isr"] is not None:
            content = (row["partition"], row["leader_epoch"], row["leader"], *row["isr"])
            number = numbers.setdefault(content, len(numbers) + 1)
            row["partition_epoch"] = number if rng.random() < 0.97 else rng.choice((1, number + 1, None))
            row["isr"] = row["isr"] if rng.random() < 0.97 else rng.sample(NODES, 2)


def alter_the_logs(story: Story, rng: random.Random) -> None:
    """All logs hold, at one offset, another record than was written there, and now and then its epoch is another."""
    offsets = sorted({row["offset"] for row in story.logs if row["partition"] == 0})
    at = rng.choice(offsets) if offsets else 0
    value = rng.choice((None, 70, rng.randrange(8)))
    for row in story.logs:
        if (row["partition"], row["offset"]) == (0, at):
            row["value"] = value


def misname_an_epoch(story: Story, rng: random.Random) -> None:
    """The final read names, for a record, the leader epoch beside its own."""
    named = [row for row in story.final_rows() if row["leader_epoch"] is not None]
    for row in rng.sample(named, min(1, len(named))):
        row["leader_epoch"] = max(0, row["leader_epoch"] + rng.choice((-1, 1)))


FALSE_PLANTS: tuple[Callable[[Story, random.Random], None], ...] = (
    read_what_nobody_sent,
    *[cross_bounds] * 3,
    lead_together,
    *[call_an_election_names] * 2,
    forget_who_is_eligible,
    usurp,
    fence_nobody,
    *[swap_a_record_s_past] * 2,
    *[close_as_it_did_not_end] * 6,
    *[send_again] * 2,
    *[rot_a_record] * 2,
    *[end_otherwise] * 2,
    *[commit_nothing] * 6,
    *[number_decisions] * 2,
    *[alter_the_logs] * 2,
    *[misname_an_epoch] * 2,
)
"""What may be falsified after a story has ended."""
