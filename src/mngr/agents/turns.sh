# shellcheck shell=sh
# A program that does one turn and ends, as an agent that stays: `sh turns COMMAND...`. Messages come by standard input, a
# line each: the text in base64, a blank, and as JSON what the agent's hook is told when their turn begins.
# The file `turn` beside this one, of the agent type, has `take_turn COMMAND...`, which gets the text on its standard input,
# and `failure OUTPUT`, which sets $kind and $told if it can say why one failed.
#
# What comes is kept in `queue` at once: a pipe holds 64 KB, and what waits there is lost with the process. `taken` counts
# the lines that have had their turn.
d=${0%/*}
# shellcheck source=/dev/null
. "$d/turn"

tell() { # tell EVENT [JSON]: to the hook, as if it were the program's own
  printf '%s\n' "${2-}" | sh "$d/hook" "$1"
}

receive() { # for a message that has to wait, the proof is that it waits
  while IFS=' ' read -r text record; do
    read -r state _ <"$d/state" && read -r taken <"$d/taken"
    if [ "$state" = running ] || [ "$taken" -lt "$arrived" ]; then waits=1; else waits=''; fi
    printf '%s %s\n' "$text" "$record" >>"$d/queue"
    [ -z "$waits" ] || printf '%s\n' "$record" | sed s/UserPromptSubmit/Queued/ >>"$d/received"
    arrived=$((arrived + 1))
  done
}

run() { # run TEXT COMMAND...
  text=$1
  shift
  {
    export MNGR_TURN=1 # what its own hooks say of this message is said already
    printf %s "$text" | base64 -d | take_turn "$@" 2>&1
    echo $? >"$d/status"
  } | tee "$d/output"
  read -r status <"$d/status"
  if [ "$status" = 0 ]; then
    tell Stop
  elif failure "$d/output"; then
    tell StopFailure "{\"error\":\"$kind\",\"last_assistant_message\":\"$(printf %s "$told" | tr '\\"' '  ')\"}"
  else
    tell StopFailure "{\"error\":\"turn_failed\",\"last_assistant_message\":\"exit $status\"}"
  fi
}

touch "$d/queue"
arrived=$(wc -l <"$d/queue") taken=0
[ ! -s "$d/taken" ] || read -r taken <"$d/taken"
[ "$taken" -lt "$arrived" ] || { arrived=0 taken=0 && : >"$d/queue"; }
echo "$taken" >"$d/taken"
exec 3<&0
receive <&3 &
tell SessionStart
tail -n "+$((taken + 1))" -f "$d/queue" </dev/null | while IFS=' ' read -r text record; do
  # What ends us all may have ended the turn before us: what waits is for whoever is started next.
  read -r state _ <"$d/state" && [ "$state" = stopped ] && sleep 60 # we are still here: the stop itself was ended
  tell UserPromptSubmit "$record"
  taken=$((taken + 1))
  echo "$taken" >"$d/taken" # after the state, so that `receive` never takes it for idle in between
  run "$text" "$@"
done
