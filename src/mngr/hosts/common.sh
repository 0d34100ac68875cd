# shellcheck shell=sh
# What every script knows. H is MNGR_HOME on this host, S the socket of its private tmux server; both are set before.
# Plain sh: Debian, Alpine and macOS. No GNU-only flags.
: "${H:?}" "${S:?}"
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_PREFIX GIT_COMMON_DIR GIT_OBJECT_DIRECTORY GIT_NAMESPACE TMUX TMUX_PANE

nl='
'
# What git is asked must not depend on what the user likes to see: a hidden untracked file is work all the same.
GIT_CONFIG_COUNT=$((${GIT_CONFIG_COUNT:-0} + 1))
eval "export GIT_CONFIG_COUNT GIT_CONFIG_KEY_$((GIT_CONFIG_COUNT - 1))=status.showUntrackedFiles GIT_CONFIG_VALUE_$((GIT_CONFIG_COUNT - 1))=normal"

# Never starts a server: that is up.sh's, with a clean environment.
t() { tmux -u -S "$S" "$@"; }

find_panes() { # for `pane_of`: the pane of each agent itself, whatever windows the user looks at or has made
  read_panes -f '#{@mngr}' -F '#{@mngr} #{pane_id}'
}

read_panes() { # read_panes FLAGS...: lines "ID PANE" into a variable for each: to search one long text is cubic in dash
  [ -S "$S" ] || return 0
  IFS=$nl
  # shellcheck disable=SC2046
  set -- $(t list-panes -a "$@" 2>/dev/null)
  unset IFS
  while [ $# -gt 0 ]; do
    case ${1%% *} in *[!0-9a-f]*) ;; *) eval "pane_${1%% *}=\${1##* }" ;; esac # a session of the user's own is nobody's
    shift
  done
}

pane_of() { # pane_of ID: $pane, or false when it has no session
  eval "pane=\${pane_$1-}"
  [ -n "$pane" ]
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

own_pid() { # $me. Not $$: on an open line this is a subshell, and $$ the sh that lives on when it is gone
  read -r me _ 2>/dev/null </proc/self/stat || me=$(exec sh -c 'echo "$PPID"')
}

why() { # why FILE: the last lines of a log as one line
  tail -n 4 "$1" 2>/dev/null | tr '\n\t' '  '
}
