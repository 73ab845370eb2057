"""The process in which Apache Kafka's own clients run, and the requests to it; ``Driver.java`` is its other half.

A request is a line of JSON, and so is an answer; one request may have several answers.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Any

from harness import program
from harness.client_ports import CommittedOffset
from harness.errors import EnvironmentFault
from harness.java import OLDEST_JAVA, find_java, refuse_old
from harness.model import TopicPartition
from harness.signals import postponed

_SOURCES = sorted(Path(__file__).parent.glob("*.java"))
_NEEDED_BY = "Kafka's own client"
_REMEDY = f"Install a JDK {OLDEST_JAVA} or newer, or leave workload.client out."
_COMPILE_S = 120.0
_ANSWER_S = 60.0
"""No call of a client takes as long: each has a timeout of its own."""
_END_S = 5.0

Answer = Mapping[str, Any]


class Driver:
    """A Java process with clients, and what is asked of it; any thread may ask.

    Args:
        classpath: of the jars of a release.
        log: takes what the process prints as an error.

    Raises:
        EnvironmentFault: there is no JDK, or the program cannot be built or started.
    """

    def __init__(self, classpath: str, log: logging.Logger) -> None:
        java = find_java(_NEEDED_BY, _REMEDY)
        refuse_old(java, _NEEDED_BY, _REMEDY)
        words = [java, "-Xmx512m", "-XX:+UseSerialGC", "-cp", os.pathsep.join((str(built(classpath)), classpath))]
        self._numbers = count()
        self._asked: dict[int, queue.SimpleQueue[Answer]] = {}
        self._writing = threading.Lock()
        with postponed():
            self._process = subprocess.Popen(
                [*words, "Driver"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        works = (self._read, lambda: self._take_errors(log))
        self._readers = [threading.Thread(target=work, daemon=True) for work in works]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def client(self, kind: str, settings: Mapping[str, object]) -> int:
        """Make a client; returns the number by which :meth:`ask` names it."""
        number = next(self._numbers)
        self._write({"do": kind, "client": number, "settings": {name: _written(one) for name, one in settings.items()}})
        return number

    def ask(self, client: int, do: str, **words: object) -> Answer:
        """Have a client do something; returns its last answer, which has the name of an ``error`` if there was one."""
        *_, last = self.answers(client, do, **words)
        return last

    def answers(self, client: int, do: str, **words: object) -> Iterator[Answer]:
        """As :meth:`ask`, with all answers as they come; the last one has ``end``."""
        given = self.begin(client, do, **words)
        while True:
            answer = given.get(timeout=_ANSWER_S)
            yield answer
            if "end" in answer:
                return

    def begin(self, client: int, do: str, **words: object) -> queue.SimpleQueue[Answer]:
        """Have a client do something; returns where the answers come."""
        number, given = next(self._numbers), queue.SimpleQueue[Answer]()
        self._asked[number] = given
        self._write({"do": do, "client": client, "id": number, **words})
        return given

    def tell(self, client: int, do: str, **words: object) -> None:
        """Have a client do something to which there is no answer."""
        self._write({"do": do, "client": client, **words})

    def close(self) -> None:
        """End the process, and with it all clients. Idempotent."""
        with suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for reader in self._readers:
            reader.join()
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()

    def _write(self, request: Mapping[str, object]) -> None:
        line = json.dumps(request)
        assert self._process.stdin is not None
        try:
            with self._writing:
                self._process.stdin.write(line + "\n")
                self._process.stdin.flush()
        except (OSError, ValueError):
            self._end_all()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            given = self._asked.pop(answer["id"], None) if "end" in answer else self._asked.get(answer["id"])
            if given is not None:
                given.put(answer)
        self._end_all()

    def _end_all(self) -> None:
        """The process is gone: what was asked has no other answer."""
        for number in list(self._asked):
            if (given := self._asked.pop(number, None)) is not None:
                given.put({"id": number, "error": "_DESTROY", "text": "the Java process has ended", "end": True})

    def _take_errors(self, log: logging.Logger) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            log.info("java: %s", line.rstrip())


def _written(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def written_offsets(offsets: Mapping[TopicPartition, CommittedOffset]) -> list[list[object]]:
    """Offsets as the process takes them."""
    return [[name.topic, name.partition, one.offset, one.leader_epoch] for name, one in sorted(offsets.items())]


def built(classpath: str) -> Path:
    """The directory with the classes of the program, which are compiled at first use and cached.

    Raises:
        EnvironmentFault: there is no compiler, or it refuses the program.
    """
    digest = sha256(classpath.encode())
    for source in _SOURCES:
        digest.update(source.read_bytes())
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "seawall")
    place = cache / f"java-{digest.hexdigest()[:16]}"
    if place.exists():
        return place
    compiler = shutil.which("javac")
    if compiler is None:
        raise EnvironmentFault(f"{_NEEDED_BY} needs a Java compiler, and there is no javac on the PATH.", _REMEDY)
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache, prefix=".compiling-") as made:
        classes = Path(made, "classes")
        words = (compiler, "-nowarn", "-d", str(classes), "-cp", classpath, *map(str, _SOURCES))
        done = program.run(words, _COMPILE_S)
        if done.returncode:
            raise EnvironmentFault(f"{_NEEDED_BY} could not be compiled: {done.stderr.strip()[:500]}.", _REMEDY)
        with suppress(OSError):  # another process may have been faster
            classes.rename(place)
    return place
