# shellcheck shell=sh
# What agents show of themselves at this moment, in a number of processes that does not grow with theirs. `logs` is of
# collect.sh and `screens` of screen.sh.

sizes() { # "log ID BYTES" and "result ID INODE-BYTES" from lines of ls. %.0f, because %d ends at 2 GB in some awks
  LC_ALL=C awk '
    { split($10, path, "/"); if ($10 == "./" path[2] "/result.json") result[path[2]] = $1 "-" $6; else log_of[path[2]] += $6 }
    END {
      for (id in log_of) printf "log %s %.0f\n", id, log_of[id]
      for (id in result) printf "result %s %s\n", id, result[id]
    }'
}

results() { # results ID...: a line of ls for each that has handed one in: a file, and no link to one
  cd "$H/agents" || return 0
  for id in "$@"; do
    shift
    [ ! -f "./$id/result.json" ] || [ -L "./$id/result.json" ] || set -- "$@" "./$id/result.json"
  done
  [ $# = 0 ] || LC_ALL=C ls -ind "$@"
} 2>/dev/null

trees() { # "tree ID PROCESSES SECONDS" of CPU for each agent whose pane is alive. Times are [[dd-]hh:]mm:ss, or 1h02 (busybox)
  {
    [ ! -S "$S" ] || t list-panes -a -f '#{@mngr}' -F 'pane #{@mngr} #{?pane_dead,0,#{pane_pid}}'
    ps -A -o pid= -o ppid= -o stat= -o time=
  } 2>/dev/null | LC_ALL=C awk '
    function seconds(time, days, part, parts, i, sum) {
      if (i = index(time, "-")) { days = substr(time, 1, i - 1); time = substr(time, i + 1) }
      if (i = index(time, "h")) time = substr(time, 1, i - 1) ":" substr(time, i + 1) ":0"
      parts = split(time, part, ":")
      for (i = 1; i <= parts; i++) sum = sum * 60 + part[i]
      return days * 86400 + sum
    }
    $1 == "pane" { if ($3 > 0) { agent[$3] = $2; count[$2] = spent[$2] = 0 } next }
    NF == 4 && $3 !~ /^[ZX]/ { parent[$1] = $2; cpu[$1] = seconds($4) }
    END {
      for (pid in cpu) {
        steps = 0 # ps looks at one process after the other: a number that is used again meanwhile can make a circle
        for (top = pid; !(top in agent) && (top in parent) && steps < 1000; top = parent[top]) steps++
        if (top in agent) { count[agent[top]]++; spent[agent[top]] += cpu[pid] }
      }
      for (id in count) printf "tree %s %d %.2f\n", id, count[id], spent[id]
    }'
}

here() { # here ID...: "here ID" for each that exists
  for id in "$@"; do [ ! -d "$H/agents/$id" ] || echo "here $id"; done
}
