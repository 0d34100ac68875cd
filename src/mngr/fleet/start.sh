# shellcheck shell=sh
# Brings stopped agents back: `start ID...`. Prints "started ID", "running ID", "failed ID why", "gone ID".
# An agent whose program lives on without a session is refused: there must never be two copies of it.

start() {
  # one at a time: two that look at once would both find nothing running
  lock "$H/start.lock" 2400 || { echo "another start does not end: $H/start.lock" >&2; return 1; }
  now=$(date +%s) todo='' down=''
  read_panes -f '#{&&:#{@mngr},#{==:#{pane_dead},0}}' -F '#{@mngr} #{pane_pid}'
  for id in "$@"; do
    gone "$id" && continue
    if pane_of "$id" && ! is_ending "$id"; then echo "running $id"; else down="$down $id"; fi
  done
  # shellcheck disable=SC2086
  for living in $(survivors $down | tr ' ' :); do eval "survivor_${living%:*}=${living#*:}"; done
  for id in $down; do
    d=$H/agents/$id
    [ ! -e "$d/creating" ] || { echo "failed $id its create has not finished"; continue; }
    [ -s "$d/session" ] && [ -s "$d/launch" ] && [ -s "$d/env" ] || { echo "failed $id its files are damaged"; continue; }
    eval "alive=\${survivor_$id-}"
    [ -z "$alive" ] || { echo "failed $id process $alive is its program, alive without a session: mngr stop ends it"; continue; }
    # shellcheck source=/dev/null
    work=$(unset MNGR_WORK_DIR; . "$d/env" >/dev/null 2>&1; printf %s "$MNGR_WORK_DIR")
    [ -n "$work" ] || { echo "failed $id its files are damaged"; continue; }
    [ -d "$work" ] || { echo "failed $id its work dir is gone: $work"; continue; }
    todo="$todo $id"
    printf 'starting %s\n' "$now" >"$d/state"
  done
  # shellcheck disable=SC2086
  [ -z "$todo" ] || bring_back $todo
}

is_ending() { # is_ending ID: its program has ended, and its launcher tells so: whoever hears that may start it at once
  [ -s "$H/agents/$1/exit" ] || return 1
  launcher=''
  read -r launcher _ 2>/dev/null <"$H/agents/$1/pid"
  [ "$launcher" = "$pane" ] # and not what somebody runs in its pane by hand
}

bring_back() {
  for id in "$@"; do printf 'kill-session -t =%s\n' "$id"; done | t source-file - 2>/dev/null
  (cd "$H/agents" && for id in "$@"; do set -- "$@" "$id/exit" "$id/pid" && shift; done && rm -f "$@")
  told=$(feed_sessions "$@" 2>&1)
  for id in "$@"; do
    # tmux reads everything before it does anything, and a damaged file swallows what follows: all get a second chance
    came_up "$id" || [ $# = 1 ] || { t kill-session -t "=$id" 2>/dev/null; told=$told$nl$(feed_sessions "$id" 2>&1); }
    came_up "$id" && say "$id" started && echo "started $id" && continue
    t kill-session -t "=$id" 2>/dev/null
    printf 'stopped %s\n' "$now" >"$H/agents/$id/state"
    echo "failed $id tmux did not bring it up: $(printf '%s\n' "$told" | grep -v '^up ' | tail -n 1)"
  done
}

came_up() { # came_up ID: $told says so
  case $nl$told$nl in *"${nl}up $1$nl"*) return 0 ;; esac
  return 1
}

feed_sessions() { # feed_sessions ID...: their session files to tmux, which says "up ID" for each
  (cd "$H/agents" && for id in "$@"; do set -- "$@" "$id/session" && shift; done && cat "$@") | bring_up
}
