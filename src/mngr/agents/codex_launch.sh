# shellcheck shell=sh
# The part of an agent's launcher that is special to Codex: "$@" is its command.

# Where nobody is logged in and the user has chosen no provider, it is the one that takes a key.
if [ ! -e "$CODEX_HOME/auth.json" ] && ! sed '/^\[/q' "$CODEX_HOME/config.toml" | grep -q '^model_provider *='; then
  { echo 'model_provider = "mngr"' && cat "$CODEX_HOME/config.toml"; } >"$CODEX_HOME/config.new" &&
    mv -f "$CODEX_HOME/config.new" "$CODEX_HOME/config.toml"
fi
[ -n "${OPENAI_API_KEY-}" ] || [ -z "${CODEX_API_KEY-}" ] || export OPENAI_API_KEY="$CODEX_API_KEY"

MNGR_PROGRAM=$1 MNGR_LOG=
shift
[ ! -s "$MNGR_AGENT_DIR/conversation" ] || { read -r MNGR_SESSION && IFS= read -r MNGR_LOG; } <"$MNGR_AGENT_DIR/conversation"
if [ -p "$MNGR_AGENT_DIR/in" ]; then
  set -- sh "$MNGR_AGENT_DIR/turns" "$MNGR_PROGRAM" "$@"
elif [ -s "$MNGR_LOG" ]; then # with -C, or it would ask where to go on when the conversation began elsewhere
  set -- "$MNGR_PROGRAM" resume "$MNGR_SESSION" -C "$MNGR_WORK_DIR" "$@"
else
  set -- "$MNGR_PROGRAM" "$@"
fi
[ -z "${OPENAI_BASE_URL-}" ] || set -- "$@" -c "model_providers.mngr.base_url=\"$OPENAI_BASE_URL\""
