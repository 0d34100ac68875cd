# shellcheck shell=sh
# Everything about all agents of this host, in one go: a handful of processes, however many agents there are.
# Directories are listed before and after the files are read: only what was there both times can be called damaged.

survey() { # the last thing in its script, which ends as tmux does
  cd "$H/agents" 2>/dev/null || exit 0
  set -- *
  [ "$1" != '*' ] || exit 0
  printf 'before %s\n' "$@"
  odd=''
  read_files 2>/dev/null
  for creating in ./*/creating; do
    creator=''
    [ ! -f "$creating" ] || read -r creator <"$creating"
    case $creator in '' | 0 | *[!0-9]*) ;; *) is_alive "$creator" && echo "creating $creating alive" && continue ;; esac
    [ ! -e "$creating" ] || echo "creating $creating dead" # it may have finished since we read who it is
  done 2>/dev/null
  set -- *
  printf 'after %s\n' "$@"
  [ -S "$S" ] || exit 0
  [ "$ASK" = tmux ] || ! children || exit 0
  exec tmux -u -S "$S" list-panes -a -f '#{@mngr}' -F "$FIELDS"
}

# The processes in the panes are the children of the tmux server, and the kernel tells them for a tenth of what tmux costs.
# False where it does not, as on macOS. Those that have ended have no program.
children() {
  for file in ./*/pid; do
    read -r launcher _ <"$file" && read -r stat <"/proc/$launcher/stat" || continue
    # shellcheck disable=SC2086 # its fields behind the name: state and parent
    set -- ${stat##*) }
    read -r name <"/proc/$2/comm" && [ "$name" = 'tmux: server' ] || continue
    found=''
    read -r found <"/proc/$2/task/$2/children" || [ -n "$found" ] || continue
    alive=''
    for child in $found; do [ ! -e "/proc/$child/exe" ] || alive="$alive $child"; done
    echo "children$alive"
    return 0
  done 2>/dev/null
  return 1
}

read_files() { # one process for all; a pipe or a device in the place of a file would never end, so then one by one
  set -- ./*/agent.json ./*/state ./*/exit ./*/pid
  for file; do [ -f "$file" ] || [ ! -e "$file" ] || odd=1; done
  if [ -z "$odd" ]; then
    LC_ALL=C grep -a '' /dev/null "$@"
  else
    for file; do [ ! -f "$file" ] || LC_ALL=C grep -a '' /dev/null "$file"; done
  fi
}

survivors() { # survivors ID...: which of these have a program that lives on without a session
  for id in "$@"; do
    read -r _ pid <"$H/agents/$id/pid" 2>/dev/null && is_alive "$pid" || continue
    if [ -r "/proc/$pid/environ" ]; then tr '\0' '\n' <"/proc/$pid/environ"; else ps eww -o command= -p "$pid" | tr ' ' '\n'; fi 2>/dev/null |
      grep -q -x "MNGR_AGENT_ID=$id" && echo "$id $pid"
  done
  :
}
