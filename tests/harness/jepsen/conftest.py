from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from checkers import check
from harness.checker import RunVerdict
from harness.jepsen import Assumptions, import_history

Verdicts = Callable[..., RunVerdict]


def lines(*operations: str) -> str:
    """A history: ``process type f value [more]`` by line, with index and time added: a second for each."""
    told = []
    for index, operation in enumerate(operations):
        process, kind, f, rest = operation.split(" ", 3)
        at = f":index {index}, :time {index * 1_000_000_000}"
        start = f"{{{at}, :type :{kind}, :process {process}, :f :{f}, :value {rest}}}"
        told.append(start)
    return "\n".join(told) + "\n"


def sent(process: int, key: int, value: int, offset: int | None) -> list[str]:
    """A send that was acknowledged."""
    known = "nil" if offset is None else offset
    return [f"{process} invoke send [[:send {key} {value}]]", f"{process} ok send [[:send {key} [{known} {value}]]]"]


def polled(process: int, records: str) -> list[str]:
    """A poll that was given ``records``, as in ``4 [[0 17]]``."""
    return [f"{process} invoke poll [[:poll]]", f"{process} ok poll [[:poll {{{records}}}]]"]


def nothing_more(process: int) -> list[str]:
    """Polls that are given nothing, for as long as it takes to say that there is no more."""
    return polled(process, "") * 4


def assigned(process: int, keys: str, *, seek: bool = False) -> list[str]:
    """An assign of ``keys``."""
    more = ", :seek-to-beginning? true" if seek else ""
    return [f"{process} {kind} assign [{keys}]{more}" for kind in ("invoke", "ok")]


@pytest.fixture
def judged(tmp_path: Path) -> Verdicts:
    """What the checker says of a history."""

    def judge(*operations: str, **assumptions: object) -> RunVerdict:
        history = tmp_path / "history.edn"
        history.write_text(lines(*operations))
        import_history(history, tmp_path / "run", Assumptions(**assumptions))  # type: ignore[arg-type]
        [verdict] = check([tmp_path / "run"], engine="reference")
        return verdict

    return judge
