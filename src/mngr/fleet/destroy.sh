# shellcheck shell=sh
# Removing agents. `losses` says what would be lost, before anybody is asked. Then, when the processes have ended and can
# change nothing any more, `settle` looks again and keeps it, and `release` removes what is the agent's.
# An agent is described by: ID MODE WORK SOURCE BRANCH OWN BASE (OWN=1: create made the branch).

spared='' rubbish='' destroyed='' damaged='' safe=''
: "${ignored:=}" # 1: losses tells too whether there are ignored files
: "${far:=}" "${have:=}" "${unsafe:=0}" # of an agent whose source is on another machine: 1; the newest commits that are kept there; how
# many of those that it started from are not
: "${doomed:=}" # --exclude=BRANCH for each branch that goes with this batch: none of them keeps the commits of another

describe() { # describe ID MODE WORK SOURCE BRANCH OWN BASE
  id=$1 mode=$2 work=$3 source=$4 branch=$5 own=$6 base=$7
  [ -n "$mode" ] || guess
  case $mode in worktree | clone | copy) work=$H/work/$id ;; esac # whatever a record says: nothing else is ours
}

guess() { # its record is damaged: what the work dir itself tells
  work=$H/work/$id source='' branch='' own='' base=''
  if [ -f "$work/.git" ]; then mode=worktree; elif [ -d "$work/.git" ]; then mode=clone; elif [ -d "$work" ]; then mode=copy; else mode=none; fi
  [ "$mode" != worktree ] || source=$(git -C "$work" rev-parse --path-format=absolute --git-common-dir)
  case $mode in worktree | clone) branch=$(git -C "$work" symbolic-ref -q --short HEAD) ;; esac
  case $branch in mngr/*) own=1 ;; esac
}

losses() { # prints "loss ID COMMITS FILES IGNORED" for each agent; one that cannot be told counts as a loss
  describe "$@"
  commits=0 files=0 dropped=0
  case $mode in
    worktree | clone) { [ ! -d "$work" ] || count_changes; } && count_commits || commits='?' ;;
    copy)
      if [ ! -d "$work" ]; then :; elif [ -e "$H/agents/$id/made" ]; then
        files=$(changed_since "$H/agents/$id/made" | grep -c '')
      else
        commits='?'
      fi
      ;;
  esac
  echo "loss $id $commits $files $dropped"
}

count_changes() { # $files: uncommitted ones. False when it is no repository of its own: git would go on and ask one around it
  [ -e "$work/.git" ] && changes=$(git --no-optional-locks -C "$work" status --porcelain -unormal ${ignored:+--ignored} 2>/dev/null) || return 1
  if [ -n "$changes" ]; then
    files=$(printf '%s\n' "$changes" | grep -c -v '^!! ')
    case $nl$changes in *"$nl!! "*) dropped=1 ;; esac
  fi
  ! own_submodules "$work"
}

changed_since() { # changed_since FILE: by the time of change too, where find knows it: what was unpacked can look older
  find "$work" \( -newer "$1" -o -cnewer "$1" \) ! -type d 2>/dev/null || find "$work" -newer "$1" ! -type d 2>/dev/null
}

tips() { # the commits it stands on: its HEAD, its branch if that is elsewhere, and all that only a clone has
  if [ ! -d "$work" ]; then :; elif [ "$mode" = clone ]; then
    git -C "$work" for-each-ref --format='%(objectname)' refs/heads refs/tags
    git -C "$work" stash list --format=%H
  fi 2>/dev/null
  [ ! -d "$work" ] || git -C "$work" rev-parse -q --verify HEAD # a branch without a commit has none
  [ "$mode" != worktree ] || [ -z "$branch" ] || [ "$own" != 1 ] || git -C "$source" rev-parse -q --verify "refs/heads/$branch"
  :
}

count_commits() { # $commits: those that no other branch, tag or remote of the user's repository has
  commits=0 found=$(tips | sort -u)
  if [ -n "$far" ]; then
    [ -n "$found" ] || return 0
    # shellcheck disable=SC2086
    commits=$(git -C "$work" rev-list --count $found ${base:+"^$base"} --not $have 2>/dev/null) && commits=$((commits + unsafe))
    return
  fi
  if [ -z "$found" ] || { [ "$found" = "$base" ] && is_safe; }; then return 0; fi
  mine='//' # no branch is called that
  [ "$mode" != worktree ] || [ "$own" != 1 ] || mine=$branch
  # shellcheck disable=SC2086
  commits=$(git -C "$source" rev-list --count $found --not "--exclude=$mine" $doomed --branches --tags --remotes 2>/dev/null) && return 0
  [ "$mode" = clone ] || return 1
  # the source has never seen them: what was made here, and the base too if that is not there either
  # shellcheck disable=SC2086
  commits=$(git -C "$work" rev-list --count $found ${base:+"^$base"}) || return 1
  is_safe || commits=$((commits + 1))
}

list_new() { # list_new ID MODE ...: "new ID COMMIT PARENT..." for each commit on top of its base, for whoever knows which of them are kept elsewhere
  describe "$@"
  [ -d "$work" ] || return 0
  found=$(tips | sort -u)
  # shellcheck disable=SC2086
  [ -z "$found" ] || git -C "$work" rev-list --parents $found ${base:+"^$base"} | sed "s/^/new $id /"
} 2>/dev/null

is_safe() { # the base is in a branch of the user's own. The answer for the last one is kept: a batch has one base.
  [ "$safe" = "$source:$base" ] && return 0
  others=$(git -C "$source" rev-list --count "$base" --not '--exclude=mngr/*' --branches --tags --remotes 2>/dev/null) &&
    [ "$others" = 0 ] && safe=$source:$base
}

end_all() { # end_all TICKS ID...: stops them. Whose process nothing ends is not destroyed.
  told=$H/.stop.$$ survivors=''
  destroying=1 stop "$@" >"$told"
  rubbish=$nl$told
  while read -r word _; do [ "$word" != survives ] || survivors=1; done <"$told"
  shift
  [ -n "$survivors" ] || return 0
  for id in "$@"; do
    alive=$(ours "$id" | tr '\n' ' ')
    [ -z "$alive" ] || { echo "failed $id still alive: process ${alive% }" && spare "$id"; }
  done
}

is_spared() { case $spared in *" $1 "*) ;; *) return 1 ;; esac }

settle() { # settle FORCE NAME ID MODE ...: what it has now is what there is to lose
  is_spared "$3" && return 0
  losses "$3" "$4" "$5" "$6" "$7" "$8" "$9"
  if [ "$commits$files" = 00 ]; then return 0; fi
  if [ -n "$1" ]; then shift && keep "$@"; else echo "refused $3" && spare "$3"; fi
}

spare() { # spare ID: it stays, stopped
  spared="$spared $1 "
  say "$1" stopped
}

park() { # park NAME ID MODE ...: keeps commits and files for two weeks, or fails
  name=$1
  shift
  describe "$@"
  now=$(date +%s) ref=refs/mngr/trash/$id repo=$source
  mkdir -p "$H/trash" || return 1
  case $mode in
    worktree | clone)
      tip=$(tips | tail -n 1)
      if [ -d "$work" ]; then
        told=$(save_tree "$work" "what $name left when it was destroyed") || return 1
        left=$(printf '%s\n' "$told" | sed -n 's/^left //p' | head -n 1)
        [ -z "$left" ] || { echo "$left is a repository of its own" >&2; return 1; }
        ! own_submodules "$work" || { echo 'its submodules have work of their own' >&2; return 1; }
        tip=${told##*tree }
        tie_together || return 1
      fi
      [ -n "$tip" ] || return 0
      if [ "$mode" = worktree ]; then
        git -C "$source" update-ref "$ref" "$tip" || return 1
      else
        [ -z "$far" ] && git -C "$source" rev-parse --git-dir >/dev/null 2>&1 || repo=$store
        git -C "$work" push -q --no-verify "$repo" "$tip:$ref" || return 1
      fi
      printf '%s\n%s\n%s\n%s\n' "$now" "$name" "$repo" "$ref" >"$H/trash/$id"
      echo "parked $id $repo $ref"
      ;;
    copy)
      # the record first: files without one would never go
      printf '%s\n%s\n\n%s\n' "$now" "$name" "$H/trash/$id.files" >"$H/trash/$id" || return 1
      mv "$work" "$H/trash/$id.files" || { rm -f "$H/trash/$id"; return 1; }
      echo "parked $id - $H/trash/$id.files"
      ;;
  esac
}

tell_parked() { # tell_parked ID: what an earlier destroy, which never came to an end, has parked
  { read -r _ && read -r _ && IFS= read -r repo && IFS= read -r ref; } 2>/dev/null <"$H/trash/$1" && echo "parked $1 ${repo:--} $ref"
  :
}

tie_together() { # $tip: one commit that has all others that it stands on as parents too
  others=''
  for other in $(tips | sort -u); do git -C "$work" merge-base --is-ancestor "$other" "$tip" || others="$others -p $other"; done
  # shellcheck disable=SC2086
  [ -z "$others" ] || tip=$(as_mngr -C "$work" commit-tree -p "$tip" $others -m "all that $name left" "$tip^{tree}")
}

keep() { # keep NAME ID ...: an agent whose work cannot be kept is spared
  (park "$@") 2>"$H/.park.$$" || { echo "failed $2 its work could not be kept (--purge drops it): $(why "$H/.park.$$")" && spare "$2"; }
  rm -f "$H/.park.$$"
}

release() { # release ID MODE ...: what is the agent's goes; processes have ended
  is_spared "$1" && return 0
  describe "$@"
  mv "$H/agents/$id" "$H/agents/.gone.$id.$$" 2>/dev/null # from here on nobody sees it
  say "$id" destroyed
  rubbish="$rubbish$nl$H/agents/.gone.$id.$$"
  case $mode in worktree | clone | copy) rubbish="$rubbish$nl$H/work/$id" ;; esac
  destroyed="$destroyed $id "
  echo "destroyed $id"
  case $2 in '') [ "$mode" != worktree ] || damaged="$damaged$nl$source$nl$id:$branch" ;; esac
}

clear_away() { # the files of all of them at once, and what git knew of their worktrees
  printf '%s' "$rubbish" | tr '\n' '\0' | xargs -0 rm -rf 2>/dev/null || clear_stubborn
  [ -z "$damaged" ] || printf '%s\n' "${damaged#"$nl"}" | while IFS= read -r repo && IFS= read -r pair; do forget "$repo" "$pair"; done
}

clear_stubborn() { # what is in directories that are read-only, as caches of packages are
  printf '%s\n' "${rubbish#"$nl"}" | while IFS= read -r path; do
    [ -d "$path" ] || continue
    chmod -R u+rwX "$path" 2>/dev/null
    rm -rf "$path" 2>/dev/null && continue
    id=${path##*/}
    case $id in .gone.*) id=${id#.gone.} && id=${id%.*} ;; esac
    echo "failed $id it is gone, but not $path: remove that yourself"
  done
}

forget() { # forget REPO ID:BRANCH...: branches that create made and nobody else has. git refuses one that is checked out.
  repo=$1 gone_ids=''
  shift
  for pair in "$@"; do
    shift
    case $destroyed in *" ${pair%%:*} "*) gone_ids="$gone_ids ${pair%%:*}" ;; *) continue ;; esac
    [ -z "${pair#*:}" ] || set -- "$@" "${pair#*:}"
  done
  # shellcheck disable=SC2086
  forget_worktrees "$repo" $gone_ids
  [ $# = 0 ] || git -C "$repo" branch -q -D "$@"
} 2>/dev/null

drop_snapshots() { # drop_snapshots ID REPO...: and their refs, which are in one of these
  [ -d "$H/snapshots/${1:?}" ] && ! is_spared "$1" || return 0
  rm -rf "$H/snapshots/$1"
  snapshots=refs/mngr/snapshots/$1
  shift
  for repo in "$@"; do
    git -C "$repo" for-each-ref --format='delete %(refname)' "$snapshots" | git -C "$repo" update-ref --stdin
  done 2>/dev/null
}
