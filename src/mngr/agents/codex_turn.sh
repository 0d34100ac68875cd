# shellcheck shell=sh
# One turn of Codex, for turns.sh.

take_turn() { # take_turn COMMAND...: the message is on standard input
  log=''
  [ ! -s "$d/conversation" ] || { read -r session && IFS= read -r log; } <"$d/conversation"
  set -- "$@" -C "$MNGR_WORK_DIR"
  [ ! -s "$log" ] || set -- "$@" resume "$session"
  "$@" -
}

failure() { # failure OUTPUT: what it said of why the turn failed, when that was on the model's side
  told=$(grep '^{"type":"turn.failed"' "$1" | tail -n 1)
  [ -n "$told" ] || return 1
  # shellcheck disable=SC2034
  case $told in *' 429 '* | *'usage limit'*) kind=rate_limit ;; *) kind=api_error ;; esac
  told=${told##*message} # the innermost one, when it is the server's answer as it came, with its quotes escaped
  told=${told#*'"'} told=${told#*'"'} told=${told%%'"'*} told=${told%\\}
}
