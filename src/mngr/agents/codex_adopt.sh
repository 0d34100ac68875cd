# shellcheck shell=sh
# The conversation of another agent becomes that of a new one. $1: its session, $2: its log, $talk: where it was kept.
# One that was forked or taken back goes on from an earlier log, at some byte of it, and that perhaps from yet another. They
# all come along. The new session's id is as long as the old one, so every byte stays where it is.

old=$1 session=$MNGR_SESSION file=$2
name=$(sed -n 2p "$talk/conversation")
place=${name%/sessions/*}/sessions name=${name#*/sessions/}

bring() { # bring FILE NAME: $to is where it is then
  to=$CODEX_HOME/sessions/$(printf %s "$2" | sed "s/$old/$MNGR_SESSION/")
  mkdir -p "${to%/*}" && LC_ALL=C sed -e "s/$old/$MNGR_SESSION/g" -e '${/}$/!d;}' "$1" >"$to"
}

bring "$file" "$name" || return 1
own_log=$to
while base=$(head -n 1 "$file" | sed -n 's/.*"history_base":{"thread_id":"\([0-9a-f-]*\)".*/\1/p') && [ -n "$base" ]; do
  name=$(cd "$place" && ls -d -- */*/*/rollout-*[-_]"$base".jsonl) || { echo "the log $base, which it goes on from, is gone"; return 1; }
  file=$place/$name
  bring "$file" "$name" || return 1
done
