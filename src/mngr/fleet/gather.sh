# shellcheck shell=sh
# What agents have made, for who sent them: `gather MARK ID...` prints lines about them, their screens (by screen.sh), "MARK
# lists" with lines about their files, "MARK tar", and then one archive with the files of all. It writes nothing here: the
# disk may be full.
#
# Anything can lie where an agent writes. Only regular files are sent, never a link, a pipe or a device; of each agent a
# result of $RESULT bytes at most, $FILES artifacts of $MOST bytes, and $HISTORY bytes of the rest, the smallest first.
: "${RESULT:=0}" "${MOST:=0}" "${FILES:=0}" "${HISTORY:=0}" "${LEFT:=0}"

gather() {
  mark=$1 ids=''
  shift
  cd "$H/agents" || return 0
  export LC_ALL=C COPYFILE_DISABLE=1 # the latter for macOS, whose tar would add files of its own
  unset TIME_STYLE QUOTING_STYLE BLOCK_SIZE LS_BLOCK_SIZE # which change what ls prints
  for id in "$@"; do [ ! -d "./$id" ] || ids="$ids $id"; done
  # shellcheck disable=SC2086
  set -- $ids
  for id in "$@"; do tell "$id"; done
  screens "$mark" '' '' "$@"
  list=$(found "$@") # step by step, and not all of it in one pipe: fewer processes at a time
  list=$(printf '%s\n' "$list" | by_size)
  list=$(printf '%s\n' "$list" | choose)
  printf '%s lists\n%s\n%s tar\n' "$mark" "$list" "$mark"
  case $(tar --version) in *GNU*) raw=--no-unquote ;; *) raw='' ;; esac # GNU tar would take \t in a name for a tab
  # -T is not POSIX, but GNU, BSD and busybox have it
  printf '%s\n' "$list" | sed -n 's/^file //p' | tar ${raw:+"$raw"} -cf - -T -
  :
} 2>/dev/null

is_regular() { [ -f "$1" ] && [ ! -L "$1" ]; } # to read a pipe would never end

tell() { # tell ID: "agent ID HEAD DIRTY ON", and the texts of its state and of its end
  state='' end=''
  is_regular "./$1/state" && IFS= read -r state <"./$1/state"
  is_regular "./$1/exit" && IFS= read -r end <"./$1/exit"
  echo "agent $1 $(work "$1")"
  printf 'state %s %s\nexit %s %s\n' "$1" "$state" "$1" "$end"
}

work() ( # work ID: the commit of its branch, files not committed, and the branch that is checked out, which may be another
  head='' dirty=-1 on=''
  unset MNGR_WORK_DIR MNGR_BRANCH
  # shellcheck source=/dev/null
  is_regular "./$1/env" && command . "./$1/env" >/dev/null
  if [ -n "${MNGR_BRANCH-}" ] && cd "$MNGR_WORK_DIR"; then
    # shellcheck disable=SC2046
    set -- $(git -c core.fsmonitor=false --no-optional-locks status --porcelain=v2 --branch | awk '
      $1 != "#" { dirty++ }
      $1 == "#" && $2 == "branch.oid" { head = $3 }
      $1 == "#" && $2 == "branch.head" { on = $3 }
      END { if (on != "") print head, dirty + 0, on }')
    [ $# != 3 ] || { head=$1 dirty=$2 on=$3; }
    [ "$on" = "$MNGR_BRANCH" ] || head=$(git rev-parse -q --verify "refs/heads/$MNGR_BRANCH")
  fi
  echo "${head:--} $dirty ${on:--}"
)

found() { # found ID...: lines of ls for the files that may be sent, "log PATH" for each that is a session log, oldest first,
  # and "odd PATH" for what is no file, or has a name of several lines, or cannot be looked into
  for id in "$@"; do
    shift
    for file in result.json events.jsonl messages.jsonl create.log; do
      is_regular "./$id/$file" && set -- "$@" "./$id/$file"
    done
    [ ! -e "./$id/artifacts" ] || set -- "$@" "./$id/artifacts"
    is_regular "./$id/conversations" || continue
    while IFS= read -r log || [ -n "$log" ]; do
      case $log in */../*) continue ;; *"/agents/$id/"*) log=./$id/${log#*"/agents/$id/"} ;; *) continue ;; esac
      is_regular "$log" && echo "log $log" && set -- "$@" "$log"
    done <"./$id/conversations"
  done
  [ $# != 0 ] || return 0
  find "$@" -type f ! -path "*$nl*" -exec ls -nd {} +
  find "$@" \( -type f -path "*$nl*" -o ! -type f ! -type d -o -type d ! -perm -0500 \) -print0 |
    tr '\n\0' '?\n' | sed 's/^/odd /'
}

by_size() { # "NUMBER KIND PATH": logs as they come, then files by their size. A name may have blanks in it
  awk '
    $1 == "log" { print NR - 1000000000, $0 }
    $1 == "odd" { print 0, $0 }
    $1 ~ /^-/ { size = $5; for (i = 0; i < 8; i++) sub(/^[^ ]+ +/, ""); print size, "file", $0 }' | sort -n
}

choose() { # "log PATH", "file PATH", "result ID BYTES"; "left PATH", $LEFT times for an agent, and then "more ID NUMBER"
  awk -v result="$RESULT" -v most="$MOST" -v files="$FILES" -v history="$HISTORY" -v several="$LEFT" '
    { size = $1; kind = $2; path = $0; sub(/^[^ ]+ [^ ]+ /, "", path); split(path, part, "/"); id = part[2] }
    kind == "log" { print "log", path; next }
    kind == "file" {
      if (part[3] == "artifacts") fits = (artifacts[id] += size) <= most + 0 && ++number[id] <= files + 0
      else if (part[3] == "result.json") { print "result", id, size; fits = size + 0 <= result + 0 }
      else fits = (rest[id] += size) <= history + 0
      if (fits) { print "file", path; next }
    }
    { if (++left[id] <= several + 0) print "left", path }
    END { for (id in left) if (left[id] > several + 0) print "more", id, left[id] - several }'
}
