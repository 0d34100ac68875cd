# shellcheck shell=sh
# What `tutorial sync` asks git, in the repository of the tutorial. The user's index and files are never touched.

changed() { # changed TOP PATH...: those that differ from the last commit, as git status prints them
  cd "$1" || return
  shift
  git --no-optional-locks --literal-pathspecs -c core.quotePath=false status --porcelain -- "$@"
}

is_here() { # is_here TOP BRANCH
  git -C "$1" rev-parse -q --verify "refs/heads/$2" >/dev/null
}

lay_out() { # lay_out TOP BRANCH TO PATH...: these paths as they are on the branch, as files below TO
  cd "$1" || return
  branch=$2 to=$3
  shift 3
  GIT_INDEX_FILE=$to/.index
  export GIT_INDEX_FILE
  git read-tree "refs/heads/$branch" &&
    git --literal-pathspecs ls-files -z -- "$@" | git checkout-index -q -z --stdin --prefix="$to/"
}

work() { # work TOP BASE BRANCH: the number of its commits, then the paths that they change
  git -C "$1" rev-list --count "$2..refs/heads/$3" &&
    git -C "$1" -c core.quotePath=false diff --name-only "$2...refs/heads/$3"
}
