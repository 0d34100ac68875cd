# shellcheck shell=sh
# Follows the feed of this host: says "following", then each line as it is written, and "server" when the tmux server
# comes or goes, which nobody writes down. Ends with its caller, even a killed one: its standard input closes then.

follow() {
  mkdir -p "$H" && touch "$H/feed"
  from=$(wc -c <"$H/feed")
  echo following
  exec 3<&0 # a background job has no standard input of its own
  (while read -r _; do :; done <&3; kill 0) &
  watch_server &
  exec tail -c "+$((from + 1))" -F "$H/feed" 2>/dev/null
}

watch_server() { # a tmux client that waits for what never comes ends when the server does
  while :; do
    while [ ! -S "$S" ] || ! t list-sessions >/dev/null 2>&1; do sleep 1; done
    t wait-for "never-$$" >/dev/null 2>&1
    echo server || exit
  done
}
