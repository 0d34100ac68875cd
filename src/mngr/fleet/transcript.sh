# shellcheck shell=sh
# The logs of an agent's conversations, as its program writes them. The file `conversations` in its directory names them,
# oldest first; the second line of `conversation` is the one that it writes now.

list_logs() { # list_logs ID: "SIZE PATH" of each, or "gone"; 0 is the size of one that is not there, too
  [ -d "$H/agents/$1" ] || { echo gone; return; }
  [ -f "$H/agents/$1/conversations" ] || return 0
  while IFS= read -r log || [ -n "$log" ]; do
    [ -f "$log" ] && [ -r "$log" ] && size=$(wc -c <"$log") || size=0
    printf '%d %s\n' "$size" "$log"
  done <"$H/agents/$1/conversations"
}

read_log() { # read_log FROM LOG: from that byte to the end
  [ -f "$2" ] || exit 1
  exec tail -c "+$(($1 + 1))" "$2"
}

follow_log() { # follow_log FROM LOG: the same, and then what is written. Also when the log does not exist yet
  end_with_caller
  exec tail -c "+$(($1 + 1))" -F "$2" 2>/dev/null
}

watch_logs() { # watch_logs ID TOLD: each log of which the caller, who knows TOLD of them, must hear; "gone" ends it
  end_with_caller
  id=$1 told=$2 current=
  mkdir -p "$H" && touch "$H/feed"
  from=$(wc -c <"$H/feed")
  tell_logs
  tail -c "+$((from + 1))" -F "$H/feed" 2>/dev/null | while IFS= read -r line; do
    case $line in *"$id"*) tell_logs ;; esac
  done
}

tell_logs() { # those that are new, and the one that is written now when that is another than before
  [ -d "$H/agents/$id" ] || { echo gone; kill 0; }
  if [ -f "$H/agents/$id/conversations" ]; then
    sed -n "$((told + 1)),\$p" "$H/agents/$id/conversations"
    told=$(wc -l <"$H/agents/$id/conversations")
  fi
  was=$current
  current=$(sed -n 2p "$H/agents/$id/conversation" 2>/dev/null)
  [ "$current" = "$was" ] || printf '%s\n' "$current"
}

end_with_caller() { # even a killed one: its standard input closes then, which a background job has to be handed
  exec 3<&0
  (cat <&3; kill 0) >/dev/null &
}
