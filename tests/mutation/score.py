"""The mutation score of the verdict: how many mutants of the brokers the checkers detect, and what the others are.

Takes the mutants that were drawn before, and draws others in place of those whose code is gone. Runs each in a process
of its own under the trials that reach its statement until it is detected, and writes ``docs/mutation.md`` from the
results and from ``classified.yaml``, in which a person has said of each survivor why it survived. Run it with
``make mutation``, or ``python -m tests.mutation.score [size] [seed] [trials]``.

Results are kept in ``runs/mutation.jsonl``. A run that was stopped goes on from there; when the code has changed, it
tries all mutants again but those that were detected and whose own module is the same.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from tests.mutation.mutants import Mutant, sample_again
from tests.mutation.page import document
from tests.mutation.scope import MODULES

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "runs" / "mutation.jsonl"
PAGE = ROOT / "docs" / "mutation.md"
DRAWN = Path(__file__).with_name("drawn.txt")
"""The names of the sample, a line for each; the first 500 were drawn with seed 1."""
_ASSAY = [sys.executable, "-O", "-m", "tests.mutation.assay"]
_JOBS = 2
_MOST_S = 1_800

Row = dict[str, Any]


def main(size: int = 500, seed: int = 1, most: int = 60) -> None:
    """Draw, run what has not been run yet under ``most`` trials at most, and write the page."""
    mutants = sample_again(MODULES, size, seed, set(DRAWN.read_text().splitlines()))
    DRAWN.write_text("".join(f"{mutant.name}\n" for mutant in mutants))
    state = _state()
    kept = list(_read())
    control = next((row["control"] for row in kept if "control" in row and row["state"] == state), None)
    if control is None:
        control = _asked({"modules": MODULES})
        KEPT.parent.mkdir(exist_ok=True)
        with KEPT.open("a") as file:
            file.write(json.dumps({"state": state, "control": control}) + "\n")
    known = {row["name"]: row for row in kept if "name" in row and _is_valid(row, state)}
    todo = [mutant for mutant in mutants if mutant.name not in known]
    with ThreadPoolExecutor(_JOBS) as pool, KEPT.open("a") as file:
        futures = {pool.submit(_row, mutant, control, most): mutant for mutant in todo}
        for done, future in enumerate(as_completed(futures), 1):
            row = {"state": state, "text": _digest([ROOT / futures[future].module]), **future.result()}
            known[row["name"]] = row
            file.write(json.dumps(row) + "\n")
            file.flush()
            sys.stderr.write(f"{done}/{len(todo)} {row['class']:9} {row['name'][:150]}\n")
    rows = [known[mutant.name] for mutant in mutants]
    PAGE.write_text(document(rows, control, seed))


def _state() -> str:
    """A digest of the code that decides a result: what is mutated, and what runs and judges it."""
    folders = ("harness", "checkers", "faults", "workloads", "spark_analysis", "tests/mutation")
    paths = (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))
    return _digest(path for path in paths if path.name not in ("page.py", "score.py"))


def _digest(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _is_valid(row: Row, state: str) -> bool:
    """Whether a result still holds."""
    if row["state"] == state:
        return True
    return bool(row["class"] == "detected" and row["text"] == _digest([ROOT / row["module"]]))


def _read() -> Iterator[Row]:
    if KEPT.exists():
        yield from (json.loads(line) for line in KEPT.read_text().splitlines())


def _row(mutant: Mutant, control: Sequence[Mapping[str, Any]], most: int) -> Row:
    """The mutant, and what came of it."""
    trials = [one["trial"] for one in control if one["result"][0] == "pass" and _reaches(one, mutant)]
    about = {"name": mutant.name, **mutant._asdict()}
    if not trials:
        return {**about, "class": "unreached", "runs": 0, "outcomes": {}, "kinds": [], "why": ""}
    found = _asked({"mutant": mutant, "trials": trials[:most]})
    plain = [one["result"][-1] for one in control if one["trial"] in trials[:most]]
    found["differing"] = sum(one != other for one, other in zip(found.pop("digests", ()), plain, strict=False))
    return {**about, "class": _class_of(found["outcomes"]), **found}


def _reaches(one: Mapping[str, Any], mutant: Mutant) -> bool:
    return not mutant.statement or [mutant.module, mutant.statement] in one["reached"]


def _class_of(outcomes: Mapping[str, int]) -> str:
    """The gravest of the outcomes."""
    order = (("violation", "detected"), ("crashed", "crashed"), ("endless", "endless"), ("invalid", "doubted"),
             ("inconclusive", "doubted"))  # fmt: skip
    return next((name for outcome, name in order if outcome in outcomes), "survived")


def _asked(question: Mapping[str, Any]) -> Any:
    """What a process of its own answers; one that takes too long, or is ended by the kernel, is endless or crashed."""
    try:
        done = subprocess.run(
            _ASSAY, input=json.dumps(question), capture_output=True, text=True, timeout=_MOST_S, check=False, cwd=ROOT
        )
    except subprocess.TimeoutExpired:
        return {"runs": 0, "outcomes": {"endless": 1}, "kinds": [], "why": f"it took more than {_MOST_S} s"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
        return {"runs": 0, "outcomes": {"crashed": 1}, "kinds": [], "why": last[:200]}
    return json.loads(done.stdout)


if __name__ == "__main__":
    main(*(int(argument) for argument in sys.argv[1:4]))
