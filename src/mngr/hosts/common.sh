# shellcheck shell=sh
# What every script knows. H is MNGR_HOME on this host, S the socket of its private tmux server; both are set before.
# Plain sh: Debian, Alpine and macOS. No GNU-only flags.
: "${H:?}" "${S:?}"
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_PREFIX GIT_COMMON_DIR GIT_OBJECT_DIRECTORY GIT_NAMESPACE TMUX TMUX_PANE

nl='
'

# Never starts a server: that is up.sh's, with a clean environment.
t() { tmux -u -S "$S" "$@"; }

find_panes() { # $panes: "ID PANE DEAD" for the pane of each agent itself, whatever windows the user looks at or has made
  panes=$nl
  [ ! -S "$S" ] || panes=$nl$(t list-panes -a -f '#{@mngr}' -F '#{@mngr} #{pane_id} #{pane_dead}' 2>/dev/null)$nl
}

pane_of() { # pane_of ID: $pane, or false when it has no session
  case $panes in *"$nl$1 "*) pane=${panes#*"$nl$1 "} && pane=${pane%% *} ;; *) return 1 ;; esac
}

say() { # say ID EVENT [JSON MEMBERS]: one line to the agent's history and to the feed that `wait` follows
  now=${now:-$(date +%s)}
  line="{\"time\":$now,\"agent\":\"$1\",\"event\":\"$2\"${3:+,$3}}"
  [ ! -d "$H/agents/$1" ] || printf '%s\n' "$line" >>"$H/agents/$1/events.jsonl"
  printf '%s\n' "$line" >>"$H/feed"
}

gone() { # gone ID: says so and is true when there is no such agent here
  [ ! -d "$H/agents/$1" ] && printf 'gone %s\n' "$1"
}

is_alive() { # is_alive PID: not ended. A zombie is, and stays one where nobody collects orphans (containers without an init)
  kill -0 "$1" 2>/dev/null || return 1
  [ -r "/proc/$1/stat" ] && read -r stat <"/proc/$1/stat" && case ${stat##*) } in Z* | X*) return 1 ;; esac
  return 0
}

why() { # why FILE: the last lines of a log as one line
  tail -n 4 "$1" 2>/dev/null | tr '\n\t' '  '
}
