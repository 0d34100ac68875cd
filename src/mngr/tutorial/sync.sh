# shellcheck shell=sh
# What `tutorial sync` asks git, in the repository of the tutorial. The user's index and files are never touched.

changed() { # changed TOP PATH...: those that differ from the last commit, as git status prints them
  cd "$1" || return
  shift
  git --no-optional-locks --literal-pathspecs -c core.quotePath=false status --porcelain -- "$@"
}

branches() { # branches TOP: all of them, a line each
  git -C "$1" for-each-ref --format='%(refname:lstrip=2)' refs/heads
}

lay_out() { # lay_out TOP BRANCH TO PATH...: these paths as they are on the branch, as files below TO. Links are
  # laid out as files as well: those of an agent could lead anywhere.
  cd "$1" || return
  branch=$2 to=$3
  shift 3
  GIT_INDEX_FILE=$to/.index
  export GIT_INDEX_FILE
  git read-tree "refs/heads/$branch" &&
    git --literal-pathspecs ls-files -z -- "$@" | git -c core.symlinks=false checkout-index -q -z --stdin --prefix="$to/"
}

work() { # work TOP BASE BRANCH: the number of its commits, then the paths in which it differs, each with a NUL
  git -C "$1" rev-list --count "$2..refs/heads/$3" &&
    git -C "$1" diff --no-renames --name-only -z "$2..refs/heads/$3"
}
