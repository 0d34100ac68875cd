# shellcheck shell=sh
# Snapshots: the work dir of an agent (a commit under a private ref; an archive where there is no repository), with the
# environment that was given to it and its conversation. They live in $H/snapshots/<agent's id>/<name>/ and outlive their agent.
# Needs tree.sh and lock.sh.

alone() { # alone ID: nobody else keeps or puts back its work until this script ends
  taken=$H/agents/$1/snapshot.lock
  [ -d "${taken%/*}" ] || return 0
  [ ! -e "$taken" ] || [ -z "$(find "$taken" -mmin +20 2>/dev/null)" ] || rm -f "$taken" # its owner's number is another's by now
  lock "$taken" 6000 || { echo 'another snapshot of it does not end' >&2; return 1; }
}

take() { # take ID NAME MODE WORK STORE RECORD BRANCH: prints "commit ID", and "left PATH" for what is not carried
  into=$H/snapshots/$1/$2
  umask 077
  alone "$1" || return 1
  mkdir -p "$H/snapshots/$1" && mkdir "$into" 2>/dev/null || { echo "there is already a snapshot called $2" >&2; return 1; }
  if fill "$@" && cp "$H/agents/$1/given" "$into/given" && keep_conversation "$H/agents/$1" && printf '%s\n' "$6" >"$into/snapshot.json.new" &&
    mv "$into/snapshot.json.new" "$into/snapshot.json"; then # last: without it there is no snapshot
    say "$1" snapshot "\"snapshot\":\"$2\""
    return 0
  fi
  rm -rf "$into"
  return 1
}

fill() {
  # a copy is no repository, even if one lies around it: a home may be kept in git
  [ "$3" != copy ] || [ -d "$4" ] || mv "$4.old" "$4" || return 1 # a restore was killed between its two renames
  if [ "$3" = copy ] || ! git -C "$4" rev-parse --verify -q HEAD >/dev/null 2>&1; then
    tar -cf "$into/work.tar" -C "$4" .
    return
  fi
  told=$(save_tree "$4" "snapshot $2 of ${1}") || return 1
  printf '%s\n' "$told" | grep '^left '
  commit=${told##*tree }
  # its own branch, when HEAD is elsewhere, is a second parent: a restore moves that too
  beside=$(git -C "$4" rev-list -n 1 "refs/heads/$7" --not HEAD 2>/dev/null)
  [ -z "$beside" ] || commit=$(as_mngr -C "$4" commit-tree -p HEAD -p "$beside" -m "snapshot $2 of ${1}" "$commit^{tree}") || return 1
  git -C "$4" update-ref "refs/mngr/snapshots/$1/$2" "$commit" || return 1
  echo "commit $commit"
  [ "$3" != clone ] || git -C "$4" push -q --no-verify "$5" "$commit:refs/mngr/snapshots/$1/$2" || return 1
  printf '%s\n' "$commit" >"$into/commit"
}

keep_conversation() { # keep_conversation DIR: as far as it got, whole lines only
  [ -s "$1/conversation" ] || return 0
  { read -r _ && IFS= read -r log; } <"$1/conversation"
  [ -s "$log" ] || return 0
  LC_ALL=C sed '${/}$/!d;}' "$log" >"$into/log" && cp "$1/conversation" "$into/conversation"
}

bring_conversation() { # bring_conversation DIR: to where it was. What its program had made of the other one goes
  rm -rf "${1:?}/derived"
  if [ ! -s "$from/conversation" ]; then
    # there was none: the next start begins one, and its program takes no id for it that has a log
    if [ -s "$1/conversation" ]; then
      { read -r _ && IFS= read -r log; } <"$1/conversation"
      [ ! -e "$log" ] || mv -f "$log" "$log.$(date +%s)"
      rm -f "$1/conversation"
    fi
    return
  fi
  { read -r _ && IFS= read -r log; } <"$from/conversation"
  mkdir -p "${log%/*}" && cp "$from/log" "$log.new" && mv -f "$log.new" "$log" && cp "$from/conversation" "$1/conversation"
}

list_all() { # "AGENT-ID NAME COMMIT-OR-DASH RECORD" for each
  cd "$H/snapshots" 2>/dev/null || return 0
  for found in */*/snapshot.json; do
    [ -e "$found" ] || continue
    commit=-
    read -r commit 2>/dev/null <"${found%/*}/commit"
    IFS= read -r record <"$found"
    printf '%s %s %s\n' "$(printf '%s' "${found%/snapshot.json}" | tr / ' ')" "${commit:--}" "$record"
  done
}

restore() { # restore ID NAME BRANCH: the agent is stopped, and what it has now has been saved
  alone "$1" || return 1
  from=$H/snapshots/$1/$2 work=$H/work/$1
  if [ -e "$from/commit" ]; then
    read -r commit <"$from/commit"
    take_branch "$work" "refs/heads/$3" "$commit^" || return 1
    git -C "$work" reset -q --hard "$commit^" && git -C "$work" clean -f -d -q && restore_tree "$work" "$commit" || return 1
  else
    rm -rf "$work.new" "$work.old" # of one that was interrupted
    mkdir "$work.new" && tar -xf "$from/work.tar" -C "$work.new" && mv "$work" "$work.old" && mv "$work.new" "$work" && rm -rf "$work.old" || return 1
  fi
  bring_conversation "$H/agents/$1" || return 1
  say "$1" restored "\"snapshot\":\"$2\""
}

take_branch() { # take_branch WORK BRANCH COMMIT: HEAD is on the agent's own branch, or on none while another worktree has
  # it: what is reset then is never a branch of the user's
  [ "$(git -C "$1" symbolic-ref -q HEAD)" != "$2" ] || return 0
  if git -C "$1" worktree list --porcelain | grep -q -x -F "branch $2"; then
    git -C "$1" update-ref --no-deref HEAD "$3"
  else
    git -C "$1" symbolic-ref HEAD "$2"
  fi
}

drop() { # drop ID NAME REPO...: REPO: where its ref may be
  rm -rf "$H/snapshots/${1:?}/${2:?}"
  rmdir "$H/snapshots/$1" 2>/dev/null
  dropped="refs/mngr/snapshots/$1/$2"
  shift 2
  for repo in "$@"; do [ ! -e "$repo" ] || git -C "$repo" update-ref -d "$dropped" 2>/dev/null; done
  return 0
}
