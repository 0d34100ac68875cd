#!/usr/bin/env bash
# A swarm in about a minute: one agent for each test of the project in sample/, all of them replays of trajectories/, so
# that it needs no model, no account and no network. In a home of its own; every step is checked, and whatever happens
# (Ctrl-C too) nothing is left behind. MNGR_DEMO_PAUSE=0: no time to read. MNGR_DEMO_KEEP=1: its directory stays, to
# look around in; no process does.
set -u

demo=$(cd "$(dirname "$0")" && pwd)
pause=${MNGR_DEMO_PAUSE:-0.7}
keep=${MNGR_DEMO_KEEP:-}
began=$SECONDS
last=''
# $trajectories holds what the agents do, a file for each test. Pytest starts in half the time without the plugins of
# this environment; the project names the one that it needs. Two busy cores are no reason to wait for a minute.
# shellcheck disable=SC2016
options='--type replay --agent-arg "$trajectories" -e PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 \
    --max-agents 8 --budget 5usd --stuck-after 4s --max-load 20'

main() {
  command -v mngr >/dev/null || fail "there is no mngr on the PATH: make demo brings its own"
  own_world
  say "A small command line, shelf, with a tutorial. Every paragraph of the tutorial is proved by a test."
  run 'git ls-files'
  run 'mngr tutorial check tutorial.sh tests' && shows '12 blocks'
  say "Or so they say: some tests fail, and some of those that pass prove little."
  run 'python3 -m pytest -q --tb=no | tail -n 10' && shows '9 failed, 15 passed'

  say "One agent for each test, then. What would that take, and what would leave this machine?"
  run "mngr swarm estimate tests $options" && shows '24'

  say "Go. Each runs its test, mends or improves it, and reports; what it claims is checked in a clean checkout."
  live "mngr swarm run tests $options" 6

  say "Every test is accounted for. The agents were replays; what they changed, and how it was checked, is real."
  run 'mngr swarm status r1' && shows '8 fixed, 5 improved, 9 unchanged, 1 blocked, 1 stuck'

  say "One that was fixed: claim and check, side by side."
  run 'mngr swarm show r1 test_csv_quotes_commas' && shows 'fixed'
  run 'git log --oneline main..mngr/r1-test-csv-quotes-commas' && shows 'Quote what has to be quoted in CSV'

  say "One that could not be: it says what it needs."
  run 'mngr swarm show r1 test_lookup_asks_the_library' && shows 'SHELF_LIBRARY_KEY'

  say "One that ran into a rate limit: it was parked, and went on where it was."
  run 'mngr swarm show r1 test_done_remembers_the_day' && shows 'throttled'

  say "Nobody knew of the others, and all of it is one branch now: tests and docs in one commit, then each fix in its own,
# the weightiest first."
  run 'git log --reverse --format="%h %s" main..mngr/r1-integrated' && shows 'Quote what has to be quoted in CSV'

  say "Two agents had made the very same fix: it is there once, and names both. It says what proves it, too."
  run 'git log -1 --format=%B --grep Also-fixed-by main..mngr/r1-integrated' && shows 'Verified-by: mngr'

  say "Two had mended one line in two ways. That went to an agent of its own, and the tests of both pass with what it made."
  run 'git log -1 --format="%h %s" --grep "Print errors to standard error" main..mngr/r1-integrated' && shows 'return 1'

  say "What whoever reviews it gets: the fixes with rank, evidence, and how to take each of them back; what is left to do."
  # shellcheck disable=SC2016
  run 'head -n 22 $MNGR_HOME/runs/r1/integration/pull-request.md' && shows 'git revert'
  summary
}

own_world() { # a home and a repository that nothing of the user's reaches, and that reach nothing of the user's
  top=$(mktemp -d "${TMPDIR:-/tmp}/mngr-demo.XXXXXX") || exit 1
  trap leave_nothing EXIT
  trap 'exit 129' HUP
  trap 'exit 130' INT
  trap 'exit 143' TERM
  local name
  for name in $(compgen -e MNGR_) $(compgen -e GIT_); do unset "$name"; done
  unset TMUX SHELF_FILE SHELF_LIBRARY_KEY
  exec </dev/null
  export HOME=$top/home MNGR_HOME=$top/mngr LC_ALL=C PYTEST_DISABLE_PLUGIN_AUTOLOAD=1
  trajectories=$top/trajectories
  mkdir "$HOME" "$MNGR_HOME" && cp "$demo/prices.toml" "$MNGR_HOME" && cp -R "$demo/trajectories" "$top" || exit 1
  cp -R "$demo/sample" "$top/shelf" && cd "$top/shelf" || exit 1
  git config --global user.name Demo && git config --global user.email demo@example.com
  git init -q && git symbolic-ref HEAD refs/heads/main && git add . && git commit -q -m 'First commit' || exit 1
}

leave_nothing() {
  trap '' INT TERM HUP
  cd / || exit 1
  if [ "$keep" = 1 ]; then mngr stop --all; else mngr destroy --all --purge; fi >/dev/null 2>&1
  # The tmux server of this home outlives its last agent; doctor knows where it listens.
  local socket
  socket=$(mngr doctor 2>/dev/null | sed -n 's/.*tmux server .* runs on //p')
  [ -z "$socket" ] || { tmux -S "$socket" kill-server && rm -f "$socket"; }
  if [ "$keep" = 1 ]; then echo "Kept until you say: rm -rf $top"; else rm -rf "$top"; fi
}

say() { printf '\n%s\n' "$(bold "# $*")"; }

run() { step "$1" && rest; }

step() { # a command that must succeed
  attempt "$1" || fail "it ended with $?"
}

live() { # live COMMAND CODE: shown as it comes, for what takes its time; it must end with that code
  printf '%s\n' "$(bold "\$ $1")"
  eval "$1"
  local code=$?
  [ "$code" = "$2" ] || fail "it ended with $code"
  rest
}

attempt() { # shows the command, runs it, shows what it said and keeps that in $last
  printf '%s\n' "$(bold "\$ $1")"
  last=$(eval "$1" 2>&1)
  local code=$?
  [ -z "$last" ] || printf '%s\n' "$last"
  return "$code"
}

shows() { [[ $last == *"$1"* ]] || fail "it does not show: $1"; }

rest() { [ "$pause" = 0 ] || sleep "$pause"; }

bold() { if [ -t 1 ]; then printf '\033[1m%s\033[0m' "$1"; else printf '%s' "$1"; fi; }

fail() {
  printf '\ndemo: %s\n' "$1" >&2
  exit 1
}

summary() {
  local around='MNGR_DEMO_KEEP=1 make demo (without that, all of it is removed now)'
  [ "$keep" != 1 ] || around="cd $top/shelf && export MNGR_HOME=$top/mngr"
  say "24 agents, 13 branches with work on them, $((SECONDS - began)) seconds."
  cat <<TEXT
  To look around in it:   $around
  For your own tests:     mngr swarm estimate tests, then mngr swarm run tests
  What became of them:    mngr swarm status, mngr swarm show RUN [TEST]
  Their work, as one:     git log main..mngr/RUN-integrated, and mngr swarm integrate to do it again in another order
  All that came home:     \$MNGR_HOME/runs/RUN/tasks (~/.mngr, if that is not set): results, transcripts, recordings, checks
  More to read:           README.md, docs/README.md
TEXT
}

main
