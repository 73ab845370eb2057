"""What a run leaves behind: the rows, declared once, their recorder, and the run directory."""

from harness.history.recorder import PolledRecord, Polling, Recorder, Sending
from harness.history.run_directory import Manifest, RunDirectory, RunState

__all__ = ["Manifest", "PolledRecord", "Polling", "Recorder", "RunDirectory", "RunState", "Sending"]
