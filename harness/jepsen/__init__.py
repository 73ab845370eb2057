"""Converts between Jepsen's Kafka histories and run directories."""

from harness.jepsen.reading import Assumptions, Imported, import_history
from harness.jepsen.writing import Exported, export_history

__all__ = ["Assumptions", "Exported", "Imported", "export_history", "import_history"]
