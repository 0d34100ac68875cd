#!/usr/bin/env bash
# A tour of mngr in about 20 seconds: five agents at work on the repository in sample/. Offline, in a home of its own.
# Every step is checked, and whatever happens (Ctrl-C too) nothing is left behind. MNGR_DEMO_PAUSE=0: no time to read.
set -u

demo=$(cd "$(dirname "$0")" && pwd)
pause=${MNGR_DEMO_PAUSE:-0.7}
agents='typo usage check licence watch'
began=$SECONDS
last=''

main() {
  command -v mngr >/dev/null || fail "there is no mngr on the PATH: make demo brings its own"
  own_world
  say "A small repository, and in it five scripts that stand for coding agents."
  run 'git log --oneline'
  run 'ls agents'

  say "Each gets a terminal, a branch and a directory of its own, and starts at once."
  for agent in $agents; do
    step "mngr create $agent command -- sh agents/$agent.sh" && shows "$agent"
  done
  rest

  say "Who is there, and how are they?"
  run 'mngr list' && for agent in $agents; do shows "mngr/$agent"; done

  say "Wait until these three have ended. One of them fails: what does its terminal say?"
  run 'mngr wait typo usage check --for done,failed --timeout 30s' && shows 'typo done' && shows 'usage done' && shows 'check failed'
  run 'mngr capture check' && shows "not ok  expected 'Hello, world!'"

  say "Another one has a question. Answer it."
  wait_for_screen licence 'MIT or BSD?'
  run 'mngr capture licence' && shows 'MIT or BSD?'
  run 'mngr message licence -m MIT' && shows 'typed licence'
  run 'mngr wait licence --for done --timeout 30s' && shows 'licence done'

  say "What have they done? AHEAD counts the commits of each."
  run 'mngr list --git' && shows 'failed (exit 1)'
  say "Such work is not thrown away by accident:"
  refuse 'mngr destroy typo' && shows '1 commit would be lost'

  say "Collect it: three branches, merged into the one that is checked out."
  run 'mngr pull typo usage licence --merge' && shows 'pulled licence'
  run 'git log --graph --format=%s' && shows 'Mend a typo' && shows 'Show how it is used' && shows 'Add a licence: MIT'

  say "The last one works until it is stopped; start brings it back, in the same directory."
  run 'mngr stop watch' && shows 'stopped watch'
  run 'mngr list watch' && shows 'stopped'
  run 'mngr start watch' && shows 'started watch'
  run 'mngr wait watch --for running --timeout 30s' && shows 'watch running'

  say "Done: destroy them all. What they committed stays in the repository."
  run 'mngr destroy --all --force' && shows 'destroyed watch'
  run 'mngr list' && shows 'no agents yet'
  run 'ls' && shows 'LICENCE' && shows 'USAGE.md'
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
  unset TMUX
  exec </dev/null
  export HOME=$top/home MNGR_HOME=$top/mngr LC_ALL=C
  mkdir "$HOME" && cp -R "$demo/sample" "$top/greet" && cd "$top/greet" || exit 1
  git config --global user.name Demo && git config --global user.email demo@example.com
  git init -q && git symbolic-ref HEAD refs/heads/main && git add . && git commit -q -m 'First commit' || exit 1
}

leave_nothing() {
  trap '' INT TERM HUP
  cd / || exit 1
  mngr destroy --all --purge >/dev/null 2>&1
  # The tmux server of this home outlives its last agent; doctor knows where it listens.
  local socket
  socket=$(mngr doctor 2>/dev/null | sed -n 's/.*tmux server .* runs on //p')
  [ -z "$socket" ] || { tmux -S "$socket" kill-server && rm -f "$socket"; }
  rm -rf "$top"
}

say() { printf '\n%s\n' "$(bold "# $*")"; }

run() { step "$1" && rest; }

step() { # a command that must succeed
  attempt "$1" || fail "it ended with $?"
}

refuse() { # a command that must not
  attempt "$1" && fail "it should have been refused"
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

wait_for_screen() { # wait_for_screen AGENT TEXT: a plain command cannot tell that it waits; its screen does
  local tries
  for ((tries = 0; tries < 100; tries++)); do
    [[ $(mngr capture "$1") != *"$2"* ]] || return 0
    sleep 0.1
  done
  fail "$1 does not ask: $2"
}

rest() { [ "$pause" = 0 ] || sleep "$pause"; }

bold() { if [ -t 1 ]; then printf '\033[1m%s\033[0m' "$1"; else printf '%s' "$1"; fi; }

fail() {
  printf '\ndemo: %s\n' "$1" >&2
  exit 1
}

summary() {
  say "Five agents, three merged branches, $((SECONDS - began)) seconds; the directory of this tour is removed now."
  cat <<'TEXT'
  Your own first agent:   mngr create NAME command -- PROGRAM
  All the verbs:          mngr help, mngr help VERB
  More to read:           README.md, docs/README.md
TEXT
}

main
