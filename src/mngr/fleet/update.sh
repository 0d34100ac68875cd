# shellcheck shell=sh
# Changing what an agent is: `swap ID OLD NEW` replaces its agent.json if it still says OLD, one at a time (lock.sh).
# Exit 9: somebody was faster.

swap() {
  d=$H/agents/$1
  lock "$d/lock" || { echo "its lock is held: $d/lock" >&2; exit 1; }
  IFS= read -r current <"$d/agent.json"
  [ "$current" = "$2" ] || exit 9
  (umask 077 && printf '%s\n' "$3" >"$d/agent.json.new") && mv -f "$d/agent.json.new" "$d/agent.json"
}
