"""Runs a plan from start to end: the phases of a run in order, and what happens when one fails."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

from harness.clients.librdkafka import close_log, file_log
from harness.errors import EnvironmentFault, Interrupted, InvalidRun, SeawallError
from harness.history.run_directory import RunDirectory, RunState
from harness.plugins import plugins_answer_for_themselves
from harness.runner.archive import DirectoryArchive
from harness.runner.garbage import collected_seldom
from harness.runner.interruption import Interruption
from harness.runner.journal import Journal, heal_leftovers
from harness.runner.manifest import manifest, now, restless
from harness.runner.plan import Plan
from harness.runner.reporting import Reporter, silent
from harness.runner.run_environment import Voice, environment_of
from harness.runner.run_lifecycle import RunLifecycle
from harness.runner.run_progress import Watch, unwatched
from harness.scratch import note_unfinished
from harness.targets.kinds import kind_of
from harness.unwritable import writing_below


class LeftBehind(EnvironmentFault):
    """A run is complete, and something of its cluster is still there.

    Attributes:
        directory: its run directory.
    """

    def __init__(self, sentence: str, remedy: str, directory: Path) -> None:
        super().__init__(sentence, remedy)
        self.directory = directory


class BrokenOff(InvalidRun):
    """A run broke off. What it recorded until then may still prove a loss.

    Attributes:
        directory: its run directory, whose state is ``abandoned``.
    """

    def __init__(self, cause: InvalidRun, directory: Path) -> None:
        super().__init__(cause.sentence, cause.remedy)
        self.directory = directory


def run(plan: Plan, out_dir: Path, report: Reporter = silent, watch: Watch = unwatched) -> RunDirectory:
    """Run ``plan`` and record everything in ``out_dir/<scenario>/<time>-<seed>/``.

    Must be called from the main thread, which becomes the parent of the nodes. Returns the run directory of a
    complete run; the checker decides about unproven faults.

    Raises:
        BrokenOff: a step of the schedule failed, or the cluster did not become whole again.
        Interrupted: a signal ended the run; everything was healed and stopped first.
        LeftBehind: the run is complete, and something of its cluster could not be removed.
        EnvironmentFault: the target could not be started or controlled, or the run directory was removed or cannot be
            written any more.
    """
    assert threading.current_thread() is threading.main_thread(), "a run is driven from the main thread"
    for line in heal_leftovers([kind_of(plan.target).name]):
        report(line)
    started_s = time.monotonic()
    state: RunState = "abandoned"
    why = "the harness itself failed."
    with ExitStack() as last_things_first:
        interruption = last_things_first.enter_context(Interruption(report))
        interruption.put_off()  # until the lifecycle can record that the run was interrupted
        directory = _new_directory(plan, out_dir)
        journal = last_things_first.enter_context(Journal(directory.path))
        log = file_log(directory.broker_logs / "clients.log", directory.path.name)
        environment = environment_of(plan, directory.path, Voice(log, interruption.give_up), journal)
        lifecycle = RunLifecycle(plan, DirectoryArchive(directory), environment, journal, report)
        watch(lifecycle.progress)
        try:
            try:
                interruption.let_in()
                with plugins_answer_for_themselves():
                    _play(lifecycle, directory, interruption)
                state, why = "complete", ""
            except InvalidRun as error:
                why = str(error)
                raise BrokenOff(error, directory.path) from error
            except SeawallError as error:
                why = str(error)
                if error.__cause__ is not None:
                    log.error(why, exc_info=error.__cause__)
                raise
            finally:
                interruption.shield()
        except KeyboardInterrupt:
            state, why = "interrupted", f"{interruption.caught} ended the run."
            raise Interrupted(f"{why} Everything was healed and stopped; see {directory.path}.") from None
        finally:
            try:
                _clear(lifecycle, directory)
            finally:
                environment.close()
                close_log(log)
                _require(directory)
                if not lifecycle.waited:
                    directory.write_manifest(restless(directory.manifest()))
                directory.finish(state, time.monotonic() - started_s, why)
                _refuse_remains(lifecycle, directory, state)
                journal.all_is_undone()
    return directory


def _play(lifecycle: RunLifecycle, directory: RunDirectory, interruption: Interruption) -> None:
    """Play; a failure of the background load ends the run at once."""
    with writing_below(directory.path), collected_seldom():
        try:
            play(lifecycle)
        except KeyboardInterrupt:
            if interruption.failure is None:
                raise
            raise interruption.failure from None


def _clear(lifecycle: RunLifecycle, directory: RunDirectory) -> None:
    """Clear the lifecycle. If the environment has ended the run, ignore its further refusals."""
    ended = sys.exception()
    try:
        with writing_below(directory.path):
            lifecycle.clear()
    except EnvironmentFault:
        if not isinstance(ended, EnvironmentFault):
            raise


def _refuse_remains(lifecycle: RunLifecycle, directory: RunDirectory, state: RunState) -> None:
    """Check that nothing is left of the cluster.

    Raises:
        LeftBehind: something is left of a complete run.
        EnvironmentFault: something is left of another one, or that is unknown.
    """
    if remains := lifecycle.remains():
        left = f"the run has ended, and of its cluster there is still {', '.join(remains)}."
        remedy = "`seawall heal` ends and removes it."
        raise LeftBehind(left, remedy, directory.path) if state == "complete" else EnvironmentFault(left, remedy)


def _require(directory: RunDirectory) -> None:
    """Check that ``directory`` still exists, to which every other message would point."""
    if not (directory.path / "run.json").exists():
        raise EnvironmentFault(f"run directory {directory.path} was removed during the run.")


def play(lifecycle: RunLifecycle) -> None:
    """The phases of a run without failures."""
    lifecycle.start_cluster()
    lifecycle.start_load()
    lifecycle.run_faults()
    lifecycle.heal()
    lifecycle.stop_load()
    lifecycle.settle()
    lifecycle.read_everything()
    lifecycle.read_logs()
    lifecycle.stop_cluster()
    lifecycle.collect()


def _new_directory(plan: Plan, out_dir: Path) -> RunDirectory:
    """A new run directory, and the link ``out_dir/latest`` to it."""
    started = now()
    directory = _taken(plan, out_dir / plan.scenario.id, started)
    link = out_dir / f".latest-{plan.scenario.id}-{directory.path.name}"
    note_unfinished(link)
    link.unlink(missing_ok=True)
    link.symlink_to(directory.path.relative_to(out_dir))
    link.replace(out_dir / "latest")
    return directory


def _taken(plan: Plan, parent: Path, started: datetime) -> RunDirectory:
    """A new directory below ``parent``; another run that starts in the same second gets another number."""
    name = f"{started:%Y%m%dT%H%M%S}-{plan.seed}"
    path, number = parent / name, 1
    while True:
        try:
            return RunDirectory.create(path, manifest(plan, f"{plan.scenario.id}/{path.name}", started))
        except EnvironmentFault:
            if not path.exists():
                raise
        number += 1
        path = parent / f"{name}-{number}"
