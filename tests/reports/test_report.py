"""The whole page: what it says of each outcome, that it needs nothing else, and that it stays whole and small."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest

import reports
from harness.checker import Anomaly, Evidence, EvidenceTier, Outcome, Prediction, RunVerdict, Verdict
from harness.cli import main
from harness.errors import ExitCode, InvalidRun
from harness.history.run_directory import Manifest, RunDirectory
from reports import run
from reports.page import SIZE_CAP
from tests.checkers.story import Story
from tests.reports.conftest import extents_of, lost_write, page

HOSTILE = "</title><script>alert('x')</script>&\"' ]]> \x07"


def words(html: str) -> str:
    """What a person reads, white space joined; hover titles included."""
    root = tree(html)
    for script in list(root.iter("script")):
        script.text = ""
    return " ".join("".join(root.itertext()).split())


def tree(html: str) -> ET.Element:
    """The page as XML: it is written so that both kinds of parsers read the same."""
    return ET.fromstring(html.removeprefix("<!DOCTYPE html>"))


def test_controllers_of_a_quorum_are_no_brokers(double_failover_recording: Any, tmp_path: Path) -> None:
    double_failover_recording.say(0.5, 101, "started")
    written = double_failover_recording.write(tmp_path / "run", RunVerdict("", Outcome.PASS, "python"))
    assert list(run.read(written).brokers) == [0, 1, 2]


def test_the_report_lies_in_the_run_directory_and_leaves_no_partial_file(double_failover_run: Path) -> None:
    assert reports.write(double_failover_run) == double_failover_run / "report.html"
    assert not list(double_failover_run.glob(".*"))


def test_a_predicted_loss_is_called_as_predicted_and_says_how_many_writes_it_cost(loss: str) -> None:
    said = words(loss)
    assert "AS PREDICTED: 1 acknowledged write was lost (also 1 replica-divergence)." in said
    assert "31 writes acknowledged, 31 with acks=all, all of them seen below a leader's high watermark; 1 lost." in said
    assert "3 faults injected, each proven by a probe to have taken effect." in said
    assert "0 (as-predicted: exactly the predicted anomalies were observed)" in said
    assert "seawall run kip-101-double-failover --generation 0.10 --seed 7" in said


def test_a_report_says_what_its_time_is_measured_between(loss: str) -> None:
    assert "12.000 s from the first to the last of the rows that are drawn below" in words(loss)


def test_a_passed_run_is_called_a_pass(random_page: str) -> None:
    said = words(random_page)
    assert "PASS: no acknowledged write was lost." in said
    assert "6,000 with acks=all, all of them seen below a leader's high watermark; none lost." in said
    assert "The checker found none." in said


def test_a_report_says_what_became_of_a_user_s_program(tmp_path: Path, double_failover_recording: Any) -> None:
    verdict = RunVerdict("", Outcome.PASS, "python", counts={"sends_ok": 31, "outputs": 1205})
    written = double_failover_recording.write(tmp_path / "run", verdict)
    directory = RunDirectory.open(written)
    program = {"started": 9, "killed": 7, "exited": 1, "statuses": {"1": 1}, "said": "no memory"}
    directory.write_manifest(replace(directory.manifest(), program=program))
    assert (
        "The user's program put out 1,205 records; its copies were started 9 times, killed 7 times, and ended by "
        "themselves 1 time."
    ) in words(page(written))


@pytest.mark.parametrize(("crashes", "sentence"), [(0, ""), (1, "1 client killed, "), (12, "12 clients killed, ")])
def test_a_report_says_how_many_clients_were_killed(
    crashes: int, sentence: str, tmp_path: Path, double_failover_recording: Any
) -> None:
    verdict = RunVerdict("", Outcome.PASS, "python", counts={"sends_ok": 31, "crashes": crashes})
    said = words(page(double_failover_recording.write(tmp_path / "run", verdict)))
    assert sentence in said
    assert ("without leaving a group or ending a transaction." in said) == bool(crashes)


@pytest.mark.parametrize(
    ("counts", "sentence"),
    [
        ((905, 905), ", 905 with acks=all, all of them seen below a leader's high watermark"),
        ((1779, 16), ", 1,779 with acks=all, 16 of them seen below a leader's high watermark"),
        ((7, 0), ", 7 with acks=all, none of them seen below a leader's high watermark"),
        ((0, 0), ", none with acks=all"),
        (None, ""),
    ],
)
def test_writes_below_a_high_watermark_are_counted_among_those_with_acks_all(
    counts: tuple[int, int] | None, sentence: str, tmp_path: Path, double_failover_recording: Any
) -> None:
    named = dict(zip(("acked_all", "acked_below_high_watermark"), counts or (), strict=False))
    verdict = RunVerdict("", Outcome.PASS, "python", counts={"sends_ok": 1891, **named})
    said = words(page(double_failover_recording.write(tmp_path / "run", verdict)))
    assert f"1,891 writes acknowledged{sentence}; none lost." in said


def test_a_told_watermark_above_an_offset_need_not_be_of_the_record_there(
    tmp_path: Path, double_failover_recording: Any
) -> None:
    counts = {"sends_ok": 7, "acked_all": 7, "acked_below_high_watermark": 7}
    verdict = RunVerdict("", Outcome.PASS, "python", counts=counts, evidence=EvidenceTier.METADATA)
    said = words(page(double_failover_recording.write(tmp_path / "run", verdict)))
    assert "7 with acks=all, all of them at offsets below a high watermark that the cluster told; none lost." in said


@pytest.mark.parametrize(
    ("verdict", "sentence"),
    [
        (RunVerdict("", Outcome.VIOLATION, "python", [lost_write(1)]), "VIOLATION: 1 acknowledged write was lost"),
        (
            RunVerdict("", Outcome.VIOLATION, "python", [replace(lost_write(1), kind="duplicate")]),
            "VIOLATION: no acknowledged write was lost, but there is 1 duplicate, and nothing predicted it.",
        ),
        (
            RunVerdict(
                "", Outcome.VIOLATION, "python", [lost_write(1, Verdict.WEAK), replace(lost_write(2), kind="duplicate")]
            ),
            "VIOLATION: no acknowledged write was lost without an excuse, but there is 1 duplicate, and nothing",
        ),
        (
            RunVerdict("", Outcome.NOT_REPRODUCED, "python", unmet=[Prediction("lost-write", "ledger", 0, 20)]),
            "the predicted lost-write did not happen. Predicted and not observed: lost-write in ledger, partition 0,",
        ),
        (
            RunVerdict("", Outcome.INCONCLUSIVE, "python", reasons=["The final read ended early."]),
            "INCONCLUSIVE: the evidence does not suffice to decide. The final read ended early.",
        ),
        (
            RunVerdict("", Outcome.INVALID, "python", reasons=["Fault cut was not proven."]),
            "INVALID: this run proves nothing. Fault cut was not proven.",
        ),
        (
            RunVerdict("", Outcome.PASS, "python", [lost_write(1, Verdict.WEAK)]),
            "PASS: 1 acknowledged write was lost, and the configuration or the acks had given that away.",
        ),
    ],
    ids=lambda value: value.outcome.value if isinstance(value, RunVerdict) else "",
)
def test_every_outcome_has_its_sentence(
    verdict: RunVerdict, sentence: str, tmp_path: Path, double_failover_recording: Any
) -> None:
    assert sentence in words(page(double_failover_recording.write(tmp_path / "run", verdict)))


def test_losses_that_are_excused_are_counted_for_themselves(tmp_path: Path, double_failover_recording: Any) -> None:
    grave, excused = [lost_write(1)], [lost_write(offset, Verdict.WEAK) for offset in (2, 3)]
    reach = [*extents_of(grave), *extents_of(excused)]
    verdict = RunVerdict("", Outcome.VIOLATION, "python", [*grave, *excused], extents=reach)
    said = words(page(double_failover_recording.write(tmp_path / "run", verdict)))
    assert "VIOLATION: 1 acknowledged write was lost, and nothing predicted it." in said
    assert "3 lost, 2 of them excused." in said


def test_an_undecided_run_without_a_found_loss_does_not_claim_that_nothing_was_lost(
    tmp_path: Path, double_failover_recording: Any
) -> None:
    verdict = RunVerdict("", Outcome.INVALID, "python", reasons=["Fault cut was not proven."])
    said = words(page(double_failover_recording.write(tmp_path / "run", verdict)))
    assert "31 writes acknowledged; no loss found, which proves nothing here." in said
    assert "none lost" not in said


def test_the_story_of_a_loss_tells_promise_holders_faults_and_truncation_in_order(loss: str) -> None:
    said = words(loss)
    parts = [
        "Committed: broker 0, leading in epoch 0, raised its high watermark to 21: offset 20 was below it.",
        "Acknowledged to process 0: value 1020 at offset 20 (acks=all), with broker 0 leading in",
        "Held at that moment by brokers 0, 1, 2. What each knew: broker 0 hw 21, log end 21; broker 1 hw 20,",
        "Delivered: a consumer (process 50) got value 1020 at offset 20.",
        "Fault crash: kill on 0 injected (proven: process 4242 is gone; connection refused).",
        "Clean election: broker 1 leads in epoch 1, ISR {1,2} (session of broker 0 expired).",
        "Gone from broker 2: it truncated its log from 21 to 20 (follower truncates to its high watermark), offset 20",
        "Clean election: broker 2 leads in epoch 2",
        "Its place is taken: value 1040 was acknowledged at offset 20, with broker 2 leading in epoch 2.",
        "The final read did not return it; it returned value 1040 at offset 20.",
        "On disk after the run, only broker 0 still had it",
    ]
    places = [said.find(part) for part in parts]
    assert -1 not in places, parts[places.index(-1)]
    assert places == sorted(places)


def test_a_record_behind_an_abort_marker_is_told_to_be_hidden(tmp_path: Path, double_failover_recording: Any) -> None:
    marker = Anomaly("wrong-marker", Verdict.VIOLATION, "ledger", 0, 20, 1020, 0, "An abort marker closes it.")
    verdict = RunVerdict("", Outcome.VIOLATION, "python", [lost_write(20, Verdict.VIOLATION), marker])
    said = words(page(double_failover_recording.write(tmp_path / "run", verdict)))
    assert "Hidden, not gone: An abort marker closes it. A read_committed consumer is not given it." in said


def test_the_record_that_one_replica_kept_is_marked_among_the_replica_logs(loss: str) -> None:
    odd = [cell for cell in tree(loss).iter("td") if "odd" in cell.get("class", "")]
    assert ["".join(cell.itertext()) for cell in odd] == ["≠ 1020@e0"]


def test_the_evidence_of_an_anomaly_names_the_rows(loss: str) -> None:
    assert "broker 2 truncated 21 to 20 (timeline: node 2, sequence 46)" in words(loss)


def test_an_unproven_fault_is_marked_in_the_banner_the_strip_and_the_table(
    tmp_path: Path, double_failover_recording: Any
) -> None:
    recording = double_failover_recording
    recording.fault("dud", "clock", ["1"], (5.0, 5.1, None, 6.0, None), "", offset_ms=60_000)
    html = page(recording.write(tmp_path / "run", RunVerdict("", Outcome.INVALID, "python", reasons=["dud."])))
    assert "Only 3 of 4 faults proven to have taken effect; NOT proven: dud." in words(html)
    assert "⚠ dud clock 1 UNPROVEN" in words(html)
    assert "fault-unproven" in html
    assert "⚠ NOT PROVEN" in words(html)
    assert "Healing not proven: dud." in words(html)


def test_hostile_strings_stay_text(tmp_path: Path, new_recording: Callable[[Manifest], Any]) -> None:
    recording = new_recording(Manifest(HOSTILE, HOSTILE, 1, HOSTILE, versions={HOSTILE: HOSTILE}, generation=HOSTILE))
    recording.send(1.0, 1, 0, topic=HOSTILE, error=HOSTILE)
    recording.send(2.0, 2, None, "info", topic=HOSTILE, error=HOSTILE)
    recording.fault(HOSTILE, HOSTILE, [HOSTILE], (1.0, 1.1, 1.2, 1.3, 1.4), HOSTILE, **{HOSTILE: HOSTILE})
    evidence = (Evidence(HOSTILE, {HOSTILE: HOSTILE}, HOSTILE),)
    anomaly = Anomaly(HOSTILE, Verdict.VIOLATION, HOSTILE, 0, 0, 1, None, HOSTILE, evidence)
    gone = lost_write(0, topic=HOSTILE, value=1)
    prediction = (Prediction(HOSTILE, HOSTILE),)
    verdict = RunVerdict("", Outcome.VIOLATION, HOSTILE, [anomaly, gone], [HOSTILE], prediction, prediction)
    html = page(recording.write(tmp_path / "run", verdict))
    assert html.count("<script") == 1
    assert "alert('x')" in words(html)
    assert "\x07" not in html
    assert_its_policy_allows_its_own_style_and_script_alone(html)


def assert_its_policy_allows_its_own_style_and_script_alone(html: str) -> None:
    [style] = re.findall(r"<style>(.*?)</style>", html, re.DOTALL)
    [script] = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    root = tree(html)
    [policy] = [element.get("content", "") for element in root.iter() if element.get("http-equiv")]
    own, ours = (b64encode(sha256(text.encode()).digest()).decode() for text in (style, script))
    allowed = f"style-src 'sha256-{own}'; script-src 'sha256-{ours}'"
    assert policy == f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
    names = {name.rpartition("}")[2] for element in root.iter() for name, _ in element.items()}
    assert "style" not in names
    assert not [name for name in names if name.startswith("on")]


@pytest.mark.parametrize("name", ["loss", "random_page"])
def test_a_policy_allows_the_style_and_script_of_the_page_and_nothing_else(
    name: str, request: pytest.FixtureRequest
) -> None:
    html = request.getfixturevalue(name)
    assert_its_policy_allows_its_own_style_and_script_alone(html)
    assert html.index("Content-Security-Policy") < html.index("<style>")


def test_a_verdict_whose_shape_is_wrong_is_refused_with_its_key(tmp_path: Path, double_failover_recording: Any) -> None:
    directory = double_failover_recording.write(tmp_path / "run", RunVerdict("", Outcome.PASS, "python"))
    document = json.loads((directory / "verdict.json").read_text())
    for changed, complaint in (
        ({"outcome": "nope"}, "outcome: 'nope' is refused"),
        ({"anomalies": [3]}, "anomalies[0]: 3 is refused"),
        ({"counts": {"sends_ok": "x"}}, "counts.sends_ok: 'x' is refused"),
        ({"losses": [{}]}, "losses[0]: 'topic' is missing."),
        ({"recovery": {}}, "recovery: {} is refused"),
    ):
        (directory / "verdict.json").write_text(json.dumps(document | changed))
        with pytest.raises(InvalidRun) as refused:
            reports.write(directory)
        assert str(refused.value).startswith(f"verdict.json: {complaint}")


@pytest.mark.parametrize("offset", [-(2**63), -20, 2**62])
def test_an_anomaly_at_an_offset_that_no_log_has_is_drawn(
    offset: int, tmp_path: Path, double_failover_recording: Any
) -> None:
    double_failover_recording.anomalies[:] = [lost_write(offset)]
    verdict = RunVerdict("", Outcome.VIOLATION, "python", double_failover_recording.anomalies)
    assert f">{offset}<" in page(double_failover_recording.write(tmp_path / "run", verdict))


def test_a_verdict_that_leaves_out_what_is_not_needed_is_drawn(tmp_path: Path, double_failover_recording: Any) -> None:
    directory = double_failover_recording.write(tmp_path / "run", RunVerdict("", Outcome.VIOLATION, "python"))
    charge = {"kind": "lost-write", "verdict": "VIOLATION", "why": "it is gone.", "of_another_version": 1}
    charge |= {"topic": "ledger", "partition": 0, "offset": 3, "value": None, "leader_epoch": None}
    document = {"run": "r", "outcome": "violation", "engine": "python", "anomalies": [charge]}
    (directory / "verdict.json").write_text(json.dumps(document))
    assert "it is gone." in page(directory)


def test_files_whose_names_are_no_text_are_listed(tmp_path: Path, double_failover_recording: Any) -> None:
    directory = double_failover_recording.write(tmp_path / "run", RunVerdict("", Outcome.PASS, "python"))
    (directory / os.fsdecode(b"notes-\xff")).touch()
    assert "notes-\N{REPLACEMENT CHARACTER}" in page(directory)


@pytest.mark.parametrize("name", ["loss", "random_page"])
def test_the_page_is_well_formed_and_refers_to_nothing_outside_itself(
    name: str, request: pytest.FixtureRequest
) -> None:
    html = request.getfixturevalue(name)
    ids = {element.get("id") for element in tree(html).iter()}
    for element in tree(html).iter():
        assert element.tag.rpartition("}")[2] not in {"link", "img", "iframe", "image", "use", "object"}
        for attribute, value in element.items():
            if attribute.rpartition("}")[2] in {"href", "src", "srcset", "action", "data"}:
                assert value.startswith("#"), value
                assert value[1:] in ids, value
    assert set(re.findall(r"url\((.*?)\)", html)) <= {"#hatch-dead", "#hatch-paused"}
    assert "@import" not in html
    assert set(re.findall(r"https?://[^\"' ]+", html)) <= {"http://www.w3.org/2000/svg"}


def test_every_strip_says_in_words_what_it_shows(loss: str) -> None:
    strips = [s for s in tree(loss).iter("{http://www.w3.org/2000/svg}svg") if s.get("class") == "strip"]
    strips = [s for s in strips if (s.get("aria-label") or "").startswith("Time strip")]
    assert len(strips) == 2, "a close-up and the whole run"
    for strip in strips:
        assert strip.get("role") == "group"
        assert "39 sends, 1 of them in anomalies, 3 elections, 2 truncations" in (strip.get("aria-label") or "")


def test_partitions_without_a_strip_are_counted(random_page: str) -> None:
    assert "8 partitions left out" in words(random_page)


def test_the_page_of_many_partitions_stays_under_the_cap(random_page: str) -> None:
    assert len(random_page.encode()) <= SIZE_CAP


def test_a_page_that_would_be_too_large_is_drawn_more_coarsely_and_says_so(
    random_run_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reports.page.SIZE_CAP", 400_000)
    html = page(random_run_directory)
    assert len(html.encode()) <= 400_000
    assert "drawn more coarsely" in words(html)


def test_many_anomalies_become_ranges_and_the_rest_is_counted(tmp_path: Path, double_failover_recording: Any) -> None:
    run = [lost_write(offset) for offset in range(500)]
    holes = [lost_write(offset) for offset in range(1000, 2000, 2)]
    verdict = RunVerdict("", Outcome.VIOLATION, "python", [*run, *holes])
    html = page(double_failover_recording.write(tmp_path / "run", verdict))
    said = words(html)
    assert "1,000 acknowledged writes lost" in said
    assert "ledger-0 offsets 0 to 499 (500), offset 1000, offset 1002," in said
    assert "and 489 more places: see findings.csv" in said
    assert "495 more lost ranges of it, without a story here." in said
    rows = (tmp_path / "run" / "findings.csv").read_text().splitlines()
    assert len(rows) == 1 + 1000
    assert len(html.encode()) <= SIZE_CAP


def test_anomalies_that_the_checker_counted_but_did_not_list_are_told_of(
    tmp_path: Path, double_failover_recording: Any
) -> None:
    verdict = RunVerdict("", Outcome.VIOLATION, "python", [lost_write(1)], counts={"lost-write": 900})
    said = words(page(double_failover_recording.write(tmp_path / "run", verdict)))
    assert "VIOLATION: 900 acknowledged writes were lost" in said
    assert "and 899 more of this kind; verdict.json has the evidence of 1, findings.csv lists all." in said


def test_ranges_and_marks_are_of_all_that_is_lost_and_not_of_the_examples(
    tmp_path: Path, double_failover_recording: Any
) -> None:
    r = double_failover_recording
    for offset in range(30, 400):
        r.send(9.0 + offset / 1000, 2000 + offset, offset)
    examples = [lost_write(30, value=2030), lost_write(31, value=2031)]
    extents = [replace(one, count=270) for one in extents_of(examples, [(30, 230), (300, 370)])]
    verdict = RunVerdict("", Outcome.VIOLATION, "python", examples, counts={"lost-write": 270}, extents=extents)
    said = words(page(r.write(tmp_path / "run", verdict)))
    assert "VIOLATION: 270 acknowledged writes were lost" in said
    assert "offsets 30 to 229: 2030 to 2229 (200 records)" in said
    assert "offsets 300 to 369: 2300 to 2369 (70 records)" in said
    assert "270 lost records acknowledged" in said
    assert "verdict.json has the evidence of 2, findings.csv lists all." in said
    rows = [line.split(",") for line in (tmp_path / "run" / "findings.csv").read_text().splitlines()[1:]]
    assert [int(row[5]) for row in rows] == [*range(30, 230), *range(300, 370)]


def test_anomalies_at_ranges_that_are_only_counted_are_told_of(tmp_path: Path, double_failover_recording: Any) -> None:
    examples = [lost_write(20, value=1020)]
    [extent] = extents_of(examples)
    extent = replace(extent, count=501, more_ranges=3, in_more_ranges=500)
    verdict = RunVerdict("", Outcome.VIOLATION, "python", examples, counts={"lost-write": 501}, extents=[extent])
    said = words(page(double_failover_recording.write(tmp_path / "run", verdict)))
    assert "ledger-0 offset 20, 3 more ranges from offset 21 on (500)" in said
    assert "500 of the anomalies are at offsets that verdict.json only counts; their sends are not marked." in said


def test_missing_tables_are_told_of_and_not_an_error(tmp_path: Path, double_failover_recording: Any) -> None:
    verdict = RunVerdict("", Outcome.INVALID, "python", [lost_write(5)], ["the history is incomplete."])
    directory = double_failover_recording.write(tmp_path / "run", verdict)
    (directory / "faults.parquet").unlink()
    (directory / "replica_logs" / "part-00000.parquet").unlink()
    (directory / "timeline" / "part-00000.parquet").write_bytes(b"PAR1 torn")
    said = words(page(directory))
    assert said.count("Not looked at:") == 3
    assert "Which faults were injected is not known here." in said
    assert "No fault was" not in said
    assert "What the brokers' disks hold was not looked at: see the top." in said
    assert "What the nodes reported was not looked at: see the top." in said
    assert "what removed it is not known" not in said


def test_a_run_in_which_nothing_happened_has_a_report(tmp_path: Path, new_recording: Callable[[Manifest], Any]) -> None:
    recording = new_recording(Manifest("empty", "empty", 1, "2026-01-01T00:00:00+00:00", state="abandoned"))
    said = words(page(recording.write(tmp_path / "run", RunVerdict("", Outcome.INVALID, "python"))))
    assert "No fault was injected." in said
    assert "The run is abandoned, not complete." in said
    assert "No table names a partition." in said


def test_an_anomaly_without_a_place_is_listed(tmp_path: Path, double_failover_recording: Any) -> None:
    stray = Anomaly("two-leaders", Verdict.VIOLATION, None, None, None, None, None, "two brokers led.")
    html = page(double_failover_recording.write(tmp_path / "run", RunVerdict("", Outcome.VIOLATION, "python", [stray])))
    assert "two brokers led." in words(html)


def test_a_run_that_was_not_checked_is_refused_with_a_sentence(tmp_path: Path, double_failover_recording: Any) -> None:
    directory = double_failover_recording.write(tmp_path / "run", RunVerdict("", Outcome.PASS, "python"))
    (directory / "verdict.json").unlink()
    with pytest.raises(InvalidRun, match=r"verdict\.json is missing: the run has not been checked"):
        reports.write(directory)


def test_the_same_run_directory_gives_the_same_report(random_run_directory: Path, random_page: str) -> None:
    assert page(random_run_directory) == random_page


def test_a_table_that_is_too_large_to_be_drawn_is_said(
    double_failover_run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "MOST_ROWS", 5)
    html = page(double_failover_run)
    said = words(html)
    assert re.search(r"Checked, but not drawn: the \d+ rows of history\.", said)
    for table in ("What clients were acknowledged and what they read", "What the nodes reported"):
        assert f"{table} was not looked at: see the top." in said
    for lie in ("no acknowledgement", "There was no final read", "what removed it is not known", "100.0 %", " sends, "):
        assert lie not in html
    assert "Latency Not known: the history is not drawn, see the top." in said
    assert '<table class="logs">' not in html


def test_the_story_of_a_run_that_is_too_large_to_be_drawn_is_the_checkers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    story = Story()
    for _ in range(5):
        story.send()
    story.cut(1, 2)
    story.elect(1)
    directory = story.finish().write(tmp_path / "run")
    monkeypatch.setattr(run, "MOST_ROWS", 5)
    assert main(["check", str(directory), "--engine", "reference"]) == ExitCode.VIOLATION
    said = words((directory / "report.html").read_text())
    assert re.search(r"Story of ledger-0, offsets 2 to 4: \d+ and 2 more ", said)
    assert re.search(
        r"Acknowledged within [\d.]+ s: offsets 2 to 4 \(acks=all\), by broker 0\. \[verdict\.json\]", said
    )
    assert "the last copy went when node 2 cut it off" in said
    assert "There was no final read" not in said
