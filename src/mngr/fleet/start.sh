# shellcheck shell=sh
# Brings stopped agents back: `start ID...`. Prints "started ID", "running ID", "failed ID why", "gone ID".
# An agent whose program lives on without a session is refused: there must never be two copies of it.

start() {
  # one at a time: two that look at once would both find nothing running
  lock "$H/start.lock" || { echo "another start does not end: $H/start.lock" >&2; return 1; }
  now=$(date +%s) todo='' running=''
  [ ! -S "$S" ] || running=$(t list-panes -a -f '#{&&:#{@mngr},#{==:#{pane_dead},0}}' -F '#{@mngr}' 2>/dev/null)
  for id in "$@"; do
    gone "$id" && continue
    d=$H/agents/$id
    case "$nl$running$nl" in *"$nl$id$nl"*) echo "running $id" && continue ;; esac
    [ ! -e "$d/creating" ] || { echo "failed $id its create has not finished"; continue; }
    [ -s "$d/session" ] && [ -s "$d/launch" ] && [ -s "$d/env" ] || { echo "failed $id its files are damaged"; continue; }
    alive=$(survivors "$id")
    [ -z "$alive" ] || { echo "failed $id process ${alive#* } is its program, alive without a session: mngr stop ends it"; continue; }
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

bring_back() {
  for id in "$@"; do printf 'kill-session -t =%s\n' "$id"; done | t source-file - 2>/dev/null
  (cd "$H/agents" && for id in "$@"; do set -- "$@" "$id/exit" "$id/pid" && shift; done && rm -f "$@")
  told=$(feed_sessions "$@" 2>&1)
  # tmux reads everything before it does anything: one damaged file keeps all down, unless each comes on its own
  case $nl$told in *"${nl}up "*) ;; *) [ $# = 1 ] || told=$(for id in "$@"; do feed_sessions "$id"; done 2>&1) ;; esac
  for id in "$@"; do
    case $nl$told$nl in *"${nl}up $id$nl"*) say "$id" started && echo "started $id" && continue ;; esac
    t kill-session -t "=$id" 2>/dev/null
    printf 'stopped %s\n' "$now" >"$H/agents/$id/state"
    echo "failed $id tmux did not bring it up: $(printf '%s\n' "$told" | grep -v '^up ' | tr '\n' ' ')"
  done
}

feed_sessions() { # feed_sessions ID...: their session files to tmux, which says "up ID" for each
  (cd "$H/agents" && for id in "$@"; do set -- "$@" "$id/session" && shift; done && cat "$@") | bring_up
}
