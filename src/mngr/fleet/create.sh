# shellcheck shell=sh
# Makes agents. The caller sets what they share (mode src base tree store own setup copy program launch environment),
# then calls `begin`, `stage` once per agent and `make_all`. An agent's directory appears whole or not at all; whatever
# fails, or when we are told to end, everything that was made for it is taken away again.
# Prints "ok ID" or "failed ID why" per agent, and "dirty N" when the source has changes that stay behind.
: "${mode:=}" "${src:=}" "${here:=$src}" "${base:=}" "${tree:=}" "${store:=}" "${own:=}" "${setup:=}" "${copy:=}" "${program:=}" "${launch:=}" "${environment:=}" "${talk:=}" "${their_work:=}" "${headless:=}" "${carried:=}" "${who:=}" "${mail:=}" "${url:=}"

begin() { # begin ID...
  users_umask=$(umask)
  umask 077
  own_pid
  now=$(date +%s) ids=" $* " sessions='' new=$H/agents/.new.$me log=$H/agents/.log.$me dirty=$H/agents/.dirty.$me
  for id in "$@"; do set -- "$@" "$new/$id/artifacts" && shift; done
  mkdir -p "$H/work" "$@" || { clear_up; exit 1; }
  job='' jobs=''
  trap 'trap "" INT TERM HUP; end_jobs; for id in $ids; do undo "$id"; done; clear_up; exit 130' INT TERM HUP
  trap : PIPE # nobody listens any more: it is still made whole, or taken back
  # The agent's world: these of the host, then what the user gave. `export -p` quotes for sh.
  command -v mngr >/dev/null 2>&1 || PATH=$PATH${MNGR_BIN:+:$MNGR_BIN}
  world=$(export -p | grep -E '^(export|declare -x) (HOME|PATH|USER|LOGNAME|SHELL|LANG|LC_[A-Z]+|TZ|TMPDIR)=')
  world="umask $users_umask$nl$world"
}

stage() { # stage ID BRANCH AGENT_JSON SESSION ENVIRONMENT GIVEN
  printf '%s\n' "$me" >"$new/$1/creating"
  printf '%s\n' "$3" >"$new/$1/agent.json"
  printf '%s' "$4" >"$new/$1/session"
  printf '%s\n%s\n' "$environment" "$6" >"$new/$1/given"
  printf '%s\n%s\n' "$world" "$5" >"$new/$1/env"
  printf '%s\n' "$launch" >"$new/$1/launch"
  printf 'starting %s\n' "$now" >"$new/$1/state"
  [ -z "$headless" ] || mkfifo "$new/$1/in" # before anybody can want to speak to it
  eval "branch_$1=\$2 session_$1=\$4"
}

