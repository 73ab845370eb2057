"""Finds the processes of a container that have to have the clock shim, and whether they have it: in shell scripts.

Of Kafka these are all that run Java. A broker of another make is one process: that which listens at its port, or else
the largest of the tree that the container was started with. A script or an ``init`` that waits for it, a health check,
which the engine puts beside that tree, and what has ended do not count.
"""

from __future__ import annotations

from typing import NamedTuple

MOUNTED = "/seawall/shim"
"""The directory of the shim's files in a container."""

CONTROL = "shim.control"

_LISTENING = "0A"
"""The state of a socket in ``/proc/net/tcp``."""


class Look(NamedTuple):
    """A look at the processes of a container.

    Attributes:
        script: for a shell; it prints for each of them ``bent`` or ``true``, its id and its name; or ``as`` and the
            id of the user that it has to be run as, for only that user may look.
        called: what they are, in a word.
    """

    script: str
    called: str


class Seen(NamedTuple):
    """A process that was looked at.

    Attributes:
        is_bent: whether the shim moves its clock.
        pid: its id, in the container.
        name: as the kernel calls it.
    """

    is_bent: bool
    pid: int
    name: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.name})"


def seen_in(said: str) -> list[Seen]:
    """What a script of this module has printed; lines of another form are none of its."""
    found = [line.split(maxsplit=2) for line in said.splitlines()]
    return [
        Seen(words[0] == "bent", int(words[1]), words[2].strip())
        for words in found
        if len(words) == 3 and words[0] in ("bent", "true") and words[1].isdecimal()
    ]


def user_to_look(said: str) -> str:
    """The id of the user that a script of this module has asked to be run as; empty: it has not."""
    words = said.split()
    return words[1] if words[:1] == ["as"] and words[1:] else ""


JAVA = Look(
    f"""\
for process in /proc/[0-9]*; do
    case $(readlink $process/exe) in
    */java) grep -q ' {MOUNTED}/{CONTROL}$' $process/maps && found=bent || found=true
        echo "$found ${{process#/proc/}} java" ;;
    esac
done
""",
    "Java",
)

_BROKER = f"""\
sockets=
for file in /proc/net/tcp /proc/net/tcp6; do
    while read -r _ local _ state _ _ _ _ _ inode _; do
        case $local,$state in *:%(port)s,{_LISTENING}) sockets="$sockets socket:[$inode]" ;; esac
    done 2>/dev/null < $file
done
tree=' 1 ' grows=yes
while [ $grows ]; do
    grows=
    for process in /proc/[0-9]*; do
        parent=none
        while read -r key value _; do [ $key != PPid: ] || parent=$value; done 2>/dev/null < $process/status
        case "$tree" in
        *" ${{process#/proc/}} "*) ;;
        *" $parent "*) tree="$tree${{process#/proc/}} " grows=yes ;;
        esac
    done
done
main= most=-1
for pid in $tree; do
    name= size=0
    while read -r key value _; do
        case $key in Name:) name=$value ;; Uid:) user=$value ;; VmRSS:) size=$value ;; esac
    done 2>/dev/null < /proc/$pid/status
    [ "$name" ] || continue
    files=$(ls -l /proc/$pid/fd 2>/dev/null)
    for one in $sockets; do
        case $files in *"$one"*) size=$((size + 1000000000000)) ;; esac
    done
    [ $size -le $most ] || {{ most=$size main=$pid called=$name owner=$user; }}
done
read -r line 2>/dev/null < /proc/$main/maps || {{ echo "as $owner"; exit; }}
found=true
while read -r line; do
    case $line in *\\ {MOUNTED}/{CONTROL}) found=bent ;; esac
done 2>/dev/null < /proc/$main/maps
grep -q 'Go buildinf:' /proc/$main/exe 2>/dev/null && found=true
echo "$found $main $called"
"""


def broker_at(port: int) -> Look:
    """The look at a broker of another make that listens at this port of its container, once it does.

    A program in Go asks the kernel for the time itself, so that a shim in it moves nothing.
    """
    return Look(_BROKER % {"port": f"{port:04X}"}, "program")
