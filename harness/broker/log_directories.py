"""All log directories of one broker (``log.dirs``): which are online, and which replica lies where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import PurePosixPath

from harness.broker.log_directory import LogDirectory
from harness.broker.ports import FileSystem
from harness.broker.settings import NodeConfig
from harness.broker.subdirectory import Subdirectory


class LogDirectories:
    """The log directories of one broker.

    Args:
        config: how many there are, and whose.
        files: its data directory.
        say: one line to the operator.
    """

    def __init__(self, config: NodeConfig, files: FileSystem, say: Callable[[str], None]) -> None:
        names = log_dir_names(config.settings.log_dirs_count)
        self._config = config
        self._owner = f"{config.cluster_id}/{config.node_id}"
        self._paths = [PurePosixPath("/", config.data_dir, name) for name in names]
        self._all = tuple(
            LogDirectory(Subdirectory(files, name) if name else files, config.knobs, say, number)
            for number, name in enumerate(names)
        )

    def __iter__(self) -> Iterator[LogDirectory]:
        return iter(self._all)

    @property
    def online(self) -> list[LogDirectory]:
        """Those that can be used."""
        return [directory for directory in self._all if directory.online]

    @property
    def offline_ids(self) -> list[bytes]:
        """The ids that the broker reports to the controller as failed (KIP-858)."""
        return [self.id_of(directory) for directory in self._all if not directory.online]

    @property
    def previous_broker_epoch(self) -> int:
        """What the broker was registered with when it shut down cleanly; -1: it did not, or not all of it (KIP-966).

        A clean shutdown closes a session with ZooKeeper even where disks have failed. Where that is what counts, one
        directory is enough that was closed by the life just before this one: another may have failed by then.
        """
        epochs = {directory.previous_broker_epoch if directory.online else -1 for directory in self._all}
        if len(epochs) == 1:
            return epochs.pop()
        if self._config.knobs.broker_bounce != "unnoticed":
            return -1
        last = self._config.incarnation - 1
        closed = (one.previous_broker_epoch for one in self.online if one.previous_incarnation == last)
        return max(closed, default=-1)

    def emptiest(self, used: Iterable[LogDirectory]) -> LogDirectory | None:
        """Where a new replica goes: to the fewest others, and of equals to the first; None: all are offline.

        ``used`` are the directories of the replicas that there are, one entry for each.
        """
        counts = Counter(directory.number for directory in used)
        return min(self.online, key=lambda directory: counts[directory.number], default=None)

    def path(self, directory: LogDirectory) -> str:
        """The absolute path of a directory; of one that is in memory, relative to its disk."""
        return str(self._paths[directory.number])

    def id_of(self, directory: LogDirectory) -> bytes:
        """A directory's id for the controller (KIP-858)."""
        return sha256(f"{self._owner}/{directory.number}".encode()).digest()[:16]


def log_dir_names(count: int) -> list[str]:
    """The paths of ``count`` log directories, relative to the data directory: ``""`` where there is only one."""
    return [""] if count == 1 else [f"log-{number}" for number in range(count)]