lay() { # lay ID PATH TEXT: a file in the agent's directory, there before its program starts
  case $2 in */*) mkdir -p "$new/$1/${2%/*}" ;; esac
  printf '%s\n' "$3" >"$new/$1/$2"
}

tie() { # tie ID PATH TARGET: a link to what is the user's, if it is there
  [ ! -e "$3" ] || { mkdir -p "$new/$1/${2%/*}" && ln -s "$3" "$new/$1/$2"; }
}

make_all() {
  # shellcheck disable=SC2086
  (cd "$new" && mv $ids "$H/agents/") || { clear_up; exit 1; }
  for id in $ids; do say "$id" created; done
  if [ "$mode" = worktree ] || [ "$mode" = clone ]; then count_changes >"$dirty" 2>/dev/null & fi
  umask "$users_umask"
  make_branches
  prepare_store >"$log" 2>&1 || { for id in $ids; do fail "$id" "$log"; done; clear_up; exit 1; }
  make_works
  wait # before any of them runs: what runs is not taken back any more
  start_sessions
  read -r changes <"$dirty" && [ "$changes" != 0 ] && echo "dirty $changes"
  clear_up
} 2>/dev/null

clear_up() { # and what was needed only while agents were being made
  # shellcheck disable=SC2086
  set -- $ids ${up:-}
  for id in "$@"; do set -- "$@" "$H/agents/$id/creating" "$H/agents/$id/git.err" && shift; done
  rm -rf "$@" "$new" "$log" "$dirty" ${carried:+"$carried"} # the largest last, which gc finds: we may be killed at it
}

count_changes() { [ -n "$tree" ] || git --no-optional-locks -C "$here" status --porcelain | grep -c ''; }

make_works() { # as many at a time as there are cores, from two to four; $made gets those that succeeded
  made='' jobs=''
  case $(getconf _NPROCESSORS_ONLN || nproc) in 3) most=3 ;; [4-9] | [1-9][0-9]*) most=4 ;; *) most=2 ;; esac
  for id in $ids; do
    make_work "$id" >"$H/agents/$id/create.log" 2>&1 &
    jobs="$jobs $!:$id"
    # shellcheck disable=SC2086
    set -- $jobs
    [ $# -lt "$most" ] || collect_oldest
  done
  while [ -n "$jobs" ]; do collect_oldest; done
}

collect_oldest() {
  job=${jobs# } jobs=''
  case $job in *' '*) jobs=" ${job#* }" job=${job%% *} ;; esac
  if wait "${job%:*}"; then made="$made ${job#*:}"; else fail "${job#*:}" "$H/agents/${job#*:}/create.log"; fi
}

end_jobs() { # before anything is taken back: a git that is still ending holds locks and writes files
  kill -s TERM 0 # we ignore it by now
  ticks=0
  for each in $job $jobs; do
    while is_alive "${each%:*}" && [ "$ticks" -lt 100 ]; do ticks=$((ticks + 1)) && sleep 0.05; done
  done
}

make_work() { # make_work ID: its work dir, with everything that must be there before the program starts
  trap 'exit 1' TERM # a shell that has a trap waits for the program that it runs
  w=$H/work/$1
  branch=''
  eval "branch=\$branch_$1"
  case $mode in
    worktree) add_worktree "$1" || return 1 ;;
    clone) add_clone || return 1 ;;
    copy) mkdir "$w" && if [ -d "$src" ]; then cp -Rp "$src/." "$w"; else tar -xf "$src" -C "$w"; fi || return 1 ;;
    none) w=$src ;;
  esac
  [ -z "$tree" ] || restore_tree "$w" "$tree" || return 1
  [ -z "$copy" ] || copy_ignored || return 1
  cd "$w" && set_up "$H/agents/$1" && find_program "$H/agents/$1" && take_conversation "$H/agents/$1" || return 1
  : >"$H/agents/$1/made" # what is newer than this is the agent's work
}

make_branches() { # all or none, in one transaction; then each for itself, to tell whose is the trouble
  branches_made=''
  [ "$mode" = worktree ] && [ "$own" = 1 ] || return 0
  for id in $ids; do
    eval "branch=\$branch_$id"
    printf 'create refs/heads/%s %s\n' "$branch" "$base"
  done | git -C "$src" update-ref -m 'mngr create' --stdin && branches_made=1 || return 0
  for id in $ids; do : >"$H/agents/$id/branch-made"; done
}

make_branch() { # make_branch ID: only if nobody has it, so that it is ours to take back
  if ! git -C "$src" update-ref -m 'mngr create' "refs/heads/$branch" "$base" '' 2>"$H/agents/$1/git.err"; then
    if git -C "$src" show-ref -q --verify "refs/heads/$branch"; then echo "branch $branch exists already"; else cat "$H/agents/$1/git.err"; fi
    return 1
  fi
  : >"$H/agents/$1/branch-made"
}

add_worktree() { # add_worktree ID
  [ "$own" != 1 ] || [ -n "$branches_made" ] || make_branch "$1" || return 1
  tries=0 err=$H/agents/$1/git.err
  until git -C "$src" worktree add -q "$w" "$branch" 2>"$err"; do
    # again, when git stumbled over a worktree that somebody else was adding at the same moment
    tries=$((tries + 1))
    [ "$tries" -lt 50 ] && grep -q 'failed to read .*/worktrees/' "$err" || { cat "$err"; return 1; }
    rm -rf "$w"
    sleep 0.02
  done
}

prepare_store() {
  [ "$mode" = clone ] || return 0
  make_store "$store" || return 1
  # what is there already needs no push, which is several processes
  [ "$src" = "$store" ] || { [ -z "$tree" ] && git -C "$store" show-ref -q --verify "refs/mngr/base/$base"; } ||
    git -C "$src" push -q --no-verify "$store" "$base:refs/mngr/base/$base" ${tree:+"$tree:refs/mngr/base/$tree"}
}

