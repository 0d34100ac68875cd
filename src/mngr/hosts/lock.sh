# shellcheck shell=sh
# Locks: a file made with noclobber that holds its owner's pid. A dead owner's lock is taken over.
locked='' # one a line
own_pid

lock() { # lock FILE [TRIES]: held until this script ends. 20 tries are a second.
  tries=0
  until try_lock "$1"; do
    tries=$((tries + 1))
    [ "$tries" -lt "${2:-200}" ] || return 1
    sleep 0.05
  done
  locked=$locked$1$nl
  trap unlock EXIT
  trap 'exit 1' INT TERM HUP
}

unlock() {
  printf %s "$locked" | while IFS= read -r file; do rm -f "$file"; done
}

try_lock() { # try_lock FILE
  (set -C && echo "$me" >"$1") 2>/dev/null && return 0
  owner=''
  read -r owner 2>/dev/null <"$1"
  # an empty one is being written at this moment, or its owner never came to it
  if { [ -n "$owner" ] || [ "${tries:-0}" -ge 40 ] || [ -n "$(find "$1" -mmin +1 2>/dev/null)" ]; } && ! is_alive "$owner"; then
    # rename is atomic: of several who find a dead owner, one moves his lock away. Who comes too late, and moved the
    # lock of the next owner, puts it back.
    if mv "$1" "$1.$me" 2>/dev/null; then
      read -r moved <"$1.$me"
      [ "$moved" = "$owner" ] || ln "$1.$me" "$1" 2>/dev/null
      rm -f "$1.$me"
    fi
  fi
  return 1
}
