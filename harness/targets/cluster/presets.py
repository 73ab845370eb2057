"""Commands for nodes that are run in a usual way; a file names one as its ``preset`` and may replace each command."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

_RULE = 'INPUT -s "$PEER_ADDRESS" -d "$ADDRESS" -m comment --comment seawall -j DROP'

_SIGNALS = {
    "kill": '$SUDO kill -KILL "$PID"',
    "pause": '$SUDO kill -STOP "$PID"',
    "resume": '$SUDO kill -CONT "$PID"',
}

_PACKET_FILTERS = {
    "cut": f"$SUDO iptables -w -C {_RULE} 2>/dev/null || $SUDO iptables -w -I {_RULE}",
    "mend": (
        f"$SUDO iptables -w -nL INPUT >/dev/null || exit; while $SUDO iptables -w -D {_RULE} 2>/dev/null; do :; done"
    ),
    "reach": """timeout 1 bash -c ': <> "/dev/tcp/$0/$1"' "$PEER_ADDRESS" "$PEER_PORT\"""",
    "dropped": (
        'rules=$($SUDO iptables -w -nvxL INPUT) || exit; printf "%s\\n" "$rules" | '
        """awk -v s="$PEER_ADDRESS" -v d="$ADDRESS" '$3 == "DROP" && $8 == s && $9 == d {n += $1} END {print n + 0}'"""
    ),
}

_DISKS = {  # of what fallocate could not take whole, ext4 and XFS keep a part, which counts by its blocks
    "fill": """\
data=$(cd "$DATA" && pwd -P) || exit
refuse() { echo "$1" >&2; exit 1; }
[ "$(stat -c %d "$data")" != "$(stat -c %d /)" ] || refuse "DATA is on the root file system"
[ "$(stat -fc '%b %f %S' "$data" / | uniq | wc -l)" -gt 1 ] || refuse "DATA has its space from the root file system"
$SUDO ls -l "/proc/$PID/fd" 2>/dev/null | grep -qF " -> $data/" || refuse "the node has no file open in DATA"
file=$data/.seawall-ballast step=9223372036854775807 tries=0 last=nothing
while [ $tries -lt 100 ]; do
    tries=$((tries + 1))
    size=$(($($SUDO stat -c '%b * %B' "$file" 2>/dev/null || echo 0)))
    most=$(($(stat -fc '%f * %S' "$data") - FREE_BYTES))
    [ "$step" -le "$most" ] || step=$most
    [ "$step" -ge 4096 ] || break
    last=$($SUDO fallocate -o "$size" -l "$step" "$file" 2>&1) || step=$((step / 2))
done
[ -s "$file" ] || [ "$size" -gt 0 ] || refuse "no space could be taken: $last\"""",
    "free": '$SUDO rm -f "$DATA/.seawall-ballast"',
    "write": """\
said=$(LC_ALL=C $SUDO dd if=/dev/zero of="$DATA/.seawall-probe" bs=65536 count=1 conv=fsync 2>&1)
status=$?
$SUDO rm -f "$DATA/.seawall-probe" || exit
[ $status != 0 ] || said=written
case $said in written) echo written;; *"No space left on device"*) echo full;; *) echo "$said" >&2; exit 1;; esac""",
}

_LOGS = {  # the checkpoints first: an older watermark is never wrong
    "logs": """\
$SUDO sh -c '
    cd "$1" && here=$(pwd -P) || exit
    if [ -n "$3" ] || [ -e .lock ]; then  # Kafka keeps its .lock open
        ls -l "/proc/$2/fd" | grep -qF " -> $here/" || { echo "the node has no file open in LOG_DIR" >&2; exit 1; }
    fi
    topics=$3
    set --
    for one in *-checkpoint; do [ ! -f "$one" ] || set -- "$@" "$one"; done
    for topic in $topics; do
        for one in "$topic"-[0-9]*; do
            case ${one#"$topic"-} in *[!0-9]*) ;; *) [ ! -d "$one" ] || set -- "$@" "$one";; esac
        done
    done
    [ $# -gt 0 ] || set -- --files-from=/dev/null
    tar -cf - --exclude="*index" "$@"' sh "$LOG_DIR" "$PID" "$TOPICS\"""",
}

_CLOCK = """\
$SUDO sh -c '
    file=$1 offset=$2
    uptime_ms() { read -r uptime _ </proc/uptime && echo "${uptime%%.*}${uptime#*.}0"; }
    set_clock() {
        now=$((booted + $(uptime_ms) + $1)) && date -s "@$((now / 1000)).$(printf %%03d $((now %% 1000)))" >/dev/null
    }
%s' sh "$CLOCK_FILE" "$OFFSET_MS"\
"""

