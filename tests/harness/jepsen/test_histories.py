from __future__ import annotations

from pathlib import Path

import pytest

from harness.errors import InvalidRun, UsageError
from harness.history.run_directory import RunDirectory
from harness.jepsen import Assumptions, Imported, export_history, import_history
from tests.checkers.clients import Polled, Sent, burst, poll, transact
from tests.checkers.story import Story
from tests.harness.jepsen.conftest import assigned, lines, polled, sent

EXAMPLE = [
    *assigned(0, "4 5"),
    *sent(1, 4, 17, 0),
    *polled(0, "4 [[0 17]]"),
    ":nemesis info kill :one",
    ':nemesis info kill {"n1" :killed}',
    "2 invoke debug-topic-partitions [4 5]",
    '2 ok debug-topic-partitions {4 {:leader "n1 {"}}',
    "1 invoke send [[:send 5 18]]",
    "1 info send [[:send 5 18]], :error :timeout",
    "3 invoke txn [[:poll] [:send 5 19]]",
    "3 ok txn [[:poll {}] [:send 5 [3 19]]], :rebalance-log [{:type :revoked, :keys [4 5]}]",
    "4 invoke send [[:send 4 20]]",
    '4 fail send [[:send 4 20]], :error [:definite "no {such} \\"topic\\""]',
    "0 invoke crash nil",
    "0 info crash nil",
    *assigned(6, "4 5", seek=True),
    *polled(6, "4 [[0 17]], 5 [[3 19]]"),
]


def imported(tmp_path: Path, text: str) -> tuple[Imported, RunDirectory]:
    (tmp_path / "history.edn").write_text(text)
    found = import_history(tmp_path / "history.edn", tmp_path / "run", Assumptions())
    return found, RunDirectory.open(tmp_path / "run")


def test_an_import_tells_what_the_history_tells(tmp_path: Path) -> None:
    found, directory = imported(tmp_path, lines(*EXAMPLE))
    assert found == Imported(operations=9, rows=28, ignored=3, final_read=True)
    rows = directory.read_table("history")
    assert [row["index"] for row in rows] == list(range(28))
    told = [(r["process"], r["type"], r["f"], r["partition"], r["offset"], r["value"], r["final"]) for r in rows]
    assert (1, "ok", "send", 4, 0, 17, False) in told
    assert (1, "info", "send", 5, None, 18, False) in told
    assert (4, "ok", "poll", 5, 3, 19, True) in told
    txn = [(r["type"], r["f"], r["mop"], r["partition"], r["value"]) for r in rows if r["txn"]]
    assert txn == [
        ("invoke", "poll", 0, None, None),
        ("invoke", "send", 1, 5, 19),
        ("info", "revoked", 0, 4, None),
        ("info", "revoked", 0, 5, None),
        ("ok", "poll", 0, None, None),
        ("ok", "send", 1, 5, 19),
    ]
    assert {r["error"] for r in rows} == {None, ":timeout", '[:definite "no {such} \\"topic\\""]'}


def test_what_is_exported_is_imported_as_it_was(tmp_path: Path) -> None:
    _, first = imported(tmp_path, lines(*EXAMPLE))
    export_history(first, tmp_path / "again.edn")
    import_history(tmp_path / "again.edn", tmp_path / "again", Assumptions())
    again = RunDirectory.open(tmp_path / "again")

    def told(directory: RunDirectory) -> list[tuple[object, ...]]:
        names = ("process", "type", "f", "partition", "value", "txn", "mop", "error", "final")
        return [tuple(row[name] for name in names) for row in directory.read_table("history")]

    assert told(first) == told(again)


