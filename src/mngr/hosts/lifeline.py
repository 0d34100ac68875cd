"""Scripts that end with their caller, even with a killed one: to kill the local client (ssh, podman) ends nothing on
the host, but its standard input closes there. Whoever ends a script so takes along all that is in its process group,
first politely and then not; what is to stay has left the group (a tmux server does, and what `setsid` starts)."""

from __future__ import annotations

_PATIENCE = 3  # seconds that a script has to clean up
_END = f"exec </dev/null >/dev/null 2>&1; kill -s TERM 0; sleep {_PATIENCE}; kill -s KILL 0"

_WATCH = f"trap '' TERM; while read -r _; do :; done; {_END}"

# A shell that takes scripts from its standard input.
SHELL = "exec sh -s"
FAR_SHELL = "exec /bin/sh -s"  # for a login shell, which may look for programs elsewhere
# The same; that goes to it through a pipe, so that its end is noticed at any time. When the shell itself has ended,
# because a script was none, all of it does.
OPEN_SHELL = f"{{ exec 2>/dev/null; trap '' TERM; cat; {_END}; }} | {{ sh -s; kill -s TERM 0; }}"


def tied(script: str) -> str:
    """The script with nothing on its standard input, which we keep open as long as it is to run. It may also be given
    to a `sh -s`, as a group that is read whole."""
    return f"exec 3<&0 </dev/null\n({_WATCH}) <&3 3<&- >/dev/null 2>&1 &\nexec 3<&-\n{script}"


def one_of_many(script: str, before: str, after: str) -> str:
    """For a SHELL that gets another one when it has said what stands `after` this: nobody may write to it before, since
    whoever watches it until then would read that. `$mngr_code` is how the script ended. What it has left running by
    then stays, as it would on this machine."""
    return (
        f"{{ exec 3<&0\n({_WATCH}) <&3 3<&- >/dev/null 2>&1 &\nmngr_watch=$!; exec 3<&-; {before};"
        f" ( {script}\n) </dev/null; mngr_code=$?;"
        f" {{ kill -s KILL $mngr_watch; wait $mngr_watch; }} 2>/dev/null; {after}; }}\n"
    )
