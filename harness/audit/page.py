"""What the page of an audit shows of its windows; ``reports/audit.py`` renders it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import reports.audit as pages
from checkers.registry import KINDS
from checkers.verdicts.evidence_tiers import unasked_sentence
from harness.audit.clock import as_text
from harness.audit.result import Answered, Latency, Loss, WindowResult
from harness.checker import EXIT_CODES
from harness.errors import ExitCode, worst

NAME = "report.html"
MOST_WINDOWS = 300
"""Windows in the table: a day of five minutes each. Those in which something was found stay, however old."""

MOST_EVENTS = 300


def write(
    directory: Path, title: str, said: Sequence[str], results: Sequence[WindowResult], unanswered: Sequence[str] = ()
) -> Path:
    """Replace the page at once.

    Args:
        directory: of the audit.
        title: what is audited.
        said: how, a sentence each.
        results: of all windows, the oldest first.
        unanswered: what operators tell and no window has answered, and why, a sentence each.

    Raises:
        EnvironmentFault: it cannot be written.
    """
    code = worst(one.exit_code for one in results)
    shown = [one for one in results if one.exit_code is not ExitCode.PASS or one.interrupted]
    shown = [*shown[-MOST_WINDOWS:], *(one for one in results[-MOST_WINDOWS:] if one not in shown)]
    last = {
        (answer.at, answer.event, answer.partition): (one.window, answer) for one in results for answer in one.answers
    }
    answers = sorted(last.values(), key=lambda pair: pair[1].at)
    page = pages.Page(
        title=title,
        css={ExitCode.PASS: "p", ExitCode.VIOLATION: "f"}.get(code, "e"),
        headline=_headline(results),
        said=[*said, *_evidence(results)],
        losses=[_loss(one.window, loss) for one in results for loss in one.losses][-MOST_EVENTS:],
        answers=[_answer(window, answer) for window, answer in reversed(answers[-MOST_EVENTS:])],
        unanswered=unanswered[:MOST_EVENTS],
        windows=[_window(one) for one in sorted(shown, key=lambda one: -one.window)],
        hidden=len(results) - len(shown),
    )
    path = directory / NAME
    pages.write(path, page)
    return path


def _headline(results: Sequence[WindowResult]) -> str:
    lost, acknowledged = sum(one.lost for one in results), sum(one.acknowledged for one in results)
    codes = [EXIT_CODES[one.outcome] for one in results]
    found = codes.count(ExitCode.VIOLATION)
    missed = sum(bool(one.missed) for one in results)
    blind_s = sum(one.blind_s for one in results)
    open_ = len(codes) - found - codes.count(ExitCode.PASS)
    parts = [f"{len(results):,} windows: {found:,} with a violation, {open_:,} undecided"]
    parts += [f"{missed:,} missed an objective"] if missed else []
    parts.append(f"{lost:,} of {acknowledged:,} acknowledged records lost")
    if blind_s:
        parts.append(f"blind for {blind_s:,.0f} s")
    return "; ".join(parts) + "."


def _evidence(results: Sequence[WindowResult]) -> Iterator[str]:
    """On what the newest window rests that was judged, and what was not asked for, in a sentence; none: none was."""
    for one in reversed(results):
        if one.evidence is not None:
            yield unasked_sentence(one.evidence, one.not_asked, len(KINDS))
            return


def _loss(window: int, loss: Loss) -> pages.LossRow:
    sent_in = ", ".join(f"{number} in window {sent}" for sent, number in loss.sent_in.items())
    offsets = f"{loss.first_offset:,} to {loss.last_offset:,}"
    return pages.LossRow(
        window, loss.partition, loss.records, offsets, sent_in, as_text(loss.seen_ns), as_text(loss.missed_ns)
    )


def _answer(window: int, answer: Answered) -> pages.AnswerRow:
    if answer.gone:
        lost = f"{answer.gone:,}, offsets {answer.first_offset:,} to {answer.last_offset:,}"
    elif answer.examined:
        lost = f"none of {answer.examined:,}"
    else:
        lost = "unknown" if answer.undecided else "unknown: no record of that time is kept"
    if answer.undecided:
        lost += f"; {answer.undecided:,} {'not decided yet' if answer.between_ns else 'given up undecided'}"
    return pages.AnswerRow(answer.at, answer.event, "operator" if answer.told else "cluster", answer.partition, lost,
                           window, bool(answer.gone))  # fmt: skip


def _window(one: WindowResult) -> pages.WindowRow:
    notes = [f"{number:,} {kind}" for kind, number in one.anomalies.items()]
    notes += ["killed in it"] if one.interrupted else []
    notes += [f"blind for {one.blind_s:,.0f} s before"] if one.blind_s else []
    notes += [f"{one.undecided:,} not decided yet"] if one.undecided else []
    notes += [f"{one.unverified:,} given up undecided"] if one.unverified else []
    code = one.exit_code
    return pages.WindowRow(
        window=one.window,
        began=one.began.replace("T", " "),
        outcome=f"{one.outcome.value}, objective missed" if one.missed else one.outcome.value,
        css={ExitCode.PASS: "p", ExitCode.VIOLATION: "f"}.get(code, "e"),
        link=f"{one.run_directory}/report.html" if one.run_directory else None,
        sends=f"{one.acknowledged:,} / {one.sent:,}",
        lost=one.lost,
        ack=_ms(one.ack),
        read=_ms(one.read),
        availability=min((part.availability for part in one.partitions), default=0.0),
        gap=max((part.longest_gap_s for part in one.partitions), default=0.0),
        notes="; ".join([*notes, *one.reasons, *one.missed]),
    )


def _ms(found: Latency | None) -> str:
    times = () if found is None else (found.p50_ms, found.p99_ms, found.max_ms)
    return " / ".join(f"{ms:.1f}" if ms < 100 else f"{ms:,.0f}" for ms in times)
