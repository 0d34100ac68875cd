# shellcheck shell=sh
# Ends agents: `stop GRACE ID...` ends the whole process tree of each, politely and then not, and nothing else. A constant
# number of processes, however many agents. Prints "stopped ID", "was ID" (nothing of it was running), "gone ID"; and
# "survives PID" for what not even KILL ends.
#
# Whose a process is: it descends from the agent's pane, shares its terminal session, or carries MNGR_AGENT_ID in its
# environment (which finds what was started by setsid or a double fork). We and our own ancestors are spared, so that an
# agent may stop itself: the end of its session takes those.

stop() { # stop TICKS ID...: a tick of patience is 50 ms
  patience=$1 now=$(date +%s) ids='' live='' idle='' rest=''
  shift
  look "$@"
  for id in "$@"; do
    [ -d "$H/agents/$id" ] || { rest="$rest $id" && continue; } # gone, and its processes there; or on its way
    ids="$ids $id" state=''
    read -r state _ 2>/dev/null <"$H/agents/$id/state"
    [ "$state" != stopped ] || { idle="$idle $id" && continue; }
    [ ! -s "$H/agents/$id/exit" ] || continue
    case $panes in *" ended:$id "*) continue ;; esac
    printf 'stopped %s\n' "$now" >"$H/agents/$id/state" # first: whatever its exit code will be, it was us
    live="$live $id"
  done
  # shellcheck disable=SC2086
  end_trees $ids $rest
  for id in $live $idle $rest; do # a start or a create that came between has been ended too, and is to be called stopped
    state=''
    read -r state _ 2>/dev/null <"$H/agents/$id/state"
    [ "$state" = stopped ] || t has-session -t "=$id" 2>/dev/null || [ ! -d "$H/agents/$id" ] || printf 'stopped %s\n' "$now" >"$H/agents/$id/state"
  done
  # First: a caller that stopped itself no longer hears us. Who waits for an agent that goes hears of that alone.
  [ -n "${destroying:-}" ] || for id in $live; do say "$id" stopped; done
  for id in $ids; do
    case "$live " in *" $id "*) echo "stopped $id" ;; *) echo "was $id" ;; esac
  done
  for id in $rest; do gone "$id" || echo "was $id"; done
}

look() { # look ID...: $panes: "SESSION PID", and " ended:ID " behind the pane of an agent whose program has ended
  panes=''
  [ -S "$S" ] || return 0
  panes=$({
    for id in "$@"; do printf 'set -t =%s: @stopping 1\n' "$id"; done # spares tmux a hook for each that ends
    echo "list-panes -a -F '#{session_name} #{?pane_dead,0,#{pane_pid}}#{?#{&&:#{@mngr},#{pane_dead}}, ended:#{@mngr} ,}'"
  } | t source-file - 2>/dev/null)
}

end_trees() { # end_trees ID...
  late='' due=''
  for id in "$@"; do [ -s "$H/agents/$id/pid" ] || late="$late $id"; done
  mine=$(ours "$@")
  for signal in TERM CONT; do signal_all "$signal"; done # CONT: a suspended process must run to end
  hang_up
  ticks=0
  for nap in 0.01 0.01 0.03; do any_left && sleep "$nap"; done # most end at once
  while any_left && [ "$ticks" -lt "$patience" ]; do
    ticks=$((ticks + 1))
    [ "$ticks" != 20 ] || [ -r /proc/self/status ] || signal_all HUP
    end_late
    sleep 0.05
  done
  kill_sessions "$@"
  rounds=0
  while mine=$(ours "$@") && [ -n "$mine" ] && [ "$rounds" -lt 20 ]; do # what forked meanwhile is found by the next round
    rounds=$((rounds + 1))
    signal_all KILL
    kill_sessions "$@" # a start that came between has made new ones
    any_left && sleep 0.05
  done
  for pid in $mine; do echo "survives $pid"; done
}

end_late() { # the program of a launcher that had not started it when we looked, a tick after it is there: it may have
  # something to say about TERM. Nobody else that came since: what TERM has begun may need helpers
  for pid in $due; do
    case $nl$mine$nl in *"$nl$pid$nl"*) ;; *) kill -s TERM "$pid" 2>/dev/null && mine=$mine$nl$pid ;; esac
  done
  due=''
  for id in $late; do
    pid=''
    read -r _ pid 2>/dev/null <"$H/agents/$id/pid"
    case $pid in '' | 0* | *[!0-9]*) continue ;; esac
    due="$due $pid" late="${late%%" $id"*}${late#*" $id"}"
  done
}

