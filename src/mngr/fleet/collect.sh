# shellcheck shell=sh
# The logs of agents, for the ledger. `logs` names them all in a few processes, however many there are; `send` and
# `send_rest` give their contents one after the other, with a line of $mark behind each, which no log can hold by chance.

logs() { # logs GLOB ID...: lines of ls, with inode and size, for the files of GLOB below the directories of the agents
  cd "$H/agents" || return 0
  glob=$1 IFS=''
  shift
  unset TIME_STYLE QUOTING_STYLE BLOCK_SIZE LS_BLOCK_SIZE # which change what ls prints
  # shellcheck disable=SC2086
  for id in "$@"; do
    for file in ./$id/$glob; do [ ! -f "$file" ] || printf '%s\0' "$file"; done
  done | LC_ALL=C xargs -0 ls -Lind /dev/null # one that has just gone is a complaint of ls, and no matter
  unset IFS
} 2>/dev/null

begin() { # begin MARK: before any send. The mark is in a file, so that one cat can put it between many others
  cd "$H/agents" && mark=./.mark.$$ && trap 'rm -f "$mark"' EXIT && (umask 077 && printf '%s\n' "$1" >"$mark")
}

send() { # send FILE...: whole
  for file in "$@"; do
    shift
    set -- "$@" "$file" "$mark"
  done
  cat "$@"
} 2>/dev/null

send_rest() { # send_rest FIRST FILE: from that byte on, the first one being 1
  tail -c "+$1" "$2"
  cat "$mark"
} 2>/dev/null
