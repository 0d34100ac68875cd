# shellcheck shell=sh
# Brings sessions up: `bring_up` feeds tmux commands (the session files of agents) to the private server, starting it if
# need be, from an empty environment and in /, so that nothing of the caller lives on in it. Prints "up ID" for each.

bring_up() {
  server_files || return 1
  cd / && env -i PATH="$PATH" HOME="$HOME" LANG=C.UTF-8 tmux -u -S "$S" -f "$H/tmux.$CONF" start-server \; source-file -
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
