"""A Java that is none, for tests of how one is found and what it says."""

from __future__ import annotations

from pathlib import Path


def fake_java(home: Path, script: str) -> str:
    """A Java in ``home``, which may be ``JAVA_HOME``, that runs ``script``; where it is."""
    java = home / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return str(java)


def java_that_says(home: Path, said: str) -> str:
    """The same that says something of itself, and no more."""
    return fake_java(home, f"echo '{said}' >&2")