def test_fields_may_come_in_any_order_and_with_tags(tmp_path: Path) -> None:
    text = (
        '#jepsen.history.Op{:process 0 :f :send, :value [[:send 4 17]], :type :invoke, :at #inst "2026", :index 0}\n'
        '{:exception {:via [{:message "} \\" ]"}]}, :process 0, :f :send, :value [[:send 4 [0 17]]], '
        ":type :ok, :index 1}\n"
    )
    found, _ = imported(tmp_path, text)
    assert (found.operations, found.rows) == (1, 3)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            lines(*EXAMPLE).replace(":index 4,", ":index 6,"),
            "line 5: the history has a gap: operations 4 to 5 are missing",
        ),
        (lines(*EXAMPLE).replace(":index 4,", ":index 3,"), "line 5: :index 3 is there twice"),
        (lines(*EXAMPLE)[:-20], "line 22 ends within an operation"),
        (lines(*EXAMPLE)[:-3] + "\n", "line 22 ends within an operation"),
        (lines("0 invoke send [[:send 4 x17]]"), "line 1: 'x17' is not part of a send"),
        (lines("0 invoke send [[:append 4 17]]"), "line 1: ':append' is not part of a send"),
        (lines("0 invoke read [[:poll]]"), "line 1: :f :read is no operation of a Kafka history"),
        (lines("0 ok poll [[:poll {}]]"), "line 1 completes an operation of process 0 that never began"),
        (lines("0 invoke poll [[:poll]]", "0 invoke poll [[:poll]]"), "line 2: process 0 begins an operation before"),
        (
            lines("0 invoke poll [[:poll]]", "0 ok poll [[:poll {4 [[nil 3]]}]]"),
            "line 2: .* is no record with its offset",
        ),
        ("hello\n", "line 1 is no map: it begins with 'hello'. One operation per line is expected"),
        (";; a history\n" + lines(*EXAMPLE), "line 1 is no map: it begins with ';; a history'. One operation per line"),
        (lines(*EXAMPLE).replace(", :type", "\n, :type", 1), "line 1 ends within an operation. One operation per line"),
        (lines(*EXAMPLE).partition(" {such}")[0], "line 16 ends within an operation"),
        ("", "is empty"),
        ("\n \n", "has only blank lines"),
        (lines('0 invoke assign ["topic7-part2"]'), r"line 1: '\[\"topic7-part2\"\]' is no list of keys"),
        (lines('0 invoke subscribe ["shard4 of 5"]'), "line 1: .* is no list of keys"),
        (lines("0 invoke assign [4.5]"), "line 1: .* is no list of keys"),
        (lines("0 invoke assign nil"), "line 1: 'nil' is no list of keys"),
    ],
)
def test_what_is_no_whole_history_is_refused_with_the_line(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(InvalidRun, match=sentence):
        imported(tmp_path, text)
    assert not (tmp_path / "run").exists()


def test_a_large_history_is_written_in_parts_without_a_gap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.jepsen.reading.PART_ROWS", 10)
    sends = [line for value in range(30) for line in sent(1, 4, value, value)]
    _, directory = imported(tmp_path, lines(*sends))
    assert [row["index"] for row in directory.read_table("history")] == list(range(61))
    assert len(directory.table_files("history")) > 3


def test_an_export_leaves_out_what_jepsen_throws_on(tmp_path: Path) -> None:
    history = [*sent(1, 4, 17, 1000), *polled(2, "3 [], 4 [[1000 17] [2000 99]]"), *sent(1, 4, 18, 3000)]
    _, directory = imported(tmp_path, lines(*history))
    done = export_history(directory, tmp_path / "out.edn")
    values = [line.split(":value ")[1] for line in (tmp_path / "out.edn").read_text().splitlines()]
    assert done.left_out == 1
    assert values[3] == "[[:poll {4 [[0 17]]}]]}"
    assert values[5] == "[[:send 4 [2 18]]]}"
    assert values[-1] == "[[:poll {}]]}"


def test_an_export_ends_what_never_ended(tmp_path: Path) -> None:
    """To Jepsen's checker nobody sent what no completion tells of, and it throws where such a record is polled."""
    story = Story()
    story.send(result="invoke", process=3)
    story.poll(5, [0])
    story.row(process=5, op=next(story.ops), f="poll", type="invoke")
    directory = RunDirectory(story.finish().write(tmp_path / "run"))
    export_history(directory, tmp_path / "out.edn")
    lines = (tmp_path / "out.edn").read_text().splitlines()
    ended = [line.split(":process")[1] for line in lines if ":type :info" in line]
    assert ended == [" 0, :f :send, :value [[:send 0 0]]}", " 1, :f :poll, :value [[:poll]]}"]
    assert ":f :poll" in lines[-1]
    assert import_history(tmp_path / "out.edn", tmp_path / "again", Assumptions()).operations == 5


def test_each_send_of_a_burst_is_exported_as_an_operation_that_ends_by_itself(tmp_path: Path) -> None:
    story = Story()
    burst(story, 0, "info", 1, stored=(0, 2))
    story.poll(5, [0])
    directory = RunDirectory(story.finish().write(tmp_path / "run"))
    exported = export_history(directory, tmp_path / "out.edn")
    ended = [
        line.split(", :process ") for line in (tmp_path / "out.edn").read_text().splitlines() if ":f :send" in line
    ]
    kinds = [(line.split(":type :")[1], rest.split(" ", 1)[1]) for line, rest in ended]
    assert kinds[3:] == [
        ("ok", ":f :send, :value [[:send 0 [0 0]]]}"),
        ("info", ':f :send, :value [[:send 0 1]], :error "timeout"}'),
        ("ok", ":f :send, :value [[:send 0 [1 2]]]}"),
    ]
    assert len({rest.split(",")[0] for _, rest in ended}) == 3, "each has a process"
    assert (exported.operations, exported.left_out) == (5, 0)


def uncommitted(tmp_path: Path, result: str, isolation: str | None, *, within: bool = False) -> RunDirectory:
    """A run in which a consumer is given a record of a transaction that ends with ``result``."""
    story = Story()
    transact(story, Sent(0), result=result)
    if result == "invoke":
        story.append(0, 0, [1, 2])
    if within:
        transact(story, Polled([0], isolation=isolation))
    else:
        poll(story, 5, [0], isolation=isolation)
    return RunDirectory(story.finish().write(tmp_path / "run"))


@pytest.mark.parametrize(("result", "within"), [("fail", False), ("info", False), ("invoke", False), ("ok", True)])
def test_a_read_of_what_is_not_committed_that_was_allowed_is_not_exported_as_one_that_was_not(
    tmp_path: Path, result: str, *, within: bool
) -> None:
    directory = uncommitted(tmp_path, result, "read_uncommitted", within=within)
    with pytest.raises(UsageError, match="reads uncommitted records and was given value 0 of ledger-0") as refused:
        export_history(directory, tmp_path / "out.edn")
    assert refused.value.remedy
    assert not (tmp_path / "out.edn").exists()


@pytest.mark.parametrize(
    ("result", "isolation"), [("ok", "read_uncommitted"), ("fail", "read_committed"), ("info", None)]
)
def test_a_read_of_what_is_committed_and_one_that_was_not_allowed_are_exported(
    tmp_path: Path, result: str, isolation: str | None
) -> None:
    export_history(uncommitted(tmp_path, result, isolation), tmp_path / "out.edn")
    assert "[:poll {0 [[0 0]]}]" in (tmp_path / "out.edn").read_text()


@pytest.mark.parametrize("blank", [" ", "  ", "\t"])
def test_the_final_read_begins_after_the_last_send_however_that_is_spelled(tmp_path: Path, blank: str) -> None:
    read = [*assigned(9, "4", seek=True), *polled(9, "4 [[0 17]]")]
    text = lines(*sent(1, 4, 17, 0), *read, *sent(1, 4, 18, 1), *polled(9, "4 [[1 18]]"))
    found, _ = imported(tmp_path, text.replace(":f :send", f":f{blank}:send"))
    assert not found.final_read


def test_the_words_of_an_error_are_no_send(tmp_path: Path) -> None:
    final = [*assigned(9, "4", seek=True), *polled(9, "4 [[0 17]]")]
    error = ["9 invoke poll [[:poll]]", '9 info poll [[:poll]], :exception "no :f :send, and no :f :txn"']
    found, _ = imported(tmp_path, lines(*sent(1, 4, 17, 0), *final, *error))
    assert found.final_read


STRANGE = (
    (("[[:send 3000000000 1]]",), "line 1: key 3000000000 is no number from 0 to 2147483647."),
    (("[[:send -1 1]]",), "line 1: key -1 is no number from 0 to 2147483647."),
    (("[[:send true 1]]",), "line 1: key True is no number"),
    (
        ("[[:send 4 99999999999999999999]]",),
        "line 1: value 99999999999999999999 is no number from -9223372036854775807",
    ),
    (("[[:send 4 17]]", "[[:send 4 [-1 17]]]"), "line 2: offset -1 is no number from 0 to"),
    (
        ("[[:send 4 17]]", "[[:send 4 [0 18]]]"),
        "line 2 says [:send 4 18], and completes line 1, which says [:send 4 17].",
    ),
    (
        ("[[:send 4 17]]", "[[:send 5 [0 17]]]"),
        "line 2 says [:send 5 17], and completes line 1, which says [:send 4 17].",
    ),
    (("[[:poll]]", "[[:send 5 [0 17]]]"), "line 2 says [:send 5 17], and completes line 1, which says [:poll]."),
    (
        ("[[:send 4 1] [:send 4 2]]", "[[:send 4 [0 1]]]"),
        "line 2 has 1 micro-operations, and completes line 1, which has 2.",
    ),
    (("[[:poll]]", "[[:poll {4 [[-1 17]]}]]"), "line 2: offset -1 is no number from 0 to"),
    (("[[:poll]]", "[[:poll {3000000000 [[0 17]]}]]"), "line 2: key 3000000000 is no number"),
    (("[[:poll]]", "[[:poll {4 [[0 99999999999999999999]]}]]"), "line 2: value 99999999999999999999 is no number"),
    (("[[:poll]]", "[[:poll {4}]]"), "line 2: a poll has 4 without its records."),
    (("[[:poll]]", "[[:poll {4 5}]]"), "line 2: 5 is no list of records."),
)


@pytest.mark.parametrize(("values", "sentence"), STRANGE)
def test_numbers_that_are_none_and_completions_of_something_else_are_named_with_their_line(
    tmp_path: Path, values: tuple[str, ...], sentence: str
) -> None:
    told = [f"0 {kind} txn {value}" for kind, value in zip(("invoke", "ok"), values, strict=False)]
    with pytest.raises(InvalidRun) as refused:
        imported(tmp_path, lines(*told))
    assert refused.value.remedy
    assert refused.value.sentence.startswith(f"{tmp_path / 'history.edn'}, {sentence}")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        (
            "[{:type :moved, :keys [4]}]",
            "line 2: a rebalance of :type :moved is none of :assigned, :revoked and :lost.",
        ),
        ("[{:keys [4]}]", "line 2: a rebalance of :type nil is none of"),
        ("[{:type :revoked}]", "line 2: a rebalance has no :keys."),
        ('[{:type :revoked, :keys ["t4"]}]', "line 2: '[\"t4\"]' is no list of keys."),
        ("[:revoked]", "line 2: ':revoked]' is no rebalance."),
        (":revoked", "line 2: ':revoked' is no list of rebalances."),
    ],
)
def test_a_rebalance_that_is_none_is_named_with_its_line(tmp_path: Path, log: str, sentence: str) -> None:
    text = lines("0 invoke poll [[:poll]]", f"0 ok poll [[:poll {{}}]], :rebalance-log {log}")
    with pytest.raises(InvalidRun) as refused:
        imported(tmp_path, text)
    assert refused.value.sentence.startswith(f"{tmp_path / 'history.edn'}, {sentence}")


