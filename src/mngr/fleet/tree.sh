# shellcheck shell=sh
# The work dir as it is (tracked, modified, untracked; not ignored) as a commit, made through a temporary index: the
# user's index, stash and branches are never touched.

save_tree() { # save_tree DIR MESSAGE: prints "tree COMMIT", and "left PATH" for nested repositories, which git cannot hold
  git_dir=$(git -C "$1" rev-parse --absolute-git-dir) || return 1
  index=$git_dir/mngr-index.$$
  trap 'rm -f "$index" "$index.lock" "$index.err"' EXIT
  # a copy of the index keeps git's cache of what is unchanged: 20,000 files cost 60 ms instead of seconds
  [ ! -e "$git_dir/index" ] || cp -p "$git_dir/index" "$index" || return 1
  # a nested repository without a commit is an error for git, and goes on with --ignore-errors; any other error is ours
  # shellcheck disable=SC2046 # one word, or none
  LC_ALL=C GIT_INDEX_FILE=$index git -C "$1" add -A --ignore-errors $(is_sparse "$1" && echo --sparse) 2>"$index.err" || only_nested "$index.err" ||
    { sed -n 's/^error: //p; s/^fatal: //p' "$index.err" | grep -v "$nested" | head -n 1 >&2; rm -f "$index" "$index.err"; return 1; }
  sed -n "s/^error: '\(.*\)\/' $nested/left \1/p" "$index.err"
  rm -f "$index.err"
  GIT_INDEX_FILE=$index git -C "$1" -c core.quotePath=false diff --cached --raw --no-renames HEAD | sed -n 's/^:[0-9]* 160000 .*	/left /p'
  saved_tree=$(GIT_INDEX_FILE=$index git -C "$1" write-tree) || return 1
  rm -f "$index"
  saved=$(printf '%s\n' "$2" | as_mngr -C "$1" commit-tree -p HEAD "$saved_tree") || return 1
  echo "tree $saved"
}

is_sparse() { [ "$(git -C "$1" config --bool core.sparseCheckout)" = true ]; }

as_mngr() { # git, for commits that no user makes
  GIT_AUTHOR_NAME=mngr GIT_AUTHOR_EMAIL=mngr@localhost GIT_COMMITTER_NAME=mngr GIT_COMMITTER_EMAIL=mngr@localhost \
    git -c commit.gpgsign=false "$@"
}

nested='does not have a commit checked out$'

only_nested() { # only_nested ERRORS: there are some, and all of them are about that
  grep -q "^error: .*$nested" "$1" && ! grep -E '^(error|fatal): ' "$1" | grep -q -v "$nested"
}

restore_tree() { # restore_tree DIR COMMIT: its files, uncommitted, over what is checked out
  git -C "$1" restore --source="$2" --worktree --no-overlay -- :/ ||
    [ -z "$(git -C "$1" ls-files && git -C "$1" ls-tree "$2")" ] # of nothing, git says that it matches no file
}

make_store() { # make_store STORE: one bare store per repository and host: the first agent uploads, the next ones borrow. Never pruned.
  [ ! -d "$1" ] || return 0
  mkdir -p "${1%/*}" && git init -q --bare "$1.$$" && git -C "$1.$$" config gc.auto 0 || return 1
  # rename is atomic and refuses a store that has content: whoever is second throws theirs away
  mv -T "$1.$$" "$1" 2>/dev/null || mv "$1.$$" "$1" 2>/dev/null
  rm -rf "$1.$$" "$1/${1##*/}.$$"
}

own_submodules() { # own_submodules WORK: submodules have what nobody else has. Their objects go with the work dir, those of
  # submodules that are no longer checked out too.
  modules=$1/.git
  if [ ! -d "$modules" ]; then IFS= read -r modules <"$1/.git"; fi 2>/dev/null
  case $modules in 'gitdir: /'* | /*) modules=${modules#gitdir: }/modules ;; *) modules=$1/${modules#gitdir: }/modules ;; esac
  [ -d "$modules" ] || return 1
  # shellcheck disable=SC2016
  [ -n "$({
    find "$modules" -type d -name objects -prune -exec sh -c 'for objects do
        git --git-dir="${objects%/objects}" --work-tree=/ rev-list HEAD --branches --glob="refs/stas[h]" --not --remotes || echo "?"
      done' sh {} +
    git -C "$1" submodule --quiet foreach --recursive 'git --no-optional-locks status --porcelain -unormal' || echo '?'
  } 2>/dev/null)" ]
}

forget_worktrees() { # forget_worktrees REPO ID...: git's own entries of ours. Not by prune, which would take those of the
  # user's worktrees too that are not there right now, as on a disk that is not mounted.
  entries=$(git -C "$1" rev-parse --path-format=absolute --git-common-dir 2>/dev/null) || return 0
  entries=$entries/worktrees
  shift
  for entry in "$@"; do
    shift
    IFS= read -r place 2>/dev/null <"$entries/$entry/gitdir" || continue
    case $place in /*) ;; *) place=$entries/$entry/$place ;; esac
    # shellcheck disable=SC3013 # dash, bash, busybox and zsh all have -ef; git has resolved links in it, and we have not
    { [ "$place" = "$H/work/$entry/.git" ] || [ "${place%"/$entry/.git"}" -ef "$H/work" ]; } && set -- "$@" "$entries/$entry"
  done
  [ $# = 0 ] || rm -rf "$@"
  rmdir "$entries" 2>/dev/null
  :
}

inspect() { # inspect DIR BASE BRANCH DIRTY: what a new agent would start from. BRANCH empty: not asked about
  cd "$1" 2>/dev/null || { echo "missing $1"; return 0; }
  echo "dir $(pwd -P)"
  if told=$(git rev-parse --show-toplevel --path-format=absolute --git-common-dir --is-shallow-repository "${2:-HEAD}^{commit}" 2>/dev/null) && ! is_option "$2"; then
    top=${told%%"$nl"*} base=${told##*"$nl"} told=${told#*"$nl"}
    echo "top $top"
    # the repository itself, when this is a linked worktree of it, which may go: an agent's own, for example
    case ${told%%"$nl"*} in */.git) echo "main ${told%/.git"$nl"*}" ;; *) echo "main $top" ;; esac
    case $told in *"${nl}true$nl"*) echo shallow ;; esac
  elif top=$(LC_ALL=C git rev-parse --show-toplevel 2>&1); then
    echo "top $top"
    git rev-parse --verify -q HEAD >/dev/null && echo nobase || echo empty
    return 0
  else
    is_in_repository && echo "broken $(printf '%s' "${top#fatal: }" | tr '\n' ' ')"
    return 0
  fi
  if [ -n "$3" ]; then
    git check-ref-format "refs/heads/$3" && ! is_option "$3" || { echo badbranch; return 0; }
    ! tip=$(git rev-parse -q --verify "refs/heads/$3^{commit}") || { base=$tip && echo exists; }
  fi
  echo "base $base"
  [ -z "$4" ] || save_tree "$top" 'uncommitted work'
}

is_in_repository() { # although git says that it is in none, or cannot use it
  [ -e HEAD ] && [ -d objects ] && [ -d refs ] && return 0
  around=$(pwd -P)
  until [ -e "$around/.git" ]; do
    [ -n "$around" ] || return 1
    around=${around%/*}
  done
}

is_option() { case $1 in -*) ;; *) return 1 ;; esac; } # of git, which takes it for one
