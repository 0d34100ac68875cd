# shellcheck shell=sh
# The ends of session logs: `tails MARK ID...` prints a line "MARK log ID PATH" for each that has one, then the last 32 KB of
# all of them, with the heads that tail puts before each of several files. One process, however many there are. Behind a
# first prompt, Claude Code writes lists of what it can do: 8 KB as it comes, more with skills of the user's own.

tails() {
  mark=$1
  shift
  for id in "$@"; do
    shift
    [ -s "$H/agents/$id/conversation" ] || continue
    { read -r _ && IFS= read -r log; } <"$H/agents/$id/conversation"
    [ -f "$log" ] || continue # a pipe in its place would never end
    printf '%s log %s %s\n' "$mark" "$id" "$log"
    set -- "$@" "$log"
  done
  printf '%s tails\n' "$mark"
  [ $# = 0 ] || tail -c 32768 /dev/null "$@"
} 2>/dev/null
