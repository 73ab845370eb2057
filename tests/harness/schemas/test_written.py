"""What is really written has the published schemas, and no key that they lack."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from checkers import check
from harness.checker import Outcome
from harness.cli.schema import Document
from harness.exploration.depth import run_of
from harness.jepsen import Assumptions, import_history
from harness.nightly import results_file
from harness.runner.plan import plan
from harness.runner.run import run
from harness.scenario import load
from harness.simulation.core.configuration import setup
from tests.checkers.sampled_stories import two_failovers
from tests.harness.jepsen.conftest import lines, sent
from tests.harness.nightly.cells import cell, lossy
from tests.harness.schemas.published import closed, complaints, validator

DOUBLE_FAILOVER = "kip-101-double-failover"


def simulated(name: str, out: Path, generation: str = "4.1", **overrides: str) -> Path:
    """The run of a scenario with some knobs overridden."""
    changed = {f"replication.{knob}": value for knob, value in overrides.items()}
    return run(plan(load(name), "simulated", generation, 7, overrides=changed), out).path


def imported(out: Path) -> Path:
    """A history without a final read."""
    out.mkdir()
    (out / "history.edn").write_text(lines(*sent(1, 0, 4, 0)))
    import_history(out / "history.edn", out / "run", Assumptions())
    return out / "run"


def torn(out: Path) -> Path:
    """A run that lacks the rows of its history."""
    made = simulated(DOUBLE_FAILOVER, out)
    shutil.rmtree(made / "history")
    return made


def replayed(out: Path) -> Path:
    """A run of the core alone."""
    world = run_of(4, setup("0.10", {}, "core"), recorded=True)
    world.run()
    assert world.recording is not None
    return Path(world.recording.write(out, "0.10").path)


RUNS: dict[str, tuple[Callable[[Path], Path], Outcome | None]] = {
    "healthy": (lambda out: simulated(DOUBLE_FAILOVER, out), Outcome.PASS),
    "broken": (lambda out: simulated(DOUBLE_FAILOVER, out, truncation="hw"), Outcome.VIOLATION),
    "predicted": (lambda out: simulated(DOUBLE_FAILOVER, out, "0.10"), Outcome.AS_PREDICTED),
    "with deletions": (lambda out: simulated("deleted-records", out), None),
    "of the core": (replayed, None),
    "invalid": (torn, Outcome.INVALID),
    "imported": (imported, Outcome.INCONCLUSIVE),
    "sampled": (lambda out: two_failovers().kept(out), Outcome.VIOLATION),
}


@pytest.fixture(scope="module", params=RUNS)
def written(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    make, outcome = RUNS[request.param]
    made = make(tmp_path_factory.mktemp("runs") / "run")
    (verdict,) = check([made], engine="reference")
    assert outcome in (None, verdict.outcome), verdict.reasons
    yield made
    shutil.rmtree(made)


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


@pytest.mark.parametrize(("name", "document"), [("verdict.json", Document.VERDICT), ("run.json", Document.RUN)])
def test_a_document_of_a_run_has_its_schema_and_names_its_version(name: str, document: Document, written: Path) -> None:
    found = read(written / name)
    assert complaints(closed(document), found) == []
    assert found["schema_version"] == 1


def test_a_line_of_results_has_its_schema() -> None:
    for one in (cell(), lossy(), cell(settings={"a": "1"}, bank=True)):
        assert complaints(closed(Document.RESULT), json.loads(results_file.line(one))) == []


@pytest.mark.parametrize(
    ("document", "changed"),
    [
        (Document.RUN, {"seed": "7"}),
        (Document.RUN, {"guarantees": {"min_insync_replicas": "2"}}),
        (Document.RUN, {"guarantees": {"unclean_election": 1}}),
        (Document.RUN, {"predictions": [{"kindd": "lost-write"}]}),
        (Document.RUN, {"predictions": [{"kind": "lost-write", "verdict": "BAD"}]}),
        (Document.RUN, {"endings": [{"node": 1}]}),
        (Document.RUN, {"orders": [{"topic": "ledger"}]}),
        (Document.RUN, {"state": "odd"}),
        (Document.RUN, {"schema_version": 2}),
        (Document.VERDICT, {"outcome": "broken"}),
        (Document.VERDICT, {"anomalies": [{"kind": "lost-write"}]}),
        (Document.VERDICT, {"schema_version": 2}),
    ],
)
def test_what_the_reader_refuses_the_schema_refuses(
    document: Document, changed: dict[str, Any], tmp_path: Path
) -> None:
    from harness.checker import from_json
    from harness.errors import InvalidRun
    from harness.history.run_directory import manifest_of

    made = two_failovers().kept(tmp_path / "run")
    check([made], engine="reference")
    found = read(made / f"{document.value}.json") | changed
    assert complaints(validator(document), found)
    with pytest.raises(InvalidRun):
        from_json(found) if document is Document.VERDICT else manifest_of(found, "run.json")
