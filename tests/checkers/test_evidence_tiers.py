"""What a verdict says was not asked is what its evidence cannot show, and it says of all that was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from checkers import check
from checkers.registry import KINDS
from checkers.verdicts.memory import decided
from harness.anomaly import Found
from harness.checker import EvidenceTier, Outcome, RunVerdict
from harness.detection.withheld import Tables, withheld
from harness.history.run_directory import Manifest
from tests.checkers.all_cases import CASES
from tests.checkers.answers import TOLD, answer, by_answers_alone
from tests.checkers.cases import Case, lose_tail, write
from tests.checkers.story import Story

BY_CLIENTS = {name for name, kind in KINDS.items() if kind.shown_by_clients}
UNTOLD = KINDS.keys() - BY_CLIENTS - {"hw-regression"}
UNLOGGED = {name for name, kind in KINDS.items() if not (kind.shown_by_clients or kind.shown_by_logs)}
UNSAMPLED = {name for name, kind in KINDS.items() if kind.sampled.found is Found.NONE}


def of_clients_alone(case: Case) -> tuple[RunVerdict, set[str]]:
    """The verdict on a case as if it were of a running cluster, and the kinds that it has with all evidence."""
    story = case.story("r")
    manifest = story.manifest(**case.manifest)
    promised = {name: what for name, what in manifest.guarantees.items() if name != "laggards_leave_ms"}
    seen = replace(manifest, guarantees={**promised, "timeline": "none"}, endings=())
    return decided(seen, (story.history, [], []), []), {kind for kind, *_ in case.anomalies}


def test_clients_alone_show_some_of_each_kind_that_is_asked_and_of_no_other() -> None:
    found = set[str]()
    for verdict, kinds in map(of_clients_alone, CASES):
        assert verdict.evidence is EvidenceTier.CLIENTS
        assert set(verdict.not_asked) == KINDS.keys() - BY_CLIENTS
        found |= kinds & {one.kind for one in verdict.anomalies}
        assert not {one.kind for one in verdict.anomalies} - BY_CLIENTS
        cited = [(one.kind, cite) for one in verdict.anomalies for cite in one.evidence if cite.table == "replica_logs"]
        assert not cited
    assert found == BY_CLIENTS


def of_disks(story: Story, **manifest: Any) -> tuple[Manifest, Tables]:
    """A run as if its brokers' disks had been read in the end, and nothing else of its brokers were known."""
    return withheld(EvidenceTier.LOGS, story.manifest(**manifest), (story.history, story.timeline, story.logs))


def may_delete(manifest: Manifest) -> bool:
    """Whether a run may delete records."""
    return bool(manifest.orders) or manifest.guarantees.get("retention") is not False


def test_the_files_of_disks_show_some_of_each_kind_that_they_add_and_of_no_other() -> None:
    by_metadata = {name for name, kind in KINDS.items() if kind.shown_by_metadata}
    added = {name for name, kind in KINDS.items() if kind.shown_by_logs}
    found = set[str]()
    for case in CASES:
        story = case.story("r")
        seen, tables = of_disks(story, **case.manifest)
        promised = {name: what for name, what in seen.guarantees.items() if name != "laggards_leave_ms"}
        verdict = decided(replace(seen, guarantees=promised, endings=()), tables, [])
        is_told = any(row["kind"] == "metadata" for row in tables[1])
        assert verdict.evidence is (EvidenceTier.LOGS if is_told else EvidenceTier.DISKS)
        asked = BY_CLIENTS | (by_metadata if is_told else set())
        assert set(verdict.not_asked) - {"wrong-deletion"} == KINDS.keys() - asked - added - {"wrong-deletion"}
        assert ("wrong-deletion" in verdict.not_asked) is (may_delete(seen) or not is_told)
        kinds = {one.kind for one in verdict.anomalies}
        assert kinds <= asked | added
        found |= kinds & {kind for kind, *_ in case.anomalies}
    assert added <= found
    assert not (BY_CLIENTS | by_metadata) & added


def test_a_replica_whose_disk_was_not_read_leaves_the_run_open() -> None:
    story = Story()
    write(story, 3)
    story.finish()
    seen, (history, timeline, logs) = of_disks(story)
    of_two = {name: [row for row in rows if row["node"] != 2] for name, rows in (("ends", timeline), ("logs", logs))}
    assert decided(seen, (history, timeline, logs), []).outcome is Outcome.PASS
    verdict = decided(seen, (history, of_two["ends"], of_two["logs"]), [])
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert "How ledger-0 ended on 1 of its 3 replicas is not known: there is no final row with both bounds." in (
        verdict.reasons
    )


