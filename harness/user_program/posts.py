"""The sink for programs that post their output: a server on a loopback address that keeps every record it is sent."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_HOST = "127.0.0.1"


class Posts:
    """A server that answers a POST when its records are in the file ``path``, a line each, in order of arrival.

    The body is a JSON array of records, or a record in each line.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writing = threading.Lock()
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        """Where to post."""
        assert self._server is not None, "the server has not been started"
        return f"http://{_HOST}:{self._server.server_address[1]}/"

    def start(self) -> None:
        """Serve until :meth:`stop`."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.touch()

        class Handler(_Handler):
            posts = self

        self._server = ThreadingHTTPServer((_HOST, 0), Handler)
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def stop(self) -> None:
        """Serve no more; idempotent."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def take(self, body: bytes) -> None:
        """Append the records of a body."""
        with self._writing, self._path.open("ab") as file:
            for line in records_of(body):
                file.write(line + b"\n")


def records_of(body: bytes) -> list[bytes]:
    """The records of a body, in one line each."""
    found: Any = None
    with suppress(ValueError):
        found = json.loads(body)
    if isinstance(found, list):
        return [json.dumps(one).encode() for one in found]
    if found is not None:
        return [json.dumps(found).encode()]
    return [line for line in body.splitlines() if line.strip()]


class _Handler(BaseHTTPRequestHandler):
    posts: Posts
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        """Keep the records, and answer that they are kept; what a killed client has begun to send is none."""
        with suppress(ValueError, EOFError):
            self.posts.take(self._body())
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        self.close_connection = True

    do_PUT = do_POST  # noqa: N815 (the name that the server looks up)

    def _body(self) -> bytes:
        if "chunked" not in (self.headers.get("Transfer-Encoding") or "").lower():
            return self._read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            body += self._read(size)
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return body

    def _read(self, size: int) -> bytes:
        found = self.rfile.read(size)
        if len(found) < size:
            raise EOFError
        return found

    def log_message(self, *_: object) -> None:
        """Say nothing on standard error."""
