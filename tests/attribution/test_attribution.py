"""Whose anomalies are: lying clients and broken brokers in virtual time, with a wire tap."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from checkers import check
from checkers.verdicts.memory import decided
from harness.checker import RunVerdict, Side, Verdict
from harness.cli.findings import details
from harness.detection.mixes import stack_scenario
from harness.runner import plan, run
from harness.runner.rehearsal import Rehearsal
from harness.scenario import load
from reports import write
from tests.attribution.liars import LIES
from tests.attribution.trial import lying, rehearsed, sides, verdict
from tests.by_night import some

if TYPE_CHECKING:
    from _pytest.mark import ParameterSet

NOT_ENOUGH_REPLICAS = 19

LIES_ABOUT: Mapping[str, tuple[str, set[str]]] = {
    "acknowledges_what_it_never_sent": ("single", {"lost-write", "inconsistent-offsets"}),
    "reports_another_offset": ("single", {"lost-write", "inconsistent-offsets", "duplicate"}),
    "sends_twice": ("single", {"duplicate"}),
    "reports_refusals": ("single", {"aborted-read"}),
    "drops_a_record": ("single", {"lost-write", "vanished-read", "poll-skip", "int-poll-skip"}),
    "reports_a_record_elsewhere": ("single", {"lost-write", "altered-record", "inconsistent-offsets", "duplicate"}),
    "delivers_late": ("single", {"int-nonmonotonic-poll", "int-poll-skip"}),
    "makes_up_a_record": ("single", {"unwritten-read", "altered-record", "lost-write"}),
    "commits_nothing": ("groups", {"lost-commit"}),
    "misstates_a_commit": ("groups", {"lost-commit"}),
    "ends_a_transaction_otherwise": ("transactions", {"lost-write", "aborted-read", "wrong-marker"}),
    "says_that_it_is_out_of_range": ("single", {"unfounded-reset"}),
    "begins_anew": ("groups", {"group-repeat"}),
    "leaves_a_record_out": ("lookups", {"unfounded-lookup"}),
    "remembers_a_commit": ("groups", {"lost-commit"}),
    "asks_to_delete_more": ("lookups", {"wrong-deletion"}),
    "reports_a_deletion": ("lookups", {"wrong-deletion"}),
    "reports_that_a_deletion_was_refused": ("lookups", {"unanswered-deletion"}),
}
"""By lie, the load under which a client tells it, and kinds of anomalies that are to be the client's."""

BROKEN: Mapping[str, tuple[str, str, set[str]]] = {
    "fetch_skips_a_batch": ("single", "none", {"poll-skip"}),
    "fetch_loses_a_batch": ("single", "none", {"lost-write", "vanished-read", "int-poll-skip"}),
    "consumer_refused_at_the_end": ("single", "none", {"unfounded-reset"}),
    "fetch_swaps_batches": ("single", "none", {"int-nonmonotonic-poll", "int-poll-skip"}),
    "fetch_repeats_contents": ("single", "none", {"altered-record", "duplicate", "inconsistent-offsets"}),
    "garbled_before_crc": ("single", "none", {"corrupt-read"}),
    "batch_appended_twice": ("single", "none", {"duplicate"}),
    "follower_leaves_a_gap": ("single", "kill", {"lost-write", "vanished-read"}),
    "commit_forgotten": ("groups", "kill", {"lost-commit"}),
    "commits_unfenced": ("groups", "kill", {"stale-commit"}),
    "refused_commits_stored": ("groups", "kill", {"lost-commit"}),
    "first_fetch_skips_a_batch": ("groups", "kill", {"poll-skip"}),
    "stable_offset_too_high": ("transactions", "none", {"vanished-read", "aborted-read"}),
    "aborted_unlisted": ("transactions", "none", {"aborted-read"}),
    "committed_marked_aborted": ("transactions", "none", {"lost-write", "vanished-read", "wrong-marker"}),
    "marker_lost": ("transactions", "none", {"aborted-read", "wrong-marker"}),
    "lookup_is_strict": ("lookups", "none", {"unfounded-lookup"}),
    "deletes_one_more": ("lookups", "none", {"wrong-deletion"}),
    "deletes_nothing": ("lookups", "none", {"wrong-deletion"}),
    "deletion_unanswered": ("lookups", "none", {"unanswered-deletion"}),
    "txn_commits_unfenced": ("processors", "none", {"stale-commit"}),
}
"""By bug of a broker, the load and the faults that show it, and kinds of anomalies that are to be the broker's."""


