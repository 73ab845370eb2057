"""Results of cells, made by hand."""

from __future__ import annotations

from typing import Any

from harness.nightly.result import CellOutcome, CellResult, Incident, Measures

PLAN = "5f" * 32

LOST = (Incident(kind="lost-write", place="ledger/0", count=3),)


def cell(night: str = "2026-03-04", seed: int | None = 7, **told: Any) -> CellResult:
    """A passed run of ``random-chaos``, unless ``told`` says otherwise."""
    usual: dict[str, Any] = {
        "kind": "run",
        "target": "builtin",
        "generation": "4.1",
        "scenario": "random-chaos",
        "outcome": CellOutcome.PASS,
        "exit_code": 0,
        "started": f"{night}T01:00:00+00:00",
        "seconds": 61.5,
        "versions": {"seawall": "0.1.0", "python": "3.11.7"},
        "plan": PLAN,
        "reproduce": f"seawall run random-chaos --seed {seed}",
        "measures": Measures(acknowledged_per_s=900.0, p99_ms=31.0, longest_outage_s=1.5, recovery_s=2.0),
    }
    given = usual | told
    series = "|".join(str(given[name]) for name in ("kind", "target", "generation", "scenario"))
    settings = given.get("settings", {})
    series += "".join(f"|{key}={value}" for key, value in sorted(settings.items()))
    named = {"night": night, "seed": seed, "series": series, "cell": f"{series}|{seed}"}
    return CellResult(**(named | given))


def lossy(night: str = "2026-03-04", seed: int | None = 7, **told: Any) -> CellResult:
    """A run that lost acknowledged writes."""
    usual: dict[str, Any] = {
        "outcome": CellOutcome.VIOLATION,
        "exit_code": 1,
        "signature": "a1" * 8,
        "incidents": LOST,
        "story": ("Three acknowledged records of ledger/0 are gone.", "Broker 2 truncated its log to offset 20."),
        "run": f"runs/{seed}",
        "report": f"runs/{seed}/report.html",
    }
    return cell(night, seed, **(usual | told))
