"""Files that would block, never end, or grow beyond memory are refused before anything is built of them."""

from __future__ import annotations

import json
import os
import socket
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness import documents
from harness.documents import BeyondLimits, Unfit, content, json_document, json_file, opened, require_yaml, text
from harness.documents import yaml_document as read_yaml
from harness.errors import UsageError
from harness.validation import shortened

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def bomb(levels: int) -> str:
    """A list of nine lists of nine lists ... as aliases."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, levels)]
    return "\n".join(lines)


def pipe(path: Path) -> None:
    os.mkfifo(path)


def directory(path: Path) -> None:
    path.mkdir()


def device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("read", [opened, lambda path: content(path, 10), text, json_file, documents.require_regular])
@pytest.mark.parametrize(("make", "what"), [(pipe, "a pipe"), (directory, "a directory"), (device, "a device")])
def test_what_is_no_regular_file_is_refused_and_not_waited_for(
    read: Callable[[Path], Any], make: Callable[[Path], None], what: str, tmp_path: Path
) -> None:
    make(tmp_path / "x")
    with pytest.raises(Unfit, match=f"it is {what}, and only regular files are read"):
        read(tmp_path / "x")


def test_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("x")
        with pytest.raises(Unfit, match="it is a socket"):
            documents.require_regular(Path("x"))


def test_a_file_over_its_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a hole, which takes no room on the disk
    tracemalloc.start()
    try:
        with pytest.raises(Unfit, match="it has more than 1,048,576 bytes"):
            text(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_file_that_the_system_gives_no_size_is_read_up_to_the_limit() -> None:
    path = Path("/proc/self/status")
    assert content(path, 1 << 20).startswith(b"Name:")
    with pytest.raises(Unfit, match="it has more than 5 bytes"):
        content(path, 5)


def test_a_file_of_just_the_size_is_read(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    assert content(tmp_path / "x", 5) == b"12345"


# ------------------------------------------------------------------------------------------------------------- YAML


@pytest.mark.parametrize("read", [lambda text: read_yaml(text, "my.yaml"), lambda text: require_yaml(text, "my.yaml")])
@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        (bomb(9), "line 5: it holds more than 50,000 values, each as often as it is repeated."),
        ("a:\n" + "- x\n" * 50_000, ": it holds more than 50,000 values"),
        ("a: " + "[" * 100_000, "line 1: it is nested more than 64 deep."),
        ("- " * 1_000 + "x", "line 1: it is nested more than 64 deep."),
        ("a: &a\n- b: *a", "line 2: the alias 'a' stands for something that contains itself."),
        ("a: 1" + ":59" * 200_000, "line 1: it has a number of 600,001 characters."),
        ("a: [", "line 1: this is not valid YAML: "),
        ("a: \0", " is not valid YAML: "),
    ],
    ids=["aliases", "values", "brackets", "dashes", "itself", "sexagesimal", "unclosed", "unprintable"],
)
def test_yaml_beyond_the_limits_is_refused_with_its_line(
    read: Callable[[str], object], document: str, complaint: str
) -> None:
    with pytest.raises(UsageError) as refused:
        read(document)
    assert str(refused.value).startswith("my.yaml")
    assert complaint in str(refused.value)


def test_aliases_within_the_limits_stand_for_what_they_name() -> None:
    assert read_yaml("a: &a [1, 2]\nb: [*a, *a]", "x") == {"a": [1, 2], "b": [[1, 2], [1, 2]]}


def test_what_an_alias_repeats_counts_as_often_as_it_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    document = "a: &a [1, 2]\nb: [*a, *a]"  # the mapping, a, [1, 2], b, and a list of two lists of two
    monkeypatch.setattr(documents, "MOST_YAML_VALUES", 13)
    assert read_yaml(document, "x")
    monkeypatch.setattr(documents, "MOST_YAML_VALUES", 12)
    with pytest.raises(BeyondLimits, match=r"x, line 2: it holds more than 12 values"):
        read_yaml(document, "x")


@given(st.text() | st.text("[]{}&*a:-?!,#|> \n'\"0").map(lambda text: text * 3))
def test_any_text_is_yaml_or_refused_in_a_sentence(document: str) -> None:
    for read in (read_yaml, require_yaml):
        try:
            read(document, "x")
        except UsageError as refused:
            assert str(refused).startswith("x")  # noqa: PT017 - not always raised


@given(PLAIN)
def test_what_was_written_as_yaml_is_read_as_it_was(value: object) -> None:
    written = yaml.safe_dump(value, allow_unicode=False)
    assert read_yaml(written, "x") == yaml.safe_load(written)


# ------------------------------------------------------------------------------------------------------------- JSON


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        (b'{"a":' * 50_000, "it is no JSON: recursion limit exceeded"),
        (b"[" + b"[]," * 2_000_000 + b"1]", "it holds more than 2,000,000 values"),
        (b"[" + b"9" * 5_000 + b"]", "it is no JSON: number out of range"),
        (
            b'{"a": [1, 9223372036854775808]}',
            "it holds the number 9223372036854775808, which does not fit into 64 bits",
        ),
        (b"[" + b"9" * 4_000 + b"]", "it holds the number 9999"),
        (b"[1e400]", "it holds a number that does not fit into 64 bits"),
        (b"[-1e400]", "it holds a number that does not fit into 64 bits"),
        (b"[NaN]", "it is no JSON: expected value"),
        (b'["\\ud800"]', "it is no JSON: "),
        (b"\xff\xfe{}", "it is no JSON: "),
        (b"", "it is no JSON: "),
    ],
    ids=["deep", "values", "digits", "large", "huge", "infinite", "below", "nan", "surrogate", "utf-16", "empty"],
)
def test_json_beyond_the_limits_is_refused(document: bytes, complaint: str) -> None:
    with pytest.raises(Unfit) as refused:
        json_document(document)
    assert str(refused.value).startswith(complaint)


@given(PLAIN)
def test_what_was_written_as_json_is_read_as_it_was(value: object) -> None:
    assert json_document(json.dumps(value, ensure_ascii=False).encode(errors="surrogatepass")) == value


@given(st.binary() | st.text('[]{}":,0129eE+-.truefalsn\\u ').map(str.encode))
def test_any_bytes_are_json_or_refused(document: bytes) -> None:
    try:
        found = json_document(document)
        assert repr(found) == repr(json.loads(document))
    except Unfit as refused:
        assert str(refused).startswith(("it is no JSON: ", "it holds "))  # noqa: PT017 - not always raised


# ---------------------------------------------------------------------------------------------------------- messages


def test_no_more_of_a_value_is_looked_at_than_is_shown() -> None:
    value: object = "x"
    for _ in range(60):
        value = [value] * 9
    assert shortened(value) == "[[[[[...], [...], [...], [...], [...], [...], [...], [...], "
    assert shortened({"a": "b"}) == "{'a': 'b'}"
    assert len(shortened("x" * 1_000)) == 60
