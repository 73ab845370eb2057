"""What a program posts is kept when it is answered, record by record."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.user_program.posts import Posts, records_of


@pytest.fixture
def posts(tmp_path: Path) -> Iterator[Posts]:
    posts = Posts(tmp_path / "program" / "posted")
    posts.start()
    yield posts
    posts.stop()
    posts.stop()


def connection(posts: Posts) -> http.client.HTTPConnection:
    return http.client.HTTPConnection(posts.url.removeprefix("http://").rstrip("/"))


@pytest.mark.parametrize(
    ("body", "records"),
    [
        (b'[{"id": 1}, "two"]', [b'{"id": 1}', b'"two"']),
        (b'{"id": 1}\n{"id": 2}\n\n', [b'{"id": 1}', b'{"id": 2}']),
        (b'{\n "id": 1\n}', [b'{"id": 1}']),
        (b"plain text", [b"plain text"]),
        (b"", []),
    ],
)
def test_a_body_is_an_array_or_a_record_in_each_line(body: bytes, records: list[bytes]) -> None:
    assert records_of(body) == records


def test_what_is_posted_is_kept_in_order(posts: Posts, tmp_path: Path) -> None:
    client = connection(posts)
    for number in range(3):
        client.request("POST" if number else "PUT", "/any/where", json.dumps({"id": number}))
        answer = client.getresponse()
        assert (answer.status, answer.read()) == (200, b"")
    client.close()
    assert (tmp_path / "program" / "posted").read_text() == '{"id": 0}\n{"id": 1}\n{"id": 2}\n'


def test_a_body_in_chunks_is_one(posts: Posts, tmp_path: Path) -> None:
    client = connection(posts)
    client.request("POST", "/", iter([b'{"id"', b": 1}"]), encode_chunked=True)
    assert client.getresponse().status == 200
    client.close()
    assert (tmp_path / "program" / "posted").read_text() == '{"id": 1}\n'


@pytest.mark.parametrize("begun", ["Content-Length: 9\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n9\r\nhalf"])
def test_a_client_that_dies_in_the_midst_of_a_request_has_sent_nothing(
    posts: Posts, tmp_path: Path, begun: str
) -> None:
    client = connection(posts)
    client.connect()
    assert client.sock is not None
    client.sock.sendall(f"POST / HTTP/1.1\r\n{begun}".encode())
    client.sock.shutdown(socket.SHUT_WR)
    assert client.sock.recv(100) == b""
    client.close()
    assert (tmp_path / "program" / "posted").read_text() == ""
