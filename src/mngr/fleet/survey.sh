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
  [ "$ASK" = tmux ] || ! living "$@" 2>/dev/null || exit 0
  exec tmux -u -S "$S" list-panes -a -f '#{@mngr}' -F "$FIELDS"
}

# The processes in panes are the children of the tmux server, and the kernel tells them for less than tmux costs.

living() { # living ID...: "alive ID PID" of each that is in a pane; false unless whatever lives in panes is known so
  server='' known=' ' told='' count=0
  for id; do
    [ -f "./$id/pid" ] && read -r launcher _ <"./$id/pid" || continue
    case $launcher in '' | *[!0-9]*) continue ;; esac
    # Still the one that wrote it, and not another with its number: a shell keeps its script open until it ends.
    # shellcheck disable=SC3013 # a shell that does not know -ef leaves it to tmux
    [ "/proc/$launcher/fd/10" -ef "./$id/launch" ] || [ "/proc/$launcher/fd/255" -ef "./$id/launch" ] || continue
    [ -n "$server" ] || find_server "$launcher" || return 1
    known="$known$launcher " told="${told}alive $id $launcher$nl" count=$((count + 1))
  done
  [ -n "$server" ] || return 1
  for child in $children; do
    case $known in
      *" $child "*) count=$((count - 1)) ;;
      *) [ ! -e "/proc/$child/exe" ] || return 1 ;; # one that has ended has no program
    esac
  done
  [ "$count" = 0 ] && printf %s "$told"
}

find_server() { # find_server PID: $server, that process's parent, if it is ours; and its $children
  read -r stat <"/proc/$1/stat" || return 1
  # shellcheck disable=SC2086 # its fields behind the name: state and parent
  set -- ${stat##*) }
  is_number "$2" && read -r name <"/proc/$2/comm" && [ "$name" = 'tmux: server' ] || return 1
  line='' children=''
  read -r line <"/proc/$2/cmdline" || : # without an end of line, and without what stands between its words
  case $line in *"-S$S"*) ;; *) return 1 ;; esac
  read -r children <"/proc/$2/task/$2/children" || [ -n "$children" ] || return 1
  server=$2
}

is_number() { case $1 in '' | *[!0-9]*) return 1 ;; esac; }

read_files() { # one process for all; a pipe or a device in the place of a file would never end, so then one by one
  set -- ./*/agent.json ./*/state ./*/exit
  for file; do [ -f "$file" ] || [ ! -e "$file" ] || odd=1; done
  if [ -z "$odd" ]; then
    LC_ALL=C grep -a '' /dev/null "$@"
  else
    for file; do [ ! -f "$file" ] || LC_ALL=C grep -a '' /dev/null "$file"; done
  fi
}

survivors() { # survivors ID...: which of these have a program that lives on without a session
  for id in "$@"; do
    [ -f "$H/agents/$id/pid" ] && read -r _ pid <"$H/agents/$id/pid" && is_number "$pid" && is_alive "$pid" || continue
    if [ -r "/proc/$pid/environ" ]; then tr '\0' '\n' <"/proc/$pid/environ"; else ps eww -o command= -p "$pid" | tr ' ' '\n'; fi 2>/dev/null |
      grep -q -x "MNGR_AGENT_ID=$id" && echo "$id $pid"
  done
  :
}
