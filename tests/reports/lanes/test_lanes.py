"""Lanes: nothing rare is dropped, and what is drawn stands where it belongs."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from harness.model import NO_NODE, TopicPartition
from reports.lanes import faults, isr, leadership, sends, watermarks
from reports.lanes.frame import LEFT, RIGHT, Frame, Outage
from reports.rows import Change, Fault, Send, State, Truncation
from reports.run import PartitionRows
from reports.scale import Window

FRAME = Frame(Window(0, 0, 1000), (0, 1, 2), 50)


def send(time: int, type_: str = "ok", value: int = 1) -> Send:
    return Send(time, time, 0, type_, time, time, time, value, -1, None)


def state(time: int, node: int, term: tuple[int, int], marks: tuple[int, int] = (0, 0)) -> State:
    (leader, epoch), (mark, end) = term, marks
    role = "leader" if node == leader else "follower"
    return State(node, time, time, "state", role, leader, epoch, mark, end, 0, (0, 1))


def known(states: list[State], changes: tuple[Change, ...] = ()) -> PartitionRows:
    by_node = {node: [s for s in states if s.node == node] for node in (0, 1, 2)}
    return PartitionRows(TopicPartition("t", 0), [], by_node, [], changes)


def fault(name: str, start: int, end: int | None, proven: int | None) -> Fault:
    return Fault(name, "kill", ("1",), "{}", start, "{}", start, proven, "gone", end, end, None)


def test_accused_sends_are_marked_even_among_thousands() -> None:
    many = [send(i // 10, value=i) for i in range(10_000)]
    body = sends.lane(FRAME, many, sends.Charges({5077: ["lost-write"]}, {5077: 3})).body
    assert body.count('class="glyph lost"') == 1
    assert "value 5077 at offset 507" in body
    assert 'href="#incident-3"' in body


def test_accused_sends_that_share_a_mark_say_how_many_they_are() -> None:
    body = sends.lane(
        FRAME, [send(500, value=i) for i in range(30)], sends.Charges({i: ["lost-write"] for i in range(30)})
    ).body
    assert body.count('class="glyph lost"') == 1
    assert ">30</text>" in body


def test_sends_of_unknown_and_of_refused_outcome_have_rows_of_their_own() -> None:
    body = sends.lane(FRAME, [send(1), send(200, "info"), send(300, "fail"), send(400, "fail")], sends.Charges({})).body
    assert (body.count('class="ok"'), body.count('class="glyph info"'), body.count('class="glyph fail"')) == (1, 1, 2)
    assert "anomaly" not in body


def test_every_truncation_is_named_however_many_share_a_mark() -> None:
    cuts = [Truncation(1, i, 500, 20 + i, 10 + i, "divergence") for i in range(20)]
    body = watermarks.truncations(FRAME, cuts).body
    assert all(f"broker 1 truncated {20 + i} to {10 + i} (divergence)" in body for i in range(20))
    assert "20 cuts" in body


def test_a_line_breaks_where_its_broker_did_not_run_and_does_not_carry_the_old_value_over() -> None:
    states = [state(0, 1, (0, 0), (5, 5)), state(800, 1, (0, 0), (9, 9))]
    body = watermarks.lane(FRAME, known(states), [Outage(1, 300, 700, "killed")], 100).body
    paths = re.findall(r'<path d="M([\d.]+) [\d.]+H([\d.]+)" class="hw b1"/>', body)
    assert [(float(a), float(b)) for a, b in paths] == [
        (FRAME.x(0), FRAME.x(300)),
        (FRAME.x(800), FRAME.x(1000)),
    ]


def test_a_paused_broker_keeps_its_line() -> None:
    states = [state(0, 1, (0, 0), (5, 5))]
    body = watermarks.lane(FRAME, known(states), [Outage(1, 300, 700, "paused")], 100).body
    assert body.count('class="hw b1"') == 1


def test_a_hover_column_tells_every_brokers_exact_numbers() -> None:
    body = watermarks.lane(FRAME, known([state(0, 0, (0, 0), (4, 5)), state(1, 1, (0, 0), (3, 5))]), [], 100).body
    assert "broker 0: hw 4, log end 5\nbroker 1: hw 3, log end 5" in body


def test_two_brokers_that_both_believed_to_lead_have_two_full_bands() -> None:
    states = [state(0, 0, (0, 0)), state(500, 1, (1, 1))]
    body = leadership.lane(FRAME, known(states), [], {}).body
    assert 'class="band b0"' in body
    assert 'class="band b1"' in body
    assert "broker 0: broker 0 leads, epoch 0, 0.000 s to 0.000 s (leader)" in body


def test_what_a_broker_believed_before_it_was_started_again_is_void() -> None:
    (first, second) = leadership.believed([state(0, 0, (0, 0)), state(900, 0, (1, 1))], 1000, [700])
    assert (first.start_ns, first.end_ns) == (0, 700)
    assert (second.start_ns, second.end_ns, second.leads) == (900, 1000, False)


def test_an_unclean_election_is_called_so() -> None:
    election = Change("election", 0, 100, 2, 3, (2,), False, "no ISR member is live")
    (term,) = leadership.decided([election], 1000)
    assert term.why == "UNCLEAN election, ISR {2}: no ISR member is live"


def test_the_isr_is_the_controllers_word_where_it_spoke_and_else_the_leaders() -> None:
    believing = known([state(0, 0, (0, 0))])
    assert [v.source for v in isr.versions(believing, 1000)] == ["broker 0 as leader"]
    change = Change("isr", 0, 100, 0, 0, (0,), None, "")
    assert isr.versions(known([state(0, 0, (0, 0))], changes=(change,)), 1000)[0].members == (0,)
    assert not isr.versions(known([]), 1000)


def test_faults_that_overlap_get_rows_of_their_own() -> None:
    apart = faults.lane(FRAME, [fault("a", 0, 100, 1), fault("b", 600, 700, 601)])
    together = faults.lane(FRAME, [fault("a", 0, 500, 1), fault("b", 100, 700, 601)])
    assert together.height == 2 * apart.height


def test_faults_that_are_too_many_to_be_named_have_a_row_for_each_kind() -> None:
    many = [fault(f"f{number}", 100, 900, 101) for number in range(40)]
    crowded = faults.lane(FRAME, many)
    assert f"40 {many[0].kind}" in crowded.gutter
    assert crowded.body.count("fault-proven") == 40
    assert faults.label(many[0]) not in crowded.body
    assert faults.title(FRAME, many[39]).splitlines()[0] in crowded.body
    assert crowded.height < faults.lane(FRAME, many[:5]).height


def test_a_fault_that_was_never_healed_lasts_to_the_end() -> None:
    body = faults.lane(FRAME, [fault("a", 500, None, 500)]).body
    assert f'x="{(LEFT + RIGHT) / 2:.0f}" y="13" width="{(RIGHT - LEFT) / 2:.0f}"' in body
    assert "healed never" in body


@pytest.mark.parametrize(("proven", "class_"), [(510, "fault-proven"), (None, "fault-unproven")])
def test_an_unproven_fault_looks_different(proven: int | None, class_: str) -> None:
    body = faults.lane(FRAME, [fault("a", 500, 900, proven)]).body
    assert class_ in body
    assert ("UNPROVEN" in body) == (proven is None)


def test_a_lane_without_rows_says_so() -> None:
    nothing = known([])
    assert "none" in faults.lane(FRAME, []).body
    assert "unknown" in isr.lane(FRAME, nothing).body
    assert "none" in watermarks.truncations(FRAME, []).body


def told(time: int, leader: int, epoch: int | None, mark: int | None) -> State:
    """What the cluster told a client; without an epoch there was no answer for the watermark."""
    role = None if epoch is None else "leader"
    return State(NO_NODE, time, time, "metadata", role, leader, epoch, mark, None, None, (0, 1))


def test_what_clients_were_told_is_drawn_by_leader_and_epoch_and_a_leader_without_an_answer_is_thin() -> None:
    states = [told(0, 0, 0, 5), told(300, 0, 0, 9), told(500, 0, None, None), told(700, 1, 1, 9)]
    body = leadership.told(FRAME, states).body
    assert "as clients were told: broker 0 leads, epoch 0" in body
    assert (body.count('class="band b0"'), body.count('class="follows b0"'), body.count('class="band b1"')) == (1, 1, 1)
    lane = watermarks.told(FRAME, states, 100)
    assert ("told in epoch 0: 5 to 9" in lane.body, "told in epoch 1: 9 to 9" in lane.body) == (True, True)
    assert "told 9</text>" in lane.gutter
    assert isr.versions(replace(known([]), told=states), 1000)[0].source == "as clients were told"
