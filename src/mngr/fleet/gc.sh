# shellcheck shell=sh
# What is left over on this host and belongs to no agent. `leftovers` prints one line each, "KIND DETAIL"; `sweep` removes
# what is safe to remove, and nothing that has not the shape of its kind. Work that might be somebody's is named and left
# alone. Needs tree.sh.

leftovers() { # leftovers TRASH_BEFORE FAR: FAR=1: others bring things here before they begin to make agents
  cd "$H" 2>/dev/null || return 0
  for found in agents/.*.[0-9]* .park.[0-9]* .stop.[0-9]* repos/*.git.[0-9]*; do
    [ -e "$found" ] && has_shape file "$found" && ! is_alive "${found##*.}" && echo "file $found"
  done
  # sessions before work dirs: nobody's work goes while somebody still works in it
  [ ! -S "$S" ] || t list-panes -a -f '#{@mngr}' -F '#{@mngr}' 2>/dev/null | while read -r id; do
    has_shape session "$id" && [ ! -d "agents/$id" ] && echo "session $id"
  done
  for found in work/*; do
    [ -e "$found" ] && [ ! -d "agents/${found#work/}" ] || continue
    if has_shape work "$found" && is_saved "$found"; then echo "work $found"; else echo "unsaved $(in_one_line "$found")"; fi
  done
  for found in trash/*; do
    case $found in *.files) [ ! -e "$found" ] || [ -e "${found%.files}" ] || echo "unsaved $(in_one_line "$found")" ;; esac
    has_shape trash "$found" && read -r since <"$found" && [ "$since" -lt "$1" ] && echo "trash $found"
  done 2>/dev/null
  for found in repos/*.git; do
    [ -d "$found" ] && has_shape store "$found" && is_unused "$found" && { [ -z "$2" ] || is_old "$found"; } && echo "store $found"
  done
  for found in carry/*; do
    [ -e "$found" ] && has_shape carry "$found" && is_old "$found" && echo "carry $found"
  done
  [ ! -f feed ] || [ "$(wc -c <feed)" -lt 10000000 ] || echo "feed feed"
}

has_shape() { # has_shape KIND DETAIL: a name can hold anything, a newline and a forged line behind it too
  name=${2##*/}
  case $2 in *"$nl"* | */*/*) return 1 ;; esac
  case $1:$2 in
    file:agents/.*.* | file:.park.* | file:.stop.* | file:repos/*.git.*) case ${name##*.} in '' | *[!0-9]*) return 1 ;; esac ;;
    work:work/* | trash:trash/* | session:*) case $name in *[!0-9a-f]*) return 1 ;; ????????????) ;; *) return 1 ;; esac ;;
    carry:carry/*) case $name in '' | .*) return 1 ;; esac ;;
    store:repos/*.git | feed:feed) ;;
    *) return 1 ;;
  esac
}

is_old() { # is_old PATH: nothing in it has changed for a day
  recent=$(find "$1" -mtime -1 2>/dev/null | head -n 1) && [ -z "$recent" ]
}

in_one_line() { printf '%s' "$1" | LC_ALL=C tr '\001-\037\177' '?'; }

is_saved() { # is_saved WORK: nothing is uncommitted in it, and no commit would go with it
  [ -e "$1/.git" ] && [ -z "$(git --no-optional-locks -C "$1" status --porcelain -unormal 2>&1)" ] && ! own_submodules "$1" || return 1
  if [ -d "$1/.git" ]; then # a clone: what the store that it borrows from does not have
    own=$(git -C "$1" rev-list --count --all HEAD --not --alternate-refs 2>/dev/null)
  else
    own=$(git -C "$1" rev-list --count HEAD --not --branches --tags --remotes 2>/dev/null)
  fi
  [ "$own" = 0 ]
}

is_unused() { # is_unused STORE: nobody borrows from it, nothing is kept in it, and no create that is under way will need it
  for creating in agents/*/creating; do [ ! -e "$creating" ] || return 1; done
  ! grep -q -s -F "$H/$1/objects" work/*/.git/objects/info/alternates || return 1
  kept=$(git --git-dir="$1" for-each-ref --count=1 refs/mngr/snapshots refs/mngr/trash 2>/dev/null) && [ -z "$kept" ]
}

sweep() { # sweep KIND DETAIL: says "kept" of what has become somebody's meanwhile
  cd "$H" || return 1
  has_shape "$1" "$2" || { echo "$2 is no leftover" >&2; return 1; }
  case $1 in
    file | carry) rm -rf "./$2" ;;
    store) if is_unused "$2"; then rm -rf "./$2"; else echo kept; fi ;;
    work)
      common=$(git -C "$2" rev-parse --path-format=absolute --git-common-dir 2>/dev/null)
      rm -rf "./$2" || { chmod -R u+rwX "./$2" && rm -rf "./$2"; } || return 1
      [ ! -d "$common" ] || forget_worktrees "$common" "${2#work/}"
      ;;
    trash) empty_trash "$2" ;;
    session) t kill-session -t "=$2" ;;
    feed) mv feed feed.old && : >>feed ;; # nobody loses a line: whoever follows it goes on with the new one
  esac
}

empty_trash() { # empty_trash RECORD: only what park can have put there
  { read -r _ && read -r _ && IFS= read -r repo; } <"$1"
  if [ -n "$repo" ]; then git -C "$repo" update-ref -d "refs/mngr/$1" 2>/dev/null; fi
  rm -rf "./$1.files" && rm -f "./$1"
}
