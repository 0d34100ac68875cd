# shellcheck shell=sh
# Brings sessions up: `up ID...` feeds the agents' session files (tmux commands) to the private server, starting it if
# need be, from an empty environment and in /, so that nothing of the caller lives on in it. Prints "up ID" for each.

up() {
  server_files || return 1
  up_files=
  for up_id in "$@"; do up_files="$up_files $up_id/session"; done
  # Ids are plain words; the path of the home may not be, hence the cd.
  # shellcheck disable=SC2086
  (cd "$H/agents" && exec cat $up_files) |
    (cd / && exec env -i PATH="$PATH" HOME="$HOME" LANG=C.UTF-8 tmux -u -S "$S" -f "$H/tmux.$CONF" start-server \; source-file -)
}

server_files() { # the server's configuration and its hook, when they are not there yet
  dir=${S%/*}
  [ -d "$dir" ] || (umask 077 && mkdir -p "$dir")
  # shellcheck disable=SC3067 # dash, bash, busybox and zsh all have -O
  [ -O "$dir" ] || { echo "$dir belongs to somebody else: refusing to put a tmux socket there" >&2; return 1; }
  [ -e "$H/tmux.$CONF" ] && return 0
  (umask 077 && printf '%s\n' "$TMUX_CONF" >"$H/tmux.new.$$" && printf '%s\n' "$PANE_DIED" >"$H/pane-died.$$") &&
    mv -f "$H/pane-died.$$" "$H/pane-died" && mv -f "$H/tmux.new.$$" "$H/tmux.$CONF"
}
