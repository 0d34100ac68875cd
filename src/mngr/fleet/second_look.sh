# shellcheck shell=sh
# The ends of session logs: `tails MARK ID...` prints a line "MARK tail ID" and then the last 64 KB of its log, for each that
# has one.

tails() {
  mark=$1
  shift
  for id in "$@"; do
    [ -s "$H/agents/$id/conversation" ] || continue
    { read -r _ && IFS= read -r log; } <"$H/agents/$id/conversation"
    printf '%s tail %s\n' "$mark" "$id"
    tail -c 65536 "$log"
    echo
  done 2>/dev/null
}