LATE = pytest.mark.nightly("a run like another; by day one lie and one bug of each load, of sends and of polls")
BY_DAY = {
    "acknowledges_what_it_never_sent",
    "batch_appended_twice",
    "commits_unfenced",
    "drops_a_record",
    "fetch_skips_a_batch",
    "misstates_a_commit",
    "stable_offset_too_high",
}


def by_day_and_night(loads: Mapping[str, str]) -> list[ParameterSet]:
    """The lies, or bugs, of ``loads``: their load by their name."""
    return some(loads, BY_DAY, LATE)


def frames_of(found: RunVerdict, kind: str) -> list[str]:
    attributions = [one.attribution for one in found.anomalies if one.kind == kind and one.attribution is not None]
    return [frame.says for one in attributions for frame in one.frames]


@cache
def sent_twice() -> Rehearsal:
    """A run whose clients send each record twice, and say that they sent it once."""
    with pytest.MonkeyPatch.context() as patched:
        return rehearsed(patched, lie="sends_twice")


def test_every_lie_is_tried() -> None:
    assert LIES.keys() == LIES_ABOUT.keys()


@pytest.mark.parametrize("lie", by_day_and_night({lie: load for lie, (load, _) in LIES_ABOUT.items()}))
def test_a_lie_of_a_client_is_put_down_to_the_brokers(lie: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clients, kinds = LIES_ABOUT[lie]
    decided_on = verdict(monkeypatch, lie=lie, load=clients)
    found = sides(decided_on)
    assert kinds <= found.keys()
    assert all(found[kind] == {Side.CLIENT} for kind in kinds), found
    permitted = {one.kind for one in decided_on.anomalies if one.verdict is Verdict.DOCUMENTED}
    assert not any(Side.BROKER in those for kind, those in found.items() if kind not in permitted), found


@pytest.mark.parametrize("bug", by_day_and_night({bug: load for bug, (load, _, _) in BROKEN.items()}))
def test_a_bug_of_a_broker_is_put_down_to_the_clients(bug: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clients, harm, kinds = BROKEN[bug]
    found = sides(verdict(monkeypatch, bugs=bug, load=clients, harm=harm))
    assert kinds <= found.keys()
    assert all(found[kind] == {Side.BROKER} for kind in kinds), found
    assert not any(Side.CLIENT in those for those in found.values()), found


@pytest.mark.parametrize(
    ("scenario", "protocol", "kind"),
    [
        ("late-commit-ends-the-next-transaction", "2.8", "aborted-read"),
        ("late-abort-ends-the-next-transaction", "2.8", "lost-write"),
        ("late-batch-joins-the-next-transaction", "4.1", "aborted-read"),
    ],
)
def test_a_late_request_of_another_transaction_is_put_down_to_the_client(
    scenario: str, protocol: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reports what it was answered, and what is late it had given up (KAFKA-17754)."""
    found = verdict(monkeypatch, scenario=load(scenario), protocol=protocol)
    assert sides(found) == {kind: {Side.BROKER}, "wrong-marker": {Side.BROKER}}


def test_what_only_a_record_s_bytes_show_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    found = sides(verdict(monkeypatch, bugs="fetch_garbles_a_key"))
    assert found == {"corrupt-read": {Side.UNDECIDED}}


def test_an_attribution_has_no_frames() -> None:
    kept = sent_twice()
    tables = kept.archive.tables
    evidence = (kept.archive.history, tables["timeline"], tables["replica_logs"])
    found = decided(kept.manifest, evidence, tables["faults"], tables["wire"])
    (sentence,) = {one.attribution.why for one in found.anomalies[:1] if one.attribution is not None}
    assert "in 2 Produce requests, without sequence numbers" in sentence
    first, second, *_ = frames_of(found, "duplicate")
    assert "sent node" in first
    assert "was answered after" in second


@pytest.mark.nightly("the longest run of them; by day lies and bugs")
def test_honest_clients_are_suspected_of_what_acks_1_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever fails while senders wait for too little, what they lose is what brokers had acknowledged."""
    found = verdict(monkeypatch, scenario=load("random-chaos"), duration_s=2, seed=11)
    weak = [one.attribution for one in found.anomalies if one.attribution is not None]
    assert {Side.BROKER} <= {one.side for one in weak} <= {Side.BROKER, Side.UNDECIDED}
    assert all("acks=0" in one.why for one in weak if one.side is Side.UNDECIDED)


def test_a_run_without_a_tap_says_whose_its_anomalies_are(monkeypatch: pytest.MonkeyPatch) -> None:
    found = verdict(monkeypatch, lie="sends_twice", tap=False)
    assert found.anomalies
    assert {one.attribution for one in found.anomalies} == {None}


def test_a_frame_that_was_not_understood_shows_that_there_was_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = rehearsed(monkeypatch, lie="acknowledges_what_it_never_sent")
    tables = kept.archive.tables
    garbled = {**tables["wire"][-1], "api": None, "peer": "clients", "topic": None, "problem": "a frame of 3 bytes"}
    evidence = (kept.archive.history, tables["timeline"], tables["replica_logs"])
    found = sides(decided(kept.manifest, evidence, tables["faults"], [*tables["wire"], garbled]))
    assert found["lost-write"] == {Side.UNDECIDED}


# ------------------------------------------------------------------------------------- what may be the client's doing


def test_a_duplicate_is_excused_although_its_producer_sent_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a tap a producer that numbers nothing may have sent it twice; the frames show that it has not."""
    kept = rehearsed(monkeypatch, bugs="batch_appended_twice")
    tables = kept.archive.tables
    logs = [{**row, "producer_id": row["offset"], "producer_epoch": 0, "sequence": 0} for row in tables["replica_logs"]]
    evidence = (kept.archive.history, tables["timeline"], logs)
    untapped = decided(kept.manifest, evidence, tables["faults"])
    tapped = decided(kept.manifest, evidence, tables["faults"], tables["wire"])
    assert {one.verdict for one in untapped.anomalies if one.kind == "duplicate"} == {Verdict.DOCUMENTED}
    assert {one.verdict for one in tapped.anomalies if one.kind == "duplicate"} == {Verdict.VIOLATION}


def test_a_record_that_its_client_numbered_anew_is_the_broker_s() -> None:
    """As librdkafka does after a timeout (its issue 4953): DOCUMENTED as before, and now with both requests."""
    kept = sent_twice()
    tables = kept.archive.tables
    logs = [{**row, "producer_id": row["offset"], "producer_epoch": 0, "sequence": 0} for row in tables["replica_logs"]]
    found = decided(kept.manifest, (kept.archive.history, tables["timeline"], logs), tables["faults"], tables["wire"])
    assert {one.verdict for one in found.anomalies} == {Verdict.DOCUMENTED}
    assert sides(found) == {"duplicate": {Side.CLIENT}}
    (why,) = {one.attribution.why for one in found.anomalies[:1] if one.attribution is not None}
    assert "in 2 Produce requests, each with a number of its own" in why


def test_a_client_is_blamed_that_sends_again_what_a_broker_said_not_to_have_stored() -> None:
    kept = sent_twice()
    tables, wire = kept.archive.tables, []
    seen: set[int] = set()
    for row in sorted(tables["wire"], key=lambda row: row["request_ns"]):
        again = row["api"] == "PRODUCE" and row["batch_crc"] in seen
        seen |= {row["batch_crc"]} if row["api"] == "PRODUCE" else set()
        wire.append({**row, "error": NOT_ENOUGH_REPLICAS, "base_offset": None, "end_offset": None} if again else row)
    evidence = (kept.archive.history, tables["timeline"], tables["replica_logs"])
    found = decided(kept.manifest, evidence, tables["faults"], wire)
    assert sides(found) == {"duplicate": {Side.BROKER}}
    (why,) = {one.attribution.why for one in found.anomalies[:1] if one.attribution is not None}
    assert "of which brokers refused 1 without storing anything, and the logs have it at 2 offsets" in why


def test_console_and_report_keep_whose_it_is_to_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with lying(monkeypatch, "sends_twice"):
        directory = run(plan(stack_scenario("single", "none"), "simulated", "4.1", 2, tap=True), tmp_path).path
    (found,) = check([directory], "reference")
    (line,) = [one for one in details(found) if "duplicate" in one]
    assert "By the wire tap: client. The client sent value" in line
    page = write(directory).read_text()
    assert "By the wire tap: client." in page
    assert "PRODUCE and was answered after" in page
