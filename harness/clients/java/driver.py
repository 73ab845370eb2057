"""The process in which Apache Kafka's own clients run, and the requests to it; ``Driver.java`` is its other half.

A request is a line of JSON, and so is an answer; one request may have several answers.
"""

from __future__ import annotations

import json
import logging
import os
import queue
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from harness.spelling import as_text

_SOURCES = sorted(Path(__file__).parent.glob("*.java"))
_OF_SHARE_GROUPS = "ShareConsumers.java"
_CLIENTS = re.compile(r"kafka-clients-(\d+)\.(\d+)")
_SHARE_GROUPS_SINCE = (4, 2)
"""The release in which share groups are for production; in 4.1 they are a preview."""

_NEEDED_BY = "Kafka's own client"
_REMEDY = f"Install a JDK {OLDEST_JAVA} or newer, or leave workload.client out."
_LOOK = "Look at clients.log in the run directory, and at the machine's free memory."
_COMPILE_S = 120.0
_OPTIONS = ("-Xmx512m", "-XX:+UseSerialGC", "-Xlog:disable", "-Xlog:all=warning:stderr")
_ANSWER_S = 600.0
"""Calls of clients have timeouts of their own, which the harness chooses; none is as long."""

Answer = Mapping[str, Any]


class Driver:
    """A Java process with clients, and what is asked of it; any thread may ask.

    Args:
        classpath: of the jars of a release.
        log: takes what the process prints as an error.
        failed: called, in any thread, if the process ends before it is closed.

    Raises:
        EnvironmentFault: there is no JDK, or the program cannot be built or started.
    """

    def __init__(self, classpath: str, log: logging.Logger, failed: Callable[[BaseException], None]) -> None:
        java = find_java(_NEEDED_BY, _REMEDY)
        refuse_old(java, _NEEDED_BY, _REMEDY)
        words = [java, *_OPTIONS, "-cp", os.pathsep.join((str(built(classpath)), classpath))]
        self._numbers = count()
        self._asked: dict[int, queue.SimpleQueue[Answer]] = {}
        self._writing = threading.Lock()
        self._failed = failed
        self._is_closed = False
        self._process = _started([*words, "Driver"])
        works = (self._read, lambda: self._take_errors(log))
        self._readers = [threading.Thread(target=work, daemon=True) for work in works]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    def client(self, kind: str, settings: Mapping[str, object]) -> int:
        """Make a client; returns the number by which :meth:`ask` names it.

        Raises:
            EnvironmentFault: Kafka's client refuses the settings.
        """
        number = next(self._numbers)
        said = self.ask(number, kind, settings={name: as_text(one) for name, one in settings.items()})
        if "error" in said and not self._is_closed:
            raise EnvironmentFault(f"{_NEEDED_BY} could not be made: {said['error']}: {said['text']}.")
        return number

    def ask(self, client: int, do: str, **words: object) -> Answer:
        """Have a client do something; returns its last answer, which has the name of an ``error`` if there was one."""
        *_, last = self.answers(client, do, **words)
        return last

    def answers(self, client: int, do: str, **words: object) -> Iterator[Answer]:
        """As :meth:`ask`, with all answers as they come; the last one has ``end``.

        Raises:
            EnvironmentFault: there is none in time.
        """
        given = self.begin(client, do, **words)
        while True:
            try:
                answer = given.get(timeout=_ANSWER_S)
            except queue.Empty:
                raise EnvironmentFault(f"{_NEEDED_BY} has not answered {do!r} in {_ANSWER_S:g} s.") from None
            yield answer
            if "end" in answer:
                return

    def begin(self, client: int, do: str, **words: object) -> queue.SimpleQueue[Answer]:
        """Have a client do something; returns where the answers come."""
        number, given = next(self._numbers), queue.SimpleQueue[Answer]()
        self._asked[number] = given
        self._write({"do": do, "client": client, "id": number, **words})
        if self._is_closed:
            self._end_all()
        return given

    def tell(self, client: int, do: str, **words: object) -> None:
        """Have a client do something to which there is no answer."""
        self._write({"do": do, "client": client, **words})

    def close(self) -> None:
        """End the process, and with it all clients. Idempotent."""
        self._is_closed = True
        self._process.kill()
        self._process.wait()
        with suppress(OSError):
            assert self._process.stdin is not None
            self._process.stdin.close()
        for reader in self._readers:
            reader.join()
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()

    def _write(self, request: Mapping[str, object]) -> None:
        assert self._process.stdin is not None
        try:
            with self._writing:
                self._process.stdin.write(json.dumps(request) + "\n")
                self._process.stdin.flush()
        except (OSError, ValueError):
            self._end_all()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            try:
                answer = json.loads(line)
                number = answer["id"]
            except (ValueError, TypeError, KeyError):
                said = f"{_NEEDED_BY}, process {self.pid}, has printed {line[:100]!r}, which is no answer."
                self._fail(EnvironmentFault(said, _LOOK))
                self._process.kill()
                break
            given = self._asked.pop(number, None) if "end" in answer else self._asked.get(number)
            if given is not None:
                given.put(answer)
        self._end_all()

    def _end_all(self) -> None:
        """The process answers no more: what was asked has no other answer."""
        self._fail(EnvironmentFault(f"{_NEEDED_BY}, process {self.pid}, has ended by itself.", _LOOK))
        for number in list(self._asked):
            if (given := self._asked.pop(number, None)) is not None:
                given.put({"id": number, "error": "_DESTROY", "text": "the Java process has ended", "end": True})

    def _fail(self, why: EnvironmentFault) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._failed(why)

    def _take_errors(self, log: logging.Logger) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            log.info("java: %s", line.rstrip())


def _started(words: Sequence[str]) -> subprocess.Popen[str]:
    process: subprocess.Popen[str] | None = None
    try:
        with postponed():
            process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
    except BaseException:
        if process is not None:
            process.kill()
        raise
    return process


def written_offsets(offsets: Mapping[TopicPartition, CommittedOffset]) -> list[list[object]]:
    """Offsets as the process takes them."""
    return [[name.topic, name.partition, one.offset, one.leader_epoch] for name, one in sorted(offsets.items())]


def has_share_groups(classpath: str) -> bool:
    """Whether the client in these jars has share consumers for production."""
    named = [_CLIENTS.match(Path(jar).name) for jar in classpath.split(os.pathsep)]
    return any((int(one[1]), int(one[2])) >= _SHARE_GROUPS_SINCE for one in named if one)


def _sources(classpath: str) -> list[Path]:
    return [one for one in _SOURCES if one.name != _OF_SHARE_GROUPS or has_share_groups(classpath)]


def built(classpath: str) -> Path:
    """The directory with the classes of the program, which are compiled at first use and cached.

    Raises:
        EnvironmentFault: there is no compiler, or it refuses the program.
    """
    digest, sources = sha256(classpath.encode()), _sources(classpath)
    for source in sources:
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
        words = (compiler, "-nowarn", "-d", str(classes), "-cp", classpath, *map(str, sources))
        done = program.run(words, _COMPILE_S)
        if done.returncode:
            raise EnvironmentFault(f"{_NEEDED_BY} could not be compiled: {done.stderr.strip()[:500]}.", _REMEDY)
        with suppress(OSError):  # another process may have been faster
            classes.rename(place)
    return place
