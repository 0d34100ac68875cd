# shellcheck shell=sh
# Run by an agent's program at each of its lifecycle events: `sh hook EVENT [lags] <JSON`, `lags` when its log is written
# later than its turns end. Lies in the agent's directory and writes its state there. Nothing in here may fail loudly or
# take long: the program waits for it.
d=${0%/*}
input=$(cat)

# Whose event is it? A program of the same kind that the agent runs (a nested `claude -p`) inherits these hooks, and must
# not be taken for the agent. The first ancestor that is no shell has to be the agent's program itself, or the native
# child of its wrapper; or all of them are shells up to the one that runs its turns (turns.sh), or that one's child.
ours() {
  read -r _ program <"$d/pid" || return 1
  p=$PPID shells=' sh dash bash zsh ash busybox '
  climb "$shells" && return 0
  [ "$p" = "$program" ] && return 0
  p=$parent
  climb ' node bun MainThread ' || climb "$shells"
}

climb() { # climb NAMES: from $p upwards over processes that are called so; true when the agent's program is one of them
  while [ "$p" -gt 1 ] && about "$p"; do
    case $1 in *" $name "*) ;; *) return 1 ;; esac
    [ "$p" != "$program" ] || return 0
    p=$parent
  done
  return 1
}

about() { # about PID: $name of the program, $parent
  if [ -r "/proc/$1/stat" ]; then
    read -r stat <"/proc/$1/stat" || return 1
    name=${stat#*(} name=${name%)*} stat=${stat##*) } stat=${stat#* } parent=${stat%% *}
  else
    name=$(ps -o comm= -p "$1") && parent=$(ps -o ppid= -p "$1") || return 1
    name=${name##*/} parent=${parent##* }
  fi
}

inner=$(printf '\002')

member() { # member NAME: $value of the first member with that name. Inside a JSON text quotes are escaped: no text can pose
  value='' # only what is there is cut out: for a long text without it, dash would need minutes
  case $input in
    *"\"$1\":\""*) value=${input#*"\"$1\":\""} ;;
    *"\"$1\": \""*) value=${input#*"\"$1\": \""} ;; # as Python writes it
  esac
  case ${value%%\"*} in
    *\\) # an escaped quote is no end of it
      value=$(printf %s "$value" | sed "s/\\\\\"/$inner/g")
      value=$(printf %s "${value%%\"*}" | sed "s/$inner/\"/g")
      ;;
    *) value=${value%%\"*} ;;
  esac
}

now=$(date +%s)

become() { # become STATE [REASON]: only a change is worth a line in the history
  read -r was _ reason <"$d/state"
  [ "$was" != stopped ] || exit 0 # by us: what its program says while it ends changes nothing
  [ "$was $reason" != "$1 ${2-}" ] || return 0
  printf '%s %s%s\n' "$1" "$now" "${2:+ $2}" >"$d/state.$$" && mv -f "$d/state.$$" "$d/state"
  # the reason holds no quotes: it is made of words of ours and of names of tools
  line="{\"time\":$now,\"agent\":\"${d##*/}\",\"event\":\"$1\"${2:+,\"reason\":\"$2\"}}"
  printf '%s\n' "$line" >>"$d/events.jsonl"
  printf '%s\n' "$line" >>"${d%/agents/*}/feed"
}

words() { # words TEXT: without what would break a line of JSON or of the state file
  printf %s "$1" | tr -c 'A-Za-z0-9 _.,:/()%+-' ' ' | cut -c 1-300
}

remember() { # which conversation it is in, and where its log is
  member session_id
  session=$value
  member transcript_path
  case $session$value in '' | *[\\]*) return ;; esac
  [ -n "$value" ] || return
  printf '%s\n%s\n' "$session" "$value" >"$d/conversation.$$" && mv -f "$d/conversation.$$" "$d/conversation"
  grep -q -x -F -e "$value" "$d/conversations" 2>/dev/null || printf '%s\n' "$value" >>"$d/conversations"
}

settle() { # who waits for the end of a turn reads its last words in the log, which Claude Code writes a moment later
  member transcript_path
  { read -r end queued && read -r log; } <"$d/settled" && [ "$log" = "$value" ] || end=0 queued=0
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    found=$(tail -c "+$((end + 1))" "$value" | awk -v "queued=$queued" '
      /"type":"assistant"/ && /"stop_reason":"[^t]/ { over = "over" }
      /^{"type":"queue-operation"/ { queued += /"operation":"enqueue"/ ? 1 : /"operation":"popAll"/ ? -queued : -1 }
      END { print queued, over }')
    case $found in *over) break ;; esac
    sleep 0.03
  done
  queued=${found%% *}
  mark "$queued"
} 2>/dev/null

mark() { # mark QUEUED: what is new in the log is read from here on
  printf '%s %s\n%s\n' "$(wc -c <"$value")" "$1" "$value" >"$d/settled"
}

over() { # the turn is; but its background agents wake it when they are done. A command, a server say, may never end
  # in sed, not in sh: dash needs seconds to find something behind a long text, and the answer stands before it
  tasks=$(printf %s "$input" | sed -n 's/.*"background_tasks":\[\({.*\)/\1/p' | grep -o '"type":"[a-z_]*"')
  case $tasks in
    '') become waiting 'turn over' ;;
    *'"type":"'[!s]* | *'"type":"s'[!h]*) become running 'background work' ;;
    *) become waiting 'turn over, a background command goes on' ;;
  esac
}

umask 077
ours 2>/dev/null || exit 0
case $1 in
  SessionStart)
    remember
    printf '%s\n' "$input" >>"$d/received"
    member source
    source=$value
    [ "${2-}" != lags ] || { member transcript_path && mark 0 2>/dev/null; }
    [ "$source" = compact ] || become waiting ready
    ;;
  UserPromptSubmit)
    remember
    become running # before the receipt: who sends and then waits must not find the state of before
    [ -n "${MNGR_TURN-}" ] || printf '%s\n' "$input" >>"$d/received"
    ;;
  PreToolUse)
    member tool_name
    case $value in AskUserQuestion) become waiting question ;; ExitPlanMode) become waiting 'question: plan' ;; *) become running ;; esac
    ;;
  PostToolUse | PostToolUseFailure) become running ;;
  ToolRan) # perhaps one that outlived its turn: only who asked whether it may goes on by it
    read -r was _ reason <"$d/state" && case "$was $reason" in 'waiting permission'*) become running ;; esac
    ;;
  PermissionRequest)
    member tool_name
    case $value in AskUserQuestion | ExitPlanMode) ;; *) become waiting "permission: $(words "$value")" ;; esac
    ;;
  Notification)
    member notification_type
    case $value in
      idle_prompt) read -r was _ reason <"$d/state" && [ "$was$reason" != running ] || become waiting 'turn over' ;;
      permission_prompt) read -r was _ <"$d/state" && [ "$was" = waiting ] || become waiting permission ;;
      elicitation_dialog) become waiting 'question: elicitation' ;;
    esac
    ;;
  Stop)
    queued=0
    [ "${2-}" != lags ] || settle
    [ "$queued" -gt 0 ] || over # else the next turn begins at once; should it not, there is a Notification
    ;;
  StopFailure)
    [ "${2-}" != lags ] || settle
    member error
    error=$value
    member last_assistant_message
    case $error in
      rate_limit) become waiting "rate limit: $(words "$value")" ;;
      turn_failed) become waiting "turn failed: $(words "$value")" ;;
      *) become waiting "api error: $(words "$value")" ;;
    esac
    ;;
  Interrupt) become waiting interrupted ;;
esac
exit 0