add_clone() { # its own repository, objects borrowed from the store: the base commit, its branch, and nobody else's
  git init -q -b "$branch" "$w" &&
    printf '%s\n' "$store/objects" >"$w/.git/objects/info/alternates" &&
    git -C "$w" reset -q --hard "$base" || return 1
  # whose commits they are, and where the original is: from another machine these come as words
  give_config user.name "$who" && give_config user.email "$mail" && give_config remote.origin.url "$url"
}

give_config() { # give_config KEY VALUE
  [ -n "$carried" ] || set -- "$1" "$(git -C "$src" config --local "$1")"
  [ -z "$2" ] || git -C "$w" config "$1" "$2"
}

copy_ignored() ( # what `copy` names, one pattern a line; what does not exist is passed over
  cd "$here" || exit 1
  IFS=$nl
  # shellcheck disable=SC2086
  for file in $copy; do
    [ -e "$file" ] || continue
    case $file in */*) mkdir -p "$w/${file%/*}" || exit 1 ;; esac
    if [ -d "$file" ]; then mkdir -p "$w/$file" && cp -Rp "$file/." "$w/$file"; else cp -p "$file" "$w/$file"; fi || exit 1
  done
)

set_up() { # set_up DIR: in the agent's own environment
  [ -n "$setup" ] || return 0
  # shellcheck disable=SC2016
  env -i sh -c '. "$1/env"; eval "$2"' setup "$1" "$setup" </dev/null || { echo "setup ended with $?: $setup"; return 1; }
}

find_program() { # find_program DIR: in its PATH and from its work dir, as the launch will
  # shellcheck source=/dev/null
  (set -- "$1" "$program" && . "$1/env" && command -v "$2") || { echo "there is no program called $program"; return 1; }
}

take_conversation() ( # take_conversation DIR: a copy of the parent's, as far as it got, becomes its own
  [ -s "$talk/conversation" ] || exit 0
  { read -r session && IFS= read -r said; } <"$talk/conversation"
  [ ! -s "$talk/log" ] || said=$talk/log # a snapshot has it with it
  [ -s "$said" ] || exit 0
  # shellcheck source=/dev/null
  . "$1/env"
  umask 077
  own_log=''
  if adopt "$session" "$said" "$their_work"; then
    printf '%s\n%s\n' "$session" "$own_log" >"$1/conversation" && printf '%s\n' "$own_log" >"$1/conversations"
  else
    : >"$1/mute" # its work is worth more than what was said
  fi
)

literal() { # literal TEXT: for sed, on either side of an s|||
  printf %s "$1" | sed 's/[][\.*^$|&]/\\&/g'
}

start_sessions() {
  for id in $made; do eval "sessions=\$sessions\$session_$id"; done
  [ -z "$made" ] || told=$(printf '%s' "$sessions" | bring_up 2>"$log")
  alive='' failed=''
  for id in $made; do
    case "$nl${told:-}$nl" in
      *"${nl}up $id$nl"*) alive="$alive $id" ;;
      *) failed="$failed $id" ;;
    esac
  done
  up=$alive ids=$failed # those are the user's now
  for id in $ids; do fail "$id" "$log"; done
  for id in $up; do
    [ ! -e "$H/agents/$id/mute" ] || { echo "mute $id" && rm -f "$H/agents/$id/mute"; }
    echo "ok $id"
  done
}

fail() { # fail ID LOG
  echo "failed $1 $(why "$2")"
  say "$1" undone
  undo "$1"
}

undo() { # undo ID: as if it had never been asked for
  t kill-session -t "=$1"
  eval "branch=\$branch_$1"
  rm -rf "$H/work/$1"
  if [ "$mode" = worktree ]; then
    forget_worktrees "$src" "$1"
    [ ! -e "$H/agents/$1/branch-made" ] || git -C "$src" update-ref -d "refs/heads/$branch"
  fi
  mv "$H/agents/$1" "$H/agents/.gone.$1.$me" # at once: what is half removed would be taken for damaged, or for made
  rm -rf "$H/agents/.gone.$1.$me" "$H/agents/$1"
} >/dev/null 2>&1
