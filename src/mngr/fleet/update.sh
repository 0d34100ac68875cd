# shellcheck shell=sh
# Changing what an agent is: `swap ID OLD NEW` replaces its agent.json if it still says OLD. One at a time, by a lock that
# is a file made with noclobber and holds its owner's pid; a dead owner's lock is taken over. Exit 9: somebody was faster.

swap() {
  d=$H/agents/$1
  lock "$d/lock" || { echo "its lock is held: $d/lock" >&2; exit 1; }
  IFS= read -r current <"$d/agent.json"
  [ "$current" = "$2" ] || exit 9
  (umask 077 && printf '%s\n' "$3" >"$d/agent.json.new") && mv -f "$d/agent.json.new" "$d/agent.json"
}

lock() { # lock FILE [TRIES]: held until this script ends. 20 tries are a second.
  tries=0
  until (set -C && echo $$ >"$1") 2>/dev/null; do
    owner=''
    read -r owner 2>/dev/null <"$1"
    # an empty one is being written at this moment, or its owner never came to it
    if { [ -n "$owner" ] || [ "$tries" -ge 40 ]; } && ! is_alive "$owner"; then
      # rename is atomic: of several who find a dead owner, one moves his lock away. Who comes too late, and moved the
      # lock of the next owner, puts it back.
      if mv "$1" "$1.$$" 2>/dev/null; then
        read -r moved <"$1.$$"
        [ "$moved" = "$owner" ] || ln "$1.$$" "$1" 2>/dev/null
        rm -f "$1.$$"
      fi
    fi
    tries=$((tries + 1))
    [ "$tries" -lt "${2:-200}" ] || return 1
    sleep 0.05
  done
  # shellcheck disable=SC2064
  trap "rm -f '$(printf %s "$1" | sed "s/'/'\\\\\\\\''/g")'" EXIT
  trap 'exit 1' INT TERM HUP
}
