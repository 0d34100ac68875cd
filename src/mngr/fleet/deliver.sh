# shellcheck shell=sh
# What it takes to hand a message to agents that can prove its arrival. deliver.py asks for these one by one, through one
# sh that stays open and holds their locks. tmux, wc and awk are called once for all agents; only what is done to one of them
# alone (its lock, its records) costs a process of its own.

held=''
trap 'for id in $held; do let_go "$id"; done' EXIT
trap 'exit 1' INT TERM HUP

take() { # take ID...: the lock of each, and where its pane is. Prints "mine ID", "held ID", "gone ID", "pipe ID"
  for id in "$@"; do
    gone "$id" && continue
    if try_lock "$H/agents/$id/message.lock"; then held="$held $id" && echo "mine $id"; else echo "held $id"; fi
    IFS= read -r agent <"$H/agents/$id/agent.json" # not by the pipe itself: its launcher may not have made that yet
    case $agent in *'"headless": true'*) echo "pipe $id" ;; esac
  done
  find_panes
}

let_go() { # let_go ID: and forget it, or our end would take away the lock of whoever has it by then
  held="${held%%" $1"*}${held#*" $1"}"
  eval "writer=\${writer_$1-}" # who still writes to its pipe: what was not taken by now must not arrive later
  [ -z "$writer" ] || kill "$writer" 2>/dev/null
  rm -f "$H/agents/$1/message.lock"
}

look() { # look MARK ID...: "MARK state ID STATE", and "MARK screen ID" with the screen, or "MARK dead ID"
  mark=$1
  shift
  for id in "$@"; do
    written=''
    IFS= read -r written <"$H/agents/$id/state"
    eval "looked_$id=\$written"
    printf '%s state %s %s\n' "$mark" "$id" "$written"
  done 2>/dev/null
  for id in "$@"; do
    pane_of "$id" || continue
    printf "if -F -t %s '#{pane_dead}' 'display -p \"%s dead %s\"' 'display -p \"%s screen %s\" ; capture-pane -p -t %s'\n" \
      "$pane" "$mark" "$id" "$mark" "$id" "$pane"
  done | t source-file - 2>/dev/null
  :
}

is_asking() { # is_asking STATE: as it is written
  case $1 in 'waiting '*' permission'* | 'waiting '*' question'* | 'waiting '*' dialog'*) return 0 ;; esac
  return 1
}

keys() { # keys COMMAND UNLESS ID...: the tmux command for each, with PANE for its pane. Never to a dead one, which crashes
  # 3.3a; nor to one that has come to stand before a dialog since we looked, as its hook says, or its screen, in which
  # tmux itself searches for UNLESS. What the hook had said before we looked counts for nothing: that somebody answered
  # a dialog, no hook tells
  does=$1 unless=$2
  shift 2
  for id in "$@"; do
    pane_of "$id" || continue
    written=''
    IFS= read -r written <"$H/agents/$id/state"
    eval "looked=\${looked_$id-}"
    [ "$written" = "$looked" ] || ! is_asking "$written" || continue
    left=$does filled=''
    while case $left in *PANE*) ;; *) false ;; esac; do filled=$filled${left%%PANE*}$pane left=${left#*PANE}; done
    printf "if -F -t %s '#{||:#{pane_dead},%s}' '' '%s'\n" "$pane" "${unless:-0}" "$filled$left"
  done 2>/dev/null | t source-file - 2>/dev/null
  :
}

lengths() { # lengths ID...: "ID RECEIVED LOGGED LOG": how long what its hook was told is, and its log
  ids=$*
  for id in "$@"; do
    log=/dev/null
    [ ! -s "$H/agents/$id/conversation" ] || { read -r _ && IFS= read -r log; } <"$H/agents/$id/conversation"
    [ -f "$log" ] || log=/dev/null
    received=$H/agents/$id/received
    [ -f "$received" ] || received=/dev/null # not yet, or gone with its agent: each must count
    eval "log_$id=\$log"
    set -- "$@" "$received" "$log" && shift
  done
  # shellcheck disable=SC2046
  set -- $(wc -c "$@" 2>/dev/null | awk '{ print $1 }')
  for id in $ids; do
    eval "log=\$log_$id"
    printf '%s %s %s %s\n' "$id" "$1" "$2" "$log"
    shift 2
  done
}

news() { # news ID RECEIVED LOGGED LOG: what came since, each line after "received ID " or "logged ID "
  tail -c "+$(($2 + 1))" "$H/agents/$1/received" | sed "s/^/received $1 /"
  tail -c "+$(($3 + 1))" "$4" | sed "s/^/logged $1 /"
} 2>/dev/null

dialog() { # dialog ID NAME: one that the message opened, which no hook tells
  written=''
  read -r written <"$H/agents/$1/state"
  is_asking "$written" && return
  unset now
  say "$1" waiting "\"reason\":\"dialog: $2\""
  printf 'waiting %s dialog: %s\n' "$now" "$2" >"$H/agents/$1/state.$$" && mv -f "$H/agents/$1/state.$$" "$H/agents/$1/state"
}

feed() { # feed LINE ID...: a line into the pipe of each. Not from here: a pipe that nobody empties would hold us for ever
  line=$1
  shift
  for id in "$@"; do
    [ -p "$H/agents/$id/in" ] || continue
    (trap - EXIT && printf '%s\n' "$line" >"$H/agents/$id/in") &
    eval "writer_$id=$!"
    writers=$((${writers:-0} + 1))
    [ $((writers % 2)) != 0 ] || sleep 0.01 # by then they are done, as a rule: not all of them at the same time
  done
}

was_queued() { # was_queued ID TEXT: "yes" when one of the last messages to it had this text, as JSON, and had to wait
  tail -n 50 "$H/agents/$1/messages.jsonl" 2>/dev/null | grep -a -F -e "\"text\": $2" | grep -q '"outcome":"queued"}$' && echo yes
}

record() { # record ENTRY OUTCOME ID: kept beside the agent
  (umask 077 && printf '%s,"outcome":"%s"}\n' "$1" "$2" >>"$H/agents/$3/messages.jsonl")
}
