"""A recorded run in memory, to be edited and written again as a run of another name."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.history.arrow import write_rows
from harness.history.run_directory import RunDirectory
from harness.history.schema import TABLES
from tests.checkers.story import Row


@dataclass
class Run:
    """The tables and the manifest of a recorded run.

    Attributes:
        manifest: ``run.json`` as plain data.
        tables: the rows of each table, by its name.
    """

    manifest: dict[str, Any]
    tables: dict[str, list[Row]]

    @classmethod
    def read(cls, path: Path) -> Run:
        """The run recorded in ``path``."""
        directory = RunDirectory(path)
        rows = {name: directory.read_table(name) for name in TABLES}
        return cls(json.loads((path / "run.json").read_text()), rows)

    def write(self, source: Path, path: Path) -> Path:
        """Write it into the new directory ``path``, with what else there is in ``source``; returns ``path``.

        It becomes a run of the directory's name, and ``run.json`` counts the rows that are there now.
        """
        path.mkdir()
        shutil.copy(source / "schedule_log.json", path)
        for name, rows in self.tables.items():
            for row in rows:
                row["run"] = path.name
            file = path / part(name)
            file.parent.mkdir(exist_ok=True)
            write_rows(TABLES[name], file, rows)
        counted = {name: {"rows": len(rows), "parts": 1} for name, rows in self.tables.items()}
        document = {**self.manifest, "run": path.name, "tables": counted}
        (path / "run.json").write_text(json.dumps(document, indent=1))
        return path

    # ------------------------------------------------------------------------------------------------ what is there

    @property
    def history(self) -> list[Row]:
        return self.tables["history"]

    @property
    def timeline(self) -> list[Row]:
        return self.tables["timeline"]

    @property
    def logs(self) -> list[Row]:
        return self.tables["replica_logs"]

    @property
    def faults(self) -> list[Row]:
        return self.tables["faults"]

    def acknowledged(self) -> Row:
        """The acknowledgement of a record in the middle of its partition, that the final read delivers.

        Where producers number records, it is the first of its producer there, and at least one follows.
        """
        delivered = {row["value"] for row in self.finals()}
        acks = [row for row in self.rows("history", f="send", type="ok", acks=-1) if row["value"] in delivered]
        longest = max(sorted({_place(row) for row in acks}), key=[_place(row) for row in acks].count)
        ours = sorted((row for row in acks if _place(row) == longest), key=lambda row: int(row["offset"]))
        first = self._first_of_their_producers(longest) or {row["offset"] for row in ours}
        middle = ours[len(ours) // 2]["offset"]
        return min((row for row in ours if row["offset"] in first), key=lambda row: abs(row["offset"] - middle))

    def _first_of_their_producers(self, place: tuple[object, object]) -> set[int]:
        """The offsets of the records that a producer numbered 0, and did not end with."""
        logged = [row for row in self.tables["replica_logs"] if _place(row) == place and row["producer_id"] is not None]
        more = {(row["producer_id"], row["producer_epoch"]) for row in logged if row["sequence"] == 1}
        return {
            row["offset"]
            for row in logged
            if row["sequence"] == 0 and (row["producer_id"], row["producer_epoch"]) in more
        }

    def finals(self, **known: object) -> list[Row]:
        """The records that the final read delivers, those of which ``known`` is true."""
        return [row for row in self.rows("history", f="poll", final=True, **known) if row["value"] is not None]

    def rows(self, table: str, **known: object) -> list[Row]:
        """The rows of a table of which all of ``known`` is true."""
        return [row for row in self.tables[table] if all(row[name] == value for name, value in known.items())]

    def copies(self, of: Row) -> list[Row]:
        """The records of the replicas' logs at the place of a row."""
        return self.rows("replica_logs", topic=of["topic"], partition=of["partition"], offset=of["offset"])

    def fault(self, kind: str) -> Row:
        """The first fault of a kind."""
        return self.rows("faults", kind=kind)[0]

    # ---------------------------------------------------------------------------------------------------- what changes

    def remove(self, table: str, rows: list[Row]) -> None:
        """Remove rows, and close the gap in the history's index or in a node's sequence that this would leave."""
        gone = {id(row) for row in rows}
        self.tables[table] = [row for row in self.tables[table] if id(row) not in gone]
        if table == "history":
            self.number()
        for life in {(row["node"], row["incarnation"]) for row in rows} if table == "timeline" else ():
            own = [row for row in self.timeline if (row["node"], row["incarnation"]) == life]
            for at, row in enumerate(sorted(own, key=lambda one: int(one["sequence"]))):
                row["sequence"] = at

    def number(self) -> None:
        """Give the rows of the history the positions that they have now."""
        for at, row in enumerate(self.history):
            row["index"] = at


Change = Callable[[Run], None]
FileChange = Callable[[Path], object]


def setting(new: object, *keys: Any) -> Change:
    """Have ``run.json`` say something else at a place."""

    def change(run: Run) -> None:
        reduce(getitem, keys[:-1], run.manifest)[keys[-1]] = new

    return change