@pytest.mark.parametrize(
    "log", ["({:type :lost, :keys (4 5)})", "[{:keys #{5 4}, :type :lost},]", "[{:type :lost :keys [4, 5]}]"]
)
def test_a_rebalance_may_be_written_with_any_collection(tmp_path: Path, log: str) -> None:
    text = lines("0 invoke poll [[:poll]]", f"0 ok poll [[:poll {{}}]], :rebalance-log {log}")
    _, directory = imported(tmp_path, text)
    moved = [row["partition"] for row in directory.read_table("history") if row["f"] == "lost"]
    assert sorted(moved) == [4, 5]


RESENT = {
    "after a failure": ["1 invoke send [[:send 4 17]]", "1 fail send [[:send 4 17]]", *sent(1, 4, 17, 0)],
    "after nobody knows what": ["1 invoke send [[:send 4 17]]", "1 info send [[:send 4 17]]", *sent(2, 4, 17, 1)],
    "after an acknowledgement": [*sent(1, 4, 17, 0), *sent(2, 4, 17, 1)],
}


@pytest.mark.parametrize("resent", RESENT.values(), ids=RESENT)
def test_a_value_that_is_sent_twice_is_named_with_the_second_line(tmp_path: Path, resent: list[str]) -> None:
    with pytest.raises(InvalidRun) as refused:
        imported(tmp_path, lines(*resent))
    assert refused.value.sentence.endswith("line 3 sends value 17 to key 4, which was sent there before.")
    assert refused.value.remedy.startswith("Let the workload draw a new value for every send")


