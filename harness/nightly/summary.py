"""Writes ``summary.md``: what the night found, what is new, and how to run it again, for people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.errors import ExitCode
from harness.nightly import prose
from harness.nightly.conclusion import ERRORS, FAILURES, SKIPS, exit_code, gravity
from harness.nightly.result import CellResult
from harness.nightly.standing import Finding, Standing, key_of
from harness.scratch import unfinished

NAME = "summary.md"

MOST_BYTES = 900_000
"""GitHub discards the summary of a step that has more than 1 MiB; other steps of the job may write, too."""

MOST_STORIES = 20
"""Failures with their story; the rest are rows of the table."""

MOST_ROWS = 500

_SPECIAL = re.compile(r"^[-+#=]|[\\`*\[\]|~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_INERT = {
    "&": "&amp;",
    "<": "&lt;",
    ">": "&gt;",
    "://": ":/\N{ZERO WIDTH SPACE}/",
    "@": "@\N{ZERO WIDTH SPACE}",
}
"""GitHub makes links of addresses and of the names of users after Markdown's own escapes are gone."""

_BREAKS = re.compile(r"\s+")


def write(path: Path, text: str) -> None:
    """Replace ``summary.md`` at once.

    Raises:
        EnvironmentFault: it cannot be written.
    """
    with unfinished(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="replace")


def markdown(
    results: Sequence[CellResult],
    found: Sequence[Finding] = (),
    notes: Sequence[str] = (),
    most_bytes: int = MOST_BYTES,
    *,
    is_partial: bool = False,
) -> str:
    """The summary in GitHub's Markdown, in at most ``most_bytes`` bytes.

    Args:
        results: the cells of the night.
        found: the findings of this night and those before, if these are known.
        notes: sentences about the night as a whole.
        most_bytes: the size that is not exceeded; whole lines are left out from the end.
        is_partial: whether a shard of the night is missing.
    """
    ordered = sorted(results, key=gravity)
    code = exit_code(ordered, is_partial=is_partial)
    lines = [*_head(ordered, found, notes, code), *_stories(ordered, found), *_gone(ordered, found), *_table(ordered)]
    return _bounded(lines, most_bytes)


def escaped(text: str) -> str:
    """Text of a name or a story as one line of Markdown that holds no markup, no mention and no link."""
    shown = _SPECIAL.sub(r"\\\g<0>", _BREAKS.sub(" ", text).strip())
    for plain, inert in _INERT.items():
        shown = shown.replace(plain, inert)
    return shown


def _head(
    results: Sequence[CellResult], found: Sequence[Finding], notes: Sequence[str], code: ExitCode
) -> Iterator[str]:
    night = results[0].night if results else ""
    yield f"# seawall, night {escaped(night)}".rstrip()
    yield ""
    took = prose.seconds(sum(one.seconds for one in results))
    yield f"**{prose.counts(results)}.** {prose.cells(len(results))}, {took} of running. Exit code {int(code)}."
    if counted := _standings(found, night):
        yield ""
        yield f"Findings: {counted}."
    for note in notes:
        yield ""
        yield f"> {escaped(note)}"


def _standings(found: Sequence[Finding], night: str) -> str:
    """``1 new, 2 still failing``; fixed ones only on the night on which they became so."""
    tonight = [one.standings.get(night) for one in found if one.fixed in {None, night}]
    return ", ".join(f"{tonight.count(standing)} {standing}" for standing in Standing if standing in tonight)


def _stories(results: Sequence[CellResult], found: Sequence[Finding]) -> Iterator[str]:
    failures = [one for one in results if one.outcome in FAILURES]
    known = {one.key: one for one in found}
    if failures:
        yield from ("", "## Failures")
    for result in failures[:MOST_STORIES]:
        finding = known.get(key_of(result) or ("", ""))
        yield from ("", f"### {escaped(prose.named(result))}", "")
        yield f"{escaped(prose.headline(result))}.{_since(finding, result)}"
        yield from (f"* {escaped(prose.shortened(sentence, 1_000))}" for sentence in result.story)
        yield from ("", *_code(result.reproduce), "")
        if result.report:
            yield f"Report: {_inline(result.report)}"
    if len(failures) > MOST_STORIES:
        yield from ("", f"{len(failures) - MOST_STORIES:,} more failures are in the table and in `junit.xml`.")


def _since(finding: Finding | None, result: CellResult) -> str:
    if finding is None or result.night not in finding.standings:
        return ""
    return f" **{finding.standings[result.night]}**, first seen {escaped(finding.first_seen)}."


def _gone(results: Sequence[CellResult], found: Sequence[Finding]) -> Iterator[str]:
    """What was not seen tonight: fixed, flaky, not run."""
    night = results[0].night if results else ""
    shown = {key_of(one) for one in results}
    absent = [one for one in found if one.key not in shown and one.fixed in {None, night} and night in one.standings]
    if absent:
        yield from ("", "## Not seen tonight", "", "| | what | incidents | last seen | passes since |")
        yield "|---|---|---|---|---|"
    for one in absent[:MOST_ROWS]:
        what, seen = prose.named(one.latest.model_copy(update={"seed": None})), prose.incidents(one.latest.incidents)
        cells = (one.standings[night].value, what, seen or one.key[1], one.last_seen, str(one.passes))
        yield f"| {' | '.join(map(escaped, cells))} |"


def _table(results: Sequence[CellResult]) -> Iterator[str]:
    """What did not pass."""
    rows = [one for one in results if one.outcome in FAILURES | ERRORS | SKIPS]
    if rows:
        yield from ("", "## Cells that did not pass", "", "| outcome | cell | tries | why |", "|---|---|---|---|")
    for one in rows[:MOST_ROWS]:
        why = prose.shortened(prose.incidents(one.incidents) or one.reason, 300)
        cells = (one.outcome.value, prose.named(one), str(len(one.tries) or ""), why)
        yield f"| {' | '.join(map(escaped, cells))} |"
    if len(rows) > MOST_ROWS:
        yield from ("", f"{len(rows) - MOST_ROWS:,} more are in `results.jsonl`.")


def _code(command: str) -> tuple[str, str, str]:
    """A block that no backtick in the command ends."""
    fence = "`" * (max(map(len, re.findall("`+", command)), default=2) + 1)
    return max(fence, "```", key=len), _BREAKS.sub(" ", command), max(fence, "```", key=len)


def _inline(text: str) -> str:
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    return f"{fence} {_BREAKS.sub(' ', text)} {fence}"


def _bounded(lines: Sequence[str], most_bytes: int) -> str:
    last = "\n\nThe rest is left out here; see `results.jsonl`.\n"
    kept: list[str] = []
    size = len(last.encode())
    for line in lines:
        size += len(line.encode(errors="replace")) + 1
        if size > most_bytes:
            return "\n".join(kept) + last
        kept.append(line)
    return "\n".join(kept) + "\n"
