"""A run in memory: on a simulated target, checked at once, leaving nothing behind."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.errors import InvalidRun
from harness.history.run_directory import Manifest, RunState
from harness.runner.archive import KeptArchive
from harness.runner.journal import NothingToUndo
from harness.runner.manifest import manifest, now, restless
from harness.runner.plan import Plan
from harness.runner.reporting import Reporter, silent
from harness.runner.run import play
from harness.runner.run_environment import Voice, environment_of
from harness.runner.run_lifecycle import RunLifecycle
from harness.runner.run_progress import Watch, unwatched

_SILENT = logging.getLogger("seawall.clients.silent")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False


@dataclass(frozen=True, slots=True)
class Rehearsal:
    """A run in memory; its manifest says whether it came to its end, and why not."""

    manifest: Manifest
    archive: KeptArchive


def rehearse(plan: Plan, report: Reporter = silent, watch: Watch = unwatched) -> Rehearsal:
    """Run ``plan`` on a target that lives in this process alone, and keep everything in memory.

    No process is started and nothing journaled: there is nothing to undo, and no file stays behind.
    """
    started = now()
    archive = KeptArchive(f"{plan.scenario.id}/{plan.generation}-{plan.seed}")
    made = manifest(plan, archive.run, started)
    why = ""
    with TemporaryDirectory() as scratch:
        nothing = NothingToUndo()
        environment = environment_of(plan, Path(scratch), Voice(_SILENT), nothing)
        lifecycle = RunLifecycle(plan, archive, environment, nothing, report)
        watch(lifecycle.progress)
        try:
            play(lifecycle)
        except InvalidRun as error:
            why = str(error)
        finally:
            lifecycle.clear()
    ended = made if lifecycle.waited else restless(made)
    state: RunState = "abandoned" if why else "complete"
    ended = replace(ended, unrest=archive.unrest, endings=archive.endings, orders=archive.orders)
    return Rehearsal(replace(ended, state=state, why=why), archive)
