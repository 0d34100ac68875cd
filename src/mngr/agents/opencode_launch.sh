# shellcheck shell=sh
# The part of an agent's launcher that is special to OpenCode: "$@" is its command.

# Its state is of its own, so that neither what is typed into agents nor what they choose becomes the user's; but the
# locks in it protect what they all share. At every start it looks for a package that plugins may need, and waits until
# that has failed: without a network for minutes, but for the number of tries. Both variables are only for the program
# itself: the plugin puts them back.
export MNGR_THEIR_XDG_STATE_HOME="${XDG_STATE_HOME-}" MNGR_THEIR_npm_config_fetch_retries="${npm_config_fetch_retries-}"
export XDG_STATE_HOME="$MNGR_AGENT_DIR/opencode/state" npm_config_fetch_retries=0
MNGR_LOCKS=${MNGR_THEIR_XDG_STATE_HOME:-$HOME/.local/state}/opencode/locks
mkdir -p "$MNGR_LOCKS" "${OPENCODE_DB%/*}"
[ -e "$XDG_STATE_HOME/opencode/locks" ] || ln -s "$MNGR_LOCKS" "$XDG_STATE_HOME/opencode/locks"

# A copy of the user's credentials, on another machine; here it is a link, and the program finds what it leads to.
MNGR_SECRETS=$MNGR_AGENT_DIR/opencode/auth.json
if [ -s "$MNGR_SECRETS" ] && [ ! -L "$MNGR_SECRETS" ]; then
  OPENCODE_AUTH_CONTENT=$(cat "$MNGR_SECRETS") && export OPENCODE_AUTH_CONTENT
fi

MNGR_LOG=
if [ -s "$MNGR_AGENT_DIR/conversation" ]; then
  { read -r MNGR_SESSION && IFS= read -r MNGR_LOG; } <"$MNGR_AGENT_DIR/conversation"
fi
if [ -s "$MNGR_LOG" ]; then
  if [ ! -e "$OPENCODE_DB" ]; then # of a clone, or after a snapshot was restored
    LC_ALL=C awk -f "$MNGR_AGENT_DIR/opencode/import.awk" "$MNGR_LOG" >"$OPENCODE_DB.json"
    OPENCODE_PURE=1 "$1" import "$OPENCODE_DB.json"
    rm -f "$OPENCODE_DB.json"
  fi
  [ -p "$MNGR_AGENT_DIR/in" ] || set -- "$@" -s "$MNGR_SESSION"
fi
[ ! -p "$MNGR_AGENT_DIR/in" ] || set -- sh "$MNGR_AGENT_DIR/turns" "$@"
