# shellcheck shell=sh
# Moves an agent's branch, with its work dir, to a commit: `take_commit WORK BRANCH COMMIT HOW`. Prints "same", or how
# many commits on it is now. Whatever the agent is in the middle of is left alone.

take_commit() { # HOW: --ff-only, or --no-edit to merge
  cd "$1" || exit 1
  export LC_ALL=C # git's words are read
  on=$(git symbolic-ref -q --short HEAD)
  [ "$on" = "$2" ] || { echo "it is on ${on:-a commit of its own}, not on its branch $2" >&2; exit 1; }
  ! git rev-parse -q --verify MERGE_HEAD >/dev/null || { echo 'it is in the middle of a merge' >&2; exit 1; }
  before=$(git rev-parse HEAD)
  ! git merge-base --is-ancestor "$3" HEAD || { echo same; exit 0; }
  if ! told=$(git merge -q "$4" "$3" 2>&1); then
    begun=$(git rev-parse -q --verify MERGE_HEAD) && [ "$begun" = "$3" ] && git merge --abort 2>/dev/null # nobody else's
    printf '%s\n' "$told" | tr '\n' ' ' >&2
    exit 1
  fi
  git rev-list --count "$before"..HEAD
}
