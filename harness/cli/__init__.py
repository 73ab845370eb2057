"""The command line: the composition root, which alone imports every part. One file per command.

``main`` handles every error: it prints one sentence and a remedy to standard error, and, unless the command line is
wrong, a last line with the command that reproduces it, and returns the documented exit code. An unexpected exception
is a bug, and keeps its traceback; one of a plugin's code is a sentence about that plugin.
Commands import heavy libraries (pyspark, confluent-kafka, pyarrow) themselves, so that ``seawall --help`` is fast.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress

import typer

from harness.cli.application import app
from harness.cli.origin import require_one_origin
from harness.cli.reproduction import Reproduction
from harness.cli.terminal import be_quiet, remark, tell
from harness.errors import ExitCode, SeawallError, came_of_an_interruption
from harness.plugins import plugins_answer_for_themselves
from harness.scratch import scratch
from harness.signals import caught, ignore, raised_once

_SEE_HEAL = "What it may have left, `seawall heal` removes."

_NOT_BY_OTHERS = 0o002
"""Replaces the user's umask: files of other users in a run directory would count as evidence."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line ``arguments`` (default: this process's) and return its exit code.

    From here to the end :mod:`harness.signals` handles signals, and :mod:`harness.scratch` temporary files.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    os.umask(os.umask(_NOT_BY_OTHERS) | _NOT_BY_OTHERS)
    reproduction = Reproduction(words)
    be_quiet(False)
    logging.basicConfig(handlers=[logging.NullHandler()])  # py4j logs a traceback for every Ctrl-C
    with raised_once(tell, to_the_end=arguments is None):
        try:
            with scratch():
                code = _survive(words, reproduction)
                if arguments is None:
                    ignore()  # everything is healed and decided
                    _end_spark()
        except KeyboardInterrupt:  # outside of the command: before it, or after it
            code = _complain("interrupted.", "", ExitCode.INTERRUPTED)
    if code and code != ExitCode.USAGE:
        remark(f"reproduce: {reproduction}")
    return code


def _end_spark() -> None:
    """End the JVM and its warm-up, if any, before Python ends the threads that this needs."""
    if (session := sys.modules.get("spark_analysis.session")) is not None:
        session.end()


def _survive(words: Sequence[str], reproduction: Reproduction) -> int:
    try:
        return _run(words, reproduction)
    except Exception as error:  # noqa: BLE001 (Python's own answer is exit code 1, which would be a verdict)
        if caught() and not came_of_an_interruption(error):
            return _complain(f"interrupted by {caught()}; {_first_line(error)}.", _SEE_HEAL, ExitCode.INTERRUPTED)
        if caught():
            return _complain("interrupted.", "", ExitCode.INTERRUPTED)
        tell(traceback.format_exc().rstrip())
        return _complain("this is a bug in seawall.", "Please report it with the traceback.", ExitCode.INTERNAL)


def _first_line(error: Exception) -> str:
    """The error of an interrupted call: libraries do not handle an interruption everywhere."""
    return f"ending it failed with {type(error).__name__}: {error}".partition("\n")[0].rstrip(". :")


def _run(words: Sequence[str], reproduction: Reproduction) -> int:
    try:
        require_one_origin()
        with plugins_answer_for_themselves():
            returned = typer.main.get_command(app).main(words, "seawall", standalone_mode=False, obj=reproduction)
    except SeawallError as error:
        return _complain(error.sentence, error.remedy, error.exit_code)
    except typer.TyperException as error:
        sentence = error.format_message().rstrip(".") + "."
        return _complain(sentence, _see_help(error), ExitCode.USAGE)
    except OSError as error:
        remedy = "Make room on its file system." if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
        return _complain(_what_failed(error), remedy, ExitCode.ENVIRONMENT)
    except SystemExit as ended:
        if ended.code:  # typer's answer to a reader of standard output that went away, as in `seawall ... | head`
            return _complain("the reader of the output is gone.", "", ExitCode.ENVIRONMENT)
        returned = _has_completion()
    if returned == ExitCode.INTERRUPTED:  # what typer makes of a KeyboardInterrupt
        return _complain("interrupted.", "", ExitCode.INTERRUPTED)
    return int(returned or ExitCode.PASS)


def _has_completion() -> ExitCode:
    """Typer has installed or shown a completion: prepare the first TAB."""
    from harness import completion

    completion.tree()
    return ExitCode.PASS


def _what_failed(error: OSError) -> str:
    """The error in one sentence; pyarrow's errors name a file only in their text."""
    reason = (error.strerror or str(error)).partition("\n")[0].rstrip(".") or type(error).__name__
    file = error.filename2 or error.filename
    return f"{file}: {reason}." if file is not None else f"the system refused: {reason}."


def _see_help(error: typer.TyperException) -> str:
    context = getattr(error, "ctx", None)
    return f"See `{context.command_path if context else 'seawall'} --help`."


def _complain(sentence: str, remedy: str, code: ExitCode) -> int:
    with suppress(OSError):  # the reader is gone
        sys.stdout.flush()
    tell(f"seawall: {sentence} {remedy}".rstrip())
    return int(code)
