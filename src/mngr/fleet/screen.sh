# shellcheck shell=sh
# The screens of agents: `screens WINDOW FLAGS ID...` prints a line "mngr-screen-of ID" and then its text, for each that has
# that window (empty: the agent's own). One tmux call to find the panes and one to read them all.

screens() {
  window=$1 flags=$2
  shift 2
  if [ -z "$window" ]; then find_panes; else read_panes -f "#{==:#{window_name},$window}" -F '#{session_name} #{pane_id}'; fi
  for id in "$@"; do
    pane_of "$id" && printf "display -p 'mngr-screen-of %s'\ncapture-pane -p %s -t %s\n" "$id" "$flags" "$pane"
  done | t source-file - 2>/dev/null
  :
}
