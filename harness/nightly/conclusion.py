"""What the outcomes of cells mean to CI: failure, error, skipped or passed; and the exit code of a night."""

from __future__ import annotations

from collections.abc import Iterable

from harness.checker import Outcome
from harness.errors import ExitCode
from harness.nightly.result import CellOutcome, CellResult

FAILURES = frozenset({CellOutcome.VIOLATION, CellOutcome.NOT_REPRODUCED, CellOutcome.DISAGREEMENT})
"""The system under test lost something, a predicted loss did not happen, or one of the engines is wrong."""

ERRORS = frozenset(
    {
        CellOutcome.INVALID,
        CellOutcome.INCONCLUSIVE,
        CellOutcome.ENVIRONMENT,
        CellOutcome.TIMEOUT,
        CellOutcome.ERROR,
    }
)
"""The cell ran, and decided nothing."""

SKIPS = frozenset({CellOutcome.SKIPPED, CellOutcome.NOT_RUN})
"""The cell did not run."""

VERDICTS = frozenset(map(CellOutcome, Outcome))
"""The outcomes that are verdicts on a run."""

PASSES = frozenset({CellOutcome.PASS, CellOutcome.AS_PREDICTED})

GRAVEST_FIRST = (
    CellOutcome.VIOLATION,
    CellOutcome.DISAGREEMENT,
    CellOutcome.NOT_REPRODUCED,
    CellOutcome.ERROR,
    CellOutcome.INVALID,
    CellOutcome.INCONCLUSIVE,
    CellOutcome.TIMEOUT,
    CellOutcome.ENVIRONMENT,
    CellOutcome.NOT_RUN,
    CellOutcome.SKIPPED,
    CellOutcome.AS_PREDICTED,
    CellOutcome.PASS,
)
"""The order in which outputs list cells."""

_CODES = {
    CellOutcome.VIOLATION: ExitCode.VIOLATION,
    CellOutcome.NOT_REPRODUCED: ExitCode.VIOLATION,
    CellOutcome.DISAGREEMENT: ExitCode.INTERNAL,
    CellOutcome.ERROR: ExitCode.INTERNAL,
    CellOutcome.INVALID: ExitCode.INVALID,
    CellOutcome.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
    CellOutcome.TIMEOUT: ExitCode.ENVIRONMENT,
    CellOutcome.ENVIRONMENT: ExitCode.ENVIRONMENT,
}

PRECEDENCE = (
    ExitCode.VIOLATION,
    ExitCode.INTERNAL,
    ExitCode.INVALID,
    ExitCode.INCONCLUSIVE,
    ExitCode.ENVIRONMENT,
)
"""Which exit code goes first where cells differ: 1 before 70 before 3 before 2 before 4."""


def exit_code(results: Iterable[CellResult], *, is_partial: bool = False) -> ExitCode:
    """The exit code of a night: the first of :data:`PRECEDENCE` that a cell has.

    Skipped cells change nothing, but a night in which no cell ran is inconclusive (2), and one of which a shard is
    missing, ``is_partial``, is a failure of the environment (4).
    """
    outcomes = {one.outcome for one in results}
    codes = {_CODES[outcome] for outcome in outcomes if outcome in _CODES}
    codes |= {ExitCode.ENVIRONMENT} if is_partial else set()
    if outcomes <= SKIPS:
        return ExitCode.INCONCLUSIVE
    return next((code for code in PRECEDENCE if code in codes), ExitCode.PASS)


def gravity(result: CellResult) -> tuple[int, str, bool, int, str]:
    """A key by which results sort: gravest first, then by series, the seed bank's first, and by seed."""
    seed = -1 if result.seed is None else result.seed
    return GRAVEST_FIRST.index(result.outcome), result.series, not result.bank, seed, result.cell