def test_a_value_that_is_sent_twice_in_one_transaction_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidRun, match="line 1 sends value 17 to key 4, which was sent there before"):
        imported(tmp_path, lines("1 invoke txn [[:send 4 17] [:send 4 17]]"))


def test_values_are_told_apart_whatever_they_are(tmp_path: Path) -> None:
    values = [0, -1, 1, -64, 63, 64, 65, 2**63 - 1, -(2**63) + 1, 2**40]
    sends = [line for key in (4, 5) for value in values for line in sent(1, key, value, None)]
    found, _ = imported(tmp_path, lines(*sends))
    assert found.operations == 2 * len(values)


@pytest.mark.parametrize("f", ["send", "crash"])
def test_a_process_that_goes_on_after_nobody_knows_what_is_named(tmp_path: Path, f: str) -> None:
    value = "[[:send 4 17]]" if f == "send" else "nil"
    with pytest.raises(InvalidRun, match="line 3: process 1 goes on after its operation that line 2 ended :info"):
        imported(tmp_path, lines(f"1 invoke {f} {value}", f"1 info {f} {value}", *sent(1, 4, 18, 0)))


@pytest.mark.parametrize("f", ["assign", "subscribe"])
def test_a_key_that_is_no_partition_s_is_named_wherever_it_is(tmp_path: Path, f: str) -> None:
    with pytest.raises(InvalidRun, match=r"history.edn, line 1: key 3000000000 is no number"):
        imported(tmp_path, lines(f"0 invoke {f} [3000000000]"))


def test_a_time_that_no_clock_says_is_named(tmp_path: Path) -> None:
    text = lines("0 invoke send [[:send 4 17]]").replace(":time 0", ":time 99999999999999999999")
    with pytest.raises(InvalidRun, match=r"history.edn, line 1: time 99999999999999999999 is no number"):
        imported(tmp_path, text)


@pytest.mark.parametrize(("end", "final"), [("info", True), ("fail", True), ("ok", False)])
def test_a_send_that_ends_during_the_final_read_does_not_undo_it_unless_it_is_acknowledged(
    tmp_path: Path, end: str, *, final: bool
) -> None:
    told = "[[:send 4 [1 18]]]" if end == "ok" else "[[:send 4 18]]"
    found, _ = imported(
        tmp_path,
        lines(
            *sent(1, 4, 17, 0), "1 invoke send [[:send 4 18]]", *assigned(6, "4", seek=True), f"1 {end} send {told}",
            *polled(6, "4 [[0 17]]"), *polled(6, ""),
        ),
    )  # fmt: skip
    assert found.final_read is final
