"""Applies disk faults to the files of a stopped node: power loss, empty disk, flipped or truncated bytes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from harness import payload
from harness.broker.codecs import inflate
from harness.broker.ledger import Cut, ledger_path, lose_power
from harness.errors import EnvironmentFault
from harness.model import Offset, TopicPartition
from harness.target import LogDamage, Receipt
from harness.targets.log_dirs import found_in
from harness.wire.batches import MAGIC, BatchHeader, CorruptBatch, Record, build, stored

_SHOWN = 4


class Batch(NamedTuple):
    """A batch as it lies on the disk: ``data`` may be torn, and its ``header`` is None where it cannot be read."""

    path: Path
    position: int
    data: memoryview
    header: BatchHeader | None


def drop_page_cache(data_dir: Path) -> list[Cut]:
    """Cut the files of ``data_dir`` back to what had reached the disk; see :mod:`harness.broker.ledger`.

    Raises:
        EnvironmentFault: there is no ledger.
    """
    try:
        return lose_power(data_dir)
    except FileNotFoundError as unknown:
        raise EnvironmentFault(f"what had reached the disk is not known: {unknown}.") from None


def unflushed(data_dir: Path) -> list[Cut]:
    """What a power loss would take now; computed on a copy."""
    with TemporaryDirectory() as scratch:
        copy = Path(scratch, "data")
        shutil.copytree(data_dir, copy)
        shutil.copyfile(ledger_path(data_dir), ledger_path(copy))
        return lose_power(copy)


def in_words(cuts: Sequence[Cut]) -> str:
    """What a power loss took, as text."""
    if not cuts:
        return "everything had reached the disk"
    shown = [
        f"{cut.path} ({'its name' if cut.after_bytes is None else f'{cut.before_bytes - cut.after_bytes} bytes'})"
        for cut in cuts[:_SHOWN]
    ]
    more = f" and {len(cuts) - _SHOWN} more" if len(cuts) > _SHOWN else ""
    return f"dropped from the page cache: {', '.join(shown)}{more}"


def wipe(data_dir: Path) -> None:
    """Replace ``data_dir`` by an empty directory, and drop the old disk's ledger."""
    shutil.rmtree(data_dir, ignore_errors=True)
    ledger_path(data_dir).unlink(missing_ok=True)
    data_dir.mkdir(parents=True)


def is_empty(data_dir: Path) -> bool:
    """Whether there is nothing in ``data_dir``."""
    return not any(data_dir.iterdir())


def damage(data_dir: Path, harm: LogDamage) -> None:
    """Do ``harm`` to the batch that holds its offset.

    Raises:
        EnvironmentFault: there is no such batch, or it is of an old format and cannot be replaced.
    """
    batch = batch_at(data_dir, harm.partition, harm.offset)
    if batch is None:
        raise EnvironmentFault(f"no batch of {harm.partition} holds offset {harm.offset} on this disk.")
    if harm.how == "foreign":
        _replace(batch, harm.partition)
        return
    with batch.path.open("r+b") as file:
        if harm.how == "cut":
            file.truncate(batch.position + len(batch.data) // 2)
        else:
            file.seek(batch.position + len(batch.data) - 1)
            file.write(bytes([batch.data[-1] ^ 1]))


def _replace(batch: Batch, partition: TopicPartition) -> None:
    """Put a foreign batch in the place of ``batch``."""
    header = batch.header
    assert header is not None
    if header.magic < MAGIC:
        raise EnvironmentFault(f"a message of format {header.magic} cannot be replaced by a foreign batch.")
    foreign = build(
        [_foreign(partition, offset, header) for offset in range(header.base_offset, header.end_offset)],
        base_offset=header.base_offset,
        leader_epoch=header.leader_epoch,
    )
    log = batch.path.read_bytes()
    batch.path.write_bytes(log[: batch.position] + foreign + log[batch.position + len(batch.data) :])


def _foreign(partition: TopicPartition, offset: Offset, header: BatchHeader) -> Record:
    value, timestamp_ms = payload.FOREIGN_VALUE + offset - header.base_offset, header.max_timestamp
    record = payload.encode(value, *partition, timestamp_ms=timestamp_ms)
    return Record(offset, timestamp_ms, record.key, record.value, tuple(record.headers))


def inspect(data_dir: Path, harm: LogDamage) -> Receipt:
    """Whether the batch of ``harm`` is damaged now, or a foreign one, and its state."""
    batch = batch_at(data_dir, harm.partition, harm.offset)
    where = f"{harm.partition} at offset {harm.offset}"
    if batch is None:
        torn = [found for found in batches_of(data_dir, harm.partition) if found.header is None]
        if torn:
            return Receipt(True, f"{where}: the log ends with {len(torn[0].data)} bytes that are no batch")
        return Receipt(harm.how == "cut", f"{where}: the log does not reach that far")
    assert batch.header is not None
    if stored.verify(batch.data, batch.header):
        foreign = harm.how == "foreign" and _is_foreign(batch.data, batch.header)
        return Receipt(
            foreign, f"{where}: the batch is {'sound, and no producer of this run sent it' if foreign else 'sound'}"
        )
    return Receipt(True, f"{where}: the checksum of the batch is wrong")


def _is_foreign(batch: memoryview, header: BatchHeader) -> bool:
    first = payload.decode(next(stored.records(batch, header, inflate)).value)
    return first is not None and first.value == payload.FOREIGN_VALUE


def batch_at(data_dir: Path, partition: TopicPartition, offset: Offset) -> Batch | None:
    """The whole batch that holds ``offset``; None when there is none. Its checksum may be wrong."""
    for batch in batches_of(data_dir, partition):
        if batch.header is not None and batch.header.base_offset <= offset < batch.header.end_offset:
            return batch
    return None


def batches_of(data_dir: Path, partition: TopicPartition) -> Iterator[Batch]:
    """Every batch of a replica's log, in order; a segment that ends in the middle of one ends with that piece."""
    for log_dir in found_in(data_dir):
        for path in sorted((log_dir / str(partition)).glob("*.log")):
            yield from _in_segment(path)


def _in_segment(path: Path) -> Iterator[Batch]:
    position = 0
    for piece in stored.pieces(memoryview(path.read_bytes())):
        try:
            header = stored.header(piece, inflate)
        except CorruptBatch:
            header = None
        yield Batch(path, position, piece, header)
        position += len(piece)
