# shellcheck shell=sh
# The screens of agents: `screens MARK WINDOW FLAGS ID...` prints a line "MARK ID" and then its text, for each that has that
# window (empty: the agent's own). One tmux call to find the panes and one to read them all.

screens() {
  mark=$1 window=$2 flags=$3
  shift 3
  if [ -z "$window" ]; then find_panes; else read_panes -f "#{==:#{window_name},$window}" -F '#{session_name} #{pane_id}'; fi
  for id in "$@"; do
    pane_of "$id" && printf "display -p '%s %s'\ncapture-pane -p %s -t %s\n" "$mark" "$id" "$flags" "$pane"
  done | t source-file - 2>/dev/null
  :
}
