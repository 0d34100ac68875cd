# shellcheck shell=sh
# What a trajectory is written in: a function for each step. A turn sources this in a subshell of its own, with $d, $record
# and `tell` of turns.sh, and calls `play`. docs/agent-types.md lists the steps.
# A hundred of these run on two cores: a step costs the processes that it cannot do without.
log=$d/replay.jsonl out=$d/replay.out usage='' turn=0 step=0 id=''

# The part of the trajectory whose turn it is. The messages so far are counted, and not the parts that came to their end: a
# program that is killed in the middle of a turn has lost the rest of it, and what it is told next begins another one. So no
# step is ever played twice, and who wants an agent that recovers writes a part for that.
play() {
  turn=$(($(grep -c '^{"type":"user"' "$log") + 1))
  prompt=${record#*'"prompt": '}
  note user "\"text\":${prompt%\}}"
  if [ -s "$d/replay.cost" ]; then read -r usage <"$d/replay.cost"; else cost 0 0; fi
  # shellcheck source=/dev/null
  if [ -e "$d/replay.$turn" ]; then . "$d/replay.$turn"; else say 'The trajectory has no part for this message.'; fi
  :
}

# What it says and does

say() { # say TEXT
  printf '%s\n' "$1"
  json "$1"
  spend assistant "\"text\":$json"
}

cost() { # cost IN OUT [CACHE_READ [CACHE_WRITE]]: tokens of each API message from here on
  usage="\"input\":$1,\"output\":$2,\"cache_read\":${3:-0},\"cache_write\":${4:-0}"
  printf '%s\n' "$usage" >"$d/replay.cost"
}

think() { sleep "$1"; } # think SECONDS

run() { # run COMMAND...: one word is a line for the shell. Its status is that of the command
  printf '$ %s\n' "$*"
  json "$*"
  spend call "\"tool\":\"run\",\"input\":{\"command\":$json}"
  # into a file: what it leaves in the background would keep a pipe open
  if [ $# = 1 ]; then sh -c "$1"; else (command "$@"); fi >"$out" 2>&1 </dev/null
  set -- "$?"
  came "$1"
  return "$1"
}

write() { # write FILE: what is on standard input
  json "$1"
  call write "\"file\":$json"
  : >"$out"
  case $1 in */*) mkdir -p "${1%/*}" ;; esac
  cat >"$1" || wrong "cannot write $1"
  came 0
}

edit() { # edit FILE OLD NEW: where OLD stands first. All of the file is one record, so that every byte of it is kept
  json "$1" && file=$json
  json "$2" && old=$json
  json "$3"
  call edit "\"file\":$file,\"old\":$old,\"new\":$json"
  # shellcheck disable=SC2016
  OLD=$2 NEW=$3 LC_ALL=C awk -v 'RS=\001' '
    { text = text (NR > 1 ? RS : "") $0 }
    END {
      at = index(text, ENVIRON["OLD"])
      if (!at) exit 1
      printf "%s%s%s", substr(text, 1, at - 1), ENVIRON["NEW"], substr(text, at + length(ENVIRON["OLD"]))
    }' "$1" >"$d/replay.new" 2>"$out" || { came 1 && wrong "cannot edit $1: the text is not in it"; }
  cat "$d/replay.new" >"$1" # the file stays the same, with its mode
  came 0
}

commit() { # commit KIND SUMMARY [IMPORTANCE]: of all that has changed
  json "$1" && kind=$json
  json "$2"
  call commit "\"kind\":$kind,\"summary\":$json"
  { git add -A && git commit -q -m "$2" -m "Kind: $1"; } >"$out" 2>&1 </dev/null || { came 1 && wrong "cannot commit: $2"; }
  git rev-parse HEAD >"$out" && read -r sha <"$out"
  know change "{\"kind\":$kind,\"commit\":\"$sha\",\"summary\":$json,\"importance\":\"${3:-medium}\"}"
  came 0
}

# What it knows for its result, from turn to turn

test() { # test ID: which one it works on. In a trajectory, conditions are written with [
  json "$1"
  know test "$json"
}

before() { passed before "$1"; } # before pass|fail: how its test was when it came
after() { passed after "$1"; } # after pass|fail: and is now

passed() { # passed WHEN pass|fail
  case $2 in pass) know "$1" true ;; fail) know "$1" false ;; *) wrong "$1 is pass or fail, and not $2" ;; esac
}

escalate() { # escalate KIND TEXT
  json "$1" && kind=$json
  json "$2"
  know escalation "{\"kind\":$kind,\"summary\":$json}"
}

know() { # know WHAT JSON
  printf '%s %s\n' "$1" "$2" >>"$d/replay.known"
}

# How a turn ends

finish() { # finish SUMMARY
  json "$1"
  hand_in null "$json"
}

blocked() { # blocked TEXT: what is needed
  json "$1"
  hand_in "$json" "$json"
}

result() { # the result is what is on standard input, whatever that is
  cat >"$MNGR_RESULT.new" && mv -f "$MNGR_RESULT.new" "$MNGR_RESULT"
}

hand_in() { # hand_in BLOCKED SUMMARY
  test='""' before=null after=null changes='' escalations=''
  [ ! -e "$d/replay.known" ] || while IFS=' ' read -r what value; do
    case $what in
      test) test=$value ;;
      before) before=$value ;;
      after) after=$value ;;
      change) changes=$changes${changes:+,}$value ;;
      escalation) escalations=$escalations${escalations:+,}$value ;;
    esac
  done <"$d/replay.known"
  call finish "\"summary\":$2"
  printf '{"test":%s,"passed_before":%s,"passed_after":%s,"changes":[%s],"escalations":[%s],"blocked":%s,"summary":%s}\n' \
    "$test" "$before" "$after" "$changes" "$escalations" "$1" "$2" >"$MNGR_RESULT.new"
  : >"$out"
  came 0
  mv -f "$MNGR_RESULT.new" "$MNGR_RESULT" # last: whoever waits for it may end us at once
  exit 0
}

limit() { # limit SECONDS: no more until then
  at=$(($(date +%s) + $1)) as=+%Y-%m-%dT%H:%M:%SZ
  at=$(date -u -d "@$at" "$as" 2>/dev/null || date -u -r "$at" "$as") # GNU and busybox, or BSD
  wrong "usage limit reached, resets $at"
}

ask() { # ask TEXT: the answer is the next message, and has a turn of its own
  say "$1"
  tell PreToolUse '{"tool_name":"AskUserQuestion"}'
  [ -p "$d/replay.answer" ] || mkfifo "$d/replay.answer"
  tail -n "+$((taken + 1))" -f "$d/queue" >"$d/replay.answer" &
  read -r _ <"$d/replay.answer"
  kill $!
  exit 0
}

# How the program ends, or does not

fail() { # fail [CODE]
  echo "${1:-1}" >"$d/replay.exit"
  crash
}

crash() {
  kill -s KILL $$ # turns.sh, in a subshell of which we are
  hang
}

hang() {
  while :; do sleep 3600; done
}

wrong() { # wrong TEXT: the turn cannot go on. Its last line tells turns.sh why
  json "$1"
  note error "\"text\":$json"
  printf '%s\n' "$1"
  exit 1
}

# The log

spend() { # spend TYPE MEMBERS: an API message
  step=$((step + 1)) id=$MNGR_AGENT_ID-$turn-$step
  note "$1" "\"id\":\"$id\",\"model\":\"replay\",\"usage\":{$usage},$2"
}

call() { # call TOOL INPUT: of a tool, beside the message that came before
  step=$((step + 1)) id=$MNGR_AGENT_ID-$turn-$step
  note call "\"id\":\"$id\",\"tool\":\"$1\",\"input\":{$2}"
}

came() { # came STATUS: of the last call; $out has what it said
  text=''
  [ ! -s "$out" ] || { cat "$out" && text=$(escape <"$out"); }
  if [ "$1" = 0 ]; then failed=false; else failed=true; fi
  note result "\"call\":\"$id\",\"failed\":$failed,\"text\":\"$text\""
}

note() { # note TYPE MEMBERS
  printf '{"type":"%s","time":%s,%s}\n' "$1" "$(date +%s)" "$2" >>"$log"
}

json() { # json TEXT: $json
  case $1 in
    *[\\\"[:cntrl:]]*) json=\"$(printf %s "$1" | escape)\" ;;
    *) json=\"$1\" ;;
  esac
}

escape() { # as a text of JSON, without its quotes
  LC_ALL=C awk '
    { gsub(/["\\]/, "\\\\&") }
    /[\001-\037]/ { for (code = 1; code < 32; code++) gsub(sprintf("%c", code), sprintf("\\u%04x", code)) }
    { printf "%s%s", (NR > 1 ? "\\n" : ""), $0 }'
}
