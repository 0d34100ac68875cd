# shellcheck shell=sh
# The conversation of another agent becomes that of a new one. $1: its session, $2: its log, $talk: where it was kept.
# One that was forked goes on from the log of another, and that perhaps from yet another: they come along as they are.

log=$CODEX_HOME/sessions/$(date -u +%Y/%m/%d/rollout-%Y-%m-%dT%H-%M-%S)-$MNGR_SESSION.jsonl
mkdir -p "${log%/*}" && sed -e "s/$1/$MNGR_SESSION/g" -e '${/}$/!d;}' "$2" >"$log" || return 1

base_of() { # base_of LOG
  head -n 1 "$1" | sed -n 's/.*"history_base":{"thread_id":"\([0-9a-f-]*\)".*/\1/p'
}

theirs=$(sed -n 2p "$talk/conversation") file=$log
theirs=${theirs%/sessions/*}/sessions
while base=$(base_of "$file") && [ -n "$base" ]; do
  file=$(cd "$theirs" && ls -d -- */*/*/rollout-*-"$base".jsonl) || { echo "the log of $base, which it goes on from, is gone"; return 1; }
  mkdir -p "$CODEX_HOME/sessions/${file%/*}" && cp "$theirs/$file" "$CODEX_HOME/sessions/$file" || return 1
  file=$theirs/$file
done

printf '%s\n%s\n' "$MNGR_SESSION" "$log" >"$MNGR_AGENT_DIR/conversation" &&
  printf '%s\n' "$log" >"$MNGR_AGENT_DIR/conversations"
