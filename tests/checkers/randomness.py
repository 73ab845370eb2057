"""Random runs: a legal story, and then falsified here and there, so that anything may be wrong with it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from checkers.views.configured import is_sampled
from checkers.views.expected import reads_disks
from tests.checkers.answers import plant_answers
from tests.checkers.client_randomness import (
    CLIENT_FALSIFICATIONS,
    IMPORTED,
    ask_only_clients,
    client_step,
    read_the_end_again,
)
from tests.checkers.deletion_randomness import order_a_deletion, shrink
from tests.checkers.election_randomness import name_markers, transact_across_elections
from tests.checkers.exit_cases import ended
from tests.checkers.group_randomness import act_in_groups
from tests.checkers.keys import plant_keys
from tests.checkers.lookups import plant_lookups
from tests.checkers.planting import (
    FALSE_PLANTS,
    PLANTS,
    fall_back,
    give_up_and_send_again,
    leave_behind,
    overtake_what_was_read,
    read_unfenced,
    refuse_sends,
    send_one_value_twice,
)
from tests.checkers.programs import plant_a_program
from tests.checkers.resend_cases import calm, hit, send_twice
from tests.checkers.resets import plant_resets
from tests.checkers.sampling import ON_DISKS, SAMPLED, at_the_end, some_of
from tests.checkers.sharing import plant_shares
from tests.checkers.story import CONTROLLER, NODES, Row, Story
from tests.checkers.timeline_randomness import TIMELINE_FALSIFICATIONS

PATIENT: dict[str, Any] = {
    "min_insync_replicas": 2, "unclean_election": False, "laggards_leave_ms": 32, "time": "virtual",
    "members_kept_ms": 40,
}  # fmt: skip

MANIFESTS: tuple[dict[str, Any], ...] = (
    {"guarantees": PATIENT | {"tombstones_stay_ms": 25}},
    {"guarantees": PATIENT | {"unclean_election": True, "settles": True, "idempotent_producers": False}},
    {"guarantees": PATIENT, "predictions": [{"kind": "lost-write"}]},
    {"predictions": [{"kind": "replica-divergence", "topic": "ledger", "partition": 0, "offset": 1}]},
    IMPORTED,
    {"guarantees": SAMPLED | {"unclean_election": True, "retention": True}},
    {"guarantees": SAMPLED | {"idempotent_producers": False}},
    {"guarantees": ON_DISKS | {"unclean_election": False}},
    {"guarantees": ON_DISKS | {"unclean_election": True}},
)
"""What ``run.json`` says of the random runs, in turn."""


def manifest_of(seed: int) -> dict[str, Any]:
    """What ``run.json`` says of the run of this seed; now and then, that a broker ended by itself."""
    rng = random.Random(f"{seed}:ended")
    return MANIFESTS[seed % len(MANIFESTS)] | (ended(node=rng.choice(NODES)) if rng.random() < 0.05 else {})


def _append_twice(story: Story, rng: random.Random) -> None:
    """Rarely a client has a record appended twice, with or without a reason to send it again."""
    if rng.random() < 0.15:
        elect, restart = (lambda told: told.elect(rng.choice(NODES))), (lambda told: told.restart(rng.choice(NODES)))
        pause = lambda told: hit(told, nodes=[str(rng.choice(NODES))])  # noqa: E731
        send_twice(story, rng.choice((calm, elect, restart, pause)), result=rng.choice(("ok", "info")))


_RARE: dict[str, Callable[[Story, random.Random], None]] = {
    "behind": leave_behind,
    "fallen": fall_back,
    "unfenced": read_unfenced,
    "given up": give_up_and_send_again,
    "overtaken": overtake_what_was_read,
    "ordered": order_a_deletion,
    "shrunk": shrink,
    "twice": _append_twice,
    "refused": refuse_sends,
    "groups": act_in_groups,
    "program": plant_a_program,
    "keys": plant_keys,
    "shares": plant_shares,
    "resets": plant_resets,
    "lookups": plant_lookups,
}
"""What every story may have besides, by the name of its own chance."""


def random_story(seed: int) -> Story:
    """The story of this seed: some steps, an end, up to four falsifications, and what is planted on purpose."""
    rng = random.Random(seed)
    story = Story(f"run-{seed}", partitions=rng.choice((1, 1, 2)))
    calm = rng.random() < 0.25
    for _ in range(rng.randrange(3, 14)):
        _calm_step(story, rng) if calm else (client_step if rng.random() < 0.35 else _step)(story, rng)
    if not calm and rng.random() < 0.6:
        rng.choice(PLANTS)(story, rng)
    if rng.random() < 0.1:
        for _ in range(40):
            story.send()
    for name, plant in _RARE.items() if not calm else ():
        plant(story, random.Random(f"{seed}:{name}"))
    elected = random.Random(f"{seed}:elected")
    permitted = MANIFESTS[seed % len(MANIFESTS)].get("guarantees", {}).get("unclean_election", False)
    marked = not calm and transact_across_elections(story, elected, often=permitted)
    _end(story, rng)
    if marked:
        name_markers(story, elected)
    for _ in range(rng.choice((0, 0, 0, 1) if calm else (0, 0, 1, 1, 2, 3, 4))):
        rng.choice(FALSIFICATIONS)(story, rng)
    if not calm:
        _falsify(story, rng, seed)
    _know_less(story, rng, MANIFESTS[seed % len(MANIFESTS)])
    return story


def _falsify(story: Story, rng: random.Random, seed: int) -> None:
    if rng.random() < 0.6:
        rng.choice(FALSE_PLANTS)(story, rng)
    send_one_value_twice(story, random.Random(f"{seed}:resent"))
    again = random.Random(f"{seed}:again")
    if again.random() < 0.15:
        read_the_end_again(story, again)


def _end(story: Story, rng: random.Random) -> None:
    """Mostly everything is committed, and read."""
    if rng.random() < 0.9:
        for p in story.partitions:
            story.commit(p)
    story.finish(read=rng.random() < 0.95)


def _know_less(story: Story, rng: random.Random, manifest: dict[str, Any]) -> None:
    """No brokers were there to be asked, or they were only asked now and then; clients may have been told something."""
    if manifest is IMPORTED:
        ask_only_clients(story, rng)
    elif is_sampled(manifest.get("guarantees", {})):
        story.timeline = some_of(story.timeline, rng, rng.choice((0.3, 0.7, 1)))
    elif reads_disks(manifest.get("guarantees", {})):
        story.timeline = at_the_end(story.timeline)
    plant_answers(story, random.Random(f"{story.run}:answers"))


def _calm_step(story: Story, rng: random.Random) -> None:
    """Nothing goes wrong, but for a tail that may be lost."""
    p = rng.choice(list(story.partitions))
    if rng.random() < 0.9:
        story.send(p)
    else:
        part = story.partitions[p]
        other = rng.choice([node for node in NODES if node != part.leader])
        story.cut(other, max(0, len(part.logs[other]) - 1), p)
        story.elect(other, p)


def _step(story: Story, rng: random.Random) -> None:
    p = rng.choice(list(story.partitions))
    part = story.partitions[p]
    log = part.logs[part.leader]
    match rng.randrange(25):
        case at if at < 10:
            copies = None if rng.random() < 0.7 else [n for n in NODES if n != part.leader and rng.random() < 0.5]
            offset = None if rng.random() < 0.05 else -1
            story.send(
                p, rng.choice((-1, -1, -1, 1, 0)), rng.choice(("ok", "ok", "ok", "info", "fail", "invoke")),
                append=rng.random() < 0.95, commit=rng.random() < 0.8, copies=copies, process=rng.randrange(3),
                offset=offset,
            )  # fmt: skip
        case at if at < 16:
            start = rng.randrange(len(log) + 1)
            offsets = [o for o in range(start, len(log)) if rng.random() < 0.9]
            story.poll(rng.randrange(5, 8), offsets, p)
        case 16 | 17:
            story.elect(rng.choice(NODES), p, clean=rng.random() < 0.7)
        case 18 | 19:
            node = rng.choice(NODES)
            story.cut(node, rng.randrange(len(part.logs[node]) + 1), p)
        case 20 | 21:
            story.restart(rng.choice(NODES))
        case 22 | 23:
            story.fault(proven_ns=rng.choice((None, 1, 1, 1)))
        case 24:
            story.overwrite(p, heard=rng.random() < 0.3, clean=rng.random() < 0.6)


def _change_history(story: Story, rng: random.Random) -> None:
    row = rng.choice(story.history)
    name, value = rng.choice(
        (("offset", rng.randrange(6)), ("value", rng.randrange(8)), ("intact", False), ("leader_epoch", None),
         ("acks", 1), ("type", "ok"))
    )  # fmt: skip
    # Only one of the rows of a send ends it; a history that says otherwise is none.
    senseless = row["f"] == "send" and name == "type" and row["type"] == "invoke"
    if row["topic"] is not None and row[name] is not None and not senseless:
        row[name] = value


def _say_twice(story: Story, rng: random.Random) -> None:
    """A send begins or ends once more, as before or otherwise; or a poll begins once more."""
    steps = [at for at, r in enumerate(story.history) if r["f"] == "send" or (r["f"], r["type"]) == ("poll", "invoke")]
    if not steps:
        return
    first = rng.choice(steps)
    row = dict(story.history[first])
    if row["type"] != "invoke":
        row["type"] = rng.choice(("ok", "info", "fail"))
        row["offset"] = rng.choice((row["offset"], None, rng.randrange(6)))
        row["value"] = row["value"] if rng.random() < 0.7 else rng.randrange(8)
    at = rng.randrange(first + 1, len(story.history) + 1)
    story.history.insert(at, row | {"time_ns": story.history[at - 1]["time_ns"]})
    for index, other in enumerate(story.history):
        other["index"] = index


def _lose_history(story: Story, rng: random.Random) -> None:
    start = rng.randrange(len(story.history))
    del story.history[start : start + rng.randrange(1, 4)]


def _forget_reads(story: Story, rng: random.Random) -> None:
    story.forget(*[r for r in story.history if r["f"] == "poll" and r["topic"] and rng.random() < 0.2])


def _change_timeline(story: Story, rng: random.Random) -> None:
    rows = [r for r in story.timeline if r["node"] != CONTROLLER and r["topic"]]
    row = rng.choice(rows)
    name, value = rng.choice(
        (("high_watermark", rng.randrange(6)), ("log_end_offset", rng.randrange(6)), ("role", "leader"),
         ("leader_epoch", rng.randrange(3)), ("log_start_offset", rng.randrange(3)), ("high_watermark", None))
    )  # fmt: skip
    row[name] = value


def _lose_timeline(story: Story, rng: random.Random) -> None:
    story.timeline.remove(rng.choice(story.timeline))


def _change_logs(story: Story, rng: random.Random) -> None:
    if story.logs:
        row: Row = rng.choice(story.logs)
        name, value = rng.choice(
            (("batch_crc", 1), ("value", rng.randrange(8)), ("value", None), ("leader_epoch", rng.randrange(3)),
             ("offset", row["offset"] + 9), ("intact", False))
        )  # fmt: skip
        row[name] = value


def _lose_logs(story: Story, rng: random.Random) -> None:
    story.logs = [row for row in story.logs if rng.random() < 0.9]


def _mix_up_acks(story: Story, rng: random.Random) -> None:
    """Every acknowledgement names the offset of another: with many of them, more findings than are kept."""
    acks = [r for r in story.history if r["f"] == "send" and r["type"] == "ok" and r["partition"] == 0]
    offsets = [r["offset"] for r in acks]
    rng.shuffle(offsets)
    for row, offset in zip(acks, offsets, strict=True):
        row["offset"] = offset


def _start_at_the_end(story: Story, rng: random.Random) -> None:
    """A partition of which nothing is left, and nothing was read."""
    p = rng.choice(list(story.partitions))
    for row in story.timeline:
        if row["kind"] == "final" and row["partition"] == p:
            row["log_start_offset"] = row["high_watermark"]
    story.forget(*story.final_rows(p))


def _come_from_elsewhere(story: Story, rng: random.Random) -> None:
    rows = rng.choice((story.history, story.timeline, story.logs))
    for row in rng.sample(rows, min(len(rows), 2)):
        row["run"] = "somebody-else"


FALSIFICATIONS: tuple[Callable[[Story, random.Random], None], ...] = (
    _change_history,
    _lose_history,
    _forget_reads,
    _change_timeline,
    _lose_timeline,
    _change_logs,
    _lose_logs,
    _mix_up_acks,
    _start_at_the_end,
    _say_twice,
    _come_from_elsewhere,
    *CLIENT_FALSIFICATIONS,
    *TIMELINE_FALSIFICATIONS,
)
