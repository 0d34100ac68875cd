# shellcheck shell=sh
# Types one text into many agents: `send MESSAGE LONGEST ID...`, with the text in $text and the record of it in $entry.
# Three tmux calls, however many agents. Paste and Enter are one command for tmux, so two senders can never mix, and the
# check for a dead pane is in the same one: pasting into a dead pane crashes tmux 3.3a with every agent in it.
# Prints "typed ID", "dead ID", "missing ID", "toolong ID", "gone ID".

send() { # MESSAGE: its id. LONGEST: bytes of its longest line, 0 when any terminal can take it
  message=$1 longest=$2 todo='' told=''
  shift 2
  find_panes
  for id in "$@"; do
    gone "$id" && continue
    pane_of "$id" || { record missing "$id"; continue; }
    [ ! -s "$H/agents/$id/exit" ] || { record dead "$id"; continue; } # its launcher lives for a moment more
    if [ "$longest" != 0 ] && is_canonical "$pane"; then record toolong "$id"; else todo="$todo $id"; fi
  done
  # shellcheck disable=SC2086
  if [ -n "$todo" ]; then
    told=$({ printf '%s' "$text" | t load-buffer -b "$message" - && commands $todo | t source-file -; } 2>/dev/null)
  fi
  for id in $todo; do
    case "$nl$told$nl" in
      *"${nl}typed $id$nl"*) record typed "$id" ;;
      *"${nl}dead $id$nl"*) record dead "$id" ;;
      *) record missing "$id" ;;
    esac
  done
}

commands() {
  for id in "$@"; do
    pane_of "$id"
    # copy-mode -q: while somebody scrolls there, the Enter would go to copy mode and not to the program
    printf "if -F -t %s '#{pane_dead}' 'display -p \"dead %s\"' 'copy-mode -q -t %s ; paste-buffer -p -b %s -t %s ; send-keys -t %s Enter ; display -p \"typed %s\"'\n" \
      "$pane" "$id" "$pane" "$message" "$pane" "$pane" "$id"
  done
  printf 'delete-buffer -b %s\n' "$message"
}

is_canonical() { # a terminal that collects lines keeps 4,095 bytes of one and drops the rest
  tty=$(t display -p -t "$1" '#{pane_tty}' 2>/dev/null) && [ -n "$tty" ] && stty -a <"$tty" 2>/dev/null | grep -q ' icanon'
}

record() { # record OUTCOME ID: tells it, and keeps it beside the agent
  echo "$1 $2"
  printf '%s,"outcome":"%s"}\n' "$entry" "$1" >>"$H/agents/$2/messages.jsonl"
}
