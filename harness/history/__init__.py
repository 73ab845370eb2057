"""The evidence of a run: the schema of its tables, the recorder of the client history, and the run directory."""

from harness.history.recorder import PolledRecord, Polling, Recorder, Sending
from harness.history.run_directory import Manifest, RunDirectory, RunState

__all__ = ["Manifest", "PolledRecord", "Polling", "Recorder", "RunDirectory", "RunState", "Sending"]
