"""Whatever a file holds, an import ends with a run directory or with a sentence, and with nothing left behind."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkers import check
from harness.errors import InvalidRun, SeawallError
from harness.jepsen import Assumptions, import_history, reading
from tests.harness.jepsen.conftest import assigned, lines, nothing_more, polled, sent

WHOLE = lines(
    "1 invoke txn [[:send 4 1] [:poll]]",
    "1 ok txn [[:send 4 [0 1]] [:poll {4 [[0 1]]}]], :rebalance-log [{:type :assigned, :keys [4]}]",
    *sent(1, 4, 17, 1),
    ":nemesis info start nil",
    *assigned(3, "4", seek=True),
    *polled(3, "4 [[0 1] [1 17]]"),
    *nothing_more(3),
)
TOKENS = ["[", "]", "{", "}", "nil", ":poll", ":send", ":value", '"', "#a", "\\", "NaN", "true", "{4 [[0 1]]}"]
NUMBERS = ["-1", "2147483648", "9223372036854775807", "1.5", "9" * 5_000]
BROKEN = ["[" * 2_000, ":index 0", ":type :info", "\n", "\0", "\ud800"]
WORDS = st.sampled_from([*TOKENS, *NUMBERS, *BROKEN])
CUTS = st.lists(st.tuples(st.integers(0, len(WHOLE)), st.integers(0, 12), WORDS | st.text(max_size=3)), max_size=4)


def mutated(cuts: list[tuple[int, int, str]]) -> bytes:
    """A history with words in the place of some of its characters."""
    text = WHOLE
    for at, length, word in cuts:
        text = text[:at] + word + text[at + length :]
    return text.encode(errors="surrogatepass")


def imported(history: bytes, *, judged: bool = False) -> None:
    """Import a history, and leave nothing when that is refused."""
    with TemporaryDirectory() as place:
        path, out = Path(place, "history.edn"), Path(place, "run")
        path.write_bytes(history)
        try:
            import_history(path, out, Assumptions())
        except SeawallError as refused:
            assert str(path) in str(refused)  # noqa: PT017 - not always raised
            assert not out.exists()
            return
        if judged:
            check([out], engine="reference")


def test_the_history_that_is_mutated_is_sound(tmp_path: Path) -> None:
    (tmp_path / "history.edn").write_text(WHOLE)
    assert import_history(tmp_path / "history.edn", tmp_path / "run", Assumptions()).final_read


@settings(max_examples=300)
@given(CUTS.map(mutated))
def test_a_mutated_history_is_imported_and_judged_or_refused(history: bytes) -> None:
    imported(history, judged=True)


@given(st.binary(max_size=200) | st.text('{}[]():,; \n"\\#-0129abcdeinoptx', max_size=200).map(str.encode))
def test_any_bytes_are_imported_or_refused(history: bytes) -> None:
    imported(history)


@pytest.mark.parametrize(
    "line",
    [
        "{:index " + "9" * 200_000 + "}",
        "{:type :invoke, :f :poll, :process 0, :value [[:poll {0 [" + "[0 1] " * 50_000 + "]}]]}",
        '{:value "' + "x" * 200_000,
    ],
    ids=["digits", "records", "text"],
)
@pytest.mark.parametrize("before", ["", WHOLE], ids=["alone", "at the end"])
def test_a_line_beyond_the_limit_is_refused_without_being_read(
    line: str, before: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_LINE_BYTES", 10_000)
    monkeypatch.setattr(reading, "_BLOCK_BYTES", 5_000)
    path = tmp_path / "history.edn"
    path.write_text(before + line)
    number = before.count("\n") + 1
    tracemalloc.start()
    try:
        with pytest.raises(InvalidRun, match=rf"history\.edn, line {number} has more than 10,000 bytes\."):
            import_history(path, tmp_path / "run", Assumptions())
        assert tracemalloc.get_traced_memory()[1] < 20 * len(line)
    finally:
        tracemalloc.stop()
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("digits", [20, 1_000, 5_000])
@pytest.mark.parametrize(
    "line",
    [
        "{:index N, :time 1, :type :invoke, :process 0, :f :send, :value [[:send 0 1]]}",
        "{:index 0, :time N, :type :invoke, :process 0, :f :send, :value [[:send 0 1]]}",
        "{:time N, :index 0, :type :invoke, :process 0, :f :send, :value [[:send 0 1]]}",
        "{:index 0, :time 1, :type :invoke, :process N, :f :send, :value [[:send 0 1]]}",
        "{:index 0, :time 1, :type :invoke, :process 0, :f :send, :value [[:send N 1]]}",
        "{:index 0, :time 1, :type :invoke, :process 0, :f :send, :value [[:send 0 N]]}",
        "{:index 0, :time 1, :type :ok, :process 0, :f :poll, :value [[:poll {0 [[N 1]]}]]}",
        "{:index 0, :time 1, :type :invoke, :process 0, :f :assign, :value [N]}",
        "{:time 1, :type :ok, :process 0, :f :poll, :value [[:poll {}]], :rebalance-log [{:type :lost, :keys [N]}]}",
    ],
)
def test_a_number_of_any_length_is_read_or_refused(line: str, digits: int) -> None:
    imported(line.replace("N", "9" * digits).encode())
    imported((WHOLE + line.replace("N", "9" * digits) + "\n").encode())


@pytest.mark.parametrize("block", [1, 7, 64, 1 << 20])
def test_the_final_phase_is_found_whatever_the_blocks_in_which_it_is_looked_for(
    block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "history.edn").write_text(WHOLE)
    monkeypatch.setattr(reading, "_BLOCK_BYTES", block)
    begin = WHOLE.rindex("\n", 0, WHOLE.rindex(":f :send")) + 1
    assert reading._end_phase(tmp_path / "history.edn") == begin


@pytest.mark.parametrize("link", ["nowhere.edn", "history.edn"])
def test_a_history_that_is_not_there_is_refused_as_a_run_directory_is(link: str, tmp_path: Path) -> None:
    (tmp_path / "history.edn").symlink_to(link)
    with pytest.raises(InvalidRun, match=r"history\.edn cannot be read: (No such file|Too many levels)"):
        import_history(tmp_path / "history.edn", tmp_path / "run", Assumptions())


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "history.edn")
    with pytest.raises(InvalidRun, match=r"history\.edn cannot be read: it is a pipe, and only regular files are"):
        import_history(tmp_path / "history.edn", tmp_path / "run", Assumptions())