def test_a_replica_that_lacks_the_last_records_on_its_disk_leaves_the_run_open() -> None:
    story = Story()
    write(story, 3)
    story.finish()
    seen, (history, timeline, logs) = of_disks(story)
    ends = [{**row, "high_watermark": 2, "log_end_offset": 2} if row["node"] == 2 else row for row in timeline]
    held = [row for row in logs if (row["node"], row["offset"]) != (2, 2)]
    verdict = decided(seen, (history, ends, held), [])
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert any("2 on node 2 (high watermark 2) on disk" in why for why in verdict.reasons), verdict.reasons


@pytest.mark.parametrize(
    ("timeline", "promised", "tier", "unasked"),
    [
        ("none", {}, EvidenceTier.CLIENTS, KINDS.keys() - BY_CLIENTS),
        ("metadata", {"retention": False}, EvidenceTier.METADATA, UNTOLD - {"wrong-deletion"}),
        ("metadata", {"retention": True}, EvidenceTier.METADATA, UNTOLD),
        ("logs", {"retention": False}, EvidenceTier.DISKS, UNLOGGED),
        ("sampled", {}, EvidenceTier.SAMPLES, UNSAMPLED),
        ("", {}, EvidenceTier.BROKERS, set()),
    ],
)
def test_a_verdict_names_its_tier_and_what_that_cannot_show(
    timeline: str, promised: dict[str, bool], tier: EvidenceTier, unasked: set[str], tmp_path: Path
) -> None:
    story = Story()
    story.elect(1)
    story.send()
    story.finish()
    if timeline == "metadata":
        answer(story)
        by_answers_alone(story)
    guarantees = {**story.manifest().guarantees, **promised, **({"timeline": timeline} if timeline else {})}
    [verdict] = check([story.write(tmp_path / "run", guarantees=guarantees)], engine="reference")
    assert (verdict.evidence, set(verdict.not_asked)) == (tier, unasked)
    said = [limit for limit in verdict.limits if limit.startswith(f"Evidence: {tier}. {len(unasked)} of {len(KINDS)} ")]
    assert bool(said) == bool(unasked)
    assert all(name in said[0] for name in unasked)


def test_a_cluster_that_does_not_answer_is_known_by_its_clients_alone() -> None:
    story = Story()
    story.send()
    answer(story, refused="_UNSUPPORTED_FEATURE")
    story.finish()
    by_answers_alone(story)
    verdict = decided(story.manifest(guarantees=TOLD), (story.history, story.timeline, []), [])
    assert (verdict.outcome, verdict.evidence) == (Outcome.PASS, EvidenceTier.CLIENTS)
    assert any(
        "told no high watermark of a leader's epoch (_UNSUPPORTED_FEATURE in 1 sample" in x for x in verdict.limits
    )


@pytest.mark.parametrize(
    ("is_asked_at_once", "said"),
    [
        (
            True,
            "The leader of epoch 0 told clients a high watermark of 6, above its offset, and that of epoch 1 one of 4",
        ),
        (
            False,
            "The cluster told high watermarks above its offset in leader epochs 0 to 1, and none at or below it after",
        ),
    ],
)
def test_a_lost_write_names_the_epochs_whose_leaders_told_of_it(*, is_asked_at_once: bool, said: str) -> None:
    story = Story()
    write(story, 6)
    answer(story)
    lose_tail(story, 4)
    story.commit()
    if is_asked_at_once:
        answer(story)
    write(story, 3)
    answer(story)
    story.finish()
    by_answers_alone(story)
    verdict = decided(story.manifest(guarantees=TOLD), (story.history, story.timeline, []), [])
    [why] = [one.why for one in verdict.anomalies if (one.kind, one.offset) == ("lost-write", 5)]
    assert said in why


def test_acknowledgements_that_no_watermark_covers_are_counted_and_answers_that_did_not_come() -> None:
    story = Story()
    write(story, 3)
    answer(story, mark=2, start_refused="no answer")
    story.finish()
    by_answers_alone(story)
    verdict = decided(story.manifest(guarantees=TOLD), (story.history, story.timeline, []), [])
    assert (verdict.counts["acked_all"], verdict.counts["acked_below_high_watermark"]) == (3, 2)
    assert "1 acknowledgements with acks=all are above every high watermark that the cluster told." in verdict.limits
    assert "Some questions for where logs begin were not answered (no answer in 1 samples)." in verdict.limits
    assert not any("questions for high watermarks" in one for one in verdict.limits)
