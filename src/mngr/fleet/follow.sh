# shellcheck shell=sh
# Follows the feed of this host: says "following POSITION", then each line as it is written, and "server" when the tmux
# server comes or goes, which nobody writes down. Ends with its caller, even a killed one (lifeline.py).

follow() { # follow [POSITION]: from there, when that is given: somebody goes on who was interrupted
  mkdir -p "$H" && touch "$H/feed"
  end=$(wc -c <"$H/feed")
  from=${1:-$end}
  [ "$from" -le "$end" ] || from=0 # gc has begun a new one meanwhile
  echo "following $((from))"
  watch_server &
  exec tail -c "+$((from + 1))" -F "$H/feed" 2>/dev/null
}

watch_server() { # a tmux client that waits for what never comes ends when the server does
  told=''
  while :; do
    until [ -S "$S" ] && t list-sessions >/dev/null 2>&1; do
      [ -n "$told" ] || echo server || exit # it may have gone since our caller has looked
      told=1
      sleep 1
    done
    t wait-for "never-$$" >/dev/null 2>&1
    echo server || exit
    told=1
  done
}
