# shellcheck shell=sh
# The part of an agent's launcher that is special to a replay: "$@" is sh and the trajectory, whose text it has already. A
# shell stays as the program, since turns.sh can be killed by a step, but not made to end with a status.

printf 'This is a replay of %s: no model is asked.\n' "$2"
: >"$MNGR_AGENT_DIR/replay.exit"
# shellcheck disable=SC2016
set -- sh -c '
  sh "$MNGR_AGENT_DIR/turns"
  MNGR_STATUS=$?
  [ ! -s "$MNGR_AGENT_DIR/replay.exit" ] || read -r MNGR_STATUS <"$MNGR_AGENT_DIR/replay.exit"
  exit "$MNGR_STATUS"'