hang_up() { # HUP for what ignores TERM, as interactive shells do. Nobody else: it would cut short what TERM has begun.
  files=''
  for pid in $mine; do files="$files /proc/$pid/status"; done
  # TERM is the third bit of the fourth digit. Where there is no /proc, all get HUP after a second.
  # shellcheck disable=SC2086,SC2013
  for file in $(LC_ALL=C grep -l '^SigIgn:.*[4-7c-f]...$' /dev/null $files 2>/dev/null); do
    file=${file#/proc/}
    kill -s HUP "${file%/status}" 2>/dev/null
  done
}

signal_all() { for pid in $mine; do kill -s "$1" "$pid" 2>/dev/null; done; }

any_left() {
  for pid in $mine; do is_alive "$pid" && return 0; done
  return 1
}

kill_sessions() {
  for id in "$@"; do printf 'kill-session -t =%s\n' "$id"; done | t source-file - 2>/dev/null
  return 0
}

ours() { # ours ID...: the pids of these agents' processes
  roots=''
  while read -r session pid _; do
    case " $* " in *" $session "*) [ "$pid" = 0 ] || roots="$roots$pid " ;; esac
  done <<EOF
$panes
EOF
  { by_environment "$@"; all_processes; } |
    LC_ALL=C awk -v self="$$" -v roots="$roots" '
      BEGIN { n = split(roots, list, " "); for (i = 1; i <= n; i++) root[list[i]] = want[list[i]] = 1 }
      /^\/proc\/[0-9]+\/environ$/ { split($0, part, "/"); want[part[3]] = 1; next }
      $1 == "env" { want[$2] = 1; next }
      /^\/proc\// { # a name can have blanks, brackets and line ends: what counts is behind its last bracket, on the last line
        split($0, part, "/")
        if (!sub(/^.*\) /, "")) next
        $0 = part[3] " " $2 " " $4 " " $1
      }
      { delete parent[$1] }
      $4 !~ /^[ZX]/ { parent[$1] = $2; session[$1] = $3 }
      END {
        for (p in parent) if (session[p] in root) want[p] = 1
        for (grew = 1; grew;) { grew = 0; for (p in parent) if (!(p in want) && (parent[p] in want)) want[p] = grew = 1 }
        for (p = self; p > 1; p = parent[p]) spared[p] = 1
        for (p in want) {
          if (!(p in parent) || (p in spared)) continue
          for (q = p; q > 1 && q != self; q = parent[q]);
          if (q != self) print p
        }
      }'
}

all_processes() { # "PID PARENT SESSION STATE", or as /proc has it: ps reads three files for each, and one will do
  if [ -r /proc/self/stat ]; then
    LC_ALL=C grep -a '' /proc/[0-9]*/stat 2>/dev/null
  else
    ps -A -o pid= -o ppid= -o sess= -o stat= 2>/dev/null || ps -A -o pid= -o ppid= -o pgid= -o stat=
  fi
}

by_environment() { # "/proc/PID/environ" or "env PID" for every process that carries the id of one of these agents, but the user's connect_command
  pattern=$(printf '%s|' "$@")
  pattern="MNGR_AGENT_ID=(${pattern%|})"
  if [ -r /proc/self/environ ]; then
    # A variable by itself, not one whose value quotes it. Only where grep has no -z (old busybox) must quoting do.
    if printf 'a\0b\0' | grep -q -z -x b 2>/dev/null; then z=-z exact="^$pattern\$"; else z='' exact="(^|[^A-Z_])$pattern([^0-9a-f]|\$)"; fi
    # shellcheck disable=SC2086
    files=$(LC_ALL=C grep -l -a $z -E "$exact" /proc/[0-9]*/environ 2>/dev/null)
    # shellcheck disable=SC2086
    [ -z "$files" ] || LC_ALL=C grep -L -a $z '^MNGR_INSIDE_CONNECT_COMMAND=' /dev/null $files 2>/dev/null
  else
    ps -A eww -o pid= -o command= | LC_ALL=C awk -v pattern=" $pattern( |\$)" '$0 ~ pattern && !/ MNGR_INSIDE_CONNECT_COMMAND=/ { print "env", $1 }'
  fi
}
