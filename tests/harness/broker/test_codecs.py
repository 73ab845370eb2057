"""What clients compress, a broker and a reader of its log can read."""

import pytest

from harness.broker.codecs import CODECS, deflate, inflate
from harness.wire import batches as wire
from harness.wire.batches import MAGIC


@pytest.mark.parametrize("name", CODECS)
def test_what_is_compressed_is_read_again(name: str) -> None:
    data, codec = b"0123456789" * 1_000, CODECS[name]
    small = deflate(data, codec)
    assert bytes(inflate(memoryview(small), codec, MAGIC)) == data
    assert (len(small) < len(data)) == (name != "none")


@pytest.mark.parametrize("name", CODECS)
def test_a_batch_of_any_codec_holds_its_records(name: str) -> None:
    batch = wire.build([b"one", b"two"], codec=CODECS[name], deflate=deflate)
    (header,) = wire.headers(batch)
    assert header.attributes & wire.COMPRESSION == CODECS[name]
    assert [record.value for record in wire.records(batch, header, inflate)] == [b"one", b"two"]
