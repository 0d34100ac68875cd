#!/usr/bin/env bash
# The tool tests itself with itself: an agent for each of a few of mngr's own tests, as they are at HEAD. The agents are
# replays, so that it needs no model and no network; that they run the tests, and that somebody else does so again, is
# real. In a home and a repository of their own; whatever happens (Ctrl-C too), nothing is left behind.
set -eu

checkout=$(cd "$(dirname "$0")/../.." && pwd)
python=$checkout/.venv/bin/python
tests='
  tests/e2e/test_names_and_rename.py::test_rename_changes_the_name_and_nothing_else
  tests/e2e/test_message.py::test_one_message_goes_to_several_agents
  tests/e2e/test_stop_start.py::test_stop_ends_children_however_they_detached_themselves
  tests/e2e/test_pull_push.py::test_the_branch_of_a_clone_is_brought_forward
  tests/tutorial/test_cleaning_up.py::test_destroy_refuses_to_lose_work
  tests/tutorial/test_configuration.py::test_a_setting_for_ever_and_for_one_call'

main() {
  own_world
  # What a person who works on mngr has: the sources, and a .venv in which they are installed.
  sh demo/self/setup.sh "$python"
  # shellcheck disable=SC2086
  mngr swarm run $tests --type replay --agent-arg demo/self/agent.sh --setup "sh demo/self/setup.sh '$python'" \
    --max-agents 2 --max-load 100 --keep none
  echo
  mngr swarm show r1 test_destroy_refuses_to_lose_work
}

own_world() {
  top=$(mktemp -d "${TMPDIR:-/tmp}/mngr-self.XXXXXX")
  trap leave_nothing EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  local name
  for name in $(compgen -e MNGR_) $(compgen -e GIT_); do unset "$name"; done
  unset TMUX
  exec </dev/null
  export HOME=$top/home MNGR_HOME=$top/mngr LC_ALL=C PATH="${python%/*}:$PATH"
  mkdir "$HOME" "$MNGR_HOME" "$top/project"
  git -C "$checkout" archive HEAD | tar -xf - -C "$top/project"
  cp "$checkout/demo/prices.toml" "$MNGR_HOME"
  cd "$top/project"
  git config --global user.name Self && git config --global user.email self@example.com
  git init -q && git symbolic-ref HEAD refs/heads/main && git add -A && git commit -q -m 'As it is'
}

leave_nothing() {
  trap '' INT TERM HUP
  cd /
  mngr destroy --all --purge >/dev/null 2>&1 || true
  # The tmux server of this home outlives its last agent; doctor knows where it listens.
  local socket
  socket=$(mngr doctor 2>/dev/null | sed -n 's/.*tmux server .* runs on //p')
  [ -z "$socket" ] || { tmux -S "$socket" kill-server && rm -f "$socket"; } || true
  rm -rf "$top"
}

main