def cell(rows: Callable[[Run], list[Row]], **new: Any) -> Change:
    """Give columns of rows other values; what is callable makes the new value from the old one."""

    def change(run: Run) -> None:
        chosen = rows(run)
        assert chosen, "nothing is changed"
        for row in chosen:
            row |= {name: value(row[name]) if callable(value) else value for name, value in new.items()}

    return change


def without(table: str, rows: Callable[[Run], list[Row]]) -> Change:
    """Remove rows, so that nothing shows that they were there."""

    def change(run: Run) -> None:
        chosen = rows(run)
        assert chosen, "nothing is removed"
        run.remove(table, chosen)

    return change


def again(table: str, rows: Callable[[Run], list[Row]]) -> Change:
    """Have rows there twice, each behind itself."""

    def change(run: Run) -> None:
        chosen = {id(row) for row in rows(run)}
        assert chosen, "nothing is doubled"
        run.tables[table] = list(_doubled(run.tables[table], chosen))

    return change


def _doubled(rows: list[Row], chosen: set[int]) -> Iterator[Row]:
    for row in rows:
        yield row
        if id(row) in chosen:
            yield dict(row)


def torn(table: str, chosen: Callable[[Run], list[Row]]) -> Change:
    """Remove rows, and leave the gap."""

    def change(run: Run) -> None:
        gone = {id(row) for row in chosen(run)}
        assert gone, "nothing is removed"
        run.tables[table] = [row for row in run.tables[table] if id(row) not in gone]

    return change


def stranger(table: str, rows: Callable[[Run], list[Row]], **new: Any) -> Change:
    """Add copies of rows that say something else."""

    def change(run: Run) -> None:
        run.tables[table] += [row | new for row in rows(run)]

    return change


def both(*changes: Change) -> Change:
    """One change after the other."""

    def change(run: Run) -> None:
        for one in changes:
            one(run)

    return change


def rise(by: int) -> Callable[[int], int]:
    """A number that is larger by so much."""
    return lambda old: old + by


def detail(**new: object) -> Callable[[str | None], str]:
    """A detail that says something else as well."""
    return lambda old: json.dumps({**json.loads(old or "{}"), **new})


# ---------------------------------------------------------------------------------------------------------------- files


def swap(name: str, content: bytes) -> FileChange:
    """Put other bytes in the place of a file."""
    return lambda path: (path / name).write_bytes(content)


def replaced(name: str, old: str, new: str) -> FileChange:
    """Replace a text within a file, where it is first."""

    def change(path: Path) -> None:
        text = (path / name).read_text()
        assert old in text
        (path / name).write_text(text.replace(old, new, 1))

    return change


def moved(name: str, to: str) -> FileChange:
    """Rename a file."""
    return lambda path: (path / name).rename(path / to)


def part(table: str) -> str:
    """The one file of a table."""
    return TABLES[table].path if table == "faults" else f"{TABLES[table].path}/part-00000.parquet"


def columns(table: str, change: Callable[[pa.Table], pa.Table]) -> FileChange:
    """Write a table's file with other columns."""
    return lambda path: pq.write_table(change(pq.read_table(path / part(table))), path / part(table))


def removed(name: str) -> FileChange:
    """Remove a file."""
    return lambda path: (path / name).unlink()


def marked(path: Path) -> None:
    """Begin ``run.json`` with a byte order mark."""
    (path / "run.json").write_bytes(b"\xef\xbb\xbf" + (path / "run.json").read_bytes())


def cut(name: str) -> FileChange:
    """Leave half of a file."""
    return lambda path: (path / name).write_bytes((path / name).read_bytes()[: (path / name).stat().st_size // 2])


def flipped(name: str) -> FileChange:
    """Change one byte in the middle of a file."""

    def change(path: Path) -> None:
        content = bytearray((path / name).read_bytes())
        content[len(content) // 3] ^= 0x5A
        (path / name).write_bytes(content)

    return change


def a_directory(name: str) -> FileChange:
    """Put a directory in the place of a file."""

    def change(path: Path) -> None:
        (path / name).unlink()
        (path / name).mkdir()

    return change


def without_values(table: pa.Table) -> pa.Table:
    """A table that lacks a column."""
    return table.drop_columns(["value"])


def with_another(name: str) -> Callable[[pa.Table], pa.Table]:
    """A table with one column more, of the name."""
    return lambda table: table.append_column(name, table.column("value"))


def as_text(name: str) -> FileChange:
    """Make texts of a column of the history."""

    def change(table: pa.Table) -> pa.Table:
        return table.set_column(table.column_names.index(name), name, table.column(name).cast(pa.string()))

    return columns("history", change)


def foreign(path: Path) -> None:
    """Have the first record of the logs be of another run."""
    table = pq.read_table(path / part("replica_logs"))
    names = pa.array(["another", *table.column("run").to_pylist()[1:]])
    pq.write_table(table.set_column(0, table.schema.field("run"), names), path / part("replica_logs"))


def _place(row: Row) -> tuple[str, int]:
    return row["topic"], row["partition"]
