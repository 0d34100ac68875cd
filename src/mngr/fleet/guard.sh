# shellcheck shell=sh
# Ends commands that were given to this host, whatever became of the connection that they came by. Whose a process is: it
# carries MNGR_EXEC=TOKEN in its environment, or descends from one that does.

guard() { # guard TOKEN: until our caller says that all is well, or is no longer there
  read -r word
  [ "$word" = "done" ] || end_marked "$1"
}

end_marked() { # end_marked TOKEN: TERM, and KILL two seconds later; one that has not begun yet is waited for a moment
  told='' rounds=0
  while [ "$rounds" -lt 80 ]; do
    mine=$(marked "$1")
    [ -n "$mine" ] || [ "$rounds" -lt 10 ] || return 0
    for pid in $mine; do
      case "$told " in *" $pid "*) [ "$rounds" -ge 40 ] && kill -s KILL "$pid" ;; *) kill -s TERM "$pid" && kill -s CONT "$pid" ;; esac
      told="$told $pid"
    done 2>/dev/null
    rounds=$((rounds + 1))
    sleep 0.05
  done
}

marked() { # marked TOKEN: pids. Each process of our own is passed over: it has the token on its command line only
  { by_mark "$1"; ps -A -o pid= -o ppid= -o stat= 2>/dev/null || ps -o pid= -o ppid= -o stat=; } | awk '
    $1 == "env" { want[$2] = 1; next }
    $3 !~ /^[ZX]/ { parent[$1] = $2 }
    END {
      for (grew = 1; grew;) { grew = 0; for (p in parent) if (!(p in want) && (parent[p] in want)) want[p] = grew = 1 }
      for (p in want) if (p in parent) print p
    }'
}

by_mark() { # "env PID" for each that carries it
  if [ -r /proc/self/environ ]; then
    LC_ALL=C grep -l -a "MNGR_EXEC=$1" /proc/[0-9]*/environ 2>/dev/null | awk -F/ '$3 ~ /^[0-9]+$/ { print "env", $3 }'
  else
    ps -A eww -o pid= -o command= | awk -v mark=" MNGR_EXEC=$1" 'index($0 " ", mark " ") { print "env", $1 }'
  fi
}