_MACHINE_CLOCKS = {  # the file has the true time of the boot, and whether time servers set the clock
    "skew": _CLOCK
    % """\
    if [ ! -s "$file" ]; then
        by_ntp=$(timedatectl show --property NTP --value) && now=$(date +%s%3N) && uptime=$(uptime_ms) || exit
        echo "$((now - uptime)) $by_ntp" >"$file.new" && mv "$file.new" "$file" || exit
    fi
    read -r booted by_ntp <"$file" || exit
    [ "$by_ntp" != yes ] || timedatectl set-ntp false || exit
    set_clock "$offset"
""",
    "unskew": _CLOCK
    % """\
    [ -s "$file" ] || exit 0
    read -r booted by_ntp <"$file" && now=$(date +%s%3N) && off=$((now - booted - $(uptime_ms))) || exit
    [ "${off#-}" -lt 100 ] || set_clock 0 || exit  # one that could not be set is right
    [ "$by_ntp" != yes ] || timedatectl set-ntp true || exit
    rm "$file"
""",
    "now": "date +%s%3N",
}

_RESTARTS = """\
drop_in=/run/systemd/system/${UNIT%.service}.service.d/zz-seawall.conf
allow_restarts() {
    $SUDO rm -f "$drop_in" || return
    $SUDO rmdir "${drop_in%/*}" 2>/dev/null
    $SUDO systemctl daemon-reload
}
"""

_BY_SYSTEMD = {
    "pid": 'systemctl show --property MainPID --value "$UNIT" || echo unknown',
    "kill": _RESTARTS  # a mask would have no effect on a unit in /etc
    + """\
forbid_restarts() {
    $SUDO mkdir -p "${drop_in%/*}" && printf "[Service]\\nRestart=no\\n" | $SUDO tee "$drop_in" >/dev/null || return
    $SUDO systemctl daemon-reload && policy=$(systemctl show --property Restart --value "$UNIT") || return
    [ "$policy" = no ] || { echo "$UNIT has Restart=$policy in spite of $drop_in" >&2; return 1; }
}
# No drop-in stays without a kill, for what is undone then is no end.
forbid_restarts && $SUDO systemctl kill --signal KILL "$UNIT" || { allow_restarts; exit 1; }
# systemd reads Restart= when the unit ends, and not again; of a unit that takes longer, start removes the drop-in.
tries=0
while [ "$tries" -lt 100 ]; do
    case $(systemctl show --property ActiveState --value "$UNIT") in
        inactive | failed) allow_restarts; exit;;
    esac
    tries=$((tries + 1)) && sleep 0.1
done""",
    "start": _RESTARTS  # after reset-failed no limit of starts refuses it
    + """\
allow_restarts || exit
$SUDO systemctl reset-failed "$UNIT" 2>/dev/null
$SUDO systemctl start --no-block "$UNIT\"""",
    "stop": '$SUDO systemctl stop --no-block "$UNIT"',
    **{name: _SIGNALS[name] for name in ("pause", "resume")},
}

_IN_A_CONTAINER = {
    "pid": (  # by a pattern that does not match the shell whose argument it is
        "for one in /proc/[0-9]*; do "
        """case "$(tr '\\0' ' ' 2>/dev/null <"$one/cmdline")" in """
        """*java\\ *\\ kafka.Kafka\\ *) echo "${one#/proc/}"; break;; esac; done"""
    ),
    **_SIGNALS,
    "kill": (  # later: the container ends with its broker, and this shell with the container
        '$SUDO kill -0 "$PID" || exit; (sleep 0.2; $SUDO kill -KILL "$PID") >/dev/null 2>&1 &'
    ),
    "start": ":",
}

TO_BE_SET = frozenset({"PID_FILE", "DATA", "LOG_DIR", "CLOCK_FILE"})
"""The variables without which a command that names them cannot be run; a preset has no value for them."""


@dataclass(frozen=True, slots=True)
class Preset:
    """The commands of a way to run nodes.

    Attributes:
        commands: by name, as in a file.
        variables: their shell variables, with what they are unless the file sets them.
        wanted: the variables, or commands, that the file has to add, in words.
        was_tried: whether they have been run against nodes that are run so.
    """

    commands: Mapping[str, str]
    variables: Mapping[str, str] = field(default_factory=dict)
    wanted: str = ""
    was_tried: bool = False


PRESETS: Mapping[str, Preset] = {
    "processes": Preset(
        {
            "pid": 'cat "$PID_FILE" 2>/dev/null',
            "stop": '$SUDO kill -TERM "$PID"',
            **_SIGNALS,
            **_PACKET_FILTERS,
            **_DISKS,
            **_LOGS,
        },
        {"SUDO": "", "PID_FILE": "", "DATA": "", "LOG_DIR": ""},
        "the variable PID_FILE and the command start",
        was_tried=True,
    ),
    "systemd": Preset(
        {**_BY_SYSTEMD, **_PACKET_FILTERS, **_DISKS, **_MACHINE_CLOCKS, **_LOGS},
        {"SUDO": "", "UNIT": "kafka", "CLOCK_FILE": "", "DATA": "", "LOG_DIR": ""},
        was_tried=True,
    ),
    "redpanda": Preset(
        {**_BY_SYSTEMD, **_PACKET_FILTERS, **_DISKS, **_MACHINE_CLOCKS},
        {"SUDO": "", "UNIT": "redpanda", "CLOCK_FILE": "", "DATA": ""},
    ),
    "strimzi": Preset(_IN_A_CONTAINER, {"SUDO": ""}),
}
"""By name. A drop-in, removed once the unit has ended, keeps systemd from starting a killed unit again; the kubelet
starts a killed container at once, and its broker counts as running when it answers."""
