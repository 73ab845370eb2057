"""A run in memory: on a simulated target, checked at once, leaving nothing behind."""

from __future__ import annotations

import logging
from collections.abc import Callable
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
from harness.runner.run_environment import RunEnvironment, Voice, environment_of
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


@dataclass(frozen=True, slots=True)
class Stage:
    """Where a plan is rehearsed.

    Attributes:
        environment: makes what the run is made on; its files lie below the directory.
        play: the phases of the run.
    """

    environment: Callable[[Plan, Path], RunEnvironment]
    play: Callable[[RunLifecycle], None] = play


def _of_its_own(plan: Plan, scratch: Path) -> RunEnvironment:
    return environment_of(plan, scratch, Voice(_SILENT), NothingToUndo())


def rehearse(
    plan: Plan, report: Reporter = silent, watch: Watch = unwatched, *, stage: Stage = Stage(_of_its_own)
) -> Rehearsal:
    """Run ``plan`` on a target that lives in this process alone, and keep everything in memory.

    No process is started and nothing journaled: there is nothing to undo, and no file stays behind. ``stage``: the
    plan's own target and the phases of every run, unless something else happens to the cluster, too.
    """
    started = now()
    archive = KeptArchive(f"{plan.scenario.id}/{plan.generation}-{plan.seed}")
    made = manifest(plan, archive.run, started)
    why = ""
    with TemporaryDirectory() as scratch:
        environment = stage.environment(plan, Path(scratch))
        lifecycle = RunLifecycle(plan, archive, environment, NothingToUndo(), report)
        watch(lifecycle.progress)
        try:
            stage.play(lifecycle)
        except InvalidRun as error:
            why = str(error)
        finally:
            lifecycle.clear()
    ended = made if lifecycle.waited else restless(made)
    state: RunState = "abandoned" if why else "complete"
    ended = replace(ended, unrest=archive.unrest, endings=archive.endings, orders=archive.orders)
    return Rehearsal(replace(ended, state=state, why=why), archive)
