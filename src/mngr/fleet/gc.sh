# shellcheck shell=sh
# What is left over on this host and belongs to no agent. `leftovers` prints one line each, "KIND DETAIL"; `sweep` removes
# what is safe to remove. Work that might be somebody's is named and left alone.

leftovers() { # leftovers TRASH_BEFORE
  cd "$H" 2>/dev/null || return 0
  for found in agents/.*.[0-9]* .park.[0-9]*; do
    [ -e "$found" ] || continue
    is_alive "${found##*.}" || echo "file $found"
  done
  for found in work/*; do
    [ -e "$found" ] && [ ! -d "agents/${found#work/}" ] || continue
    if is_saved "$found"; then echo "work $found"; else echo "unsaved $found"; fi
  done
  for found in trash/*; do
    case $found in *.files | 'trash/*') continue ;; esac
    read -r since <"$found" && [ "$since" -lt "$1" ] && echo "trash $found"
  done 2>/dev/null
  [ ! -S "$S" ] || t list-panes -a -f '#{@mngr}' -F '#{@mngr}' 2>/dev/null | while read -r id; do [ -d "agents/$id" ] || echo "session $id"; done
  for found in repos/*.git; do
    [ -d "$found" ] || continue
    grep -q -s -F "$H/$found/objects" work/*/.git/objects/info/alternates || grep -q -s . "$found"/refs/mngr/snapshots/*/* "$found"/refs/mngr/trash/* || echo "store $found"
  done
  [ ! -f feed ] || [ "$(wc -c <feed)" -lt 10000000 ] || echo "feed feed"
}

is_saved() { # is_saved WORK: nothing is uncommitted in it, and no commit would go with it
  [ -e "$1/.git" ] && [ -z "$(git --no-optional-locks -C "$1" status --porcelain 2>&1)" ] || return 1
  if [ -d "$1/.git" ]; then # a clone: what the store that it borrows from does not have
    own=$(git -C "$1" rev-list --count --all HEAD --not --alternate-refs 2>/dev/null)
  else
    own=$(git -C "$1" rev-list --count HEAD --not --branches --tags --remotes 2>/dev/null)
  fi
  [ "$own" = 0 ]
}

sweep() { # sweep KIND DETAIL
  cd "$H" || return 1
  case $1 in
    file | store) rm -rf "./$2" ;;
    work)
      common=$(git -C "$2" rev-parse --path-format=absolute --git-common-dir 2>/dev/null)
      rm -rf "./$2"
      [ ! -d "$common" ] || git -C "$common" worktree prune 2>/dev/null
      ;;
    trash) empty_trash "$2" ;;
    session) t kill-session -t "=$2" ;;
    feed) tail -n 10000 feed >feed.new && mv feed.new feed ;;
  esac
}

empty_trash() {
  { read -r _ && read -r _ && IFS= read -r repo && IFS= read -r place; } <"$1"
  if [ -n "$repo" ]; then git -C "$repo" update-ref -d "$place" 2>/dev/null; else rm -rf "$place"; fi
  rm -f "./$1"
}
